"""A compact walker over ``.debug_info``: units, abbreviations, and where every DIE of interest begins.

pyelftools builds an object for each DIE, which is right for the few that make up a struct and takes minutes
for the 18 million of a vmlinux. This walker only steps from DIE to DIE: sizes of forms are those of DWARF 5,
section 7.5.6. Attribute, tag and form codes are from the tables of sections 7.5.3 to 7.5.6.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Literal

from kitlib.dwarfsections import DwarfSections
from kitlib.errors import SourceError

ByteOrder = Literal["little", "big"]

TAG_CLASS, TAG_ENUM, TAG_STRUCT, TAG_TYPEDEF, TAG_UNION = 0x02, 0x04, 0x13, 0x16, 0x17
TAG_NAMESPACE, TAG_SUBPROGRAM, TAG_COMPILE_UNIT = 0x39, 0x2E, 0x11
STRUCT_TAGS: Final = frozenset({TAG_CLASS, TAG_STRUCT, TAG_UNION})
AT_SIBLING, AT_NAME, AT_BYTE_SIZE, AT_LANGUAGE, AT_DECLARATION, AT_TYPE = 0x01, 0x03, 0x0B, 0x13, 0x3C, 0x49
AT_STR_OFFSETS_BASE, AT_DWO_NAME, AT_GNU_DWO_NAME = 0x72, 0x76, 0x2130

FORM_ADDRESS, FORM_STRING, FORM_SDATA, FORM_STRP, FORM_REF_ADDRESS, FORM_REF4 = 0x01, 0x08, 0x0D, 0x0E, 0x10, 0x13
FORM_FLAG_PRESENT, FORM_LINE_STRP, FORM_IMPLICIT = 0x19, 0x1F, 0x21
STRX_BYTES: Final = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
FORM_STRX, FORM_GNU_STR_INDEX = 0x1A, 0x1F02
STRX_FORMS: Final = frozenset({*STRX_BYTES, FORM_STRX, FORM_GNU_STR_INDEX})

C_LANGUAGES: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E, 0x10})
"""DW_LANG_C89, C, C99, C11, C17, C23 and ObjC."""
CPP_LANGUAGES: Final = frozenset({0x04, 0x11, 0x1A, 0x21, 0x2B, 0x3A})
LANG_RUST, LANG_ASSEMBLER = 0x1C, 0x8001

_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x0C: 1, 0x19: 0, 0x21: 0, 0x0E: 4, 0x1F: 4, 0x17: 4,
          0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x20: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2,
          0x2B: 3, 0x2C: 4, 0x1C: 4, 0x24: 8, 0x1D: 4, 0x1F20: 4, 0x1F21: 4}  # fmt: skip
_LEB, _STRING, _BLOCK, _BLOCK1, _BLOCK2, _BLOCK4 = range(-1, -7, -1)
_VARIABLE = {0x0D: _LEB, 0x0F: _LEB, 0x15: _LEB, 0x1A: _LEB, 0x1B: _LEB, 0x22: _LEB, 0x23: _LEB, 0x1F01: _LEB,
             0x1F02: _LEB, 0x08: _STRING, 0x18: _BLOCK, 0x09: _BLOCK, 0x0A: _BLOCK1, 0x03: _BLOCK2,
             0x04: _BLOCK4}  # fmt: skip


# -- units -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of ``.debug_info``: offsets in bytes from its start; ``first`` is that of its first DIE."""

    offset: int
    end: int
    first: int
    version: int
    abbrev_offset: int
    address_bytes: int
    kind: int


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
            units.append(Unit(at, end, first, version, abbrev, address_bytes, kind))
        else:
            skeletons += 1
        at = end
    if not units:
        if skeletons:
            raise SourceError(f"{label}: split DWARF, its types are in .dwo files; compile without -gsplit-dwarf")
        raise SourceError(f"{label}: .debug_info holds no units; damaged or truncated")
    return units


# -- abbreviations ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Abbrev:
    """How DIEs of one code are laid out.

    ``attrs`` holds (attribute, form, constant of DW_FORM_implicit_const, bytes or, below 0, kind of variable form).
    ``fixed`` is the number of bytes behind the last of ``steps``, each of which is (bytes before it, kind);
    ``sibling`` is the byte at which a 4-byte DW_AT_sibling stands, -1 without one.
    """

    code: int
    tag: int
    children: bool
    attrs: tuple[tuple[int, int, int, int], ...]
    fixed: int
    steps: tuple[tuple[int, int], ...]
    sibling: int

    def has(self, attribute: int) -> bool:
        return any(at == attribute for at, *_ in self.attrs)


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned LEB128 number at `at` and the place behind it (DWARF 5, 7.6)."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > 70:
            raise ValueError("a LEB128 number longer than 64 bits")


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """The signed LEB128 number at `at` and the place behind it."""
    value, end = uleb(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if data[end - 1] & 0x40 else value), end


