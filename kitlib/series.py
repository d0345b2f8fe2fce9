"""Benchmark figures as values: one side of a comparison, a row, a table, and what a file held.

A `Value` is one side (a mean, how it was printed, its run-to-run spread, how many runs); a `Delta`
is a row with both sides; a `Series` is a measurement that has no partner. Nothing here computes a
statistic: see `kitlib.stats` and `kitlib.verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kitlib.errors import DataError

SpreadKind = Literal["samples", "printed", "at most", "unknown"]
Direction = Literal["higher", "lower", "neither", "unknown"]

LARGEST = 1e60  # nothing that is measured is larger or smaller, and the fourth powers that tests need stay finite
LARGEST_SPREAD_PCT = 1e6
LARGEST_RUNS = 1_000_000_000


def usable(value: float) -> bool:
    """Whether a number can be a measured figure: finite, and 0 or of a size that can be computed with."""
    return value == 0 or 1 / LARGEST <= abs(value) <= LARGEST


@dataclass(frozen=True, slots=True)
class Value:
    """One side of a comparison.

    `mean` is None where the tool said "not counted" or "not supported" (never 0). `low`..`high` are
    the figures the printed text can stand for. `spread_pct` is the standard deviation over runs,
    population form, in % of the mean; with `spread_kind` "at most" it is only an upper bound.
    `n` is the number of runs, None when the text does not say. `events` counts the failing runs.
    """

    mean: float | None
    low: float = math.nan
    high: float = math.nan
    spread_pct: float | None = None
    spread_kind: SpreadKind = "unknown"
    n: int | None = None
    samples: tuple[float, ...] = ()
    events: int | None = None

    def __post_init__(self) -> None:
        if self.mean is not None and not usable(self.mean):
            raise DataError(f"a figure of {self.mean:g}; a measured figure is finite and below {LARGEST:g} in size")
        if self.mean is not None and math.isnan(self.low):
            object.__setattr__(self, "low", self.mean)
            object.__setattr__(self, "high", self.mean)
        if self.n is not None and not 1 <= self.n <= LARGEST_RUNS:
            raise DataError(f"a figure over {self.n} runs; the number of runs must be 1 to {LARGEST_RUNS:,}")
        if self.spread_pct is not None and not 0 <= self.spread_pct <= LARGEST_SPREAD_PCT:
            raise DataError(f"a spread of {self.spread_pct:g} %; it must be 0 to {LARGEST_SPREAD_PCT:g} %")

    @classmethod
    def of(cls, samples: Iterable[float]) -> Value:
        """A side known run by run. Samples that are not `usable` are left out of it (count them before, and say so).

        Raises `DataError` if no sample is left.
        """
        kept = tuple(float(s) for s in samples if usable(s))
        if not kept:
            raise DataError("no finite sample; give at least one number a side")
        mean = math.fsum(kept) / len(kept)
        spread: float | None = None
        if len(kept) > 1 and mean != 0:
            deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in kept) / len(kept))
            found = 100 * deviation / abs(mean)
            spread = found if found <= LARGEST_SPREAD_PCT else None  # the mean is 0 but for rounding
        kind: SpreadKind = "samples" if spread is not None else "unknown"
        return cls(mean, mean, mean, spread, kind, len(kept), kept)


@dataclass(frozen=True, slots=True)
class Delta:
    """A row: one metric before and after.

    `absolute` rows (perf-profile shares, metrics in %, failure rates) are compared by their plain
    difference, all others in percent of `before`. `printed_change` is the text's own figure.
    """

    metric: str
    before: Value
    after: Value
    absolute: bool = False
    printed_change: str | None = None
    unit: str = ""
    line: int = 0
    group: str = ""
    total: bool = False

    @property
    def change_abs(self) -> float | None:
        """after - before, in the row's unit; None if a side was not measured."""
        if self.before.mean is None or self.after.mean is None:
            return None
        return self.after.mean - self.before.mean

    @property
    def change_pct(self) -> float | None:
        """Change in % of the size of `before`: positive means it rose, whatever the base's sign.

        None for absolute rows, for a base of zero (no percentage exists), and missing sides.
        """
        change = self.change_abs
        if self.absolute or change is None or not self.before.mean:
            return None
        return 100 * change / abs(self.before.mean)

    @property
    def printed_check(self) -> str:
        """Whether the printed change follows from the printed values.

        "same" (equal when printed alike), "within rounding" (some pair of values that print like
        these gives it), "does not follow", "cannot be checked" (base may be zero) or "not printed".
        """
        if self.printed_change is None or self.before.mean is None or self.after.mean is None:
            return "not printed"
        return check_printed(self)


