"""Edits: small values that turn one layout into another; each is placed anew by `kitlib.place`.

A member of an anonymous struct or union is named as in C. An edit that is about such members only is made inside
(the kernel's `mm_struct` has nearly all its members in an anonymous struct); one that also names a member outside
is made to the anonymous struct or union as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from dataclasses import replace as _with

from kitlib.cdecl import member_from_decl
from kitlib.errors import PlacementError
from kitlib.model import Layout, Member
from kitlib.place import replace


@dataclass(frozen=True, slots=True)
class Move:
    """Move `member` in front of / behind another, or to a position (0-based, after it was taken out)."""

    member: str
    after: str | None = None
    before: str | None = None
    index: int | None = None

    def __post_init__(self) -> None:
        if sum(x is not None for x in (self.after, self.before, self.index)) != 1:
            raise PlacementError(f"move {self.member}: give one of after=, before=, index=")

    def apply(self, layout: Layout) -> Layout:
        anchor = self.after if self.after is not None else self.before
        inside = _inside(layout, self.member, *([] if anchor is None else [anchor]), arms=anchor is not None)
        if inside is not None:
            return _change_inside(layout, inside, self.apply)
        members = list(layout.members)
        position = layout.index(self.member)
        target = _anchor(layout, self.after, self.before, self.index, moved=position)
        members.insert(target, members.pop(position))
        return replace(layout, members)

    def __str__(self) -> str:
        return f"move {self.member} {_where(self.after, self.before, self.index)}"


@dataclass(frozen=True, slots=True)
class Swap:
    """Exchange the places of two members."""

    a: str
    b: str

    def apply(self, layout: Layout) -> Layout:
        inside = _inside(layout, self.a, self.b)
        if inside is not None and self.a != self.b:
            return _change_inside(layout, inside, self.apply)
        members = list(layout.members)
        i, j = layout.index(self.a), layout.index(self.b)
        members[i], members[j] = members[j], members[i]
        return replace(layout, members)

    def __str__(self) -> str:
        return f"swap {self.a} and {self.b}"


@dataclass(frozen=True, slots=True)
class Align:
    """Give `member` an alignment attribute of `align` bytes; 0 takes an attribute away."""

    member: str
    align: int

    def apply(self, layout: Layout) -> Layout:
        _power_of_two(self.align, f"align {self.member}")
        inside = _inside(layout, self.member)
        if inside is not None:
            return _change_inside(layout, inside, self.apply)
        i = layout.index(self.member)
        members = list(layout.members)
        members[i] = _with(members[i], forced_align=self.align, align_from="stated")
        return replace(layout, members)

    def __str__(self) -> str:
        return f"align {self.member} to {self.align}"


@dataclass(frozen=True, slots=True)
class AlignStruct:
    """Give the whole struct an alignment attribute of `align` bytes; 0 takes it away."""

    align: int

    def apply(self, layout: Layout) -> Layout:
        _power_of_two(self.align, "align struct")
        return replace(layout, layout.members, forced_align=self.align)

    def __str__(self) -> str:
        return f"align the struct to {self.align}"


@dataclass(frozen=True, slots=True)
class Isolate:
    """Put `member` on lines of its own: align it, and align whatever follows to the next line."""

    member: str
    line_bytes: int = 64

    def apply(self, layout: Layout) -> Layout:
        _power_of_two(self.line_bytes, f"isolate {self.member}")
        inside = _inside(layout, self.member, arms=False)
        if inside is not None:
            return _change_inside(layout, inside, self.apply)
        i = layout.index(self.member)
        members = list(layout.members)
        for j in (i, i + 1):
            if j < len(members):
                forced = max(members[j].forced_align, self.line_bytes)
                members[j] = _with(members[j], forced_align=forced, align_from="stated")
        return replace(layout, members)

    def __str__(self) -> str:
        return f"isolate {self.member} on its own {self.line_bytes}-byte line"


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert a new member ``decl`` (``u32 seq``, ``char pad[16]``, ``unsigned flag:3``)."""

    decl: str
    after: str | None = None
    before: str | None = None
    index: int | None = None

    def apply(self, layout: Layout) -> Layout:
        member = member_from_decl(self.decl, layout)
        if member.name is not None and member.name in layout.member_names():
            raise PlacementError(f"insert {self.decl}: {layout.title} has a member {member.name} already")
        return self._into(layout, member)

    def _into(self, layout: Layout, member: Member) -> Layout:
        anchor = self.after if self.after is not None else self.before
        inside = None if anchor is None else _inside(layout, anchor, arms=False)
        if inside is not None:
            return _change_inside(layout, inside, lambda inner: self._into(inner, member))
        members = list(layout.members)
        if self.after is None and self.before is None and self.index is None:
            target = len(members) - (tail_of(layout) is not None)
        else:
            target = _anchor(layout, self.after, self.before, self.index)
        members.insert(target, member)
        return replace(layout, members)

    def __str__(self) -> str:
        return f"insert {self.decl} {_where(self.after, self.before, self.index)}".rstrip()


