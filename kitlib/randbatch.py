"""Many shuffles at once: orders and placements as numpy arrays, a column a trial.

The GCC modes run the plugin's own generator from random 256-bit seeds, so a column is what that seed gives
(`kitlib.randstruct.gcc_order` is the scalar form); clang's orders are drawn from its distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kitlib.errors import DataError
from kitlib.model import Layout
from kitlib.placebatch import Batch, Ints, place_orders, table_of
from kitlib.randclang import Bucket, clang_buckets
from kitlib.randstruct import ROTATIONS, WARM_UP, Plan, as_plugin_sees, check_mode, check_struct, name_hash, plan_of

Words = NDArray[np.uint64]

CELLS = 90_000
"""Members x trials in one batch: about what stays in a 2 MB second-level cache with its scratch arrays."""


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
