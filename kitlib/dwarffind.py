"""Finding a struct by name in a large file without walking it.

The name's place in ``.debug_str`` is a 4-byte number; only entries that carry it can be the struct. The whole
of ``.debug_info`` is searched for that number with numpy (0.04 s for 200 MB), and what stands in front of it is
compared with the unit's abbreviations of structs. Whatever is left is checked by walking its one unit, so that
a chance match is never taken for a struct. Units that number their strings (DW_FORM_strx) are searched for the
number their own table gives the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kitlib.dwarfindex import (
    AT_DECLARATION,
    AT_NAME,
    AT_STR_OFFSETS_BASE,
    FORM_STRING,
    FORM_STRP,
    FORM_STRX,
    STRUCT_TAGS,
    STRX_BYTES,
    TAG_TYPEDEF,
    DebugInfo,
    Unit,
    read_abbrev,
    uleb,
)

Positions = npt.NDArray[np.int64]
CHUNK_BYTES = 1 << 20
"""Searched at a time: the four shifted copies fit a second-level cache."""
_FEW = 24
"""Up to so many numbers are compared one by one (17 ms each for 200 MB); more are looked up in a table."""

# A declaration of a struct, union, class or typedef: behind the end of the one before it (two zero bytes)
# its code, tag and children flag.
_DECLARATION = re.compile(rb"\0\0(?=([\x80-\xff]{0,2}[\x01-\x7f])([\x02\x13\x16\x17])[\x00\x01])")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a DIE begins: its code's bytes, then ``before`` bytes, then the name in ``form``."""

    code: bytes
    before: int
    form: int
    tag: int


