"""Scenario files that are not as they should be, and ``--after``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kitlib.cli.after import after_layout
from kitlib.edit import EDITS, Move
from kitlib.errors import DataError, KitError
from kitlib.layoutjson import layouts_to_json
from kitlib.model import AARCH64, GENERIC_32, GENERIC_64, I386, X86_64
from kitlib.scenario import Scenario, edit_from
from kitlib.shorthand import make_layout

RING = make_layout("head:8 tail:8 lock:4", name="ring")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (3, "'edit' must be one of"),
        ({}, "'edit' must be one of"),
        ({"edit": ["move"]}, "'edit' must be one of"),
        ({"edit": "move", "member": 3, "index": 0}, "'member' of 'move' must be a text"),
        ({"edit": "move", "member": "head", "index": "x"}, "'index' of 'move' must be a whole number"),
        ({"edit": "move", "member": "head", "index": True}, "whole number"),
        ({"edit": "move", "member": "head", "index": 1.0}, "whole number"),
        ({"edit": "move", "member": "head", "before": 1}, "must be a text"),
        ({"edit": "move", "member": "head", "idx": 1}, "takes no 'idx'; did you mean index"),
        ({"edit": "move", "member": "head"}, "give one of after="),
        ({"edit": "pad"}, "'pad' needs member and size"),
        ({"edit": "align", "member": "head", "align": None}, "whole number"),
    ],
)
def test_edits_that_are_none(entry, says):
    with pytest.raises(DataError, match=says) as caught:
        edit_from(entry, "s.json, edit 1")
    assert str(caught.value).startswith("s.json, edit 1: ")


@pytest.mark.parametrize("index", [-1, 99, 10**30])
def test_an_edit_outside_the_struct_is_refused(index):
    record = json.loads(Scenario(RING).to_json())
    record["edits"] = [{"edit": "move", "member": "head", "index": index}]
    with pytest.raises(KitError, match="use 0 to 2"):
        Scenario.from_json(json.dumps(record))


def test_every_kind_of_edit_comes_back():
    given = {"member": "head", "a": "head", "b": "tail", "index": 1, "align": 16, "size": 4, "decl": "u32 x"}
    for kind, cls in EDITS.items():
        names = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        edit = cls(**names)
        record = json.loads(Scenario(RING, (edit,)).to_json())
        assert edit_from(record["edits"][0], "x") == edit, kind


def test_after_takes_a_scenario_and_a_source(tmp_path):
    moved, plain = tmp_path / "moved.json", tmp_path / "plain.json"
    moved.write_text(Scenario(RING, (Move("lock", index=0),)).to_json())
    plain.write_text(layouts_to_json([RING]))
    assert after_layout(None, "ring", RING) is None
    found = after_layout(str(moved), "ring", RING)
    assert found is not None
    assert found.member("lock").offset == 0
    assert after_layout(str(plain), "ring", RING) == RING


def test_after_refuses_what_is_no_other_state_of_the_struct(tmp_path):
    other, nested, arm = (tmp_path / name for name in ("other.json", "nested.json", "arm.json"))
    other.write_text(Scenario(replace(RING, name="rung")).to_json())
    nested.write_text("[" * 200_000)
    arm.write_text(layouts_to_json([replace(RING, abi=AARCH64)]))
    for text, says in (
        ("", "names nothing"),
        (str(other), "no struct 'ring'"),
        (str(nested), "not JSON"),
        (str(arm), "architectures"),
        ("nowhere", "no such file"),
    ):
        with pytest.raises(KitError, match=says) as caught:
            after_layout(text, "ring", RING)
        assert str(caught.value).startswith("--after")
    same = tmp_path / "same.json"
    same.write_text(layouts_to_json([RING]))
    with pytest.raises(DataError, match="is no union"):
        after_layout(str(same), "ring", replace(RING, kind="union"))


def test_architectures_that_can_be_compared():
    assert X86_64.agrees(X86_64)
    assert X86_64.agrees(GENERIC_64)
    assert GENERIC_32.agrees(I386)
    assert not X86_64.agrees(AARCH64)
    assert not X86_64.agrees(GENERIC_32)
