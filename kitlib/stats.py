"""What a set of runs is worth: intervals, tests, how many more runs would decide.

Functions take numbers and arrays and return numbers; scipy is imported when first needed. Spreads
are standard deviations of the *population* form, as LKP prints them, unless a name says otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kitlib.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ALPHA = 0.05
POWER = 0.8
Z_ALPHA = 1.959963984540054  # normal quantile at 1 - ALPHA/2
Z_POWER = 0.8416212335729143  # normal quantile at POWER
Z_BOTH_ENDS = 1.2815515655446004  # normal quantile at 1 - (1 - POWER)/2
EXACT_SPLITS = 60_000  # up to here every relabelling is looked at
RESAMPLES = 9_999


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval; `method` says how it was made ("bootstrap", "t", "at most", …)."""

    low: float
    high: float
    method: str


def sample_sd(samples: Sequence[float]) -> float:
    """Sample standard deviation (n - 1); NaN for fewer than two samples."""
    n = len(samples)
    if n < 2:
        return math.nan
    mean = math.fsum(samples) / n
    return math.sqrt(math.fsum((s - mean) ** 2 for s in samples) / (n - 1))


def split_p(before: Sequence[float], after: Sequence[float]) -> tuple[float, str]:
    """Two-sided p that the two sets come from one population, and the test's name.

    Exact permutation test on the difference of means while there are at most `EXACT_SPLITS` ways to
    relabel the runs, else Mann-Whitney U (scipy). (nan, "none") if a side is empty.
    """
    if not before or not after:
        return math.nan, "none"
    if math.comb(len(before) + len(after), len(before)) <= EXACT_SPLITS:
        return permutation_p(before, after), "exact permutation"
    return mann_whitney_p(before, after), "Mann-Whitney"


def permutation_p(before: Sequence[float], after: Sequence[float]) -> float:
    """Exact two-sided permutation p of the difference of means: share of splits at least as far."""
    import numpy as np

    pool = np.asarray([*before, *after], dtype=np.float64)
    n, m = len(before), len(after)
    total = pool.sum()
    picks = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(n + m), n)), dtype=np.int64).reshape(
        -1, n
    )
    first = pool[picks].sum(axis=1)
    gaps = np.abs(first / n - (total - first) / m)
    seen = abs(float(np.mean(pool[:n]) - np.mean(pool[n:])))
    # Equal differences can differ in the last bits of the sums; count them as equal.
    slack = 1e-12 * max(1e-300, float(np.abs(pool).max()))
    return float(np.count_nonzero(gaps >= seen - slack) / len(gaps))


def mann_whitney_p(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided Mann-Whitney U p (scipy; exact without ties and small n, else with correction)."""
    from scipy.stats import mannwhitneyu

    if len({*before, *after}) == 1:
        return 1.0
    return float(mannwhitneyu(before, after, alternative="two-sided").pvalue)


def rank_permutation_p(before: Sequence[float], after: Sequence[float]) -> float:
    """Mann-Whitney p from all splits of the ranks: exact with ties too (what benchstat computes)."""
    from scipy.stats import rankdata

    ranks = [float(r) for r in rankdata([*before, *after])]
    return permutation_p(ranks[: len(before)], ranks[len(before) :])


@lru_cache(maxsize=64)
def smallest_deciding_runs(alpha: float = ALPHA) -> int:
    """Fewest runs a side with which an exact two-sided test can reach `alpha` at all (4 for 5 %)."""
    n = 1
    while 2 / math.comb(2 * n, n) > alpha:
        n += 1
    return n


def bootstrap_change(
    before: Sequence[float], after: Sequence[float], *, absolute: bool = False, seed: int = 20200708
) -> Interval | None:
    """95 % interval of the change of the mean: % of |mean before|, or the difference if `absolute`.

    Percentile bootstrap whose tails are widened for small samples ("expanded percentile", Hesterberg,
    The American Statistician 69 (2015), 371-386). Below five runs a side there is too little to
    resample and the t interval is used. None if a side has one run, or the base can be zero.
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit

    n = min(len(before), len(after))
    if n < 2:
        return None
    if n < 5:
        return summary_change(_side(before), _side(after), absolute=absolute)
    generator = np.random.default_rng(seed)
    first, second = (
        np.asarray(side, dtype=np.float64)[generator.integers(0, len(side), size=(RESAMPLES, len(side)))].mean(axis=1)
        for side in (before, after)
    )
    if absolute:
        changes = second - first
    elif first.min() <= 0 <= first.max():
        return None
    else:
        changes = 100 * (second - first) / np.abs(first)
    tail = float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, ALPHA / 2)))
    low, high = np.quantile(changes, [tail, 1 - tail])
    return Interval(float(low), float(high), "bootstrap")


