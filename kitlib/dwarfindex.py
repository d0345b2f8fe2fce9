"""A compact walker over ``.debug_info``: its units, and where every struct, typedef and namespace begins.

pyelftools builds an object for each entry, which is right for the few that make up a struct and takes minutes for
the 18 million of a vmlinux. This walker only steps from one to the next.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

from kitlib.dwarfabbrev import (
    AT_GNU_DWO_NAME,
    AT_LANGUAGE,
    AT_NAME,
    AT_STR_OFFSETS_BASE,
    C_LANGUAGES,
    FORM_LINE_STRP,
    FORM_STRX,
    STRUCT_TAGS,
    STRX_BYTES,
    TAG_ENUM,
    TAG_NAMESPACE,
    TAG_TYPEDEF,
    Abbrev,
    ByteOrder,
    attributes,
    read_abbrev,
    skip,
    uleb,
)
from kitlib.dwarfsections import DwarfSections
from kitlib.errors import SourceError


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of ``.debug_info``: offsets in bytes from its start; ``first`` is that of its first DIE."""

    offset: int
    end: int
    first: int
    version: int
    abbrev_offset: int
    address_bytes: int


DW_UT_compile, DW_UT_type, DW_UT_partial, DW_UT_skeleton = 1, 2, 3, 4


def read_units(sections: DwarfSections) -> list[Unit]:
    """All compile and partial units, in order; skeletons of split DWARF are left out.

    Raises `SourceError` for other DWARF versions than 4 and 5 (2 and 3 differ little and are read too), for
    64-bit DWARF, type units, and if every unit is a skeleton.
    """
    info, label = sections.info, sections.label
    order = "<" if sections.little_endian else ">"
    head, v4, v5 = struct.Struct(order + "IH"), struct.Struct(order + "IB"), struct.Struct(order + "BBI")
    units: list[Unit] = []
    skeletons = 0
    at, total = 0, len(info)
    while at + 11 <= total:
        length, version = head.unpack_from(info, at)
        if length >= 0xFFFFFFF0:
            raise SourceError(f"{label}: 64-bit DWARF is not read; compile with -gdwarf32")
        end = at + 4 + length
        if end > total or length < 7:
            raise SourceError(f"{label}: the DWARF unit at {at:#x} reaches beyond .debug_info; damaged or truncated")
        if version == 5 and length >= 8:
            kind, address_bytes, abbrev = v5.unpack_from(info, at + 6)
            first = at + 12
        elif 2 <= version <= 4:
            abbrev, address_bytes = v4.unpack_from(info, at + 6)
            kind, first = DW_UT_compile, at + 11
        else:
            raise SourceError(f"{label}: DWARF version {version} in the unit at {at:#x}; the kit reads 4 and 5")
        if kind == DW_UT_type:
            raise SourceError(f"{label}: DWARF type units are not read; compile with -fno-debug-types-section")
        if address_bytes not in (4, 8) or abbrev >= max(len(sections.abbrev), 1):
            raise SourceError(f"{label}: the DWARF unit at {at:#x} has a damaged header")
        if kind in (DW_UT_compile, DW_UT_partial):
            units.append(Unit(at, end, first, version, abbrev, address_bytes))
        else:
            skeletons += 1
        at = end
    if not units:
        raise _split(label) if skeletons else SourceError(f"{label}: .debug_info holds no units; damaged or truncated")
    return units


def _split(label: str) -> SourceError:
    return SourceError(f"{label}: split DWARF, its types are in .dwo files; compile without -gsplit-dwarf")


def string_at(strings: bytes, offset: int) -> bytes:
    """The zero-ended string at `offset`. Raises `ValueError` if there is none."""
    if offset >= len(strings):
        raise ValueError(f"string {offset:#x} lies beyond its section")
    return strings[offset : strings.index(0, offset)]


# -- walking -----------------------------------------------------------------------------------------------

Found = tuple[int, Abbrev, int]
"""A DIE of interest: its offset in ``.debug_info``, its abbreviation, and the index of the one around it, or -1."""

_SCOPES = STRUCT_TAGS | {TAG_NAMESPACE}
_LISTED = frozenset({TAG_TYPEDEF, TAG_ENUM})


