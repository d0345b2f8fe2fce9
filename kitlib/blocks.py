"""The rows of a cache-line map: every member, hole and padding cut at the line boundaries.

Pure arithmetic on a `Layout`; `kitlib.figures.layout` draws these rows and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from kitlib.lines import check_line, leaves
from kitlib.model import Layout, Member
from kitlib.tags import WRITTEN_TAGS
from kitlib.text import visible

FOLD_FROM = 4
"""So many lines that the same blocks fill from end to end are drawn as one row; most of a page-sized member says
nothing."""
TAG_ORDER = ("lock", "atomic", "refcount", "counter", "percpu", "wait", "work", "rcu", "list", "tree", "pointer")
"""Which tag a member with several is shown as: what is written to comes first."""


@dataclass(frozen=True, slots=True)
class Block:
    """A member (or hole, or padding) of a map, before it is cut into lines; bits count from the object's start.

    ``tag`` is a key of `kitlib.figures.style.TAGS`; ``inside`` says that not the member itself but something
    within it has that tag. ``lane`` of ``lanes`` is its share of the row where union arms lie over each other.
    ``label`` stands for the name of an unnamed member.
    """

    path: str
    type: str
    bit_offset: int
    bit_size: int
    align: int
    tag: str
    inside: bool = False
    lane: int = 0
    lanes: int = 1
    label: str = ""

    @property
    def name(self) -> str:
        """What is written on the block: the last part of its path, or the label of an unnamed member."""
        return visible(self.path.rpartition(".")[2] or self.label or self.type)

    @property
    def key(self) -> str:
        """What the block is found by in another state of the same struct."""
        return self.path or self.label

    @property
    def bit_end(self) -> int:
        return self.bit_offset + self.bit_size


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a block on one line: ``start_bit`` counts from the start of the line. ``first`` marks the piece
    that carries the name (the widest one). ``lines`` is above 1 for a piece that stands for that many (see `fold`)."""

    block: Block
    line: int
    start_bit: int
    bits: int
    first: bool = True
    lines: int = 1


def title_of(member: Member) -> str:
    """The name of `member`; of an unnamed one its kind and the names it holds.

    >>> title_of(Member("count", "atomic_long_t", 0, 64))
    'count'
    """
    if member.name is not None:
        return visible(member.name)
    if member.inner is None:
        return visible(member.type)
    held = member.inner.member_names()
    return visible(f"{member.inner.kind} {{{', '.join(held[:3])}{', …' if len(held) > 3 else ''}}}")


def tag_of(member: Member) -> tuple[str, bool]:
    """The tag a member is drawn as, and whether it is that of something inside it.

    >>> tag_of(Member("count", "atomic_long_t", 0, 64))
    ('atomic', False)
    """
    own = _first(member.tags)
    if own:
        return own, False
    if member.inner is not None:
        within = {tag for leaf in leaves(member.inner) for tag in leaf.tags}
        found = _first(within & WRITTEN_TAGS) or _first(within - {"pointer"})
        if found:
            return found, True
    return "plain", False


def _first(tags: Collection[str]) -> str:
    return next((tag for tag in TAG_ORDER if tag in tags), "")


def blocks(layout: Layout, *, expand: bool | Collection[str] = False, gaps: bool = True) -> tuple[Block, ...]:
    """The members of `layout` as blocks in memory order, and its holes and padding if `gaps`.

    `expand` opens structs and unions held by value: those whose paths are given, or all but those with a tag of
    their own (an ``atomic_t`` says more than the ``counter`` in it).
    """
    found = list(_open(layout, 0, "", expand))
    if layout.kind == "union" or expand:
        found = _in_lanes(found)
    if gaps:
        found += _gaps(found, layout.size * 8)
    return tuple(sorted(found, key=lambda b: (b.bit_offset, b.bit_size > 0, b.lane)))


def _gaps(found: Collection[Block], size_bits: int) -> Iterator[Block]:
    """What no block covers: holes (also those inside opened structs), and the padding at the end."""
    end = 0
    for block in sorted(found, key=lambda b: b.bit_offset):
        if block.bit_offset > end:
            yield _gap("hole", end, block.bit_offset - end)
        end = max(end, block.bit_end)
    if size_bits > end:
        yield _gap("padding", end, size_bits - end)


def _gap(kind: str, bit_offset: int, bits: int) -> Block:
    amount = f"{bits // 8}-byte" if bits % 8 == 0 else f"{bits}-bit"
    return Block(f"{amount} {kind}", kind, bit_offset, bits, 1, kind)


def _open(layout: Layout, base: int, prefix: str, expand: bool | Collection[str]) -> Iterator[Block]:
    for member in layout.members:
        path = ".".join(part for part in (prefix, member.name) if part)
        start = base + member.bit_offset
        if _opened(member, path, expand) and member.inner is not None:
            yield from _open(member.inner, start, path, expand)
            continue
        tag, inside = ("marker", False) if member.is_marker else tag_of(member)
        label = "" if member.name else title_of(member)
        where = path if member.name else ""
        yield Block(where, member.type, start, member.bit_size, member.align, tag, inside, label=label)


