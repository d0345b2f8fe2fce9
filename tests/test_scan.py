"""The scan finds the known cases, leaves out what cannot be shared, and its published precision is its own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.errors import DataError, NotFound, PlacementError
from kitlib.heat import clash, role_of
from kitlib.kernels import open_kernel
from kitlib.labels import Label, labels_table, precision, precision_table, read_labels
from kitlib.lines import find_leaf, line_span
from kitlib.model import Layout, Member
from kitlib.scan import Row, ScanFilter, _Atom, _score, read_allow, scan, scan_source
from kitlib.shorthand import make_layout
from kitlib.sources import open_source

# struct page_counter of Linux 5.17 (include/linux/page_counter.h), before usage got a line of its own
PAGE_COUNTER_5_17 = make_layout(
    "usage=atomic_long_t:8 min:8 low:8 high:8 max:8 emin:8 min_usage=atomic_long_t:8 "
    "children_min_usage=atomic_long_t:8 elow:8 low_usage=atomic_long_t:8 children_low_usage=atomic_long_t:8 "
    "watermark:8 failcnt:8 parent=void*:8",
    "page_counter",
)


def rows_of(layout: Layout, **options: int) -> list[Row]:
    return scan([layout], **options)


@pytest.mark.parametrize(
    ("struct", "member", "mates", "rank"),
    [
        ("file", "f_count", {"f_op", "f_inode", "f_lock"}, 1),
        ("dentry", "d_lockref", {"d_iname[]"}, 1),
        ("mem_cgroup", "moving_account", {"move_lock_task", "vmstats_percpu"}, 1),
        ("sock", "__sk_common.skc_refcnt", {"sk_lock.slock", "sk_rx_dst"}, 1),
    ],
)
def test_known_cases_of_linux_6_1_are_at_the_top_of_their_struct(
    struct: str, member: str, mates: set[str], rank: int
) -> None:
    rows = rows_of(open_source("linux-6.1").struct(struct))
    row = next(r for r in rows if r.member == member)
    assert mates <= set(row.mates) | {m.split(".")[0] for m in row.mates} | {"sk_lock.slock"}
    assert rows.index(row) < rank


def test_page_counter_before_its_change() -> None:
    top = rows_of(PAGE_COUNTER_5_17)[0]
    assert (top.member, top.line, top.kind) == ("usage", 0, "atomic+both")
    assert {"high", "max", "min_usage"} <= set(top.mates)


def test_the_fixed_page_counter_keeps_usage_alone() -> None:
    rows = rows_of(open_source("linux-6.1").struct("page_counter"))
    assert "usage" not in {r.member for r in rows}


def test_struct_file_before_and_after_the_patch() -> None:
    before, after = (rows_of(open_source(name).struct("file")) for name in ("file-5.8", "file-5.8-patch"))
    assert before[0].member == "f_count"
    score = {r.member: r.score for r in after}
    assert score["f_count"] < before[0].score


def test_rows_are_sorted_and_say_why() -> None:
    rows = scan(open_source("linux-6.1").structs())
    assert [r.score for r in rows] == sorted((r.score for r in rows), reverse=True)
    assert all(0 < r.score <= 100 and r.mates and f"dirties line {r.line}" in r.reason for r in rows)


def test_a_lock_with_the_data_it_guards_scores_low() -> None:
    guarded = rows_of(make_layout("lock=spinlock_t:4 n:4 list=struct_list:16 pad:64"))
    beside = rows_of(make_layout("lock=spinlock_t:4 n:4 users=atomic_t:4 fops=void*:8 pad:64"))
    assert beside[0].score > 3 * max((r.score for r in guarded), default=0)


def test_arms_of_a_union_do_not_meet() -> None:
    def member(name: str, type_text: str) -> Member:
        return Member(name, type_text, 0, 64, 8)

    arms = Layout(None, "union", 8, 8, (member("users", "atomic_long_t"), member("fops", "void *")))
    plain = make_layout("u:8 max_size:8 pad:64")
    union = replace(plain.members[0], name=None, type="union {...}", inner=arms)
    (row,) = rows_of(replace(plain, members=(union, *plain.members[1:])))
    assert row.mates == ("max_size",)


def test_a_nested_struct_is_opened_and_its_own_pairs_are_left_to_it() -> None:
    inner = make_layout("users=atomic_t:4 lock=spinlock_t:4", "inner")
    holder = make_layout("part:8 fops=void*:8 pad:64", "holder")
    part = replace(holder.members[0], type="struct inner", inner=inner)
    rows = rows_of(replace(holder, members=(part, *holder.members[1:])))
    assert {r.member: r.mates for r in rows} == {"part.users": ("fops",), "part.lock": ("fops",)}
    unnamed = replace(part, type="struct {...}", inner=replace(inner, name=None))
    (first, *_) = rows_of(replace(holder, members=(unnamed, *holder.members[1:])))
    assert set(first.mates) == {"part.lock", "fops"}  # nobody else reports an unnamed type's own pairs


def test_an_array_is_opened_once() -> None:
    inner = make_layout("users=atomic_t:4 x:4", "bucket")
    holder = make_layout("max_size:8 table:128", "holder")
    table = replace(holder.members[1], type="struct bucket[16]", inner=inner, count=16)
    (row,) = rows_of(replace(holder, members=(holder.members[0], table)))
    assert (row.member, row.mates) == ("table[].users", ("max_size",))


def test_line_size_and_phase_count() -> None:
    layout = make_layout("users=atomic_t:4 a:60 fops=void*:8 b:120")
    assert "fops" not in {m for r in rows_of(layout) for m in r.mates}
    assert "fops" in rows_of(layout, line_bytes=128)[0].mates
    assert "fops" not in {m for r in rows_of(layout, phase=60) for m in r.mates}
    with pytest.raises(PlacementError):
        rows_of(layout, line_bytes=48)


types = st.sampled_from(["atomic_t:4", "spinlock_t:4", "void*:8", "u32:4", "u64:8", "refcount_t:4"])


@settings(max_examples=100, deadline=None)
@given(st.lists(types, min_size=1, max_size=24), st.sampled_from([32, 64]), st.sampled_from([0, 8, 24]))
def test_mates_really_share_the_line(members: list[str], line: int, phase: int) -> None:
    layout = make_layout(" ".join(f"m{i}={text}" for i, text in enumerate(members)))
    for row in scan([layout], line_bytes=line, phase=phase):
        for path in (row.member, *row.mates):
            leaf = find_leaf(layout, path)
            low, high = line_span(leaf.bit_offset, leaf.bit_size, line, phase)
            assert low <= row.line <= high
        assert role_of(row.member, find_leaf(layout, row.member).type).is_writer


def test_filters_and_the_allow_list() -> None:
    layouts = list(open_source("linux-6.1").structs())
    everything = scan(layouts)
    assert scan(layouts, ScanFilter(min_score=50)) == [r for r in everything if r.score >= 50]
    assert {r.struct for r in scan(layouts, ScanFilter(structs=("dent*",)))} == {"dentry"}
    assert {r.kind.split("+")[0] for r in scan(layouts, ScanFilter(kinds=("lock",)))} == {"lock"}
    allowed = scan(layouts, ScanFilter(allow=read_allow("# known\nfile.f_*  # why\n\nsock.*\n", "x")))
    assert {r.struct for r in everything} - {r.struct for r in allowed} >= {"sock"}
    assert not [r for r in allowed if r.struct == "file" and r.member.startswith("f_")]
    with pytest.raises(DataError, match=r"x: line 2: 'file' is no struct\.member"):
        read_allow("a.b\nfile\n", "x")
    with pytest.raises(NotFound, match="did you mean dentry"):
        scan_source(open_source("linux-6.1"), ScanFilter(structs=("dentri",)))


def test_equal_layouts_are_looked_at_once() -> None:
    assert len(scan([PAGE_COUNTER_5_17, PAGE_COUNTER_5_17])) == len(scan([PAGE_COUNTER_5_17]))


def test_a_program_with_dwarf_only(compile_c: Callable[..., Path]) -> None:
    source = """
    #include <pthread.h>
    #include <stdatomic.h>
    struct shared { _Atomic long users; const char *name; pthread_mutex_t lock; long pad[32]; };
    struct shared keep;
    """
    result = scan_source(open_source(str(compile_c(source, "-g"))), ScanFilter(structs=("shared",)))
    top = result.rows[0]
    assert (top.struct, top.member) == ("shared", "users")
    assert {"name", "lock"} <= set(top.mates)


def test_one_hot_neighbour_weighs_more_than_a_line_of_plain_data() -> None:
    plain = rows_of(make_layout("users=atomic_t:4 " + " ".join(f"n{i}=u32:4" for i in range(15)) + " pad:64"))[0]
    hot = rows_of(make_layout("users=atomic_t:4 lock=spinlock_t:4 pad:128"))
    assert len(plain.mates) == 15
    assert next(r for r in hot if r.member == "users").score > plain.score
    one, two = (_score(role_of("users", "atomic_t"), [_spin()] * n) for n in (1, 2))
    assert one < two < 1.5 * one  # the second that waits for a line adds less than the first


def _spin() -> _Atom:
    return _Atom(0, 32, "lock", role_of("lock", "spinlock_t"), (), -1)


def test_score_by_hand() -> None:
    op = _Atom(0, 64, "f_op", role_of("f_op", "const struct file_operations *"), (), -1)
    pair = [op, _spin()]  # 6 for the lock, half of 5 for the pointer
    assert _score(role_of("f_count", "atomic_long_t"), pair) == round(100 * (1 - exp(-8.5 / 6)), 1)
    assert _score(role_of("f_count", "atomic_long_t"), pair[::-1]) == _score(role_of("f_count", "atomic_long_t"), pair)


def test_the_lock_of_a_part_and_an_atomic_state_weigh_less() -> None:
    main, part = role_of("f_lock", "spinlock_t"), role_of("vqs_list_lock", "spinlock_t")
    assert (main.writes, part.writes) == (7, 4.2)
    assert role_of("d_seq", "seqcount_spinlock_t").writes == 5
    assert role_of("tick_dep_mask", "atomic_t").writes == role_of("a_flags", "atomic_t").writes == 3
    assert role_of("max_active", "atomic_t").writes == 8  # named as a count too


def test_a_lock_guards_plain_data_but_not_another_writer() -> None:
    lock, count, data = role_of("lock", "spinlock_t"), role_of("users", "atomic_t"), role_of("n", "int")
    assert clash(lock, data) == 0
    assert clash(lock, count) > clash(lock, role_of("p", "void *")) > 0
    assert clash(count, data) > 0


# -- the published precision --------------------------------------------------------------------------


def test_the_labelled_sample() -> None:
    labels = read_labels()
    assert len(labels) == 60
    assert len({(x.struct, x.member) for x in labels}) == 60
    found = precision(labels)
    assert (found.true, found.n) == (13, 60)
    assert found.low < found.estimate < found.high
    table = precision_table(labels)
    assert list(table["rows"])[-1] == 60 == sum(table["rows"][:-1])
    assert sum(table["judged true"][:-1]) == 13
    assert list(table["judged true"]) == [5, 4, 4, 13]
    assert list(labels_table(labels)["score"]) == sorted((x.score for x in labels), reverse=True)
    assert str(found) == "13 of 60: 22% (95 % interval 13% to 34%)"


def test_the_labels_are_of_rows_that_this_scan_gives() -> None:
    result = scan_source(open_kernel("6.12"), ScanFilter(50))
    found = {(r.struct, r.member): (r.line, r.kind, r.score) for r in result.rows}
    for label in read_labels():
        assert found[label.struct, label.member] == (label.line, label.kind, label.score)
    drawn = random.Random(20261130).sample(sorted(result.rows, key=lambda r: (r.struct, r.member)), 60)
    assert {(r.struct, r.member) for r in drawn} == {(x.struct, x.member) for x in read_labels()}


def test_every_row_of_a_whole_kernel_leads_to_its_member() -> None:
    kernel = open_kernel("6.1")
    rows = scan_source(kernel, ScanFilter(40)).rows
    assert len(rows) > 200
    for row in rows:
        assert kernel.struct(row.struct).member(row.top)


def test_wilson_interval_by_hand() -> None:
    def label(true: bool) -> Label:
        return Label("s", "m", 0, "lock+both", 50.0, true, "x")

    found = precision([label(True)] * 5 + [label(False)] * 5)
    assert (round(found.low, 3), found.estimate, round(found.high, 3)) == (0.237, 0.5, 0.763)
    with pytest.raises(DataError, match="no labelled rows"):
        precision([])


def test_malformed_labels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("struct,member,line,kind,score,label,why\ns,m,0,lock,5,maybe,x\n")
    with pytest.raises(DataError, match="line 2: a row needs the label"):
        read_labels(path)
    path.write_text("a,b\n")
    with pytest.raises(DataError, match="line 1: the columns"):
        read_labels(path)


def kitlib(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", "scan", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line(tmp_path: Path) -> None:
    done = kitlib("linux-6.1", "--struct", "file", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    record = json.loads(done.stdout)
    assert list(record["rows"][0]) == ["struct", "member", "line", "mates", "kind", "score", "reason"]
    assert (record["rows"][0]["struct"], record["rows"][0]["member"]) == ("file", "f_count")
    text = kitlib("linux-6.1", "--top", "3")
    assert (text.returncode, len(text.stdout.splitlines())) == (1, 6)
    allow = tmp_path / "allow.txt"
    allow.write_text("*\n")
    none = kitlib("linux-6.1", "--allow", str(allow))
    assert none.returncode == 0
    wrong = kitlib("linux-6.1", "--struct", "nothing*")
    assert (wrong.returncode, wrong.stdout) == (2, "")
