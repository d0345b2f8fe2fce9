"""Finding a struct by name in a large file without walking it.

The name's place in ``.debug_str`` is a 4-byte number; only entries that carry it can be the struct. The whole
of ``.debug_info`` is searched for that number (0.04 s for 200 MB), and what stands in front of it is compared
with the unit's abbreviations of structs. Whatever is left is checked by walking its one unit, so that a chance
match is never taken for a struct. Units that number their strings (DW_FORM_strx) are searched for the number
their own table gives the name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kitlib.dwarfabbrev import (
    AT_DECLARATION,
    AT_NAME,
    AT_SIBLING,
    AT_STR_OFFSETS_BASE,
    FORM_REF4,
    FORM_STRING,
    FORM_STRP,
    FORM_STRX,
    STRUCT_TAGS,
    STRX_BYTES,
    TAG_TYPEDEF,
    attributes,
    read_abbrev,
    skip,
    uleb,
)
from kitlib.dwarfindex import DebugInfo, Unit
from kitlib.dwarfsearch import Positions, find_numbers, find_text, occurrences, string_offsets

_TYPEDEFS = 5
"""Typedefs of one name that are looked at: all units have the same ones, as a rule."""

# A declaration of a struct, union, class or typedef with a name: behind the end of the one before it (two zero
# bytes) its code, tag and children flag, pairs of attribute and form, then DW_AT_name and its form.
_CODE = rb"[\x80-\xff]{0,2}[\x01-\x7f]"
_PAIR = rb"[\x80-\xff]*[\x01-\x7f](?:[\x01-\x20\x22-\x7f]|[\x80-\xff]+[\x01-\x7f]|\x21[\x80-\xff]*[\x00-\x7f])"
_DECLARATION = re.compile(
    rb"\0\0(?=(" + _CODE + rb")([\x02\x13\x16\x17])[\x00\x01]((?:" + _PAIR + rb")*?)\x03([\x01-\x7f]))"
)


class Hit(NamedTuple):
    """An entry with the wanted name: its offset in ``.debug_info``, and its tag."""

    offset: int
    tag: int


class _Shape(NamedTuple):
    """How an entry begins: its code's bytes, ``before`` bytes of attributes, then the name.

    ``place`` is that of its declaration in ``.debug_abbrev``.
    """

    code: bytes
    before: int
    tag: int
    place: int


class _Candidate(NamedTuple):
    unit: Unit
    offset: int
    shape: _Shape


class Finder:
    """Structs and typedefs by name."""

    def __init__(self, info: DebugInfo) -> None:
        self.info = info
        self._bytes = np.frombuffer(info.sections.info, np.uint8)
        self._ends = np.array([unit.end for unit in info.units], np.int64)
        self._declarations: dict[int, list[tuple[int, bytes, int, int, int]]] = {}
        self._references: dict[tuple[bytes, int, int], tuple[tuple[int, int], ...] | None] = {}
        self._entries: dict[int, set[int]] = {}
        starts = sorted({unit.abbrev_offset for unit in info.units})
        self._table_ends = dict(pairwise([*starts, len(info.sections.abbrev)]))

    def find(self, name: bytes) -> Iterator[Hit]:
        """Definitions of structs, unions and classes called `name`, and the first few typedefs, in order."""
        for way in (self._by_string_offset, self._by_string_number, self._by_inline_name):
            typedefs = 0
            found = False
            for unit, offset, shape in way(name):
                typedefs += shape.tag == TAG_TYPEDEF
                if (shape.tag in STRUCT_TAGS or typedefs <= _TYPEDEFS) and self._is_entry(unit, offset):
                    found = True
                    yield Hit(offset, shape.tag)
            if found:
                return

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Those of `names` that structs have, by their whole or tail strings; one search for all of them."""
        waiting: dict[int, bytes] = {}
        for name in names:
            waiting.update(dict.fromkeys(string_offsets(self.info.sections.strings, name)[0], name))
        found: set[bytes] = set()
        for positions in find_numbers(self.info.sections.info, waiting, self.info.order):
            for unit, offset, shape in self._match(positions, FORM_STRP):
                if shape.tag in STRUCT_TAGS:
                    at = offset + len(shape.code) + shape.before
                    number = int.from_bytes(self.info.sections.info[at : at + 4], self.info.order)
                    if number in waiting and self._is_entry(unit, offset):
                        found.add(waiting.pop(number))
        return found

    # -- three ways to hold a name -----------------------------------------------------------------------------

    def _by_string_offset(self, name: bytes) -> Iterator[_Candidate]:
        """DW_FORM_strp. A linker that merges strings leaves one copy of each to refer to."""
        info, order = self.info.sections.info, self.info.order
        likely, others = string_offsets(self.info.sections.strings, name)
        seen = False
        for positions in find_numbers(info, likely, order):
            seen = True
            yield from self._match(positions, FORM_STRP)
        if not seen:
            for positions in find_numbers(info, others, order):
                yield from self._match(positions, FORM_STRP)

    def _by_inline_name(self, name: bytes) -> Iterator[_Candidate]:
        """DW_FORM_string, as gcc writes names of up to three letters."""
        for positions in find_text(self.info.sections.info, name + b"\0"):
            yield from self._match(positions, FORM_STRING)

    def _by_string_number(self, name: bytes) -> Iterator[_Candidate]:
        """DW_FORM_strx…: the name's number differs from unit to unit (DWARF 5, 7.26)."""
        sections = self.info.sections
        if not sections.str_offsets:
            return
        likely, others = string_offsets(sections.strings, name)
        kind = "<u4" if self.info.order == "little" else ">u4"
        words = np.frombuffer(sections.str_offsets[: len(sections.str_offsets) // 4 * 4], kind)
        places = np.flatnonzero(np.isin(words, np.array(likely + others, np.uint32))) * 4
        if not len(places):
            return
        bases = {unit.offset: self.info.top(unit).get(AT_STR_OFFSETS_BASE) for unit in self.info.units}
        starts = sorted({base for base in bases.values() if isinstance(base, int)})
        after = dict(pairwise([*starts, len(sections.str_offsets)]))
        for unit in self.info.units:
            base = bases[unit.offset]
            if isinstance(base, int):
                own = places[(places >= base) & (places < after[base])]
                yield from self._numbered(unit, [(int(place) - base) // 4 for place in own])

    def _numbered(self, unit: Unit, numbers: Collection[int]) -> Iterator[_Candidate]:
        """Entries of `unit` whose name has one of `numbers`."""
        data = self.info.bytes_of(unit) if numbers else b""
        candidates: dict[int, _Shape] = {}
        for form in (*STRX_BYTES, FORM_STRX) if numbers else ():
            for shape in self._shapes(unit, form, None):
                for number in numbers:
                    encoded = _encoded(number, form, self.info.order)
                    for at in occurrences(data, encoded) if encoded is not None else ():
                        start = at - shape.before - len(shape.code)
                        if data[start : start + len(shape.code)] == shape.code:
                            candidates[unit.offset + start] = shape
        for offset, shape in sorted(candidates.items()):
            if self._is_plausible(unit, offset, shape):
                yield _Candidate(unit, offset, shape)

    # -- from a place to an entry --------------------------------------------------------------------------------

    def _match(self, positions: Positions, form: int) -> Iterator[_Candidate]:
        """Entries whose name in `form` stands at one of `positions` (sorted)."""
        positions = positions[positions >= 16]  # nothing is named in front of the first unit's header
        numbers = np.searchsorted(self._ends, positions, side="right")
        last = self._bytes[positions - 1].astype(np.int64)
        pair = last << 8 | self._bytes[positions - 2]
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(positions)]
        for low, high in pairwise(cuts):
            if low == high or int(numbers[low]) >= len(self.info.units):
                continue
            unit = self.info.units[int(numbers[low])]
            keys = {*last[low:high].tolist(), *pair[low:high].tolist()}
            candidates: dict[int, _Shape] = {}
            for shape in self._shapes(unit, form, keys):
                candidates.update(dict.fromkeys(self._begins(shape, positions[low:high], unit), shape))
            for offset, shape in sorted(candidates.items()):
                if self._is_plausible(unit, offset, shape):
                    yield _Candidate(unit, offset, shape)

    def _begins(self, shape: _Shape, positions: Positions, unit: Unit) -> list[int]:
        """Where entries of `shape` begin if their names stand at `positions`."""
        starts = positions - (shape.before + len(shape.code))
        starts = starts[starts >= unit.first]
        for i, byte in enumerate(shape.code):
            starts = starts[self._bytes[starts + i] == byte]
        found: list[int] = starts.tolist()
        return found

    def _is_plausible(self, unit: Unit, offset: int, shape: _Shape) -> bool:
        """Whether what follows can be a definition: no mere declaration, and references within the unit."""
        references = self._references_of(shape.place, unit)
        if references is None:
            return False
        start, info = offset + len(shape.code), self.info.sections.info
        for at, lowest in references:
            value = int.from_bytes(info[start + at : start + at + 4], self.info.order)
            if not max(lowest, start - unit.offset if lowest == 0 else 0) < value < unit.end - unit.offset:
                return False
        return bool(references) or self._is_followed_well(unit, offset)

    def _is_followed_well(self, unit: Unit, offset: int) -> bool:
        """Whether the entries from `offset` on could be some: known codes, references within the unit.

        For what makes no reference itself (``struct {}``), and so would match by chance most often.
        """
        table, size = self.info.table(unit), unit.end - unit.offset
        data = bytes(self.info.sections.info[offset : min(offset + 512, unit.end)])
        at = 0
        try:
            for _ in range(5):
                code, at = uleb(data, at)
                if code == 0:
                    continue
                values = attributes(data, at, table[code], self.info.order)
                at = skip(data, at, table[code], self.info.order)
                if any(form == FORM_REF4 and not 0 < int(values[name]) < size for name, form, *_ in table[code].attrs):
                    return False
        except KeyError:  # no such code
            return False
        except (IndexError, ValueError):  # the end of the unit, or of what was looked at
            return True
        return True

    def _references_of(self, place: int, unit: Unit) -> tuple[tuple[int, int], ...] | None:
        """Where references stand in entries of the declaration at `place`, and above what they must lie.

        That is 10 bytes for a type, a unit's header, and 0 for a sibling: the entry itself. None for a mere
        declaration (``struct x;``). Most units have the same declarations, so that their bytes are the key.
        """
        data = self.info.sections.abbrev
        _, behind = uleb(data, place)
        key = data[behind : data.find(b"\0\0", behind + 2)], unit.address_bytes, unit.version
        if key in self._references:
            return self._references[key]
        abbrev, _ = read_abbrev(data, place, unit.address_bytes, unit.version)
        found: list[tuple[int, int]] = []
        at = 0
        for attribute, form, _, width in abbrev.attrs if abbrev is not None else ():
            if width < 0:
                break
            if form == FORM_REF4:
                found.append((at, 0 if attribute == AT_SIBLING else 10))
            at += width
        declares = abbrev is None or (abbrev.tag in STRUCT_TAGS and abbrev.has(AT_DECLARATION))
        known = self._references[key] = None if declares else tuple(found)
        return known

    def _is_entry(self, unit: Unit, offset: int) -> bool:
        """Whether an entry begins at `offset` at all, by walking the unit."""
        known = self._entries.get(unit.offset)
        if known is None:
            known = self._entries[unit.offset] = {die[0] for die in self.info.scan(unit)}
        return offset in known

    def _shapes(self, unit: Unit, wanted: int, keys: set[int] | None) -> Iterator[_Shape]:
        """Beginnings of the unit's structs and typedefs with a name in form `wanted`.

        Where the name follows the code at once, only those whose code, read as a number, is one of `keys`.
        """
        rows = self._declarations.get(unit.abbrev_offset)
        if rows is None:
            start = unit.abbrev_offset
            table = b"\0\0" + self.info.sections.abbrev[start : self._table_ends[start]]
            rows = self._declarations[start] = []
            for match in _DECLARATION.finditer(table):
                code, tag, pairs, form = match.groups()
                key = int.from_bytes(code, "little") if not pairs and len(code) <= 2 else 0
                rows.append((key, code, tag[0], form[0], start + match.start(1) - 2))
        for key, code, own_tag, own_form, place in rows:
            if own_form == wanted and (key == 0 or keys is None or key in keys):
                before = 0 if key else self._bytes_before(place, unit)
                if before >= 0:
                    yield _Shape(code, before, own_tag, place)

    def _bytes_before(self, place: int, unit: Unit) -> int:
        """Bytes in front of the name in entries of the declaration at `place`; -1 if they vary."""
        abbrev, _ = read_abbrev(self.info.sections.abbrev, place, unit.address_bytes, unit.version)
        before = 0
        for attribute, _, _, width in abbrev.attrs if abbrev is not None else ():
            if attribute == AT_NAME:
                return before
            if width < 0:
                break
            before += width
        return -1


def _encoded(number: int, form: int, order: str) -> bytes | None:
    """`number` as DW_FORM_strx, strx1, … would hold it; None if `form` is none of these or too narrow."""
    width = STRX_BYTES.get(form)
    if width is not None:
        return number.to_bytes(width, "little" if order == "little" else "big") if number < 1 << 8 * width else None
    if form != FORM_STRX:
        return None
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)