class DebugInfo:
    """Units and abbreviation tables of one file, read when asked for."""

    def __init__(self, sections: DwarfSections) -> None:
        self.sections = sections
        self.order: ByteOrder = "little" if sections.little_endian else "big"
        self._tables: dict[tuple[int, int, int], dict[int, Abbrev]] = {}
        self._tops: dict[int, dict[int, int | bytes]] = {}
        units = read_units(sections)
        # before DWARF 5 a skeleton of split DWARF is known by an attribute of its first entry
        self.units = [unit for unit in units if unit.version >= 5 or AT_GNU_DWO_NAME not in self.top(unit)]
        if not self.units:
            raise _split(sections.label)
        self._starts = [unit.offset for unit in self.units]

    def unit_at(self, offset: int) -> Unit:
        """The unit that holds byte `offset` of ``.debug_info``. Raises `ValueError` if none does."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or not self.units[at].first <= offset < self.units[at].end:
            raise ValueError(f"no unit at {offset:#x}")
        return self.units[at]

    def bytes_of(self, unit: Unit) -> bytes:
        """The unit's own bytes, header included."""
        return bytes(self.sections.info[unit.offset : unit.end])

    def table(self, unit: Unit) -> dict[int, Abbrev]:
        """Abbreviations of `unit` by code; the last few tables are kept."""
        key = _key(unit)
        known = self._tables.get(key)
        if known is None:
            if len(self._tables) > 32:
                self._tables.clear()
            known = self._tables[key] = {}
            at = unit.abbrev_offset
            while True:
                abbrev, at = read_abbrev(self.sections.abbrev, at, unit.address_bytes, unit.version)
                if abbrev is None:
                    break
                known[abbrev.code] = abbrev
        return known

    def top(self, unit: Unit) -> dict[int, int | bytes]:
        """Attributes of the unit's first DIE by number, as they are stored."""
        known = self._tops.get(unit.offset)
        if known is None:
            data = self.bytes_of(unit)
            code, at = uleb(data, unit.first - unit.offset)
            table = self._tables.get(_key(unit))
            abbrev = table.get(code) if table is not None else None
            at_decl = unit.abbrev_offset
            while abbrev is None:  # reading the whole table for one entry would cost a millisecond
                abbrev, at_decl = read_abbrev(self.sections.abbrev, at_decl, unit.address_bytes, unit.version)
                if abbrev is None:
                    break
                abbrev = abbrev if abbrev.code == code else None
            known = self._tops[unit.offset] = attributes(data, at, abbrev, self.order) if abbrev else {}
        return known

    def language(self, unit: Unit) -> int:
        """DW_LANG_… of `unit`; 0 if it is not stated."""
        value = self.top(unit).get(AT_LANGUAGE, 0)
        return value if isinstance(value, int) else 0

    def name(self, unit: Unit, data: bytes, die: tuple[int, Abbrev, int]) -> bytes | None:
        """DW_AT_name of a found DIE; None if it has none."""
        offset, abbrev, _ = die
        for attribute, form, _, _ in abbrev.attrs:
            if attribute == AT_NAME:
                _, at = uleb(data, offset - unit.offset)
                value = attributes(data, at, abbrev, self.order)[AT_NAME]
                return self.string(unit, form, value)
        return None

    def string(self, unit: Unit, form: int, value: int | bytes) -> bytes:
        """The string that a name attribute of `form` with the raw `value` stands for."""
        if isinstance(value, bytes):
            return value
        if form == FORM_LINE_STRP:
            return string_at(self.sections.line_strings, value)
        if form == FORM_STRX or form in STRX_BYTES:
            value = self.string_offset(unit, value)
        return string_at(self.sections.strings, value)

    def string_offset(self, unit: Unit, index: int) -> int:
        """Offset in ``.debug_str`` of the string with number `index` in `unit` (DWARF 5, 7.26)."""
        base = self.top(unit).get(AT_STR_OFFSETS_BASE, 8)
        assert isinstance(base, int)
        at = base + 4 * index
        raw = self.sections.str_offsets[at : at + 4]
        if len(raw) != 4:
            raise IndexError(f"string {index} lies beyond .debug_str_offsets")
        return int.from_bytes(raw, self.order)

    def scan(self, unit: Unit, data: bytes | None = None) -> list[Found]:
        """Every struct, union, class, enum, typedef and namespace of `unit`, at any depth.

        In C no type is declared inside a struct (DWARF lists it beside), so that members are stepped over.
        Raises `ValueError`, `KeyError` or `IndexError` where the data is damaged.
        """
        table = self.table(unit)
        data = self.bytes_of(unit) if data is None else data
        leap = self.language(unit) in C_LANGUAGES
        plan = {code: _plan(abbrev, leap) for code, abbrev in table.items()}
        base, order = unit.offset, self.order
        found: list[Found] = []
        around: list[int] = []
        inside = -1
        at, end = unit.first - base, unit.end - base
        while at < end:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                if around:
                    inside = around.pop()
                continue
            if code > 0x7F:
                code, at = uleb(data, start)
            kept, children, sibling, fixed, steps, abbrev = plan[code]
            here = inside
            if kept:
                found.append((base + start, abbrev, inside))
                if kept == 2:
                    here = len(found) - 1
                if sibling >= 0:
                    after = int.from_bytes(data[at + sibling : at + sibling + 4], order)
                    if after <= start:
                        raise ValueError("a sibling reference that leads backwards")
                    at = after
                    continue
            if steps:
                at = skip(data, at, abbrev, order)
            else:
                at += fixed
            if children:
                around.append(inside)
                inside = here
        return found

    def qualified_names(self, unit: Unit, found: list[Found] | None = None) -> dict[int, bytes]:
        """Names of the structs, enums and typedefs of `unit` by offset, with their namespaces and classes."""
        data = self.bytes_of(unit)
        found = self.scan(unit, data) if found is None else found
        names: list[bytes] = []
        named: dict[int, bytes] = {}
        for die in found:
            own = self.name(unit, data, die)
            outer = names[die[2]] if die[2] >= 0 else b""
            full = outer if own is None else own if not outer else outer + b"::" + own
            names.append(full)
            if own is not None:
                named[die[0]] = full
        return named


def _key(unit: Unit) -> tuple[int, int, int]:
    """What an abbreviation table depends on: its place, and the sizes of forms."""
    return unit.abbrev_offset, unit.address_bytes, unit.version


def _plan(abbrev: Abbrev, leap: bool) -> tuple[int, bool, int, int, bool, Abbrev]:
    """What `scan` needs of an abbreviation: 1 to list it, 2 if it is a scope too; then how to get behind it."""
    kept = 2 if abbrev.tag in _SCOPES else int(abbrev.tag in _LISTED)
    sibling = abbrev.sibling if leap and abbrev.tag in STRUCT_TAGS else -1
    return kept, abbrev.children, sibling, abbrev.fixed, bool(abbrev.steps), abbrev
