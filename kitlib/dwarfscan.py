"""All structs of a file, each once: a vmlinux repeats its 8,600 in 2,400 units, hundreds of thousands of times.

One walk lists them. Two entries whose *prints* are equal make equal layouts, so that only the first is handed
to pyelftools. A print holds what layouts are compared by: name, kind, size, and of each member the name, the
place and the print of its type; a type that is only pointed to counts by its name, since one unit has its
definition and another does not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kitlib.dwarfabbrev import (
    AT_BYTE_SIZE,
    AT_DECLARATION,
    AT_NAME,
    AT_SIBLING,
    AT_TYPE,
    FORM_FLAG_PRESENT,
    FORM_IMPLICIT,
    FORM_REF4,
    FORM_STRING,
    FORM_STRP,
    LOCAL_REFERENCES,
    STRUCT_TAGS,
    STRX_FORMS,
    TAG_ENUM,
    TAG_TYPEDEF,
    Abbrev,
    attributes,
    skip,
    uleb,
)
from kitlib.dwarfindex import DebugInfo, Found, Unit

_TAG_ARRAY, _TAG_SUBROUTINE = 0x01, 0x15
_TAG_POINTERS = frozenset({0x0F, 0x10, 0x42, 0x1F, _TAG_SUBROUTINE})  # what they refer to counts by name
_TAG_QUALIFIERS = frozenset({0x26, 0x35, 0x37, 0x47})  # const, volatile, restrict, atomic
_NAMED_TAGS = STRUCT_TAGS | {TAG_ENUM, TAG_TYPEDEF}
_AT_DECL = frozenset({0x39, 0x3A, 0x3B, AT_SIBLING})  # column, file, line: they differ from unit to unit
_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MAX_DEPTH = 100


def definitions(found: list[Found]) -> Iterator[Found]:
    """Those that define a struct, union or class, named or not."""
    for die in found:
        if die[1].tag in STRUCT_TAGS and not die[1].has(AT_DECLARATION):
            yield die


class _Reader(NamedTuple):
    """How to take the attributes of one abbreviation at a stroke.

    ``ident`` numbers tag, attributes and constants; ``unpack`` gives the values that count, behind a first
    inline string if ``inline``, and takes ``size`` bytes. ``type_at`` and ``name_at`` are places among the values,
    -1 without. ``unpack`` is None where forms vary in length: those are read one by one.
    """

    ident: int
    tag: int
    unpack: Callable[..., tuple[Any, ...]] | None
    size: int
    inline: bool
    type_at: int
    name_at: int
    size_at: int
    children: bool
    abbrev: Abbrev


def _reader(abbrev: Abbrev, ids: dict[Any, int], order: str) -> _Reader:
    letters = ["<" if order == "little" else ">"]
    kept: list[int] = []
    constants: list[tuple[int, int]] = []
    inline, simple = False, True
    for at, (attribute, form, constant, width) in enumerate(abbrev.attrs):
        unwanted = attribute in _AT_DECL
        if form in (FORM_IMPLICIT, FORM_FLAG_PRESENT):
            if not unwanted:
                constants.append((attribute, constant))
        elif form == FORM_STRING and at == 0 and attribute == AT_NAME:
            inline = True
        elif width < 0 or (attribute == AT_TYPE and form != FORM_REF4) or form in STRX_FORMS:
            simple = False
        elif unwanted or width not in _LETTERS:
            simple = simple and unwanted
            letters.append(f"{width}x")
        else:
            kept.append(attribute)
            letters.append(_LETTERS[width])
    shape = struct.Struct("".join(letters))
    ident = ids.setdefault((abbrev.tag, tuple(kept), tuple(constants), inline), len(ids))
    unpack = shape.unpack_from if simple else None
    type_at, name_at, size_at = (_index(kept, wanted) for wanted in (AT_TYPE, AT_NAME, AT_BYTE_SIZE))
    return _Reader(ident, abbrev.tag, unpack, shape.size, inline, type_at, name_at, size_at, abbrev.children, abbrev)


def _index(kept: list[int], wanted: int) -> int:
    return kept.index(wanted) if wanted in kept else -1


class UnitScan:
    """The types of one unit, as raw numbers. ``ids`` gives equal parts of prints equal numbers over all units."""

    def __init__(self, info: DebugInfo, unit: Unit, ids: dict[Any, int]) -> None:
        self.info = info
        self.unit = unit
        self.data = info.bytes_of(unit)
        self.found = info.scan(unit, self.data)
        self._table = info.table(unit)
        self._readers: dict[int, _Reader] = {}
        self._ids = ids
        self._by_value: dict[int, int] = {}
        self._by_name: dict[int, int] = {}

    def raw_name(self, die: Found) -> int | bytes:
        """A struct's name as its place in ``.debug_str``, or its text; ``b""`` if it has none."""
        reader, at = self._read(die[0] - self.unit.offset)
        if reader.unpack is not None and reader.inline:
            return self.data[at : self.data.index(0, at)]
        if reader.unpack is not None and reader.name_at >= 0 and reader.abbrev.attrs[0][1] == FORM_STRP:
            name: int = reader.unpack(self.data, at)[reader.name_at]
            return name
        return self.info.name(self.unit, self.data, die) or b""

    def typedef_names(self) -> dict[int, bytes]:
        """Names that typedefs give to unnamed structs, by the offset of the struct; the first one counts."""
        unnamed = {die[0] - self.unit.offset for die in definitions(self.found) if not die[1].has(AT_NAME)}
        names: dict[int, bytes] = {}
        for die in self.found if unnamed else ():
            if die[1].tag == TAG_TYPEDEF:
                target = self._target_of(die)
                if target in unnamed:
                    name = self.info.name(self.unit, self.data, die)
                    if name:
                        names.setdefault(target + self.unit.offset, name)
        return names

    def _target_of(self, die: Found) -> int:
        """What a typedef refers to, through const and volatile, from the unit's start; -1 if it is not in it."""
        place = die[0] - self.unit.offset
        for _ in range(_MAX_DEPTH):
            reader, at = self._read(place)
            if reader.unpack is not None and reader.type_at >= 0:
                if reader.inline:
                    at = self.data.index(0, at) + 1
                place = reader.unpack(self.data, at)[reader.type_at]
            else:
                value = attributes(self.data, at, reader.abbrev, self.info.order).get(AT_TYPE)
                local = any(
                    attribute == AT_TYPE and form in LOCAL_REFERENCES for attribute, form, *_ in reader.abbrev.attrs
                )
                if not local or not isinstance(value, int):
                    return -1
                place = value
            if self._read(place)[0].tag not in _TAG_QUALIFIERS:
                return place
        return -1

    def _read(self, place: int) -> tuple[_Reader, int]:
        """The reader of the entry at `place`, and where its attributes begin."""
        code, at = uleb(self.data, place)
        reader = self._readers.get(code)
        if reader is None:
            reader = self._readers[code] = _reader(self._table[code], self._ids, self.info.order)
        return reader, at

    # -- prints -------------------------------------------------------------------------------------------------

    def print_of(self, die: Found) -> tuple[Any, ...]:
        """The print of a struct: equal prints make equal layouts."""
        parts: list[Any] = []
        reader, at = self._read(die[0] - self.unit.offset)
        at = self._take(reader, at, parts, True, 0)
        if reader.children:
            self._take_children(at, parts, True, 0)
        return tuple(parts)

    def _take_children(self, at: int, parts: list[Any], by_value: bool, depth: int) -> None:
        data, readers = self.data, self._readers
        known = self._by_value if by_value else self._by_name
        level = 1
        while level:
            code = data[at]
            if code == 0:
                at += 1
                level -= 1
                continue
            reader = readers.get(code) if code < 0x80 else None
            if reader is None:
                reader, at = self._read(at)
            else:
                at += 1
            unpack, place = reader.unpack, reader.type_at
            if unpack is None or place < 0 or reader.inline:
                at = self._take(reader, at, parts, by_value, depth)
            else:  # most members: the same as _take, without the call
                values = unpack(data, at)
                target = values[place]
                parts.append(reader.ident)
                parts += values
                number = known.get(target)
                parts[place - len(values)] = self.type_print(target, by_value, depth + 1) if number is None else number
                at += reader.size
            level += reader.children

    def _take(self, reader: _Reader, at: int, parts: list[Any], by_value: bool, depth: int) -> int:
        """Add what counts of the attributes at `at` to `parts`; return the place behind them."""
        if reader.unpack is None:
            return self._take_slowly(reader, at, parts, by_value, depth)
        parts.append(reader.ident)
        if reader.inline:
            end = self.data.index(0, at)
            parts.append(self.data[at:end])
            at = end + 1
        values = reader.unpack(self.data, at)
        parts += values
        if reader.type_at >= 0:
            target = values[reader.type_at]
            parts[reader.type_at - len(values)] = self.type_print(target, by_value, depth + 1)
        return at + reader.size

    def _take_slowly(self, reader: _Reader, at: int, parts: list[Any], by_value: bool, depth: int) -> int:
        parts.append(reader.tag)
        values = attributes(self.data, at, reader.abbrev, self.info.order)
        for attribute, form, _, _ in reader.abbrev.attrs:
            value: Any = values[attribute]
            if attribute in _AT_DECL:
                continue
            if attribute == AT_NAME:
                value = self._name(form, value)
            elif attribute == AT_TYPE and form in LOCAL_REFERENCES:
                value = self.type_print(value, by_value, depth + 1)
            parts += (attribute, value)
        return skip(self.data, at, reader.abbrev, self.info.order)

    def _name(self, form: int, value: Any) -> Any:
        """What stands for a name in a print: its place in ``.debug_str`` where that is stored, else its text."""
        return value if form == FORM_STRP else self.info.string(self.unit, form, value)

    def type_print(self, place: int, by_value: bool, depth: int) -> int:
        """A number for the type at `place` in the unit; by value its size counts, otherwise only its name."""
        memo = self._by_value if by_value else self._by_name
        known = memo.get(place)
        if known is not None:
            return known
        if depth > _MAX_DEPTH:
            raise ValueError("a type that refers to itself")
        reader, at = self._read(place)
        key: tuple[Any, ...]
        if reader.tag in _NAMED_TAGS:
            key = self._named_key(reader, at, by_value, depth)
        else:
            inner = by_value and reader.tag not in _TAG_POINTERS
            parts: list[Any] = [inner]
            at = self._take(reader, at, parts, inner, depth)
            if reader.children:
                self._take_children(at, parts, inner, depth)
            key = tuple(parts)
        number = memo[place] = self._ids.setdefault(key, len(self._ids))
        return number

    def _named_key(self, reader: _Reader, at: int, by_value: bool, depth: int) -> tuple[Any, ...]:
        name: Any = b""
        size = target = None
        if reader.unpack is not None:
            if reader.inline:
                end = self.data.index(0, at)
                name, at = self.data[at:end], end + 1
            values = reader.unpack(self.data, at)
            name = values[reader.name_at] if reader.name_at >= 0 else name
            size = values[reader.size_at] if reader.size_at >= 0 else None
            target = values[reader.type_at] if reader.type_at >= 0 else None
        else:
            raw = attributes(self.data, at, reader.abbrev, self.info.order)
            form = next((form for attribute, form, _, _ in reader.abbrev.attrs if attribute == AT_NAME), FORM_STRING)
            name = self._name(form, raw[AT_NAME]) if AT_NAME in raw else b""
            size = raw.get(AT_BYTE_SIZE)
            if by_value and reader.tag == TAG_TYPEDEF:
                parts: list[Any] = ["typedef"]
                self._take_slowly(reader, at, parts, True, depth)
                return tuple(parts)
        if not by_value:
            return "named", reader.tag, name
        if reader.tag == TAG_TYPEDEF and isinstance(target, int):
            return "typedef", name, self.type_print(target, True, depth + 1)
        if size is None:  # the same for all of the abbreviation, or a declaration
            return "held", reader.ident, name
        return "held", reader.tag, name, size
