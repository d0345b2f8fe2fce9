"""Edits and scenarios: golden rows, undo and redo, the JSON form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kitlib import place
from kitlib.edit import Align, AlignStruct, Insert, Isolate, Move, Pad, Remove, Swap, apply
from kitlib.errors import DataError, NotFound, PlacementError
from kitlib.layoutjson import layouts_from_json, layouts_to_json
from kitlib.model import Layout, Member
from kitlib.scenario import Scenario
from kitlib.shorthand import make_layout

BASE = make_layout("a:8 lock=spinlock_t:4 b:4 c:8 d:1", "ring")


def rows(layout: Layout) -> list[tuple[str | None, int]]:
    return [(m.name, m.offset) for m in layout]


def test_move() -> None:
    assert rows(apply(BASE, [Move("lock", after="d")])) == [("a", 0), ("b", 8), ("c", 16), ("d", 24), ("lock", 28)]
    assert rows(apply(BASE, [Move("d", before="a")]))[:2] == [("d", 0), ("a", 8)]
    assert rows(apply(BASE, [Move("a", index=4)]))[-1][0] == "a"


def test_moving_a_member_where_it_is_changes_nothing() -> None:
    assert apply(BASE, [Move("lock", after="a")]) == apply(BASE, [Move("lock", before="b")]) == BASE


def test_move_back_is_the_identity() -> None:
    moved = apply(BASE, [Move("lock", after="d")])
    assert apply(moved, [Move("lock", after="a")]) == BASE


def test_swap_align_isolate_pad_remove() -> None:
    assert rows(apply(BASE, [Swap("a", "c")]))[0] == ("c", 0)
    aligned = apply(BASE, [Align("b", 64)])
    assert rows(aligned)[2] == ("b", 64)
    assert (aligned.size, aligned.align) == (128, 64)
    assert apply(aligned, [Align("b", 0)]) == BASE
    assert apply(BASE, [AlignStruct(64)]).size == 64
    alone = apply(BASE, [Isolate("lock")])
    assert rows(alone) == [("a", 0), ("lock", 64), ("b", 128), ("c", 136), ("d", 144)]
    padded = apply(BASE, [Pad("c", 16), Pad("c", 8)])
    assert rows(padded)[3:6] == [("pad1", 16), ("pad2", 32), ("c", 40)]
    assert rows(apply(BASE, [Remove("c")])) == [("a", 0), ("lock", 8), ("b", 12), ("d", 16)]


@pytest.mark.parametrize(
    ("decl", "offset", "size"), [("u32 seq", 12, 4), ("char name[3]", 12, 3), ("void *p", 16, 8), ("u8 f:3", 12, 1),
                                 ("spinlock_t l2", 12, 4), ("void (*fn)(int)", 16, 8)]
)  # fmt: skip
def test_insert(decl: str, offset: int, size: int) -> None:
    member = apply(BASE, [Insert(decl, before="b")]).members[2]
    assert (member.offset, member.size) == (offset, size)


@pytest.mark.parametrize(
    ("edit", "error", "says"),
    [
        (lambda: Move("lokc", after="a"), NotFound, "did you mean lock"),
        (lambda: Move("a", after="a"), PlacementError, "next to itself"),
        (lambda: Move("a", index=9), PlacementError, "use 0 to 4"),
        (lambda: Move("a", index=1, after="b"), PlacementError, "give one of"),
        (lambda: Align("a", 12), PlacementError, "power of two"),
        (lambda: Insert("struct nowhere x"), PlacementError, "not known"),
        (lambda: Insert("u32 lock"), PlacementError, "already"),
        (lambda: Insert("hello"), PlacementError, "no member declaration"),
        (lambda: Pad("a", 0), PlacementError, "no padding"),
    ],
)
def test_edits_that_do_not_fit(edit: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        apply(BASE, [edit()])  # type: ignore[operator]


def nested(kind: str) -> Layout:
    """``a``, an anonymous `kind` of ``x`` (4 bytes), ``y`` (8) and ``z`` (2), and ``b``."""
    inner = place.replace(replace(make_layout("x:4 y:8 z:2"), name=None, kind=kind), make_layout("x:4 y:8 z:2").members)
    hole = Member(None, f"{kind} {{...}}", 0, inner.size * 8, inner.align, inner=inner)
    return place.replace(BASE, (BASE.members[0], hole, BASE.members[4]))


def inside(layout: Layout) -> list[tuple[str | None, int]]:
    assert layout.members[1].inner is not None
    return [(m.name, m.offset) for m in layout.members[1].inner]


def test_members_of_an_anonymous_struct_are_edited_inside() -> None:
    outer = nested("struct")
    assert inside(apply(outer, [Move("z", after="x")])) == [("x", 0), ("z", 4), ("y", 8)]
    assert inside(apply(outer, [Move("y", index=0)])) == [("y", 0), ("x", 8), ("z", 12)]
    assert inside(apply(outer, [Swap("x", "y")])) == [("y", 0), ("x", 8), ("z", 12)]
    assert inside(apply(outer, [Remove("y")])) == [("x", 0), ("z", 4)]
    assert inside(apply(outer, [Pad("y", 8)]))[1:] == [("pad1", 4), ("y", 16), ("z", 24)]
    aligned = apply(outer, [Align("z", 64)])
    assert inside(aligned)[2] == ("z", 64)
    assert (aligned.members[1].offset, aligned.size) == (64, 256)
    assert inside(apply(outer, [Isolate("x")])) == [("x", 0), ("y", 64), ("z", 72)]
    assert apply(outer, [Align("z", 64), Align("z", 0)]) == outer


def test_with_a_member_outside_the_anonymous_struct_moves_as_a_whole() -> None:
    assert rows(apply(nested("struct"), [Move("z", after="d")]))[2] == (None, 16)
    assert rows(apply(nested("struct"), [Move("#1", index=0)]))[0] == (None, 0)
    assert rows(apply(nested("struct"), [Insert("u16 new", after="a")]))[1] == ("new", 8)


def test_arms_of_an_anonymous_union_move_together_and_are_removed_alone() -> None:
    outer = nested("union")
    assert rows(apply(outer, [Move("x", index=0)]))[0] == (None, 0)
    assert rows(apply(outer, [Pad("x", 8)]))[1] == ("pad1", 8)
    assert inside(apply(outer, [Remove("y")])) == [("x", 0), ("z", 0)]
    assert apply(outer, [Align("x", 64)]).members[1].offset == 64


def test_what_cannot_be_replaced_is_not_edited() -> None:
    marked = Layout("s", "struct", 8, 8, BASE.members[:1], reason="it is only part of a struct")
    with pytest.raises(PlacementError, match="only part of a struct"):
        apply(marked, [AlignStruct(64)])


def test_undo_redo_reset() -> None:
    one = Scenario(BASE).edited(Move("a", after="c"))
    two = one.edited(Align("lock", 16))
    assert two.undo().layout == one.layout
    assert two.undo().redo() == two
    assert two.undo().edited(Remove("d")).redo().layout == one.edited(Remove("d")).layout
    assert two.reset().layout == BASE
    assert Scenario(BASE).undo() == Scenario(BASE)


def test_scenarios_and_layouts_survive_json() -> None:
    edits = (Move("a", after="c"), Align("lock", 16), Insert("u32 seq", before="d"), Isolate("b", 64), Pad("d", 4))
    scenario = Scenario(BASE, edits)
    assert Scenario.from_json(scenario.to_json()).layout == scenario.layout
    (again,) = layouts_from_json(layouts_to_json([scenario.layout]), "here")
    assert again == scenario.layout
    assert [m.align for m in again] == [m.align for m in scenario.layout]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "kitlib-scenario", "version": 9}',
        '{"format": "kitlib-scenario", "version": 1}',
        "[" * 9999,
    ],
)
def test_bad_scenarios_are_one_line(text: str) -> None:
    with pytest.raises(DataError) as caught:
        Scenario.from_json(text, "x.json")
    assert "x.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_edits_and_values_are_refused() -> None:
    record = json.loads(Scenario(BASE).to_json())
    for entry in ({"edit": "fly"}, {"edit": "move"}, {"edit": "move", "member": ["a"]}, 7, {"edit": "swap", "x": 1}):
        record["edits"] = [entry]
        with pytest.raises((DataError, PlacementError)):
            Scenario.from_json(json.dumps(record), "x.json")


def test_an_array_without_a_size_stays_last() -> None:
    layout = apply(make_layout("n:4 b:8"), [Insert("char tail[]")])
    for edit in (Move("tail", after="n"), Move("b", after="tail"), Swap("n", "tail"), Insert("u32 x", after="tail")):
        with pytest.raises(PlacementError, match="tail is an array without a size: it stays last"):
            apply(layout, [edit])
    grown = apply(layout, [Insert("u32 x"), Move("b", index=0)])
    assert [m.name for m in grown.members] == ["b", "n", "x", "tail"]
    assert [m.name for m in apply(layout, [Remove("tail"), Move("n", after="b")]).members] == ["b", "n"]