def _side(samples: Sequence[float]) -> tuple[float, float, int]:
    n = len(samples)
    mean = math.fsum(samples) / n
    return mean, sample_sd(samples) * math.sqrt((n - 1) / n), n


def summary_change(
    before: tuple[float, float, int], after: tuple[float, float, int], *, absolute: bool = False
) -> Interval | None:
    """`bootstrap_change` where only (mean, population sd, n) of each side is known."""
    import numpy as np

    rows = summary_rows(
        *(np.asarray([side[i]], dtype=np.float64) for side in (before, after) for i in range(3)),
        absolute=np.asarray([absolute]),
    )
    low, high = float(rows.low[0]), float(rows.high[0])
    return None if math.isnan(low) else Interval(low, high, "t")


@dataclass(frozen=True, slots=True)
class SummaryRows:
    """Arrays of equal length: two-sided p and the 95 % interval (NaN where there is none)."""

    p: Floats
    low: Floats
    high: Floats


def summary_rows(
    mean1: Floats, sd1: Floats, n1: Floats, mean2: Floats, sd2: Floats, n2: Floats, *, absolute: Floats
) -> SummaryRows:
    """Welch's test and interval for many rows at once, from means, population sds and run counts.

    The interval of a relative change is Fieller's for a ratio of means with Welch's degrees of
    freedom: it excludes 0 exactly when Welch's test has p < 0.05, and is NaN where the base's own
    noise reaches zero (no finite interval exists; Fieller 1954). One run on a side gives NaN.
    """
    import numpy as np
    from scipy.special import stdtr, stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        var1, var2, df, t = _welch(mean1, sd1, n1, mean2, sd2, n2)
        p = 2 * stdtr(df, -np.abs(t))
        reach = -stdtrit(df, ALPHA / 2)
        gap = mean2 - mean1
        half = reach * np.sqrt(var1 + var2)
        a = mean1**2 - reach**2 * var1
        b = mean1 * mean2
        c = mean2**2 - reach**2 * var2
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        sign = np.sign(mean1)
        ends = [np.where(a > 0, 100 * sign * ((b + s * root) / a - 1), np.nan) for s in (-1, 1)]
        low = np.where(absolute, gap - half, np.minimum(ends[0], ends[1]))
        high = np.where(absolute, gap + half, np.maximum(ends[0], ends[1]))
    return SummaryRows(p, low, high)


def summary_p(mean1: Floats, sd1: Floats, n1: Floats, mean2: Floats, sd2: Floats, n2: Floats) -> Floats:
    """The p of `summary_rows` alone."""
    import numpy as np
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        _, _, df, t = _welch(mean1, sd1, n1, mean2, sd2, n2)
        p: Floats = 2 * stdtr(df, -np.abs(t))
    return p


