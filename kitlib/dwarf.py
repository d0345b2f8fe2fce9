"""Layouts from DWARF 4 and 5: objects, programs, kernel modules and a vmlinux of any size.

One struct is found by its name without reading the rest (`kitlib.dwarffind`); a small file, or a list of all
structs, is walked once (`kitlib.dwarfindex`). pyelftools then reads the few entries that make up a layout.
"""

from __future__ import annotations

import gc
import os
import struct
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as _with
from pathlib import Path
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.die import DIE

from kitlib.dwarfabbrev import AT_NAME, C_LANGUAGES
from kitlib.dwarffind import Finder
from kitlib.dwarfindex import DebugInfo, Unit, string_at
from kitlib.dwarflayout import LayoutReader
from kitlib.dwarfnear import near_names
from kitlib.dwarfscan import UnitScan, definitions
from kitlib.dwarfsections import read_sections
from kitlib.dwarftypes import STRUCTS, text_of
from kitlib.errors import NotFound, SourceError, near
from kitlib.model import Layout
from kitlib.source import distinct

SMALL_BYTES = 8 << 20
"""A ``.debug_info`` up to this size is walked whole for near names (0.3 s)."""
_WALKED_BYTES = 32 << 20
"""One up to this size is walked whole for further definitions of a name (a second or two)."""
_UNITS_A_READER = 64
"""Units read before pyelftools' caches are dropped, so that listing a vmlinux stays within a few 100 MB."""
_DAMAGE = (ELFError, DWARFError, struct.error, ValueError, KeyError, IndexError, OverflowError, RecursionError)
"""What pyelftools and the walker raise for bytes that are no DWARF."""
_DAMAGE_IN_PYELFTOOLS = (TypeError, AttributeError, AssertionError, NotImplementedError)
"""What pyelftools raises as well; from the kit's own code these are faults of the kit, and are not hidden."""


@contextmanager
def _damage(label: str) -> Iterator[None]:
    try:
        yield
    except (*_DAMAGE, *_DAMAGE_IN_PYELFTOOLS) as error:
        if not isinstance(error, _DAMAGE) and not _raised_in_pyelftools(error):
            raise
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"{label}: damaged DWARF ({what})") from None


