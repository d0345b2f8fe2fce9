"""Many shuffles at once: orders and placements as numpy arrays, a column a trial.

The GCC modes run the plugin's own generator from random 256-bit seeds, so a column is what that seed gives
(`kitlib.randstruct.gcc_order` is the scalar form); clang's orders are drawn from its distribution. Placement
is `kitlib.place.place`, done on columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kitlib.errors import DataError
from kitlib.model import Layout
from kitlib.place import Rules, member_align, rules_of
from kitlib.randclang import Bucket, clang_buckets
from kitlib.randstruct import ROTATIONS, WARM_UP, Plan, as_plugin_sees, check_mode, check_struct, name_hash, plan_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

CELLS = 90_000
"""Members x trials in one batch: about what stays in a 2 MB second-level cache with its scratch arrays."""
NO_UNIT_LIMIT = 1 << 40


@dataclass(frozen=True, slots=True)
class Batch:
    """Placements of one batch: ``bit_offsets`` is (members, trials) by declared position, ``sizes`` (trials,) bytes."""

    bit_offsets: Ints
    sizes: Ints


def batches(layout: Layout, mode: str, trials: int, seed: int) -> Iterator[Batch]:
    """Yield `trials` random placements of `layout` in batches; the same `seed` gives the same ones.

    Raises `DataError` for a bad mode, number of trials or seed, `PlacementError` if `layout` cannot be re-placed.
    """
    rules = layout if mode == "clang" else as_plugin_sees(layout)
    table = table_of(rules)
    for orders in order_batches(layout, mode, trials, seed):
        yield place_orders(table, orders)


def order_batches(layout: Layout, mode: str, trials: int, seed: int) -> Iterator[Ints]:
    """Yield (members, trials) arrays: declared positions in their new order."""
    check_mode(mode)
    check_struct(layout)
    if trials < 1:
        raise DataError(f"trials {trials}: give 1 or more")
    if seed < 0:
        raise DataError(f"seed {seed}: give a whole number from 0")
    rng = np.random.default_rng(seed)
    plan = plan_of(layout, mode)
    buckets, _ = clang_buckets(layout)
    size = max(CELLS // max(len(layout.members), 1), 256)
    for start in range(0, trials, size):
        count = min(size, trials - start)
        if mode == "clang":
            yield clang_orders(buckets, len(layout.members), count, rng)
        else:
            seeds = rng.integers(0, 1 << 64, (4, count), dtype=np.uint64)
            yield gcc_orders(plan, mode, seeds)


# -- the GCC plugin ---------------------------------------------------------------------------------------


class _Generators:
    """One generator a trial; the arithmetic is that of `kitlib.randstruct.Jenkins`."""

    def __init__(self, seeds: Words) -> None:
        self.a: Words = seeds[0].copy()
        self.b: Words = seeds[1].copy()
        self.c: Words = seeds[2].copy()
        self.d: Words = seeds[3].copy()
        self._scratch: Words = np.empty_like(self.a)
        self._rotated: Words = np.empty_like(self.a)
        for _ in range(WARM_UP):
            self.draw()

    def draw(self) -> Words:
        """The next value of every generator (a view: use it before the next draw)."""
        first, second, third = ROTATIONS
        e = self.a  # its old value is not needed afterwards
        np.subtract(self.a, self._rotate(self.b, first), out=e)
        a: Words = np.bitwise_xor(self.b, self._rotate(self.c, second), out=self.b)
        b: Words = np.add(self.c, self._rotate(self.d, third), out=self.c)
        c: Words = np.add(self.d, e, out=self.d)
        d: Words = np.add(e, a, out=e)
        self.a, self.b, self.c, self.d = a, b, c, d
        return d

    def draw_where(self, live: NDArray[np.bool_]) -> Words:
        """As `draw`, but generators that are not `live` keep their state."""
        before = [row.copy() for row in (self.a, self.b, self.c, self.d)]
        self.draw()
        for now, old in zip((self.a, self.b, self.c, self.d), before, strict=True):
            np.copyto(now, old, where=~live)
        return self.d

    def _rotate(self, value: Words, bits: int) -> Words:
        np.left_shift(value, np.uint64(bits), out=self._rotated)
        np.right_shift(value, np.uint64(64 - bits), out=self._scratch)
        self._rotated |= self._scratch
        return self._rotated


def gcc_orders(plan: Plan, mode: str, seeds: Words) -> Ints:
    """(members, trials) declared positions in their new order for the columns of `seeds`, (4, trials)."""
    trials = seeds.shape[1]
    orders = np.repeat(np.arange(len(plan.sizes), dtype=np.int64)[:, None], trials, axis=1)
    if plan.shuffled == 0 or len(plan.sizes) < 2:
        return orders
    generators = _Generators(seeds ^ np.uint64(name_hash(plan.name)))
    columns = np.arange(trials, dtype=np.int64)
    if mode == "gcc-full":
        _shuffle_rows(orders, plan.shuffled, generators, columns)
        return orders
    groups = np.repeat(np.arange(len(plan.groups), dtype=np.int64)[:, None], trials, axis=1)
    _shuffle_rows(groups, len(plan.groups), generators, columns)
    last, base = _steps(plan, groups, columns)
    if mode == "gcc-performance-prefix":
        base[:] = 0
    bitfields = np.array(plan.bitfields) if any(plan.bitfields) else None
    for i, start in zip(last, base, strict=True):
        _group_step(orders, i, start, bitfields, generators, columns)
    return orders


def _shuffle_rows(orders: Ints, count: int, generators: _Generators, columns: Ints) -> None:
    """Fisher-Yates over the first `count` rows, each column with its own draws."""
    flat, trials = orders.reshape(-1), orders.shape[1]
    for i in range(count - 1, 0, -1):
        j = (generators.draw() % np.uint64(i + 1)).astype(np.int64)
        j *= trials
        j += columns
        taken = flat[j]
        flat[j] = orders[i]
        orders[i] = taken


def _steps(plan: Plan, groups: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """(steps, trials) of the position to swap from and of its group's start, in the order of the draws."""
    starts = np.array([start for start, _ in plan.groups], dtype=np.int64)
    steps = np.array([length - 1 for _, length in plan.groups], dtype=np.int64)
    last = np.empty((int(steps.sum()), groups.shape[1]), dtype=np.int64)
    base = np.empty_like(last)
    done = np.zeros(groups.shape[1], dtype=np.int64)
    for row in groups:
        count, start = steps[row], starts[row]
        for k in range(int(steps.max(initial=0))):
            live = columns[k < count]
            last[done[live] + k, live] = start[live] + count[live] - k
            base[done[live] + k, live] = start[live]
        done += count
    return last, base


