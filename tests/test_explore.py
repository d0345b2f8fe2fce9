"""The explorer's states: answers of a session, the tables of a page, and what the widget hands to its hosts."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.edit import Align, AlignStruct, Move, apply
from kitlib.errors import KitError, NotFound, PlacementError
from kitlib.explore import explore
from kitlib.figures.layout import cacheline_map
from kitlib.model import Layout, Member
from kitlib.page import EXPLORER_TYPE
from kitlib.place import align_up
from kitlib.scenario import Scenario
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.states import Session, Subject, View, declaration_rows, page_data, subject_data, variant_record
from kitlib.statetable import fixed_because, page_tables, positions, sizes, walk

RING = "lock=spinlock_t:4 head:8 mode:1 name:56 refs=atomic_t:4 tail:8"
BASE = make_layout(RING, "ring")


def session(text: str = RING, **more: Any) -> Session:
    return Session(Subject({"ring": make_layout(text, "ring")}, **more))


def edit(member: int, *, commit: bool = True, **what: int) -> dict[str, Any]:
    return {"op": "edit", "member": member, "commit": commit, **what}


def test_edits_are_chained_undone_redone_and_reset() -> None:
    own, base = session(), make_layout(RING, "ring")
    own.answer(edit(4, position=0))
    answer = own.answer(edit(5, align=64))
    assert own.layout == apply(base, [Move("refs", index=0), Align("tail", 64)])
    assert (answer["edits"], answer["undo"], answer["redo"]) == (
        ["move refs to position 0", "align tail to 64"],
        True,
        False,
    )
    assert answer["order"] == [4, 0, 1, 2, 3, 5]
    own.answer({"op": "undo"})
    assert own.layout == apply(base, [Move("refs", index=0)])
    assert own.answer({"op": "redo"})["edits"] == answer["edits"]
    assert own.answer({"op": "reset"})["edits"] == []
    assert own.layout == base


def test_a_new_edit_forgets_what_was_undone() -> None:
    own = session()
    own.answer(edit(4, position=0))
    own.answer({"op": "undo"})
    assert own.answer(edit(5, position=0))["redo"] is False
    assert own.answer({"op": "redo"})["edits"] == ["move tail to position 0"]


def test_a_slider_under_way_is_shown_and_forgotten() -> None:
    own = session()
    shown = own.answer(edit(4, position=0, commit=False))
    assert shown["offsets"][4] == 0
    assert own.answer({"op": "show"})["offsets"] == subject_data(own.subject, View())["variants"][0]["start"]["offsets"]
    assert own.scenario.edits == ()


def test_an_edit_to_the_same_place_is_none() -> None:
    assert session().answer(edit(4, position=4, align=0))["edits"] == []


def test_struct_alignment_changes_the_size_only() -> None:
    own = session()
    before = own.answer({"op": "show"})
    after = own.answer({"op": "struct_align", "align": 128, "commit": True})
    assert (after["size"], after["align"], after["offsets"]) == (128, 128, before["offsets"])


def test_offsets_in_an_answer_follow_the_members_not_their_order() -> None:
    answer = session("a:8 b:8 c:8").answer(edit(2, position=0))
    assert [answer["offsets"][i] // 64 for i in range(3)] == [1, 2, 0]
    assert answer["moved"] == [2]


def test_what_does_not_fit_is_answered_with_an_error_and_changes_nothing() -> None:
    stuck = Layout(
        "s", "struct", 8, 8, (Member("a", "int", 0, 32, 4), Member("b", "int", 32, 32, 4)), reason="a C++ base"
    )
    own = Session(Subject({"s": stuck}))
    answer = own.answer(edit(0, position=1))
    assert answer["error"] == "struct s cannot be re-placed: a C++ base"
    assert own.layout is stuck


def test_switching_to_a_variant_keeps_the_edits_that_fit_and_names_the_others() -> None:
    own = Session(Subject({"with": make_layout("a:8 b:8 debug:8 c:8"), "without": make_layout("a:8 b:8 c:8")}))
    own.answer(edit(3, position=0))
    own.answer(edit(2, align=64))
    answer = own.answer({"op": "variant", "index": 1})
    assert answer["edits"] == ["move c to position 0"]
    assert answer["note"].startswith("left out, as it does not fit here: align debug to 64 (no member 'debug'")


def test_save_gives_a_scenario_and_copy_gives_pahole_text() -> None:
    own = session()
    own.answer(edit(4, position=0))
    saved = own.answer({"op": "save"})["file"]
    assert Scenario.from_json(saved["text"]).layout == own.layout
    assert open_source(own.answer({"op": "copy"})["text"]).struct("ring") == own.layout


def test_extra_rows_follow_the_layout() -> None:
    own = session(extra=lambda layout: [{"path": "read", "lines": layout.size // 64}, {"path": "write", "note": "<b>"}])
    extra = own.answer({"op": "show"})["extra"]
    assert extra == {"columns": ["path", "lines", "note"], "rows": [["read", "1", ""], ["write", "", "<b>"]]}


# -- tables of a page -----------------------------------------------------------------------------------

words = st.one_of(
    st.sampled_from(["1", "2", "4", "8", "16", "24", "3"]),
    st.sampled_from(["4:3", "4:17", "8:33", "1:1", "4@16", "1@64", "8@32"]),
)
layouts = st.builds(
    lambda sizes_, forced, packed: make_layout(
        " ".join(f"m{i}{'=u' if ':' in s else ''}{':' + s}" for i, s in enumerate(sizes_)),
        forced_align=forced,
        packed=packed,
    ),
    st.lists(words, min_size=1, max_size=9),
    st.sampled_from([0, 16, 64]),
    st.booleans(),
)


@settings(deadline=None)
@given(layouts, st.data())
def test_walking_over_the_positions_gives_what_edits_give(layout: Layout, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(layout.members) - 1))
    align = data.draw(st.sampled_from([layout.members[index].forced_align, 0, 8, 64, 128]))
    name = layout.members[index].name
    offsets = [m.bit_offset for m in layout.members]
    units = sizes(layout, index, align, [0, layout.forced_align, 256])
    for position, step in enumerate(walk(layout, index, align)):
        for number, bit in step.changed:
            offsets[number] = bit
        wanted = apply(layout, [Align(name, align)] if align != layout.members[index].forced_align else [])
        wanted = apply(wanted, [Move(name, index=position)])
        by_name = {m.name: m.bit_offset for m in wanted.members}
        assert offsets == [by_name[m.name] for m in layout.members]
        end = (step.bit_end + 7) >> 3
        assert align_up(end, units[1]) == wanted.size
        assert align_up(end, units[2]) == apply(wanted, [AlignStruct(256)]).size


def test_a_flexible_array_stays_last() -> None:
    tail = Member("data", "char[]", 128, 0, 1, count=0)
    ring = make_layout("a:8 b:8")
    layout = Layout("s", "struct", 16, 8, (*ring.members, tail))
    assert [positions(layout, i) for i in range(3)] == [(0, 1), (0, 1), (2, 2)]


def test_tables_keep_within_their_budget_and_say_what_is_left_out() -> None:
    big = make_layout(" ".join(f"m{i}:8" for i in range(40)) + " hot=atomic_t:4")
    every, some, few = (page_tables(big, budget) for budget in (20_000, 4_000, 100))
    assert every["left_out"] == ""
    assert some["left_out"] == "alignments other than 64"
    assert few["members"] == [0, 40]
    assert "moves of 39 members" in few["left_out"]


def test_equal_alignments_share_a_table() -> None:
    tables = page_tables(make_layout("a:8 b:8"))
    assert tables["aligns"][0] == [0, 8, 16, 32, 64, 128]
    assert tables["table_of"][0][0] == tables["table_of"][0][1]


def test_page_data_is_plain_and_has_the_extra_rows_of_every_move() -> None:
    seen: list[int] = []
    subject = Subject({"s": make_layout("a:8 b:1 c:8")}, extra=lambda s: seen.append(s.size) or [{"size": s.size}])
    extras = json.loads(json.dumps(page_data(subject, View())))["variants"][0]["extras"]
    assert len(seen) == 1 + 3 * 2
    assert [extras["tables"][n]["rows"] for n in extras["moves"]["1"]] == [[["24"]]] * 3


# -- the widget -------------------------------------------------------------------------------------------


def test_explore_answers_requests_and_carries_a_still_picture() -> None:
    widget = explore(make_layout(RING, "ring"), member="refs", line_bytes=128)
    widget.request = edit(4, position=0) | {"seq": 3}
    assert (widget.value["seq"], widget.value["offsets"][4]) == (3, 0)
    assert widget.layout_now.members[0].name == "refs"
    assert [str(e) for e in widget.scenario.edits] == ["move refs to position 0"]
    assert widget.data["view"] == {"member": 4, "line": 128, "phase": 0}
    bundle, _ = widget._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "application/vnd.plotly.v1+json", "text/plain"} <= set(bundle)


def test_for_a_page_the_states_come_instead_of_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "KITLIB_PAGE", "1")
    bundle, _ = explore(make_layout(RING, "ring"))._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" not in bundle
    assert bundle[EXPLORER_TYPE]["variants"][0]["tables"]["members"] == list(range(6))


def test_the_first_member_shown_is_one_that_is_written_to() -> None:
    assert explore(make_layout("a:8 n=atomic_t:4")).data["view"]["member"] == 1


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [({"member": "ref"}, NotFound, "did you mean refs"), ({"line_bytes": 48}, PlacementError, "line size 48")],
)
def test_bad_questions_are_refused(how: dict[str, Any], error: type[KitError], said: str) -> None:
    with pytest.raises(error, match=said):
        explore(make_layout(RING, "ring"), **how)


def test_nothing_to_explore_is_said() -> None:
    with pytest.raises(KitError, match="nothing to explore"):
        explore()


def test_kitlib_explore_is_callable_however_it_was_imported() -> None:
    import kitlib
    from kitlib import explore as either

    assert either(make_layout("a:8")).layout_now == make_layout("a:8")
    assert callable(kitlib.explore)


def test_nested_declarations_are_spelled_out() -> None:
    inner = make_layout("x:4 y:4", None)
    member = Member(None, "struct {...}", 0, 64, 4, inner=inner)
    assert [row[:3] for row in declaration_rows(member)] == [
        [1, "struct {", None],
        [2, "unsigned int x;", 0],
        [2, "unsigned int y;", 32],
        [1, "};", 0],
    ]


def test_a_page_knows_the_struct_alignments_of_what_it_cannot_move() -> None:
    empty = Layout("empty", "struct", 0, 1, ())
    assert page_tables(empty)["unmoved"] == {"align": [1, 64, 128], "size": [0, 0, 0]}
    many = make_layout(" ".join(f"m{i}:8" for i in range(20)), "many")
    assert page_tables(many)["unmoved"] == {"align": [8, 64, 128], "size": [160, 192, 256]}
    fixed = replace(many, reason="of a test")
    assert page_tables(fixed)["unmoved"] == {"align": [8] * 3, "size": [160] * 3}


def test_the_member_asked_for_is_kept_however_small_the_budget() -> None:
    many = make_layout(" ".join(f"m{i}:8" for i in range(20)) + " lock=spinlock_t:4", "many")
    assert page_tables(many, budget=30)["members"] == [20]
    assert page_tables(many, budget=30, wanted="m7")["members"] == [7]


def test_a_member_that_cannot_be_moved_says_why() -> None:
    arms = (Member("a", "long int", 0, 64, 8), Member("b", "int", 0, 32, 4))
    assert "all start at byte 0" in fixed_because(Layout("u", "union", 8, 8, arms), 0)
    flexible = Layout("f", "struct", 8, 8, (arms[0], Member("data", "long int[]", 64, 0, 8, count=0)))
    assert fixed_because(flexible, 1) == "a flexible array stays last"
    assert fixed_because(flexible, 0) == "there is no other place"
    two = make_layout("a:8 b:8")
    assert fixed_because(two, 0) == fixed_because(replace(two, reason="x"), 0) == ""


def test_members_of_one_name_are_edited_by_their_number() -> None:
    twins = replace(BASE, members=tuple(replace(m, name="twin") for m in BASE.members))
    got = Session(Subject({"x": twins})).answer({"op": "edit", "member": 2, "position": 0, "commit": True})
    assert got["order"][0] == 2
    assert got["edits"] == ["move #2 to position 0"]
    assert [m["named"] for m in variant_record("x", twins, twins)["members"][:3]] == [True, False, False]


def test_marks_that_turn_text_round_are_shown_escaped() -> None:
    bad = replace(BASE, members=(replace(BASE.members[0], name="a\u202eb\x1b"), *BASE.members[1:]))
    record = variant_record("x", bad, bad)["members"][0]
    assert (record["name"], record["named"]) == ("a\\u202eb\\x1b", False)
    assert "\u202e" not in str(record["hover"]) + cacheline_map(bad).to_json()
    got = Session(Subject({"x": bad})).answer({"op": "edit", "member": 0, "position": 1, "commit": True})
    assert got["edits"] == ["move a\\u202eb\\x1b to position 1"]


def test_a_struct_that_wraps_an_anonymous_one_is_shown_opened() -> None:
    wrapped = open_source("linux-6.12").struct("mm_struct")
    assert "mmap_lock" not in [m.name for m in wrapped.members]
    shown = explore(wrapped, member="mmap_lock").layout_now
    assert shown.title == "struct mm_struct"
    assert "mmap_lock" in [m.name for m in shown.members]
