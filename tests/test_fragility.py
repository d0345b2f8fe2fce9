"""Every small edit is tried: known counts on a struct small enough to check by hand."""

from __future__ import annotations

import pytest

from kitlib.edit import Insert, Move
from kitlib.errors import KitError
from kitlib.fragility import INSERTED, fragility
from kitlib.lines import share_line
from kitlib.model import Layout
from kitlib.shorthand import make_layout
from kitlib.sources import open_source


def apart(layout: Layout) -> bool:
    return not share_line(layout, "hot", "count")


def test_every_edit_is_tried_once() -> None:
    layout = make_layout("pad:56 hot:8 count:8 last:8")
    found = {f.kind: f for f in fragility(layout, apart, frozenset({"hot", "count"}))}
    assert found["insert a member"].tried == 5 * len(INSERTED)
    assert found["insert a member"].broken == tuple(
        Insert(f"{type_text} new_member", index=index) for index in (0, 1) for type_text in INSERTED
    )
    assert [str(e) for e in found["remove a member"].broken] == ["remove pad"]
    assert found["move another member"].tried == 2 * 3
    assert found["move another member"].broken == (
        Move("pad", index=2), Move("pad", index=3), Move("last", index=0), Move("last", index=1)
    )  # fmt: skip
    assert (found["move a member of the promise"].tried, found["move a member of the promise"].share) == (6, 0.0)


def test_no_new_member_can_undo_the_patch_of_2020() -> None:
    after = open_source("file-5.8-patch").struct("file")
    hot = ("f_mode", "f_inode", "f_op")

    def holds(layout: Layout) -> bool:
        return not any(share_line(layout, "f_count", name) for name in hot)

    found = {f.kind: f for f in fragility(after, holds, frozenset({"f_count", *hot}))}
    assert found["insert a member"].broken == ()
    assert found["move a member of the promise"].broken


def test_a_promise_that_does_not_hold_has_nothing_to_undo() -> None:
    with pytest.raises(KitError, match="does not hold"):
        fragility(make_layout("hot:8 count:8"), apart, frozenset({"hot", "count"}))