def read_abbrev(data: bytes, at: int, address_bytes: int, version: int) -> tuple[Abbrev | None, int]:
    """The abbreviation at `at` and the place behind it; None at the end of a table."""
    code, at = uleb(data, at)
    if code == 0:
        return None, at
    tag, at = uleb(data, at)
    children = data[at] != 0
    at += 1
    attrs: list[tuple[int, int, int, int]] = []
    steps: list[tuple[int, int]] = []
    fixed, sibling = 0, -1
    while True:
        attribute, at = uleb(data, at)
        form, at = uleb(data, at)
        constant = 0
        if form == FORM_IMPLICIT:
            constant, at = sleb(data, at)
        if not attribute and not form:
            break
        if attribute == AT_SIBLING and form == FORM_REF4 and not steps:
            sibling = fixed
        width = _width(form, address_bytes, version)
        attrs.append((attribute, form, constant, width))
        if width >= 0:
            fixed += width
        else:
            steps.append((fixed, width))
            fixed = 0
    return Abbrev(code, tag, children, tuple(attrs), fixed, tuple(steps), sibling), at


def _width(form: int, address_bytes: int, version: int) -> int:
    """Bytes a form takes, or the (negative) kind of a form that takes as many as it says."""
    if form == FORM_ADDRESS or (form == FORM_REF_ADDRESS and version <= 2):
        return address_bytes
    size = _FIXED.get(form)
    return _VARIABLE[form] if size is None else size


def _behind(data: bytes, at: int, kind: int, order: ByteOrder) -> int:
    """The place behind the value of a variable form that begins at `at`."""
    if kind == _LEB:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == _BLOCK:
        length, at = uleb(data, at)
        return at + length
    if kind == _STRING:
        return data.index(0, at) + 1
    width = {_BLOCK1: 1, _BLOCK2: 2, _BLOCK4: 4}[kind]
    return at + width + int.from_bytes(data[at : at + width], order)


def skip(data: bytes, at: int, abbrev: Abbrev, order: ByteOrder) -> int:
    """The place behind the attributes that begin at `at`."""
    for before, kind in abbrev.steps:
        at = _behind(data, at + before, kind, order)
    return at + abbrev.fixed


def attributes(data: bytes, at: int, abbrev: Abbrev, order: ByteOrder) -> dict[int, int | bytes]:
    """Raw values of the attributes that begin at `at`: numbers, or bytes for strings and blocks."""
    values: dict[int, int | bytes] = {}
    for attribute, form, constant, width in abbrev.attrs:
        if form == FORM_IMPLICIT:
            values[attribute] = constant
        elif form == FORM_FLAG_PRESENT:
            values[attribute] = 1
        elif form == FORM_SDATA:
            values[attribute], at = sleb(data, at)
        elif width == _LEB:
            values[attribute], at = uleb(data, at)
        elif width >= 0:
            values[attribute] = int.from_bytes(data[at : at + width], order)
            at += width
        else:
            end = _behind(data, at, width, order)
            values[attribute] = data[at : end - 1] if width == _STRING else data[at:end]
            at = end
    return values


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
        self.units = read_units(sections)
        self._starts = [unit.offset for unit in self.units]
        self._tables: dict[tuple[int, int, int], dict[int, Abbrev]] = {}
        self._tops: dict[int, dict[int, int | bytes]] = {}

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
        key = unit.abbrev_offset, unit.address_bytes, unit.version
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
            decl = self.sections.abbrev
            at_decl = unit.abbrev_offset
            while True:  # mostly the first one; reading the whole table for it would cost a millisecond
                abbrev, at_decl = read_abbrev(decl, at_decl, unit.address_bytes, unit.version)
                if abbrev is None or abbrev.code == code:
                    break
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


def _plan(abbrev: Abbrev, leap: bool) -> tuple[int, bool, int, int, bool, Abbrev]:
    """What `scan` needs of an abbreviation: 1 to list it, 2 if it is a scope too; then how to get behind it."""
    kept = 2 if abbrev.tag in _SCOPES else int(abbrev.tag in _LISTED)
    sibling = abbrev.sibling if leap and abbrev.tag in STRUCT_TAGS else -1
    return kept, abbrev.children, sibling, abbrev.fixed, bool(abbrev.steps), abbrev
