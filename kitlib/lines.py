"""Cache-line arithmetic: which lines a member touches, holes, padding, straddles and line-mates.

All exact. ``line_bytes`` is 32, 64, 128 or 256; ``phase`` is the byte within a line at which the object
starts (a slab object whose size is no multiple of the line can start anywhere its alignment allows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kitlib.errors import NotFound, PlacementError, near
from kitlib.model import Layout, Member, bytes_touched
from kitlib.tags import tags_of

LINE_SIZES = (32, 64, 128, 256)
MAX_LEAVES = 200_000
"""More members than any real struct opens to; a damaged file can nest structs so that their number explodes."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Unused space: ``bits`` bits from ``bit_offset``; ``after`` names the member in front of it."""

    bit_offset: int
    bits: int
    after: str | None = None

    @property
    def offset(self) -> int:
        """Byte in which the hole starts."""
        return self.bit_offset >> 3

    @property
    def size(self) -> int:
        """Whole bytes in the hole."""
        return ((self.bit_offset + self.bits) >> 3) - ((self.bit_offset + 7) >> 3) if self.bits >= 8 else 0


@dataclass(frozen=True, slots=True)
class Leaf:
    """A member reached through structs held by value; ``path`` leaves anonymous members out, as C does.

    Arrays are one leaf (an array of structs is shown once, as a whole). ``in_union`` marks leaves that
    share their bytes with other arms.
    """

    path: str
    name: str | None
    type: str
    bit_offset: int
    bit_size: int
    depth: int
    member: Member = field(compare=False, repr=False)
    in_union: bool = False
    top: int = 0

    @property
    def offset(self) -> int:
        return self.bit_offset >> 3

    @property
    def size(self) -> int:
        return bytes_touched(self.bit_offset, self.bit_size)

    @property
    def tags(self) -> frozenset[str]:
        return tags_of(self.type)


def check_line(line_bytes: int, phase: int = 0) -> None:
    """Raise `PlacementError` unless `line_bytes` is a size the kit knows and 0 <= `phase` < `line_bytes`."""
    if line_bytes not in LINE_SIZES:
        raise PlacementError(f"line size {line_bytes}: use one of {', '.join(map(str, LINE_SIZES))}")
    if not 0 <= phase < line_bytes:
        raise PlacementError(f"phase {phase}: must be from 0 to {line_bytes - 1} (bytes into a line)")


def line_span(bit_offset: int, bit_size: int, line_bytes: int = 64, phase: int = 0) -> tuple[int, int]:
    """First and last line touched; a zero-size member counts for the line it stands in.

    >>> line_span(56 * 8, 16 * 8)
    (0, 1)
    """
    start = bit_offset + phase * 8
    last = start + max(bit_size, 1) - 1
    return start // (line_bytes * 8), last // (line_bytes * 8)


def n_lines(layout: Layout, line_bytes: int = 64, phase: int = 0) -> int:
    """Lines an object of `layout` touches."""
    return line_span(0, layout.size * 8, line_bytes, phase)[1] + 1 if layout.size else 0


def leaves(layout: Layout, *, containers: bool = False) -> tuple[Leaf, ...]:
    """All members with nested structs and unions expanded, in memory order of declaration.

    With `containers` the nested structs themselves are listed too, in front of their members. Raises
    `PlacementError` if there are more than `MAX_LEAVES`.
    """
    found: list[Leaf] = []
    for top, member in enumerate(layout.members):
        for leaf in _expand(member, 0, "", 0, layout.kind == "union", top, containers):
            found.append(leaf)
            if len(found) > MAX_LEAVES:
                raise PlacementError(f"{layout.title}: opens to more than {MAX_LEAVES:,} members; is the file damaged?")
    return tuple(found)


def _expand(
    member: Member, base: int, prefix: str, depth: int, in_union: bool, top: int, containers: bool
) -> Iterator[Leaf]:
    bit_offset = base + member.bit_offset
    path = _path(prefix, member)
    inner = member.inner
    opened = inner is not None and member.count is None and bool(inner.members)
    if not opened or containers:
        yield Leaf(path, member.name, member.type, bit_offset, member.bit_size, depth, member, in_union, top)
    if opened and inner is not None:
        inside = in_union or inner.kind == "union"
        nested = path if member.name is not None else prefix
        for child in inner.members:
            yield from _expand(child, bit_offset, nested, depth + 1, inside, top, containers)


def _path(prefix: str, member: Member) -> str:
    if member.name is None:
        return prefix
    return f"{prefix}.{member.name}" if prefix else member.name


def find_leaf(layout: Layout, path: str) -> Leaf:
    """The leaf or nested member at `path` (``f_path.dentry``); raises `NotFound` with near paths."""
    every = leaves(layout, containers=True)
    for leaf in every:
        if leaf.path == path and leaf.name is not None:
            return leaf
    paths = [leaf.path for leaf in every if leaf.path]
    raise NotFound(f"no member '{path}' in {layout.title}{near(path, paths)}")


def holes(layout: Layout) -> tuple[Hole, ...]:
    """Unused bits between top-level members (none in a union); tail padding is not a hole."""
    if layout.kind == "union":
        return ()
    found: list[Hole] = []
    end, before = 0, None
    for member in sorted(layout.members, key=lambda m: (m.bit_offset, m.bit_size)):
        if member.bit_offset > end:
            found.append(Hole(end, member.bit_offset - end, before))
        if member.bit_end >= end:
            end, before = member.bit_end, member.name or before
    return tuple(found)


def padding_bits(layout: Layout) -> int:
    """Unused bits at the end."""
    return layout.size * 8 - max((m.bit_end for m in layout.members), default=0)


def straddlers(layout: Layout, line_bytes: int = 64, phase: int = 0) -> tuple[Leaf, ...]:
    """Scalar leaves that lie on two lines though they would fit in one."""
    found = []
    for leaf in leaves(layout):
        first, last = line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)
        if first != last and leaf.bit_size <= line_bytes * 8 and leaf.member.count is None:
            found.append(leaf)
    return tuple(found)


def mates(layout: Layout, path: str, line_bytes: int = 64, phase: int = 0) -> tuple[Leaf, ...]:
    """Leaves outside the member at `path` that share at least one line with it."""
    own = find_leaf(layout, path)
    first, last = line_span(own.bit_offset, own.bit_size, line_bytes, phase)
    shared = []
    for leaf in leaves(layout):
        if leaf.path == path or leaf.path.startswith(path + ".") or leaf.bit_size == 0:
            continue
        low, high = line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)
        if low <= last and high >= first:
            shared.append(leaf)
    return tuple(shared)


def share_line(layout: Layout, a: str, b: str, line_bytes: int = 64, phase: int = 0) -> bool:
    """Whether the members at paths `a` and `b` touch a line in common."""
    spans = []
    for path in (a, b):
        leaf = find_leaf(layout, path)
        spans.append(line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase))
    (low_a, high_a), (low_b, high_b) = spans
    return low_a <= high_b and low_b <= high_a
