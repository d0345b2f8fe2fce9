"""Placement of one struct many times over, as numpy arrays, a column a placement.

The rules are those of `kitlib.place.next_bit`; tests hold the two to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kitlib.lines import find_leaf
from kitlib.model import Layout
from kitlib.place import Rules, member_align, rules_of

Ints = NDArray[np.int64]

NO_UNIT_LIMIT = 1 << 40


@dataclass(frozen=True, slots=True)
class Batch:
    """Placements: ``bit_offsets`` is (members, columns) by declared position, ``sizes`` is (columns,), in bytes."""

    bit_offsets: Ints
    sizes: Ints


@dataclass(frozen=True, slots=True)
class Table:
    """What placement needs of each member, by declared position, in bits.

    ``raises`` is the alignment in bytes that a member asks of the struct, ``base_align`` what the struct has without
    any member.
    """

    round_up: Ints
    unit: Ints
    unit_limit: Ints
    width: Ints
    raises: Ints
    base_align: int

    @property
    def align(self) -> int:
        """Alignment in bytes of the struct with all members."""
        return max(self.base_align, int(self.raises.max(initial=1)))

    @property
    def has_bitfields(self) -> bool:
        return bool((self.unit > 1).any())


def table_of(layout: Layout) -> Table:
    """The placement table of `layout` (see `kitlib.place.next_bit` for the rules)."""
    rules = rules_of(layout)
    rows = [(*_row(layout, i, rules), _raises(layout, i, rules)) for i in range(len(layout.members))]
    round_up, unit, unit_limit, width, raises = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return Table(round_up, unit, unit_limit, width, raises, max(rules.forced_align, 1))


def _raises(layout: Layout, index: int, rules: Rules) -> int:
    """Alignment the struct gets from one member (1: none; see `kitlib.place.place`)."""
    member = layout.members[index]
    if member.name is None and member.is_bitfield and not rules.abi.unnamed_bitfield_aligns:
        return 1
    return member_align(member, rules)


def _row(layout: Layout, index: int, rules: Rules) -> tuple[int, int, int, int]:
    """Round-up, unit, unit limit and width of one member."""
    member = layout.members[index]
    if not member.is_bitfield or member.bit_size == 0:
        return member_align(member, rules) * 8, 1, NO_UNIT_LIMIT, member.bit_size
    forced = min(member.forced_align, rules.pack) if rules.pack else member.forced_align
    round_up = forced * 8 or 1
    if member.packed or rules.packed or rules.pack:
        return round_up, 1, NO_UNIT_LIMIT, member.bit_size
    unit = max(member.natural_align, 1) * 8
    return round_up, unit, member.storage_bits // unit, member.bit_size


def place_orders(table: Table, orders: Ints) -> Batch:
    """Place the members in each column's order; `orders` is (members, columns) of declared positions."""
    members, trials = orders.shape
    offsets = np.empty((members, trials), dtype=np.int64)
    flat = offsets.reshape(-1)
    columns = np.arange(trials, dtype=np.int64)
    position = np.zeros(trials, dtype=np.int64)
    slack, mask = table.round_up - 1, -table.round_up
    for row in orders:
        position += slack[row]
        position &= mask[row]
        if table.has_bitfields:
            _next_unit(table, row, position)
        flat[row * trials + columns] = position
        position += table.width[row]
    sizes = (position + 7) >> 3
    return Batch(offsets, (sizes + table.align - 1) & -table.align)


def _next_unit(table: Table, row: Ints, position: Ints) -> None:
    """Move `position` on to the next unit where a bit-field would span more units than its type has."""
    unit = table.unit[row]
    units = (position % unit + table.width[row] + unit - 1) // unit
    np.copyto(position, (position + unit - 1) & -unit, where=units > table.unit_limit[row])


def place_present(table: Table, present: NDArray[np.bool_]) -> Batch:
    """Place in declared order the members that are there in each column.

    `present` is (members, columns); the offset of a member that is not there is where it would start. The
    struct's alignment is that of the members that are there.
    """
    columns = present.shape[1]
    offsets = np.empty(present.shape, dtype=np.int64)
    position = np.zeros(columns, dtype=np.int64)
    align = np.full(columns, table.base_align, dtype=np.int64)
    for i, here in enumerate(present):
        start = (position + table.round_up[i] - 1) & -table.round_up[i]
        if table.unit[i] > 1:
            _next_unit(table, np.full(columns, i), start)
        offsets[i] = start
        np.copyto(position, start + table.width[i], where=here)
        np.maximum(align, table.raises[i], out=align, where=here)
    sizes = (position + 7) >> 3
    return Batch(offsets, (sizes + align - 1) & -align)


def as_batch(layout: Layout) -> Batch:
    """`layout` as it is: a batch of one column."""
    offsets = np.array([member.bit_offset for member in layout.members], dtype=np.int64)
    return Batch(offsets.reshape(-1, 1), np.array([layout.size], dtype=np.int64))


# -- lines --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spot:
    """A member at any depth, seen from its top-level member: declared position, bits inside it, width in bits."""

    top: int
    inside: int
    width: int


def spot_of(layout: Layout, path: str) -> Spot:
    """The spot of the member at `path` (``f_path.dentry``). Raises `NotFound`, with near names."""
    leaf = find_leaf(layout, path)
    return Spot(leaf.top, leaf.bit_offset - layout.members[leaf.top].bit_offset, leaf.bit_size)


def spans(batch: Batch, spot: Spot, line_bytes: int, phase: int) -> tuple[Ints, Ints]:
    """First and last line of `spot` in each column (see `kitlib.lines.line_span`)."""
    start = batch.bit_offsets[spot.top] + (spot.inside + phase * 8)
    line_bits = line_bytes * 8
    return start // line_bits, (start + max(spot.width, 1) - 1) // line_bits


def meets(batch: Batch, spots: Sequence[Spot], line_bytes: int, phase: int) -> NDArray[np.bool_]:
    """Whether the first spot shares a line with any of the others, in each column."""
    low, high = spans(batch, spots[0], line_bytes, phase)
    met = np.zeros(len(low), dtype=np.bool_)
    for spot in spots[1:]:
        first, last = spans(batch, spot, line_bytes, phase)
        met |= (first <= high) & (last >= low)
    return met
