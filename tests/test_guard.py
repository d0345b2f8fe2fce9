"""Rules on layouts: what holds, what breaks, and which edit is named for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib import datafiles
from kitlib.baseline import history, snapshot
from kitlib.edit import Insert, Move, Remove, Swap, apply
from kitlib.errors import DataError, NotFound
from kitlib.guard import Outcome, check, evaluate, read_config
from kitlib.lines import line_span
from kitlib.model import I386, Layout
from kitlib.promise import write_rules, written_members
from kitlib.rulefile import read_rules
from kitlib.rules import Rule, RuleFile, Scope, StructRules
from kitlib.shorthand import make_layout
from kitlib.sources import open_source

RING = make_layout("head:8 tail:8 lock=spinlock_t:4 flags:4 stats:64 count=atomic_t:4", "ring")


def outcome(layout: Layout, kind: str, *members: str, scope: Scope | None = None, **numbers: int) -> Outcome:
    made = Rule("r", kind, members, tuple(numbers.items()), scope or Scope())
    (found,) = evaluate(StructRules(layout.name or "", (made,)), layout)
    return found


def status(layout: Layout, kind: str, *members: str, scope: Scope | None = None, **numbers: int) -> str:
    return outcome(layout, kind, *members, scope=scope, **numbers).status


@pytest.mark.parametrize(
    ("kind", "members", "numbers", "expected"),
    [
        ("apart", ["head", "count"], {}, "pass"),
        ("apart", ["head", "tail"], {}, "fail"),
        ("together", ["head", "flags"], {}, "pass"),
        ("together", ["head", "count"], {}, "fail"),
        ("together", ["head", "count"], {"lines": 2}, "pass"),
        ("at", ["lock"], {"offset": 16}, "pass"),
        ("at", ["lock"], {"offset": 20}, "fail"),
        ("on_line", ["count"], {"line": 1}, "pass"),
        ("on_line", ["stats"], {"line": 0}, "fail"),
        ("no_straddle", ["head", "count"], {}, "pass"),
        ("no_straddle", ["stats"], {}, "fail"),
        ("straddle", ["stats"], {}, "pass"),
        ("straddle", ["lock"], {}, "fail"),
        ("alone", ["count"], {}, "fail"),
        ("alone", ["count", "stats"], {}, "fail"),
        ("alone", ["head", "tail", "lock", "flags", "stats", "count"], {}, "pass"),
        ("size", [], {"bytes": 96}, "pass"),
        ("size", [], {"max_bytes": 95}, "fail"),
        ("size", [], {"bytes": 104}, "fail"),
        ("size", [], {"bytes": 88}, "fail"),
        ("lines", [], {"max_lines": 2}, "pass"),
        ("lines", [], {"max_lines": 1}, "fail"),
        ("lines", ["head", "lock"], {"max_lines": 1}, "pass"),
        ("lines", ["head", "stats"], {"max_lines": 1}, "fail"),
    ],
)
def test_each_kind_of_rule(kind: str, members: list[str], numbers: dict[str, int], expected: str) -> None:
    assert RING.size == 96
    assert status(RING, kind, *members, **numbers) == expected


def test_line_sizes_and_phases_are_all_checked() -> None:
    assert status(RING, "apart", "head", "count", scope=Scope((64, 128))) == "fail"
    found = outcome(RING, "on_line", "head", scope=Scope((64,), (0, 56, 60)), line=0)
    assert found.places == ((64, 60),)
    assert outcome(RING, "no_straddle", "head", scope=Scope((64,), None)).status == "pass"  # aligned to 8: never
    packed = make_layout("a:1 b:8", packed=True)
    assert len(outcome(packed, "no_straddle", "b", scope=Scope((64,), None)).places) == 7


def test_alone_allows_those_it_names() -> None:
    made = Rule("r", "alone", ("count",), allow=("stats",))
    assert evaluate(StructRules("ring", (made,)), RING)[0].status == "pass"


def test_a_member_that_vanished_is_undecided_and_never_ok() -> None:
    group = StructRules("ring", (Rule("r", "no_straddle", ("hed",)), Rule("ok", "size", (), (("max_bytes", 96),))))
    first, second = evaluate(group, RING)
    assert (first.status, second.status) == ("undecided", "pass")
    assert "did you mean head" in first.message
    report = check(RuleFile("x", (group,)), _one(RING))
    assert not report.ok


def test_a_file_of_which_nothing_applies_is_not_ok() -> None:
    skipped = Rule("r", "size", (), (("max_bytes", 1),), Scope(abis=("aarch64",)))
    report = check(RuleFile("x", (StructRules("ring", (skipped,)),)), _one(RING))
    assert report.count("skipped") == 1
    assert not report.ok


class _Source:
    kind = "test"

    def __init__(self, layout: Layout) -> None:
        self.layout, self.label = layout, "test"

    def struct(self, name: str) -> Layout:
        if name != self.layout.name:
            raise NotFound(f"no struct '{name}'")
        return self.layout

    def structs(self) -> Iterator[Layout]:
        return iter((self.layout,))


def _one(layout: Layout) -> _Source:
    return _Source(layout)


def test_configurations() -> None:
    made = Rule("r", "size", (), (("max_bytes", 96),), Scope(config=("CONFIG_SMP", "!CONFIG_DEBUG")))
    group = StructRules("ring", (made,))
    assert evaluate(group, RING)[0].status == "undecided"
    assert evaluate(group, RING, read_config("CONFIG_SMP=y\n# CONFIG_DEBUG is not set\n"))[0].status == "pass"
    assert evaluate(group, RING, read_config("CONFIG_SMP=y\nCONFIG_DEBUG=y\n"))[0].status == "skipped"
    assert status(RING, "size", scope=Scope(with_members=("debug",)), max_bytes=1) == "skipped"
    assert status(RING, "size", scope=Scope(without_members=("debug",)), max_bytes=96) == "pass"
    assert status(RING, "size", scope=Scope(abis=("x86-64",)), max_bytes=96) == "pass"


# -- which edit did it --------------------------------------------------------------------------------


def _edits(before: Layout, after: Layout, kind: str, *members: str, **numbers: int) -> tuple[str, ...]:
    made = Rule("r", kind, members, tuple(numbers.items()))
    group = StructRules(before.name or "", (made,), snapshot(before, members, "then"))
    (found,) = evaluate(group, after)
    assert found.status in ("fail", "undecided")
    return found.edits


def test_an_insertion_is_named_with_the_hole_it_made() -> None:
    before = make_layout("a:4 b:4 big:8 lock:8")
    after = apply(before, [Insert("u32 seq", after="b")])
    assert _edits(before, after, "at", "lock", offset=16) == ("seq inserted before lock: +8 (offset 16 → 24)",)


def test_a_removal_and_a_move_are_named() -> None:
    before = make_layout("a:8 b:8 c:8 d:8")
    assert _edits(before, apply(before, [Remove("b")]), "at", "d", offset=24) == (
        "b removed before d: -8 (offset 24 → 16)",
    )
    moved = apply(before, [Move("d", index=0)])
    assert _edits(before, moved, "at", "d", offset=24) == ("d moved from behind c to the front: -24 (offset 24 → 0)",)
    assert _edits(before, apply(before, [Remove("d")]), "at", "d", offset=24) == ("d removed or renamed",)


def test_growth_of_a_member_is_named() -> None:
    before, after = make_layout("a:8 lock:8 c:8"), make_layout("a:8 lock:24 c:8")
    assert _edits(before, after, "at", "c", offset=16) == ("lock grown 8 → 24 before c: +16 (offset 16 → 32)",)
    assert _edits(before, after, "size", max_bytes=24) == ("lock grown 8 → 24: +16",)


def test_a_same_size_move_across_a_line_is_caught() -> None:
    before = make_layout("hot:8 x:56 cold:8 y:56")
    after = apply(before, [Swap("hot", "cold")])
    assert before.size == after.size
    edits = _edits(before, after, "on_line", "hot", line=0)
    assert edits == ("hot moved from the front to behind x: +64 (offset 0 → 64)",)


def test_an_adjacent_swap_blames_the_member_the_rule_is_about() -> None:
    before = make_layout("x:56 hot:8 cold:8 y:56")
    edits = _edits(before, apply(before, [Swap("hot", "cold")]), "on_line", "hot", line=0)
    assert edits == ("hot moved from behind x to behind cold: +8 (offset 56 → 64)",)
    edits = _edits(before, apply(before, [Swap("hot", "cold")]), "on_line", "cold", line=1)
    assert edits == ("cold moved from behind hot to behind x: -8 (offset 64 → 56)",)


def test_a_newcomer_on_a_kept_line_is_named() -> None:
    before = make_layout("hot:8 a:56 b:8")
    after = apply(before, [Insert("u64 stat", after="hot")])
    made = Rule("r", "alone", ("hot",), allow=("a",))
    (found,) = evaluate(StructRules("s", (made,), snapshot(before, ["hot"], "then")), after)
    assert found.status == "fail"
    assert "stat inserted" in found.edits


def test_a_baseline_of_another_pointer_size_explains_nothing() -> None:
    group = write_rules(make_layout("a:8 b:8"), ["b"])
    small = make_layout("a:4 b:4 c:256", abi=I386)
    found = evaluate(group, small)
    assert all(not o.edits for o in found)


words = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=12)


@settings(max_examples=150, deadline=None)
@given(words, st.data())
def test_the_steps_add_up_to_the_shift(sizes: list[int], data: st.DataObject) -> None:
    before = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(sizes)))
    after = before
    for number in range(data.draw(st.integers(0, 4))):
        names = [m.name or "" for m in after]
        pick = data.draw(st.sampled_from(names))
        edit = data.draw(st.sampled_from([Insert(f"u16 new{number}", before=pick), Move(pick, index=0), Remove(pick)]))
        after = after if isinstance(edit, Remove) and len(names) == 1 else apply(after, [edit])
    since = history(snapshot(before), snapshot(after))
    assert sum(step.shift for step in since.steps) == after.size - before.size
    total = 0
    for step in since.steps[:-1]:
        total += step.shift
        old, new = since.before.find(step.anchor or ""), since.after.find(step.anchor or "")
        assert old is not None
        assert new is not None
        assert new.offset - old.offset == total
    for place in since.before.places:
        new = since.after.find(place.path)
        assert bool(since.explain(place.path)) == (new is None or new.bit_offset != place.bit_offset)


# -- writing rules ------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(words, st.sampled_from([(32,), (64,), (64, 128)]), st.booleans(), st.booleans(), st.data())
def test_written_rules_hold_for_their_own_layout(
    sizes: list[int], lines: tuple[int, ...], every_phase: bool, exclusive: bool, data: st.DataObject
) -> None:
    layout = make_layout(" ".join(f"m{i}:{size * 6}" for i, size in enumerate(sizes)))
    hot = data.draw(st.lists(st.sampled_from([m.name or "" for m in layout]), min_size=1, max_size=3, unique=True))
    group = write_rules(layout, hot, line_bytes=lines, phases=None if every_phase else (0,), exclusive=exclusive)
    assert {o.status for o in evaluate(group, layout)} == {"pass"}


@settings(max_examples=80, deadline=None)
@given(words, st.data())
def test_a_hot_member_that_changed_its_line_breaks_a_written_rule(sizes: list[int], data: st.DataObject) -> None:
    layout = make_layout(" ".join(f"m{i}:{size * 8}" for i, size in enumerate(sizes)))
    names = [m.name or "" for m in layout]
    hot, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    after = apply(layout, [Swap(hot, other)])
    spans = [line_span(x.member(hot).bit_offset, x.member(hot).bit_size) for x in (layout, after)]
    found = evaluate(write_rules(layout, [hot]), after)
    if spans[0] != spans[1] and layout.member(hot).size <= 64 and spans[0][0] == spans[0][1]:
        assert any(o.status == "fail" for o in found)


def test_without_hot_members_the_written_ones_are_taken() -> None:
    assert written_members(RING) == ["lock", "count"]
    with pytest.raises(DataError, match="say which members matter"):
        write_rules(make_layout("a:8 b:8"))
    with pytest.raises(NotFound, match="did you mean head"):
        write_rules(RING, ["haed"])


# -- the cases ----------------------------------------------------------------------------------------


def test_rules_written_for_mm_5_12_fail_with_the_reason_on_the_state_that_regressed() -> None:
    before = open_source("mm-5.12").struct("mm_struct")
    group = write_rules(before, ["mmap_lock"], source="mm-5.12")
    assert {o.status for o in evaluate(group, before)} == {"pass"}
    broken = evaluate(group, open_source("mm-5.13-seq").struct("mm_struct"))
    by_id = {o.rule.id: o for o in broken}
    assert by_id["straddle-mmap_lock"].edits == ("write_protect_seq inserted before mmap_lock: +8 (offset 120 → 128)",)
    assert by_id["apart-mmap_lock.count-mmap_lock.owner"].status == "fail"
    fixed = evaluate(group, open_source("mm-5.13-fixed").struct("mm_struct"))
    assert {o.status for o in fixed} == {"pass"}


@pytest.mark.parametrize(
    ("rules", "good", "bad"),
    [
        ("rules/mm_struct.toml", ["mm-5.12", "mm-5.13-fixed"], ["mm-5.13-seq"]),
        ("rules/struct_file.toml", ["file-5.8-patch"], ["file-5.8", "linux-6.1"]),
    ],
)
def test_the_shipped_rules(rules: str, good: list[str], bad: list[str]) -> None:
    parsed = read_rules(datafiles.path(rules))
    assert all(check(parsed, open_source(name)).ok for name in good)
    assert not any(check(parsed, open_source(name)).ok for name in bad)


def kitlib(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line_from_guard_to_check(tmp_path: Path) -> None:
    rules = str(tmp_path / "mm.toml")
    assert kitlib("guard", "mm-5.12", "mm_struct", "--hot", "mmap_lock", "-o", rules).returncode == 0
    assert kitlib("check", rules, "mm-5.12").returncode == 0
    broken = kitlib("check", rules, "mm-5.13-seq", "--format", "json")
    assert broken.returncode == 1
    record = json.loads(broken.stdout)
    assert (record["ok"], record["passed"], record["failed"]) == (False, 0, 3)
    assert record["outcomes"][0]["edits"] == ["write_protect_seq inserted before mmap_lock: +8 (offset 120 → 128)"]
    assert kitlib("check", rules, "mm-5.13-fixed").returncode == 0
    unknown = kitlib("check", rules, "file-5.8")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no struct 'mm_struct'" in unknown.stderr
    assert len(unknown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["guard", "mm-5.12", "mm_struct", "--hot", "mmap_lok"], "did you mean mmap_lock"),
        (["guard", "mm-5.12", "mm_struct", "--line-bytes", "x"], "give whole numbers"),
        (["guard", "mm-5.12", "mm_struct", "--hot", "mmap_lock", "--line-bytes", "48"], "use some of 32, 64"),
        (["guard", "mm-5.12", "mm_struct", "--as", "groups"], "say which with --hot"),
        (["guard", "file-5.8", "file", "--hot", "f_u,f_op", "--as", "groups"], "f_path, f_inode stand between them"),
        (["check", "none.toml", "mm-5.12"], "no such rules file"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words: list[str], message: str) -> None:
    done = kitlib(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_equal_layouts_under_another_name_do_not_confuse_the_baseline() -> None:
    group = write_rules(RING, ["lock"])
    assert {o.status for o in evaluate(group, replace(RING, name="other"))} == {"pass"}