def _opened(member: Member, path: str, expand: bool | Collection[str]) -> bool:
    if member.inner is None or member.count is not None or not member.inner.members:
        return False
    if isinstance(expand, bool):
        return expand and not member.tags
    return path in expand or (member.name is None and bool(expand))


def _in_lanes(found: list[Block]) -> list[Block]:
    """Give blocks that overlap lanes of their own; one group of overlapping blocks is cut into equal lanes."""
    out: list[Block] = []
    group: list[tuple[Block, int]] = []
    free: list[int] = []  # free[i]: bit at which lane i is free again
    end = -1
    for block in sorted(found, key=lambda b: (b.bit_offset, -b.bit_size)):
        if block.bit_offset >= end:
            out += [replace(b, lane=lane, lanes=len(free)) for b, lane in group]
            group, free = [], []
        lane = next((i for i, until in enumerate(free) if until <= block.bit_offset), len(free))
        free[lane : lane + 1] = [block.bit_end]
        group.append((block, lane))
        end = max(end, block.bit_end)
    return out + [replace(b, lane=lane, lanes=max(len(free), 1)) for b, lane in group]


def pieces(parts: Collection[Block], line_bytes: int = 64, phase: int = 0) -> tuple[Piece, ...]:
    """Cut `parts` at line boundaries; line 0 is the line in which the object starts, at byte `phase`.

    Raises `PlacementError` for a line size or phase that is none.
    """
    check_line(line_bytes, phase)
    line_bits = line_bytes * 8
    found: list[Piece] = []
    for block in parts:
        start, end = block.bit_offset + phase * 8, block.bit_end + phase * 8
        cuts = [start, *range((start // line_bits + 1) * line_bits, end, line_bits), end]
        widths = [b - a for a, b in pairwise(cuts)]
        named = widths.index(max(widths))
        for i, width in enumerate(widths):
            found.append(Piece(block, cuts[i] // line_bits, cuts[i] % line_bits, width, i == named))
    return tuple(found)


def map_rows(
    parts: Collection[Piece], lines: int, line_bytes: int = 64, apart: Collection[int] = ()
) -> tuple[tuple[int, int], ...]:
    """The rows of a map of `lines` lines, each as the first and last line that it shows.

    A row is one line, but `FOLD_FROM` or more lines that the same blocks fill from end to end make one row
    together, unless they are in `apart`.
    """
    on: dict[int, list[Piece]] = {}
    for piece in parts:
        on.setdefault(piece.line, []).append(piece)

    def filled_by(line: int) -> tuple[Block, ...]:
        here = on.get(line, [])
        whole = line not in apart and all(p.bits == line_bytes * 8 for p in here)
        return tuple(p.block for p in here) if whole else ()

    rows: list[tuple[int, int]] = []
    for filled, run in groupby(range(lines), filled_by):
        numbers = list(run)
        if filled and len(numbers) >= FOLD_FROM:
            rows.append((numbers[0], numbers[-1]))
        else:
            rows += [(n, n) for n in numbers]
    return tuple(rows)


def fold(parts: Collection[Piece], rows: Collection[tuple[int, int]]) -> tuple[Piece, ...]:
    """`parts` with the number of their row as ``line``, one for all lines of a folded row; what lies behind the last
    line (a marker at the very end) gets the number of a row that is not there."""
    at = {first: (number, last - first + 1) for number, (first, last) in enumerate(rows)}
    end = max((last for _, last in rows), default=-1)
    found = []
    for piece in parts:
        number, lines = at.get(piece.line, (len(rows), 1) if piece.line > end else (None, 0))
        if number is not None:
            found.append(replace(piece, line=number, lines=lines))
    return tuple(found)


def moved(before: Layout, after: Layout) -> frozenset[str]:
    """Titles of members that changed places relative to the others; those merely pushed along do not count.

    The fewest members whose removal leaves both orders equal; among equal choices the fewest bytes. Members that
    only one of the two has are left out.
    """
    rank = {title_of(m): i for i, m in enumerate(before.members)}
    shared = [m for m in after.members if title_of(m) in rank]
    stayed = _heaviest_rising([rank[title_of(m)] for m in shared], [m.bit_size for m in shared])
    return frozenset(title_of(m) for i, m in enumerate(shared) if i not in stayed)


def _heaviest_rising(order: list[int], weight: list[int]) -> set[int]:
    """Positions of the longest rising subsequence of `order`, of equally long ones the heaviest."""
    best = [(1, w) for w in weight]
    came = [-1] * len(order)
    for i, value in enumerate(order):
        for j in range(i):
            longer = (best[j][0] + 1, best[j][1] + weight[i])
            if order[j] < value and longer > best[i]:
                best[i], came[i] = longer, j
    kept: set[int] = set()
    at = max(range(len(order)), key=lambda i: best[i], default=-1)
    while at >= 0:
        kept.add(at)
        at = came[at]
    return kept
