"""Variant files: TOML that says which members of a struct hang on which option, and what else may differ.

    format = "kitlib-variants"
    version = 1
    source = "mm-5.12"
    struct = "mm_struct"

    [[option]]
    name = "CONFIG_MMU"
    members = ["get_unmapped_area", "pgtables_bytes"]   # there only when it is on
    absent = []                                         # there only when it is off
    types = {f_lock = "unsigned long f_lock[3]"}        # declared so when it is on
    default = true

    [[choice]]
    name = "write_protect_seq"
    [[choice.state]]
    label = "absent"
    edits = []
    [[choice.state]]
    label = "in the hole"
    edits = [{edit = "insert", decl = "seqcount_t write_protect_seq", before = "arg_lock"}]

The struct in ``source`` has every optional member. Edits are those of a scenario file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kitlib import datafiles
from kitlib.errors import DataError, KitError, near
from kitlib.files import read_text
from kitlib.model import Layout
from kitlib.scenario import edit_from
from kitlib.sources import open_source
from kitlib.variants import Choice, Option, State, Variants

FORMAT, VERSION = "kitlib-variants", 1
_TOP = ("format", "version", "about", "source", "struct", "option", "choice")
_OPTION = ("name", "members", "absent", "types", "default", "about")
_CHOICE = ("name", "about", "state")
_STATE = ("label", "edits")


def shipped_variants() -> list[str]:
    """Names of the variant files that come with the kit."""
    return sorted(path.stem for path in datafiles.path("variants").glob("*.toml") if path.stem != "MANIFEST")


def read_variants(name: str | Path, base: Layout | None = None) -> Variants:
    """Read a variant file, or the shipped one called `name` (``mm_struct``, ``struct_file``).

    `base` takes the place of the struct the file names. Raises `DataError` naming the file and, for TOML errors,
    line and column; `SourceError` or `NotFound` for its source or struct.
    """
    if str(name) in shipped_variants():
        path = datafiles.path(f"variants/{name}.toml")
    else:
        path = Path(name)
        if not os.path.exists(path):  # unlike Path.exists, False for a name that is too long
            shipped = shipped_variants()
            raise DataError(
                f"{name}: no such variant file{near(str(name), shipped)}; the kit ships {', '.join(shipped)}"
            )
    return parse_variants(read_text(path), str(path), base)


def parse_variants(text: str, where: str = "variants", base: Layout | None = None) -> Variants:
    """Variants from TOML `text`; `where` names it in messages. Raises as `read_variants` does."""
    try:
        record = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{where}: not TOML: {error}") from None
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise DataError(f'{where}: a variant file starts with format = "{FORMAT}" and version = {VERSION}')
    _only(record, _TOP, where)
    if base is None:
        source, struct = (_text(record, key, where) for key in ("source", "struct"))
        base = open_source(source).struct(struct)
    options = [_option(row, f"{where}, option {i}") for i, row in enumerate(_rows(record, "option", where), 1)]
    choices = [_choice(row, f"{where}, choice {i}") for i, row in enumerate(_rows(record, "choice", where), 1)]
    about = _about(record, where)
    try:
        return Variants(base, tuple(options), tuple(choices), about)
    except KitError as error:
        raise type(error)(f"{where}: {error}") from None


def _option(row: Mapping[str, Any], where: str) -> Option:
    _only(row, _OPTION, where)
    name = _text(row, "name", where)
    where = f"{where} ({name})"
    default = row.get("default", True)
    if not isinstance(default, bool):
        raise DataError(f"{where}: default must be true or false, not {default!r}")
    types = row.get("types", {})
    if not isinstance(types, Mapping) or not all(isinstance(value, str) for value in types.values()):
        raise DataError(f'{where}: types must be a table such as {{f_lock = "unsigned long f_lock[3]"}}')
    found = Option(
        name,
        _names(row, "members", where),
        _names(row, "absent", where),
        tuple(types.items()),
        default,
        _about(row, where),
    )
    if not (found.members or found.absent or found.types):
        raise DataError(f"{where}: changes nothing; give members, absent or types")
    return found


def _choice(row: Mapping[str, Any], where: str) -> Choice:
    _only(row, _CHOICE, where)
    name = _text(row, "name", where)
    where = f"{where} ({name})"
    states = [_state(entry, f"{where}, state {i}") for i, entry in enumerate(_rows(row, "state", where), 1)]
    labels = [state.label for state in states]
    if len(states) < 2 or len(set(labels)) < len(labels):
        raise DataError(f"{where}: give two states or more, each with a label of its own")
    return Choice(name, tuple(states), _about(row, where))


def _state(row: Mapping[str, Any], where: str) -> State:
    _only(row, _STATE, where)
    edits = row.get("edits", [])
    if not isinstance(edits, list):
        raise DataError(f"{where}: edits must be a list")
    return State(_text(row, "label", where), tuple(edit_from(x, f"{where}, edit {i}") for i, x in enumerate(edits, 1)))


def _only(row: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in row:
        if key not in known:
            raise DataError(f"{where}: key '{key}' is not known{near(key, known)}; known are {', '.join(known)}")


def _rows(row: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    rows = row.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(entry, Mapping) for entry in rows):
        raise DataError(f"{where}: write [[{key}]] for each {key}")
    return rows


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise DataError(f"{where}: '{key}' must be a text of one line")
    return value


def _about(row: Mapping[str, Any], where: str) -> str:
    about = row.get("about", "")
    if not isinstance(about, str):
        raise DataError(f"{where}: 'about' must be a text")
    return about


def _names(row: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DataError(f"{where}: {key} must be a list of member names")
    return tuple(value)
