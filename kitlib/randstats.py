"""What randomised layouts do to a pair of members, to the size and to the lines of a path.

Every answer is a model's: layouts drawn as the compiler would draw them, with an interval for the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

import numpy as np

from kitlib.errors import DataError, NotFound, PlacementError
from kitlib.lines import check_line, find_leaf
from kitlib.model import Layout
from kitlib.place import replace
from kitlib.placebatch import Batch, Ints, Spot, as_batch, meets, spans, spot_of
from kitlib.randbatch import batches, order_batches
from kitlib.randstruct import MODES, as_plugin_sees, randomised_part

Z95 = 1.959963984540054
"""97.5 % point of the normal distribution."""
DEFAULT_TRIALS = 200_000
MAX_TRIALS = 100_000_000
MEMBER_TRIALS = 10_000_000
"""Members placed by default at most: what takes a second or three."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share of `trials` drawings, with Wilson's 95 % interval (Wilson 1927; sound at 0 and 1 too)."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or self.trials < 1:
            raise ValueError(f"{self.hits} of {self.trials} is no share")

    @property
    def value(self) -> float:
        return self.hits / self.trials

    @property
    def ci95(self) -> tuple[float, float]:
        """Lower and upper bound.

        >>> low, high = Estimate(0, 100).ci95
        >>> low, round(high, 4)
        (0.0, 0.037)
        """
        n, p = self.trials, self.value
        spread = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n))
        scale = 1 + Z95**2 / n
        centre = p + Z95**2 / (2 * n)
        low = 0.0 if self.hits == 0 else max(0.0, (centre - spread) / scale)
        high = 1.0 if self.hits == n else min(1.0, (centre + spread) / scale)
        return low, high


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each whole number came up; ``declared`` is what the struct has as it is."""

    counts: tuple[tuple[int, int], ...]
    declared: int

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def mean(self) -> float:
        return sum(value * count for value, count in self.counts) / self.total

    @property
    def min(self) -> int:
        return self.counts[0][0]

    @property
    def max(self) -> int:
        return self.counts[-1][0]


@dataclass(frozen=True, slots=True)
class Risk:
    """Answers for one struct in one mode.

    ``pair`` is the member asked about and those it may meet; ``p_same_line`` the probability that it shares a
    line with any of them, ``same_line_declared`` whether it does as the struct is. ``size`` is in bytes;
    ``lines`` counts the lines that each named path touches.
    """

    struct: str
    mode: str
    trials: int
    seed: int
    pair: tuple[str, ...]
    line_bytes: int
    phase: int
    p_same_line: Estimate
    same_line_declared: bool
    size: Counts
    lines: tuple[tuple[str, Counts], ...] = ()


def ask(
    layout: Layout,
    mode: str,
    pair: Sequence[str],
    *,
    trials: int = DEFAULT_TRIALS,
    seed: int = 0,
    line_bytes: int = 64,
    phase: int = 0,
    paths: Mapping[str, Sequence[str]] | None = None,
) -> Risk:
    """Draw `trials` layouts and count. A struct that only wraps an anonymous one is asked about that one.

    `pair` is a member and one or more others, each a name or a path (``f_path.dentry``); `paths` names sets of
    members whose lines are counted. Raises `NotFound` for an unknown member, `DataError` for a bad pair, mode,
    seed or number of trials, `PlacementError` if `layout` cannot be re-placed.
    """
    check_line(line_bytes, phase)
    check_trials(trials)
    title, part = layout.title, randomised_part(layout)
    _check_pair(pair)
    spots = [_spot(layout, part, name) for name in pair]
    path_spots = {label: [_spot(layout, part, name) for name in names] for label, names in (paths or {}).items()}
    hits = 0
    sizes: dict[int, int] = {}
    lines: dict[str, dict[int, int]] = {label: {} for label in path_spots}
    for batch in batches(part, mode, trials, seed):
        hits += int(meets(batch, spots, line_bytes, phase).sum())
        _tally(sizes, (batch.sizes + layout.align - 1) & -layout.align)  # a struct around it is whole units too
        for label, members in path_spots.items():
            _tally(lines[label], _lines_of(batch, members, line_bytes, phase))
    as_is = as_batch(part)
    declared = {label: int(_lines_of(as_is, members, line_bytes, phase)[0]) for label, members in path_spots.items()}
    return Risk(
        title,
        mode,
        trials,
        seed,
        tuple(pair),
        line_bytes,
        phase,
        Estimate(hits, trials),
        bool(meets(as_is, spots, line_bytes, phase)[0]),
        Counts(tuple(sorted(sizes.items())), layout.size),
        tuple((label, Counts(tuple(sorted(lines[label].items())), declared[label])) for label in path_spots),
    )


def ask_modes(
    layout: Layout, pair: Sequence[str], modes: Sequence[str] = MODES, *, trials: int = DEFAULT_TRIALS, seed: int = 0
) -> tuple[Risk, ...]:
    """`ask` in each of `modes`, on 64-byte lines. Raises as `ask` does."""
    return tuple(ask(layout, mode, pair, trials=trials, seed=seed) for mode in modes)


def check_trials(trials: int) -> None:
    """Raise `DataError` unless `trials` is from 1 to `MAX_TRIALS`."""
    if not 1 <= trials <= MAX_TRIALS:
        raise DataError(f"trials {trials}: give 1 to {MAX_TRIALS} (100,000 gives a third digit)")


def default_trials(layout: Layout) -> int:
    """`DEFAULT_TRIALS`, or fewer for a struct of so many members that they would take long."""
    members = len(randomised_part(layout).members)
    return min(DEFAULT_TRIALS, max(MEMBER_TRIALS // max(members, 1), 2000))


def sample_layouts(layout: Layout, mode: str, trials: int, seed: int = 0) -> Iterator[Layout]:
    """Yield `trials` random layouts, the ones that `ask` draws first for a batch of that size, under the same name.

    Raises as `ask` does.
    """
    check_trials(trials)
    part = randomised_part(layout)
    base = part if mode == "clang" else as_plugin_sees(part)
    for orders in order_batches(part, mode, trials, seed):
        for order in orders.T.tolist():
            yield with_(replace(base, [base.members[i] for i in order]), name=layout.name)


@dataclass(frozen=True, slots=True)
class CostSpread:
    """What a cost model says of random layouts, sorted, and of the layout as declared; any unit."""

    declared: float
    costs: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.costs) / len(self.costs)

    @property
    def worse(self) -> Estimate:
        """Share of the random layouts that cost more than the declared one."""
        return Estimate(sum(cost > self.declared for cost in self.costs), len(self.costs))

    def quantile(self, share: float) -> float:
        """The cost that `share` of the layouts do not exceed (0 to 1)."""
        return self.costs[min(int(share * len(self.costs)), len(self.costs) - 1)]


def sample_costs(
    layout: Layout, mode: str, cost: Callable[[Layout], float], *, trials: int = 200, seed: int = 0
) -> CostSpread:
    """What `cost` (a model of the cost of a layout) says of `trials` random layouts. Raises as `ask` does."""
    drawn = sorted(cost(other) for other in sample_layouts(layout, mode, trials, seed))
    return CostSpread(cost(layout), tuple(drawn))


def _check_pair(pair: Sequence[str]) -> None:
    shown = f"pair '{','.join(pair)}'"
    if len(pair) < 2:
        raise DataError(f"{shown}: name a member and at least one other, as A,B")
    if not all(pair):
        raise DataError(f"{shown}: a name is missing; write A,B")
    if len(set(pair)) < len(pair):
        raise DataError(f"{shown}: a member is named twice")


def _spot(layout: Layout, part: Layout, path: str) -> Spot:
    """Where `path` of `layout` is in `part`, the struct in it that is randomised."""
    find_leaf(layout, path)  # an unknown member is reported with the struct's own name
    try:
        return spot_of(part, path)
    except NotFound:
        raise PlacementError(
            f"{path} stands outside the anonymous struct in {layout.title} that is randomised; name members inside it"
        ) from None


def _lines_of(batch: Batch, spots: list[Spot], line_bytes: int, phase: int) -> Ints:
    """How many different lines the spots touch, a trial."""
    every = [spans(batch, spot, line_bytes, phase) for spot in spots]
    counted = np.zeros(len(batch.sizes), dtype=np.int64)
    last_line = max((int(last.max()) for _, last in every), default=-1)
    for line in range(last_line + 1):
        touched = np.zeros(len(counted), dtype=np.bool_)
        for first, last in every:
            touched |= (first <= line) & (line <= last)
        counted += touched
    return counted


def _tally(into: dict[int, int], values: Ints) -> None:
    found, counts = np.unique(values, return_counts=True)
    for value, count in zip(found.tolist(), counts.tolist(), strict=True):
        into[value] = into.get(value, 0) + count
