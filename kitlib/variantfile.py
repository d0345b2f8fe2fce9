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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kitlib import datafiles
from kitlib import tomlfile as toml
from kitlib.errors import DataError, KitError, near
from kitlib.files import read_text
from kitlib.model import Layout
from kitlib.scenario import edit_from
from kitlib.sources import open_source
from kitlib.variants import Choice, Option, State, Variants

FORMAT, VERSION = "kitlib-variants", 1
MAKE = "start from a copy of one in data/variants"
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
    record = toml.parse_toml(text, where, form=FORMAT, version=VERSION, make=MAKE)
    toml.only(record, _TOP, where)
    if base is None:
        source, struct = (_line(record, key, where) for key in ("source", "struct"))
        base = open_source(source).struct(struct)
    options = [_option(row, f"{where}, option {i}") for i, row in enumerate(toml.rows(record, "option", where), 1)]
    choices = [_choice(row, f"{where}, choice {i}") for i, row in enumerate(toml.rows(record, "choice", where), 1)]
    about = toml.text(record, "about", where, "")
    try:
        return Variants(base, tuple(options), tuple(choices), about)
    except KitError as error:
        raise type(error)(f"{where}: {error}") from None


def _option(row: Mapping[str, Any], where: str) -> Option:
    toml.only(row, _OPTION, where)
    name = _line(row, "name", where)
    where = f"{where} ({name})"
    default = toml.flag(row, "default", where, True)
    types = row.get("types", {})
    if not isinstance(types, Mapping) or not all(isinstance(value, str) for value in types.values()):
        raise DataError(f'{where}: types must be a table such as {{f_lock = "unsigned long f_lock[3]"}}')
    found = Option(
        name,
        toml.texts(row, "members", where),
        toml.texts(row, "absent", where),
        tuple(types.items()),
        default,
        toml.text(row, "about", where, ""),
    )
    if not (found.members or found.absent or found.types):
        raise DataError(f"{where}: changes nothing; give members, absent or types")
    return found


def _choice(row: Mapping[str, Any], where: str) -> Choice:
    toml.only(row, _CHOICE, where)
    name = _line(row, "name", where)
    where = f"{where} ({name})"
    states = [_state(entry, f"{where}, state {i}") for i, entry in enumerate(toml.rows(row, "state", where), 1)]
    labels = [state.label for state in states]
    if len(states) < 2 or len(set(labels)) < len(labels):
        raise DataError(f"{where}: give two states or more, each with a label of its own")
    return Choice(name, tuple(states), toml.text(row, "about", where, ""))


def _state(row: Mapping[str, Any], where: str) -> State:
    toml.only(row, _STATE, where)
    edits = row.get("edits", [])
    if not isinstance(edits, list):
        raise DataError(f"{where}: edits must be a list")
    return State(_line(row, "label", where), tuple(edit_from(x, f"{where}, edit {i}") for i, x in enumerate(edits, 1)))


def _line(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise DataError(f"{where}: '{key}' must be a text of one line")
    return value