class Finder:
    """Structs and typedefs by name; built once a file."""

    def __init__(self, info: DebugInfo) -> None:
        self.info = info
        self._bytes = np.frombuffer(info.sections.info, np.uint8)
        self._ends = np.array([unit.end for unit in info.units], np.int64)
        self._shapes: dict[int, list[_Shape]] = {}
        self._declaring: dict[tuple[int, bytes], bool] = {}
        self._table_ends = _table_ends(info)
        self._verified: dict[int, set[int]] = {}

    def structs(self, name: bytes) -> Iterator[int]:
        """Offsets of definitions of structs, unions and classes called `name`, each of them verified."""
        yield from self._entries(name, STRUCT_TAGS)

    def typedefs(self, name: bytes) -> Iterator[int]:
        """Offsets of typedefs called `name`."""
        yield from self._entries(name, frozenset({TAG_TYPEDEF}))

    def _entries(self, name: bytes, tags: frozenset[int]) -> Iterator[int]:
        found = False
        for offset in self._by_string_offset(name, tags):
            found = True
            yield offset
        if not found:
            yield from self._by_string_number(name, tags)
            yield from self._by_inline_name(name, tags)

    # -- names in .debug_str ---------------------------------------------------------------------------------

    def _by_string_offset(self, name: bytes, tags: frozenset[int]) -> Iterator[int]:
        """Entries with DW_FORM_strp. A linker that merges strings leaves one copy of each to refer to."""
        likely, others = string_offsets(self.info.sections.strings, name)
        seen = False
        for positions in self._search(likely):
            seen = True
            yield from self._check(positions, FORM_STRP, tags)
        if not seen:
            for positions in self._search(others):
                yield from self._check(positions, FORM_STRP, tags)

    def _search(self, numbers: list[int]) -> Iterator[Positions]:
        """Places of any of the 4-byte `numbers`, in order, a chunk at a time."""
        if not numbers:
            return
        view, order = self.info.sections.info, "<u4" if self.info.order == "little" else ">u4"
        table = _membership(numbers) if len(numbers) > _FEW else None
        for start in range(0, len(view), CHUNK_BYTES):
            chunk = view[start : start + CHUNK_BYTES + 3]
            hits = []
            for shift in range(min(4, max(len(chunk) - 3, 0))):
                words = np.frombuffer(chunk, order, count=(len(chunk) - shift) // 4, offset=shift).astype(np.uint32)
                if table is not None:
                    hits.append(np.flatnonzero(table[np.minimum(words, len(table) - 1)]) * 4 + shift)
                    continue
                for number in numbers:
                    same = words == number
                    if same.any():
                        hits.append(np.flatnonzero(same) * 4 + shift)
            if hits:
                places = np.unique(np.concatenate(hits))
                places = places[places < CHUNK_BYTES]
                if len(places):
                    yield places.astype(np.int64) + start

    # -- names in the entry itself, and numbered names ---------------------------------------------------------

    def _by_inline_name(self, name: bytes, tags: frozenset[int]) -> Iterator[int]:
        """Entries with DW_FORM_string, as gcc writes names of up to three letters."""
        needle = name + b"\0"
        view = self.info.sections.info
        step = CHUNK_BYTES * 4
        for start in range(0, len(view), step):
            chunk = bytes(view[start : start + step + len(needle) - 1])
            places = _places(chunk, needle)
            if len(places):
                yield from self._check(places + start, FORM_STRING, tags)

    def _by_string_number(self, name: bytes, tags: frozenset[int]) -> Iterator[int]:
        """Entries with DW_FORM_strx…: the name's number differs from unit to unit (DWARF 5, 7.26)."""
        sections = self.info.sections
        if not sections.str_offsets:
            return
        likely, others = string_offsets(sections.strings, name)
        order = "<u4" if self.info.order == "little" else ">u4"
        words = np.frombuffer(sections.str_offsets[: len(sections.str_offsets) // 4 * 4], order)
        places = np.flatnonzero(np.isin(words, np.array(likely + others, np.uint32))) * 4
        if not len(places):
            return
        bases = {}
        for unit in self.info.units:
            base = self.info.top(unit).get(AT_STR_OFFSETS_BASE)
            if isinstance(base, int):
                bases[unit.offset] = base
        after = dict(pairwise([*sorted(set(bases.values())), len(sections.str_offsets)]))
        for unit in self.info.units:
            base = bases.get(unit.offset)
            if base is not None:
                own = places[(places >= base) & (places < after[base])]
                numbers = [(int(place) - base) // 4 for place in own]
                yield from self._in_unit(unit, numbers, tags)

    def _in_unit(self, unit: Unit, numbers: list[int], tags: frozenset[int]) -> Iterator[int]:
        candidates: set[int] = set()
        data = self.info.bytes_of(unit) if numbers else b""
        for shape in self._shapes_of(unit) if numbers else ():
            for number in numbers:
                encoded = _encoded(number, shape.form, self.info.order)
                if shape.tag in tags and encoded is not None:
                    for at in _occurrences(data, encoded):
                        start = at - shape.before - len(shape.code)
                        same = data[start : start + len(shape.code)] == shape.code
                        if same and not self._declares(shape, unit):
                            candidates.add(unit.offset + start)
        yield from self._verify(unit, sorted(candidates), tags)

    # -- from a place to an entry --------------------------------------------------------------------------------

    def _check(self, positions: Positions, form: int, tags: frozenset[int]) -> Iterator[int]:
        """Entries whose name attribute in `form` stands at one of `positions` (sorted)."""
        numbers = np.searchsorted(self._ends, positions, side="right")
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(positions)]
        for low, high in pairwise(cuts):
            which = int(numbers[low])
            if which >= len(self.info.units):
                continue
            unit = self.info.units[which]
            shapes = [shape for shape in self._shapes_of(unit) if shape.form == form and shape.tag in tags]
            yield from self._verify(unit, sorted(self._begins(shapes, positions[low:high], unit)), tags)

    def _begins(self, shapes: list[_Shape], positions: Positions, unit: Unit) -> set[int]:
        """Where an entry of one of `shapes` would begin whose name stands at one of `positions`."""
        starts: set[int] = set()
        last: dict[int, npt.NDArray[np.uint8]] = {}
        for shape in shapes:
            if shape.before not in last:
                last[shape.before] = self._bytes[np.maximum(positions - (shape.before + 1), 0)]
            for place in positions[last[shape.before] == shape.code[-1]].tolist():
                start = place - shape.before - len(shape.code)
                same = self._bytes[start : start + len(shape.code)].tobytes() == shape.code
                if same and start >= unit.first and not self._declares(shape, unit):
                    starts.add(start)
        return starts

    def _verify(self, unit: Unit, starts: list[int], tags: frozenset[int]) -> Iterator[int]:
        """Those of `starts` that are entries at all, by walking the unit."""
        if not starts:
            return
        known = self._verified.get(unit.offset)
        if known is None:
            known = {die[0] for die in self.info.scan(unit) if die[1].tag in STRUCT_TAGS or die[1].tag == TAG_TYPEDEF}
            self._verified[unit.offset] = known
        yield from (start for start in starts if start in known)

    def _shapes_of(self, unit: Unit) -> list[_Shape]:
        """Beginnings of the unit's structs and typedefs."""
        shapes = self._shapes.get(unit.abbrev_offset)
        if shapes is None:
            shapes = self._shapes[unit.abbrev_offset] = []
            end = self._table_ends[unit.abbrev_offset]
            table = b"\0\0" + self.info.sections.abbrev[unit.abbrev_offset : end]
            for match in _DECLARATION.finditer(table):
                shape = _beginning(table, match, unit)
                if shape is not None:
                    shapes.append(shape)
        return shapes

    def _declares(self, shape: _Shape, unit: Unit) -> bool:
        """Whether the abbreviation is one of mere declarations (``struct x;``)."""
        known = self._declaring.get((unit.abbrev_offset, shape.code))
        if known is None:
            abbrev = self.info.table(unit).get(uleb(shape.code, 0)[0])
            known = abbrev is None or (abbrev.tag in STRUCT_TAGS and abbrev.has(AT_DECLARATION))
            self._declaring[unit.abbrev_offset, shape.code] = known
        return known


def _beginning(table: bytes, match: re.Match[bytes], unit: Unit) -> _Shape | None:
    """The beginning of entries of a declaration; None without a name at a fixed place."""
    code, tag = match[1], match[2][0]
    at = match.end(2) + 1
    if len(table) < at + 2 or (table[at] == AT_NAME and table[at + 1] < 0x80):  # as gcc has it: the name is first
        return _Shape(code, 0, table[at + 1], tag) if len(table) >= at + 2 else None
    abbrev, _ = read_abbrev(table, match.end(), unit.address_bytes, unit.version)
    before = 0
    for attribute, form, _, width in abbrev.attrs if abbrev is not None else ():
        if attribute == AT_NAME:
            return _Shape(code, before, form, tag)
        if width < 0:
            break
        before += width
    return None


def _table_ends(info: DebugInfo) -> dict[int, int]:
    starts = sorted({unit.abbrev_offset for unit in info.units})
    return dict(zip(starts, [*starts[1:], len(info.sections.abbrev)], strict=True))


def _membership(numbers: list[int]) -> npt.NDArray[np.bool_]:
    table = np.zeros(max(numbers) + 2, np.bool_)
    table[numbers] = True
    return table


def _occurrences(data: bytes, needle: bytes) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def _places(chunk: bytes, needle: bytes) -> Positions:
    """Places of `needle`; short ones occur too often to be collected one by one."""
    if len(needle) > 4:
        return np.array(list(_occurrences(chunk, needle)), np.int64)
    data = np.frombuffer(chunk, np.uint8)
    count = max(len(data) - len(needle) + 1, 0)
    same = data[:count] == needle[0]
    for i, byte in enumerate(needle[1:], 1):
        same &= data[i : count + i] == byte
    return np.flatnonzero(same)


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


def string_offsets(strings: bytes, name: bytes) -> tuple[list[int], list[int]]:
    """Offsets at which `name` can be read in a string section: the likely ones, and all others.

    A whole string is likely. If there is none, the name is the tail of a longer string, and of several the one
    whose letters in front come first, read backwards: both GNU ld (``merge_strings`` in bfd/merge.c) and lld
    (StringTableBuilder) sort strings from their ends and let a tail share its neighbour's bytes.
    """
    whole: list[int] = []
    tails: list[int] = []
    for at in _occurrences(strings, name + b"\0"):
        (whole if at == 0 or strings[at - 1] == 0 else tails).append(at)
    if whole:
        return whole, tails
    if not tails:
        return [], []
    first = min(tails, key=lambda at: strings[strings.rfind(b"\0", 0, at) + 1 : at][::-1])
    return [first], [at for at in tails if at != first]