def _raised_in_pyelftools(error: BaseException) -> bool:
    frames = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].startswith("elftools")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection for a moment: it would take a third of the time of listing a vmlinux."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class DwarfSource:
    """Structs, unions and classes of one ELF file; function-local ones too.

    In C a struct goes by its tag, in C++ and Rust by its qualified name (``std::mutex``).
    """

    kind = "dwarf"

    def __init__(self, info: DebugInfo) -> None:
        self.info = info
        self.label = info.sections.label
        self._finder = Finder(info)
        self._reader = LayoutReader(info, self._find_definition)
        self._names: set[str] | None = None

    def names(self) -> list[str]:
        """Names of all structs, unions and classes, and of typedefs of unnamed ones; sorted, each once."""
        return sorted(self._all_names())

    def struct(self, name: str) -> Layout:
        """The layout called `name` (``struct x``, ``union x`` and typedefs are understood).

        Of several structs of one name the first in the file is given. Raises `NotFound`, with near names.
        """
        kinds, wanted = _split_name(name)
        with _damage(self.label):
            typedefs: list[DIE] = []
            for die in self._entries(wanted):
                if STRUCTS.get(die.tag) in kinds:
                    return _renamed(self._reader.layout(die), None if "DW_AT_name" in die.attributes else wanted)
                if die.tag == "DW_TAG_typedef":
                    typedefs.append(die)
            for die in typedefs:
                target = self._bare(die)
                if target is not None and STRUCTS.get(target.tag) in kinds:
                    return _renamed(self._reader.layout(target), None if "DW_AT_name" in target.attributes else wanted)
            if typedefs:
                text = self._reader.spelling(self._reader.target(typedefs[0]))
                raise NotFound(f"'{text_of(wanted)}' in {self.label} is a typedef of {text}; it is no struct")
            raise NotFound(f"no struct or union '{text_of(wanted)}' in {self.label}{self._near(wanted)}")

    def definitions(self, name: str) -> list[Layout]:
        """All different layouts called `name`, the one that `struct` gives first.

        In more than 32 MiB of DWARF (a vmlinux holds its headers' structs a thousand times) only that is given.
        """
        first = self.struct(name)
        if len(self.info.sections.info) > _WALKED_BYTES:
            return [first]
        return distinct([first, *(x for x in self.structs() if (x.name, x.kind) == (first.name, first.kind))])

    def offsets(self, name: str) -> Iterator[int]:
        """Places in ``.debug_info`` of the definitions called `name`, in the file's order."""
        with _damage(self.label):
            yield from (die.offset for die in self._entries(name) if die.tag in STRUCTS)

    def structs(self) -> Iterator[Layout]:
        """Every named layout in the file's order, equal ones once; those named by a typedef included.

        Of a vmlinux this takes half a minute and 400 MB.
        """
        ids: dict[Any, int] = {}
        prints: set[Any] = set()
        seen: set[Layout] = set()
        reader = self._reader
        for count, unit in enumerate(self.info.units, 1):
            with _damage(self.label), _collector_paused():
                new = self._new_in(unit, ids, prints)
                layouts = [_renamed(reader.layout(reader.at(offset)), name) for offset, name in new]
            for layout in layouts:
                if layout not in seen:
                    seen.add(layout)
                    yield layout
            if count % _UNITS_A_READER == 0:
                reader = LayoutReader(self.info, self._find_definition)

    # -- finding -----------------------------------------------------------------------------------------------

    def _new_in(self, unit: Unit, ids: dict[Any, int], prints: set[Any]) -> list[tuple[int, str | None]]:
        """Structs of `unit` whose print is not in `prints` yet, with the name a typedef gives."""
        scan = UnitScan(self.info, unit, ids)
        given = scan.typedef_names()
        new: list[tuple[int, str | None]] = []
        for die in definitions(scan.found):
            name = given.get(die[0])
            if name is None and not die[1].has(AT_NAME):
                continue
            key = name, scan.print_of(die)
            if key not in prints:
                prints.add(key)
                new.append((die[0], text_of(name) if name is not None else None))
        return new

    def _entries(self, name: str) -> Iterator[DIE]:
        """Definitions, and some typedefs, that go by `name` or by a qualified name that ends in it."""
        last = _last_part(name)
        for hit in self._finder.find(last.encode("utf-8", "surrogateescape")):
            die = self._reader.at(hit.offset)
            if last == name or self._reader.qualified(die) == name:
                yield die

    def _all_names(self) -> set[str]:
        """Every name, from one walk over the file."""
        if self._names is None:
            names: set[str] = set()
            at_offsets: set[int] = set()
            with _damage(self.label):
                for unit in self.info.units:
                    with _collector_paused():
                        scan = UnitScan(self.info, unit, {})
                        names.update(text_of(name) for name in scan.typedef_names().values())
                        if self.info.language(unit) in C_LANGUAGES:
                            raw = {scan.raw_name(die) for die in definitions(scan.found)}
                            at_offsets.update(name for name in raw if isinstance(name, int))
                            names.update(text_of(name) for name in raw if isinstance(name, bytes))
                        else:
                            full = self.info.qualified_names(unit, scan.found)
                            names.update(text_of(full[die[0]]) for die in definitions(scan.found) if die[0] in full)
                names.update(text_of(string_at(self.info.sections.strings, offset)) for offset in at_offsets)
            names.discard("")
            self._names = names
        return self._names

    def _find_definition(self, name: str) -> int | None:
        return next(self.offsets(name), None)

    def _bare(self, die: DIE) -> DIE | None:
        found: DIE | None = die
        for _ in range(100):
            if found is None or found.tag in STRUCTS or "DW_AT_type" not in found.attributes:
                break
            if found.tag in ("DW_TAG_pointer_type", "DW_TAG_array_type", "DW_TAG_subroutine_type"):
                break
            found = self._reader.target(found)
        return found

    def _near(self, wanted: str) -> str:
        if self._names is not None or len(self.info.sections.info) <= SMALL_BYTES:
            return near(wanted, self._all_names())
        return near_names(wanted, self._finder)


def _renamed(layout: Layout, name: str | None) -> Layout:
    return layout if name is None else _with(layout, name=name)


def _last_part(name: str) -> str:
    """``vector<a::b>`` of ``std::vector<a::b>``."""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += (name[at] == ">") - (name[at] == "<")
        if depth == 0 and name[at - 1 : at + 1] == "::":
            return name[at + 1 :]
    return name


def _split_name(name: str) -> tuple[tuple[str, ...], str]:
    words = name.split(None, 1)
    if len(words) == 2 and words[0] in ("struct", "class"):
        return ("struct", "class"), words[1].strip()
    if len(words) == 2 and words[0] == "union":
        return ("union",), words[1].strip()
    return ("struct", "union", "class"), name.strip()


def open_dwarf(path: str | os.PathLike[str]) -> DwarfSource:
    """Open the ELF file at `path` and read the list of its units.

    Raises `SourceError` if it is no ELF file, has no DWARF, or uses type units, split or 64-bit DWARF.
    """
    path = Path(path)
    with _damage(str(path)):
        return DwarfSource(DebugInfo(read_sections(path)))