def _group_step(
    orders: Ints,
    i: Ints,
    start: Ints,
    bitfields: NDArray[np.bool_] | None,
    generators: _Generators,
    columns: Ints,
) -> None:
    """Swap position `i` of each column with a drawn one from `start` to `i`, unless a bit-field is met."""
    flat, trials = orders.reshape(-1), orders.shape[1]
    here = i * trials + columns
    span = (i - start + 1).astype(np.uint64)
    if bitfields is None:
        drawn = generators.draw() % span
    else:
        drawn = generators.draw_where(~bitfields[flat[here]]) % span
    there = (drawn.astype(np.int64) + start) * trials + columns
    if bitfields is not None:
        free = ~(bitfields[flat[here]] | bitfields[flat[there]])
        here, there = here[free], there[free]
    moved = flat[here]
    flat[here] = flat[there]
    flat[there] = moved


# -- clang ------------------------------------------------------------------------------------------------


def clang_orders(buckets: tuple[Bucket, ...], members: int, trials: int, rng: np.random.Generator) -> Ints:
    """(members, trials) orders with buckets and their contents uniformly shuffled; pinned members stay last."""
    keys = np.full((members, trials), np.uint64(0xFFFF << 48), dtype=np.uint64)
    ranks = rng.permuted(np.repeat(np.arange(len(buckets), dtype=np.uint64)[:, None], trials, axis=1), axis=0)
    for bucket, rank in zip(buckets, ranks, strict=True):
        for place, member in enumerate(bucket.members):
            within = np.uint64(place) if bucket.keeps_order else rng.integers(0, 1 << 48, trials, dtype=np.uint64)
            keys[member] = (rank << np.uint64(48)) | within
    return np.argsort(keys, axis=0, kind="stable")


# -- placement --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """What placement needs of each member, by declared position, in bits; and the struct's alignment in bytes."""

    round_up: Ints
    unit: Ints
    unit_limit: Ints
    width: Ints
    align: int
    has_bitfields: bool


def table_of(layout: Layout) -> Table:
    """The placement table of `layout` (see `kitlib.place.next_bit` for the rules)."""
    rules = rules_of(layout)
    rows = [_row(layout, i, rules) for i in range(len(layout.members))]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    counted = [
        member_align(m, rules)
        for m in layout.members
        if m.name is not None or not m.is_bitfield or rules.abi.unnamed_bitfield_aligns
    ]
    align = max([rules.forced_align, 1, *counted])
    round_up, unit, unit_limit, width = columns
    has_bitfields = any(m.is_bitfield for m in layout.members)
    return Table(round_up, unit, unit_limit, width, align, has_bitfields)


def _row(layout: Layout, index: int, rules: Rules) -> tuple[int, int, int, int]:
    """Round-up, unit, unit limit and width of one member."""
    member = layout.members[index]
    if not member.is_bitfield:
        return member_align(member, rules) * 8, 1, NO_UNIT_LIMIT, member.bit_size
    unit = max(member.natural_align, 1) * 8
    if rules.pack:
        unit = min(unit, rules.pack * 8)
    if member.bit_size == 0:
        return unit, 1, NO_UNIT_LIMIT, 0
    round_up = member.forced_align * 8 or 1
    if member.packed or rules.packed:
        return round_up, 1, NO_UNIT_LIMIT, member.bit_size
    return round_up, unit, max(member.storage_bits // unit, 1), member.bit_size


def place_orders(table: Table, orders: Ints) -> Batch:
    """Place the members in each column's order."""
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
