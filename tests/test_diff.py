"""Layout differences: which members moved, changed line or got new company, and how two sources compare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.diff import diff_layouts, diff_sources
from kitlib.difftext import diff_record, diff_text, source_record, source_text
from kitlib.edit import Edit, Insert, Move, Remove, Swap, apply
from kitlib.errors import DataError, NotFound
from kitlib.kernels import open_kernel
from kitlib.lines import mates
from kitlib.model import AARCH64, GENERIC_64, I386, X86_64, Abi, Layout
from kitlib.shorthand import make_layout
from kitlib.sources import open_source


class Listed:
    """A source of given layouts."""

    kind = "test"

    def __init__(self, label: str, *layouts: Layout) -> None:
        self.label, self.layouts = label, layouts

    def names(self) -> list[str]:
        return sorted({x.name for x in self.layouts if x.name})

    def struct(self, name: str) -> Layout:
        for layout in self.layouts:
            if layout.name == name:
                return layout
        raise NotFound(f"no struct '{name}' in {self.label}")

    def structs(self) -> Iterator[Layout]:
        return iter(self.layouts)


def named(text: str, name: str, abi: Abi = X86_64) -> Layout:
    return make_layout(text, name, abi=abi)


def test_a_struct_is_the_same_as_itself() -> None:
    layout = make_layout("a:8 b:4:3 c:64")
    change = diff_layouts(layout, layout)
    assert (change.change, change.members, change.score, change.layout_changed) == ("same", (), 0.0, False)


def test_f_count_of_struct_file() -> None:
    before, after = (open_source(name).struct("file") for name in ("file-5.8", "file-5.8-patch"))
    change = diff_layouts(before, after)
    rows = {m.path: m for m in change.members}
    count = rows["f_count"]
    assert (count.change, count.lines_before, count.lines_after) == ("moved", (0, 0), (3, 3))
    assert (count.before and count.before.offset, count.after and count.after.offset) == (56, 248)
    assert {"f_inode", "f_op", "f_lock"} <= set(count.lost)
    assert "f_mode" not in count.lost  # they shared no 64-byte line before either
    assert rows["f_mode"].change == "shifted"
    assert rows["f_mode"].changed_line
    assert change.causes == ("f_count moved from behind f_write_hint to behind f_sb_err: +192 (offset 56 → 248)",)
    wide = {m.path: m for m in diff_layouts(before, after, line_bytes=128).members}
    assert "f_mode" in wide["f_count"].lost


def test_the_straddle_of_mmap_lock_is_told() -> None:
    before, after = (open_source(name).struct("mm_struct") for name in ("mm-5.12", "mm-5.13-seq"))
    change = diff_layouts(before, after)
    lock = next(m for m in change.members if m.path == "mmap_lock")
    assert lock.note == "no longer crosses a line between mmap_lock.count and mmap_lock.owner"
    assert change.causes == ("write_protect_seq inserted before pgtables_bytes: +8",)
    assert "mmap_lock" in change.reason
    back = next(m for m in diff_layouts(after, before).members if m.path == "mmap_lock")
    assert back.note == "now crosses a line boundary between mmap_lock.count and mmap_lock.owner"


def test_a_member_that_stays_but_gets_company_is_told() -> None:
    before = make_layout("hot=atomic_t:4 a:4 b:120 cold:8")
    after = apply(before, [Move("cold", after="a")])
    rows = {m.path: m for m in diff_layouts(before, after).members}
    assert (rows["hot"].change, rows["hot"].gained) == ("stays", ("cold",))


def test_a_type_that_only_changed_its_name_is_no_layout_change() -> None:
    before = make_layout("a=atomic_t:4 b=u32:4")
    change = diff_layouts(before, make_layout("a=refcount_t:4 b=u32:4"))
    assert (change.change, change.layout_changed) == ("changed", False)
    assert [(m.path, m.change) for m in change.members] == [("a", "retyped")]


edits = st.lists(st.integers(0, 1 << 30), min_size=0, max_size=5)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4, 8, 40]), min_size=2, max_size=12), edits, st.sampled_from([32, 64, 128]))
def test_rows_agree_with_the_model(sizes: list[int], picks: list[int], line: int) -> None:
    before = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(sizes)))
    after = before
    for number, pick in enumerate(picks):
        names = [m.name or "" for m in after]
        one, two = names[pick % len(names)], names[pick // 7 % len(names)]
        choices: list[Edit] = [Insert(f"u16 x{number}", before=one), Swap(one, two)]
        choices += [Remove(one)] if len(names) > 1 else []
        after = apply(after, [choices[pick // 49 % len(choices)]])
    change = diff_layouts(before, after, line_bytes=line)
    assert (change.change == "same") == (before == after)
    rows = {m.path: m for m in change.members}
    for name in {m.name or "" for m in before} & {m.name or "" for m in after}:
        row = rows.get(name)
        was, now = ({leaf.path for leaf in mates(x, name, line)} for x in (before, after))
        if row is None:
            assert before.member(name).bit_offset == after.member(name).bit_offset
            assert was == now
        else:
            assert (set(row.gained), set(row.lost)) == (now - was, was - now)
            moved = before.member(name).bit_offset != after.member(name).bit_offset
            assert (row.change in ("moved", "shifted")) == moved
    assert {p for p, r in rows.items() if r.change == "added"} == {m.name for m in after} - {m.name for m in before}
    assert {p for p, r in rows.items() if r.change == "removed"} == {m.name for m in before} - {m.name for m in after}
    json.dumps(diff_record(change), allow_nan=False)
    assert diff_text(change)


# -- two sources --------------------------------------------------------------------------------------


def test_added_removed_resized_and_ranked() -> None:
    a = Listed(
        "a", named("x:8", "gone"), named("n=atomic_t:4 p:60 q:8", "hot"), named("i:8 j:8", "cold"), named("k:8", "same")
    )
    b = Listed(
        "b",
        named("x:8", "new"),
        named("n=atomic_t:4 q:8 p:60", "hot"),
        named("i:8 j:8 l:8", "cold"),
        named("k:8", "same"),
    )
    result = diff_sources(a, b)
    assert {s.name: s.change for s in result.structs} == {
        "hot": "changed",
        "cold": "changed",
        "gone": "removed",
        "new": "added",
    }
    assert result.structs[0].name == "hot"
    assert result.compared == 3
    assert result.layout_changed
    assert result.verdict == "2 changed, 1 added, 1 removed; 3 structs in both"
    assert "gone" in source_text(result)
    assert source_record(result)["structs"][0]["name"] == "hot"


def test_two_objects_with_the_same_layouts_point_at_the_code() -> None:
    result = diff_sources(
        Listed("a.o", named("a:8", "s"), named("b:4", "t")), Listed("b.o", named("a:8", "s"), named("b:4", "t"))
    )
    assert (result.verdict, result.structs) == ("no layout changed (2 structs compared): look at code", ())


def test_inode_i_version_two_objects_of_one_source() -> None:
    """The commit that cost aim7 18 % changed two inlined functions and no member offset."""
    stub = "struct inode { long i_rcu[2]; long i_version; int i_count; };\n"
    old = open_source(stub + "long f(struct inode *i) { return ++i->i_version; } struct inode keep;")
    new = open_source(stub + "long f(struct inode *i) { return i->i_version += 2; } struct inode keep;")
    result = diff_sources(old, new)
    assert not result.layout_changed
    assert result.verdict.endswith("look at code")


def test_one_name_with_several_layouts_is_paired_by_equality() -> None:
    one, two, three = named("a:8", "s"), named("a:4", "s"), named("a:2", "s")
    result = diff_sources(Listed("a", one, two), Listed("b", three, one))
    assert [(s.size_before, s.size_after) for s in result.structs] == [(4, 2)]


def test_only_the_named_structs_are_compared() -> None:
    a, b = Listed("a", named("x:8", "s"), named("x:8", "t")), Listed("b", named("x:4", "s"), named("x:4", "t"))
    assert [s.name for s in diff_sources(a, b, ["t"]).structs] == ["t"]
    with pytest.raises(NotFound, match="no struct 'u' in b"):
        diff_sources(a, b, ["u"])
    only = Listed("c", named("x:8", "s"))
    assert [s.change for s in diff_sources(a, only, ["t"]).structs] == ["removed"]


def test_architectures_must_agree() -> None:
    a, b = Listed("a.o", named("x:8", "s")), Listed("b.o", named("x:8", "s", AARCH64))
    with pytest.raises(DataError, match=r"a\.o is x86-64 and b\.o is aarch64"):
        diff_sources(a, b)
    with pytest.raises(DataError, match="different architectures"):
        diff_sources(Listed("a", named("x:4", "s", I386)), Listed("b", named("x:4", "s", GENERIC_64)))
    assert diff_sources(a, Listed("raw", named("x:8", "s", GENERIC_64))).structs == ()


def test_unions_and_anonymous_members_are_compared_by_their_c_names() -> None:
    inner = make_layout("count:4 flags:4", "x")
    holder = make_layout("a:8 u:8 b:8")
    anonymous = replace(holder.members[1], name=None, inner=replace(inner, name=None))
    before = replace(holder, members=(holder.members[0], anonymous, holder.members[2]))
    swapped = replace(anonymous, inner=replace(apply(inner, [Swap("count", "flags")]), name=None))
    after = replace(before, members=(before.members[0], swapped, before.members[2]))
    assert {m.path for m in diff_layouts(before, after).members} == {"count", "flags"}


def test_two_whole_kernels() -> None:
    a, b = open_kernel("6.1"), open_kernel("6.12")
    result = diff_sources(a, b)
    kinds = [s.change for s in result.structs if s.layout_changed]
    assert result.compared + kinds.count("removed") == sum(1 for _ in a.structs())
    assert result.compared + kinds.count("added") == sum(1 for _ in b.structs())
    rows = {s.name: s for s in result.structs}
    assert (rows["file"].size_before, rows["file"].size_after) == (232, 184)
    assert not diff_sources(a, open_kernel("6.1")).structs
    with pytest.raises(NotFound, match=r"no kernel '6\.2' comes with the kit"):
        open_kernel("6.2")


def kitlib(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", "diff", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line() -> None:
    same = kitlib("inode-4.16", "inode-4.16")
    assert (same.returncode, same.stderr) == (0, "")
    assert "no layout changed" in same.stdout
    differs = kitlib("file-5.8", "file-5.8-patch", "file", "--format", "json")
    assert differs.returncode == 1
    assert json.loads(differs.stdout)["structs"][0]["name"] == "file"
    text = kitlib("linux-6.1", "linux-6.12")
    assert text.returncode == 1
    assert "look" in text.stdout
    wrong = kitlib("file-5.8", "file-5.8-patch", "fil")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean file" in wrong.stderr