@dataclass(frozen=True, slots=True)
class Pad:
    """Insert `size` bytes of padding in front of `member`."""

    member: str
    size: int

    def apply(self, layout: Layout) -> Layout:
        if self.size < 1:
            raise PlacementError(f"pad {self.member}: {self.size} bytes is no padding; give 1 or more")
        taken, number = set(layout.member_names()), 1
        while f"pad{number}" in taken:
            number += 1
        return Insert(f"unsigned char pad{number}[{self.size}]", before=self.member).apply(layout)

    def __str__(self) -> str:
        return f"pad {self.size} bytes before {self.member}"


@dataclass(frozen=True, slots=True)
class Remove:
    """Take `member` out."""

    member: str

    def apply(self, layout: Layout) -> Layout:
        inside = _inside(layout, self.member)
        if inside is not None:
            return _change_inside(layout, inside, self.apply)
        i = layout.index(self.member)
        return replace(layout, layout.members[:i] + layout.members[i + 1 :])

    def __str__(self) -> str:
        return f"remove {self.member}"


Edit = Move | Swap | Align | AlignStruct | Isolate | Insert | Pad | Remove
EDITS: dict[str, type[Edit]] = {
    "move": Move,
    "swap": Swap,
    "align": Align,
    "align_struct": AlignStruct,
    "isolate": Isolate,
    "insert": Insert,
    "pad": Pad,
    "remove": Remove,
}


def apply(layout: Layout, edits: Iterable[Edit]) -> Layout:
    """Apply `edits` in order. Raises `NotFound` for an unknown member, `PlacementError` for a misfit."""
    for edit in edits:
        tail, layout = tail_of(layout), edit.apply(layout)
        if tail is not None and any(m.name == tail.name for m in layout.members) and tail_of(layout) is None:
            raise PlacementError(f"{edit}: {tail.name} is an array without a size: it stays last")
    return layout


def tail_of(layout: Layout) -> Member | None:
    """The array without a size that ends a struct (``T x[]``, or ``T x[0]`` in its stead), as C wants it; or None."""
    last = layout.members[-1] if layout.members else None
    return last if last is not None and last.is_flexible and layout.kind != "union" else None


def _inside(layout: Layout, *names: str, arms: bool = True) -> int | None:
    """The anonymous member that holds all of `names`; None if there is none, or it is a union and not `arms`."""
    found = {layout.index(name) for name in names}
    if len(found) != 1:
        return None
    index = found.pop()
    member = layout.members[index]
    if member.name is not None or member.inner is None or any(name.startswith("#") for name in names):
        return None
    return index if arms or member.inner.kind != "union" else None


def _change_inside(layout: Layout, index: int, change: Callable[[Layout], Layout]) -> Layout:
    """`layout` with `change` made to the definition of its anonymous member at `index`."""
    members = list(layout.members)
    inner = members[index].inner
    assert inner is not None
    after = change(inner)
    members[index] = _with(members[index], inner=after, bit_size=after.size * 8, natural_align=after.align)
    return replace(layout, members)


def _anchor(layout: Layout, after: str | None, before: str | None, index: int | None, moved: int | None = None) -> int:
    """Position in the member list once the member at `moved` has been taken out."""
    count = len(layout.members) - (moved is not None)
    if index is not None:
        if not 0 <= index <= count:
            raise PlacementError(f"index {index} is outside {layout.title}: use 0 to {count}")
        return index
    anchor = layout.index(after if after is not None else str(before))
    if moved == anchor:
        raise PlacementError(f"{after or before} cannot be moved next to itself")
    target = anchor + (after is not None)
    return target - (moved is not None and moved < target)


def _where(after: str | None, before: str | None, index: int | None) -> str:
    if after is not None:
        return f"after {after}"
    if before is not None:
        return f"before {before}"
    return f"to position {index}" if index is not None else ""


def _power_of_two(value: int, what: str) -> None:
    if value < 0 or value & (value - 1) or value > 1 << 16:
        raise PlacementError(f"{what}: {value} is no alignment; use a power of two up to 65536 (0 for none)")