def check_printed(row: Delta) -> str:
    """See `Delta.printed_check`. LKP divides by the signed base, so this does as well."""
    text = row.printed_change or ""
    before, after = row.before, row.after
    printed, half = printed_range(text.rstrip("%"))
    if before.mean is None or after.mean is None or not math.isfinite(printed):
        return "cannot be checked"
    if row.absolute:
        middle = after.mean - before.mean
        low, high = after.low - before.high, after.high - before.low
    else:
        if before.low <= 0 <= before.high:
            return "cannot be checked"
        middle = 100 * (after.mean - before.mean) / before.mean
        ends = [100 * (a - b) / b for a in (after.low, after.high) for b in (before.low, before.high)]
        low, high = min(ends), max(ends)
    slack = half * (1 + 1e-6) + 1e-9
    if abs(middle - printed) <= slack:
        return "same"
    return "within rounding" if low - slack <= printed <= high + slack else "does not follow"


def printed_range(text: str) -> tuple[float, float]:
    """A printed number and half a unit of its last printed digit: ``"+32.3"`` → (32.3, 0.05)."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    try:
        value = float(text)
        scale = 10.0 ** (int(exponent or 0) - decimals)
    except (ValueError, OverflowError):
        return math.nan, math.nan
    return value, scale / 2


@dataclass(frozen=True, slots=True)
class Series:
    """A measurement without a partner: one metric under one condition."""

    metric: str
    value: Value
    unit: str = ""
    label: str = ""
    group: str = ""
    line: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that belong together: one test case, one machine, one pair of conditions.

    `n_source` says where the numbers of runs come from ("stated", "inferred: …", "not stated").
    `also_at` are the lines where the very same rows were seen again (a quoted copy).
    """

    kind: str
    rows: tuple[Delta, ...]
    before_label: str = ""
    after_label: str = ""
    testcase: str = ""
    machine: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    headline: str | None = None
    claim: str | None = None
    n_source: str = "not stated"
    line: int = 0
    also_at: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of an ASCII plot: `value` is known to ± `half_row`; `column` orders the runs."""

    value: float
    half_row: float
    column: int


@dataclass(frozen=True, slots=True)
class Plot:
    """An ASCII chart read back. Marks drawn over each other count once, so n is a lower bound."""

    metric: str
    good: tuple[Mark, ...]
    bad: tuple[Mark, ...]
    row_step: float
    line: int
    also_at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that looks like a figure and was not understood."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one file or text held. `cut_at` is the line of a row that the end of the text cut off."""

    source: str
    kinds: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    series: tuple[Series, ...] = ()
    plots: tuple[Plot, ...] = ()
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    lines: int = 0
    cut_at: int | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """A figure for the unchanged system, to ask whether two experiments may be put together."""

    metric: str
    mean: float
    unit: str
    group: str
    where: str
    tolerance_pct: float = 5.0


def baseline_conflict(first: Baseline, second: Baseline) -> str | None:
    """Why two experiments must not be joined, or None if their unchanged systems agree.

    Two bases agree if they are the same metric and unit and differ by no more than the larger
    `tolerance_pct` (single runs carry no spread, so a tolerance has to stand in for it).
    """
    if first.metric != second.metric or first.unit != second.unit:
        return (
            f"{first.where} measures {first.metric} [{first.unit}], "
            f"{second.where} measures {second.metric} [{second.unit}]: different things"
        )
    gap = 100 * abs(second.mean - first.mean) / abs(first.mean) if first.mean else math.inf
    allowed = max(first.tolerance_pct, second.tolerance_pct)
    if gap <= allowed:
        return None
    return (
        f"the baselines differ: {first.metric} is {first.mean:,.1f} {first.unit} in {first.where} "
        f"and {second.mean:,.1f} {second.unit} in {second.where} with nothing changed "
        f"({gap:.1f} % apart, {allowed:g} % allowed): another set-up, so the two are not joined"
    )


LEAST_TELLING = 4  # means with a fraction; by chance four fit n = 12 once in (100/12)⁴, about 5,000 times
_COUNTED = ("interrupts.", "softirqs.", "numa-vmstat.", "numa-meminfo.", "proc-vmstat.")


def runs_from_fractions(metrics: Sequence[str], values: Sequence[Value]) -> tuple[int, int] | None:
    """Number of runs behind a column of LKP means, from the fractions of its *counts*.

    The mean of n whole numbers is a multiple of 1/n, and LKP prints two decimals below 1000; the
    smallest n up to 12 that fits every such mean is the answer, provided chance is ruled out
    (n multiples a unit, each a hundredth wide, fit a random mean with probability n/100).
    Returns (n, number of means it rests on), or None if that cannot be told.
    """
    fractions = [
        value.mean % 1
        for metric, value in zip(metrics, values, strict=True)
        if value.mean is not None and 0 < value.mean < 1000 and metric.startswith(_COUNTED)
    ]
    telling = sum(1 for f in fractions if 0.005 < f < 0.995)
    for n in range(2, 13):
        if all(abs(f * n - round(f * n)) <= 0.0051 * n for f in fractions):
            return (n, len(fractions)) if telling >= LEAST_TELLING else None
    return None
