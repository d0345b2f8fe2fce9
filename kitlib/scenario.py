"""A scenario: a base layout and the edits made to it, with undo and redo, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from dataclasses import replace as _with
from pathlib import Path
from typing import Any

from kitlib.edit import EDITS, Edit, apply
from kitlib.errors import DataError, PlacementError, near
from kitlib.files import read_text
from kitlib.layoutjson import layout_from_dict, layout_to_dict
from kitlib.model import Layout

FORMAT, VERSION = "kitlib-scenario", 1
_KIND = {cls: name for name, cls in EDITS.items()}


@dataclass(frozen=True, slots=True)
class Scenario:
    """``layout`` is ``base`` with ``edits`` applied; ``undone`` holds what `redo` brings back."""

    base: Layout
    edits: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    @property
    def layout(self) -> Layout:
        """The edited layout. Raises `NotFound` or `PlacementError` if an edit does not fit the base."""
        return apply(self.base, self.edits)

    def edited(self, edit: Edit) -> Scenario:
        """With one more edit; checked at once, and what was undone is forgotten."""
        edit.apply(self.layout)
        return Scenario(self.base, (*self.edits, edit))

    def undo(self) -> Scenario:
        """Without the last edit; unchanged if there is none."""
        if not self.edits:
            return self
        return _with(self, edits=self.edits[:-1], undone=(*self.undone, self.edits[-1]))

    def redo(self) -> Scenario:
        """With the edit that was undone last; unchanged if there is none."""
        if not self.undone:
            return self
        return _with(self, edits=(*self.edits, self.undone[-1]), undone=self.undone[:-1])

    def reset(self) -> Scenario:
        """The base alone."""
        return Scenario(self.base)

    def to_json(self) -> str:
        """JSON text that `from_json` reads; edits that were undone are not kept."""
        edits = [{"edit": _KIND[type(e)], **_given(asdict(e))} for e in self.edits]
        record = {
            "format": FORMAT,
            "version": VERSION,
            "base": layout_to_dict(self.base),
            "edits": edits,
        }
        return json.dumps(record, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "scenario") -> Scenario:
        """Read what `to_json` wrote. Raises `DataError` naming `where` if it is something else."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not JSON ({error}); save a scenario with 'kitlib edit --save'") from None
        if not isinstance(record, Mapping) or record.get("format") != FORMAT:
            raise DataError(f"{where}: no scenario file; save one with 'kitlib edit --save'")
        if record.get("version") != VERSION:
            raise DataError(f"{where}: version {record.get('version')} is not known; this is {VERSION}")
        edits = record.get("edits")
        if not isinstance(edits, list):
            raise DataError(f"{where}: 'edits' must be a list")
        scenario = cls(layout_from_dict(record.get("base"), where))
        for number, entry in enumerate(edits, 1):
            scenario = scenario.edited(edit_from(entry, f"{where}, edit {number}"))
        return scenario


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def edit_from(entry: object, where: str) -> Edit:
    """An edit from a record as `Scenario.to_json` writes it. Raises `DataError` beginning with `where`."""
    kind = entry.get("edit") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(kind, str) or kind not in EDITS:
        raise DataError(f"{where}: 'edit' must be one of {', '.join(EDITS)}")
    wanted = {field.name: field for field in fields(EDITS[kind])}
    values = {str(key): value for key, value in entry.items() if key != "edit"}
    for key, value in values.items():
        if key not in wanted:
            raise DataError(f"{where}: '{kind}' takes no '{key}'{near(key, wanted)}; it takes {', '.join(wanted)}")
        number = str(wanted[key].type).startswith("int")
        if type(value) is not (int if number else str):
            raise DataError(f"{where}: '{key}' of '{kind}' must be a {'whole number' if number else 'text'}")
    lacks = [name for name, field in wanted.items() if field.default is MISSING and name not in values]
    if lacks:
        raise DataError(f"{where}: '{kind}' needs {' and '.join(lacks)}")
    try:
        return EDITS[kind](**values)
    except PlacementError as error:
        raise DataError(f"{where}: {error}") from None


def read_scenario(path: Path) -> Scenario:
    """The scenario saved at `path`. Raises `SourceError` or `DataError` naming the file."""
    return Scenario.from_json(read_text(path), str(path))
