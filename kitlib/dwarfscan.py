"""All structs of a file, each once: a vmlinux repeats its 12,000 in 2,400 units, 600,000 times in all.

One walk lists them. Two entries whose *prints* are equal make equal layouts, so that only the first is handed
to pyelftools. A print holds what layouts are compared by: name, kind, size, and of each member the name, the
place and the print of its type; a type that is only pointed to counts by its name, since one unit has its
definition and another does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kitlib.dwarfindex import (
    AT_BYTE_SIZE,
    AT_DECLARATION,
    AT_NAME,
    AT_SIBLING,
    AT_TYPE,
    STRUCT_TAGS,
    TAG_ENUM,
    TAG_TYPEDEF,
    Abbrev,
    DebugInfo,
    Found,
    Unit,
    attributes,
    skip,
    uleb,
)

_TAG_POINTERS = frozenset({0x0F, 0x10, 0x42, 0x1F})  # pointer, references, pointer to member
_TAG_ARRAY, _TAG_SUBROUTINE = 0x01, 0x15
_WITH_CHILDREN = frozenset({_TAG_ARRAY, _TAG_SUBROUTINE})
_AT_DECL = frozenset({0x39, 0x3A, 0x3B, AT_SIBLING})  # column, file, line: differ from unit to unit
_QUALIFIER_TAGS = frozenset({0x26, 0x35, 0x37, 0x47})  # const, volatile, restrict, atomic
_MAX_DEPTH = 100


def definitions(found: list[Found]) -> Iterator[Found]:
    """Those that define a struct, union or class, named or not."""
    for die in found:
        if die[1].tag in STRUCT_TAGS and not die[1].has(AT_DECLARATION):
            yield die


class UnitScan:
    """The types of one unit, as raw numbers."""

    def __init__(self, info: DebugInfo, unit: Unit, ids: dict[Any, int]) -> None:
        self.info = info
        self.unit = unit
        self.data = info.bytes_of(unit)
        self.found = info.scan(unit, self.data)
        self._table = info.table(unit)
        self._ids = ids
        self._by_value: dict[int, int] = {}
        self._by_name: dict[int, int] = {}

    def typedef_names(self) -> dict[int, bytes]:
        """Names that typedefs give to unnamed structs, by the offset of the struct; the first one counts."""
        unnamed = {die[0] for die in definitions(self.found) if not die[1].has(AT_NAME)}
        names: dict[int, bytes] = {}
        if unnamed:
            for die in self.found:
                if die[1].tag == TAG_TYPEDEF:
                    target = self._target_of(die)
                    if target in unnamed:
                        name = self.info.name(self.unit, self.data, die)
                        if name is not None:
                            names.setdefault(target, name)
        return names

    def _target_of(self, die: Found) -> int:
        """What a typedef refers to, through const and volatile; -1 for nothing in this unit."""
        at, abbrev = die[0] - self.unit.offset, die[1]
        for _ in range(_MAX_DEPTH):
            values = attributes(self.data, uleb(self.data, at)[1], abbrev, self.info.order)
            target = values.get(AT_TYPE)
            if not isinstance(target, int) or not 0 < target < len(self.data):
                return -1
            abbrev = self._table[uleb(self.data, target)[0]]
            if abbrev.tag not in _QUALIFIER_TAGS:
                return target + self.unit.offset
            at = target
        return -1

    def print_of(self, die: Found) -> tuple[Any, ...]:
        """The print of a struct: equal prints make equal layouts."""
        at = uleb(self.data, die[0] - self.unit.offset)[1]
        own = self._fields(at, die[1], True, 0)
        return (*own, *self._children(skip(self.data, at, die[1], self.info.order), die[1], True, 0))

    def _children(self, at: int, abbrev: Abbrev, by_value: bool, depth: int) -> list[Any]:
        """Fields of the children that begin at `at`, theirs included."""
        fields: list[Any] = []
        if not abbrev.children:
            return fields
        level = 1
        while level:
            code, at = uleb(self.data, at)
            if code == 0:
                level -= 1
                continue
            child = self._table[code]
            fields += self._fields(at, child, by_value, depth)
            at = skip(self.data, at, child, self.info.order)
            level += child.children
        return fields

    def _fields(self, at: int, abbrev: Abbrev, by_value: bool, depth: int) -> list[Any]:
        """Tag and attributes as raw numbers, without where it was written; types by their own prints."""
        fields: list[Any] = [abbrev.tag]
        for (attribute, form, _, _), value in zip(
            abbrev.attrs, attributes(self.data, at, abbrev, self.info.order).values(), strict=True
        ):
            if attribute in _AT_DECL:
                continue
            if attribute == AT_NAME:
                value = self.info.string(self.unit, form, value)
            elif attribute == AT_TYPE and isinstance(value, int):
                inside = form != 0x10 and form != 0x20
                value = self.type_print(value, by_value, depth + 1) if inside else value
            fields += (attribute, value)
        return fields

    def type_print(self, place: int, by_value: bool, depth: int) -> int:
        """A number for the type at `place` in the unit; by value its size counts, otherwise only its name."""
        memo = self._by_value if by_value else self._by_name
        known = memo.get(place)
        if known is not None:
            return known
        if depth > _MAX_DEPTH:
            raise ValueError("a type that refers to itself")
        code, at = uleb(self.data, place)
        abbrev = self._table[code]
        tag = abbrev.tag
        key: tuple[Any, ...]
        if tag in STRUCT_TAGS or tag in (TAG_ENUM, TAG_TYPEDEF):
            values = attributes(self.data, at, abbrev, self.info.order)
            name = next(
                (self.info.string(self.unit, a[1], values[AT_NAME]) for a in abbrev.attrs if a[0] == AT_NAME), b""
            )
            key = (tag, name)
            if by_value and tag == TAG_TYPEDEF:
                target = values.get(AT_TYPE)
                key = (tag, name, self.type_print(target, True, depth + 1) if isinstance(target, int) else 0)
            elif by_value:
                key = (tag, name, values.get(AT_BYTE_SIZE, -1))
        else:
            inner = by_value and tag not in _TAG_POINTERS and tag != _TAG_SUBROUTINE
            parts = self._fields(at, abbrev, inner, depth)
            if tag in _WITH_CHILDREN:
                parts += self._children(skip(self.data, at, abbrev, self.info.order), abbrev, inner, depth)
            key = tuple(parts)
        number = memo[place] = self._ids.setdefault((by_value, key), len(self._ids))
        return number