def _welch(
    mean1: Floats, sd1: Floats, n1: Floats, mean2: Floats, sd2: Floats, n2: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """(variance of the mean before, after, Welch's degrees of freedom, t); NaN with one run on a side."""
    import numpy as np

    var1, var2 = sd1**2 / (n1 - 1), sd2**2 / (n2 - 1)  # sd²·n/(n-1)/n: variance of the mean
    var1, var2 = np.where(n1 > 1, var1, np.nan), np.where(n2 > 1, var2, np.nan)
    both = var1 + var2
    df = np.where(both == 0, n1 + n2 - 2, both**2 / (var1**2 / (n1 - 1) + var2**2 / (n2 - 1)))
    gap = mean2 - mean1
    t = np.where(both > 0, gap / np.sqrt(both), np.where(gap == 0, 0.0, np.inf))
    return var1, var2, df, np.where(np.isnan(both), np.nan, t)


def events_p(failed1: int, runs1: int, failed2: int, runs2: int) -> float:
    """Fisher's exact two-sided p for "failed in so many of so many runs" before and after.

    NaN when a count is no share of its runs (LKP also prints values there).
    """
    import numpy as np
    from scipy.stats import fisher_exact

    if failed1 > runs1 or failed2 > runs2:
        return math.nan
    table = np.asarray([[failed1, runs1 - failed1], [failed2, runs2 - failed2]])
    return float(fisher_exact(table).pvalue)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p (q): share of false finds expected if this row and all smaller ones are called real.

    NaNs are not counted as tests and stay NaN (Benjamini and Hochberg 1995).
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    running = 1.0
    for rank in range(len(order), 0, -1):
        p, index = order[rank - 1]
        running = min(running, p * len(order) / rank)
        adjusted[index] = running
    return adjusted


@dataclass(frozen=True, slots=True)
class Looked:
    """How many rows were tested, and the p at which Benjamini-Hochberg would call one more of them real."""

    tests: int
    alpha: float

    @classmethod
    def at(cls, q_values: Sequence[float]) -> Looked:
        tested = [q for q in q_values if not math.isnan(q)]
        real = sum(q <= ALPHA for q in tested)
        return cls(len(tested), ALPHA * min(real + 1, len(tested)) / len(tested) if tested else ALPHA)


def runs_to_see(change: float, noise: float, alpha: float = ALPHA) -> int | None:
    """Runs a side to show a `change` against a run-to-run `noise` (same unit, one sd).

    80 % power at the two-sided level `alpha`, normal approximation plus one run for the t tails
    (Lehr's rule is its rounding at 5 %: 16·noise²/change²). None if there is no change to show.
    """
    if change == 0 or not math.isfinite(change) or not math.isfinite(noise):
        return None
    wanted = _runs_for((z_of(alpha) + Z_POWER) * noise / change)
    return None if wanted is None else max(smallest_deciding_runs(alpha), wanted)


def runs_to_rule_out(change: float, noise: float, margin: float) -> int | None:
    """Runs a side to show that a `change` is smaller than `margin`: that its 95 % interval stays within it.

    90 % power at each end, as the interval must clear both. None if the change is not smaller.
    """
    room = margin - abs(change)
    if room <= 0 or not math.isfinite(noise):
        return None
    return _runs_for((Z_ALPHA + Z_BOTH_ENDS) * noise / room)


def _runs_for(ratio: float) -> int | None:
    wanted = 2 * ratio**2
    return None if wanted > 1e9 else math.ceil(wanted) + 1


@lru_cache(maxsize=64)
def z_of(alpha: float) -> float:
    """Normal quantile at 1 - alpha/2."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(alpha / 2)


def noise_to_explain(change: float, n1: int, n2: int) -> float:
    """Run-to-run sd that a `change` (same unit) would need to be no more than its 95 % noise."""
    return abs(change) / (Z_ALPHA * math.sqrt(1 / n1 + 1 / n2))


def geomean_ratio(
    before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """(geometric mean of after/before, names it is over, names left out because one side lacks them).

    Only matched benchmarks count: a mean over different sets compares nothing. Raises `DataError` if
    none match or a value is not positive (no geometric mean exists).
    """
    matched = tuple(name for name in before if name in after)
    left = tuple(sorted(set(before) ^ set(after)))
    if not matched:
        raise DataError("no benchmark is in both sets; a geometric mean needs matched benchmarks")
    for name in matched:
        if before[name] <= 0 or after[name] <= 0:
            raise DataError(f"{name} is not positive; a geometric mean needs positive values")
    logs = [math.log(after[name] / before[name]) for name in matched]
    return math.exp(math.fsum(logs) / len(logs)), matched, left


def share_change(failed1: int, runs1: int, failed2: int, runs2: int) -> Interval:
    """95 % interval of the change of a failure rate, in percentage points.

    Newcombe's hybrid of the two Wilson intervals (Statistics in Medicine 17 (1998), method 10).
    """
    rate1, low1, high1 = _wilson(failed1, runs1)
    rate2, low2, high2 = _wilson(failed2, runs2)
    gap = rate2 - rate1
    low = gap - math.hypot(rate2 - low2, high1 - rate1)
    high = gap + math.hypot(high2 - rate2, rate1 - low1)
    return Interval(100 * low, 100 * high, "Newcombe")


def _wilson(failed: int, runs: int) -> tuple[float, float, float]:
    rate = failed / runs
    square = Z_ALPHA**2 / runs
    middle = rate + square / 2
    half = Z_ALPHA * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs))
    return rate, (middle - half) / (1 + square), (middle + half) / (1 + square)
