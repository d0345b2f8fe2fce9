"""Statistics against scipy, against published values, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from kitlib import stats
from kitlib.datafiles import path
from kitlib.errors import DataError

# benchstat's documented example, golang.org/x/perf/cmd/benchstat (BSD-3-Clause): ns/op, old and new, ten runs each.
JSON_OLD = [1726, 1723, 1707, 1707, 1713, 1729, 1736, 1707, 1705, 1774]
JSON_NEW = [1423, 1416, 1411, 1413, 1412, 1426, 1422, 1424, 1447, 1425]
GOB_OLD = [3069, 3075, 3069, 3067, 3207, 3064, 3064, 3058, 3059, 3062]
GOB_NEW = [3075, 3065, 3059, 3065, 3060, 3081, 3186, 3135, 3087, 3062]

AIM7 = [line.split(",")[1:] for line in path("benchmarks/inode-4.16-aim7.csv").read_text("utf-8").split()[1:]]
BEFORE = [float(pair[0]) for pair in AIM7]
AFTER = [float(pair[1]) for pair in AIM7]

floats = st.integers(-100_000, 100_000).map(lambda number: number / 8)


def test_benchstat_example() -> None:
    """It prints p=0.000 for json, p=0.446 for gob, medians −17.20 %, and a geomean of −8.94 %."""
    assert f"{stats.rank_permutation_p(JSON_OLD, JSON_NEW):.3f}" == "0.000"
    assert f"{stats.rank_permutation_p(GOB_OLD, GOB_NEW):.3f}" == "0.446"
    medians = [float(np.median(runs)) for runs in (JSON_OLD, JSON_NEW, GOB_OLD, GOB_NEW)]
    assert f"{100 * (medians[1] / medians[0] - 1):+.2f}" == "-17.20"
    ratio, matched, left = stats.geomean_ratio(
        {"json": medians[0], "gob": medians[2]}, {"json": medians[1], "gob": medians[3], "extra": 1.0}
    )
    assert f"{100 * (ratio - 1):+.2f}" == "-8.94"
    assert (matched, left) == (("json", "gob"), ("extra",))


def test_aim7_samples() -> None:
    """Eight and eight runs: −18.1 %, as the thread's own figures give."""
    change = 100 * (np.mean(AFTER) / np.mean(BEFORE) - 1)
    assert f"{change:.1f}" == "-18.1"
    interval = stats.bootstrap_change(BEFORE, AFTER)
    assert interval is not None
    assert -18.6 < interval.low < change < interval.high < -17.6
    p, test = stats.split_p(BEFORE, AFTER)
    assert test == "exact permutation"
    assert p == pytest.approx(2 / math.comb(16, 8))  # complete separation: the smallest p there is


@given(st.lists(floats, min_size=2, max_size=6), st.lists(floats, min_size=2, max_size=6))
def test_permutation_agrees_with_scipy(before: list[float], after: list[float]) -> None:
    def gap(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    # Mirrored splits only count once in scipy's count of exceedances of |gap|; "greater" on |gap| is two-sided.
    wanted = scipy_stats.permutation_test(
        (before, after), gap, n_resamples=np.inf, alternative="greater", vectorized=True
    ).pvalue
    assert stats.permutation_p(before, after) == pytest.approx(wanted, abs=1e-6)


@given(st.lists(floats, min_size=12, max_size=20), st.lists(floats, min_size=12, max_size=20))
def test_large_sets_use_mann_whitney(before: list[float], after: list[float]) -> None:
    p, test = stats.split_p(before, after)
    assert test == "Mann-Whitney"
    if len({*before, *after}) > 1:
        assert p == pytest.approx(scipy_stats.mannwhitneyu(before, after).pvalue)


@given(
    st.floats(1, 1e6), st.floats(0.001, 0.5), st.integers(2, 30),
    st.floats(1, 1e6), st.floats(0.001, 0.5), st.integers(2, 30),
)  # fmt: skip
def test_welch_from_summaries_agrees_with_scipy(m1: float, cv1: float, n1: int, m2: float, cv2: float, n2: int) -> None:
    sd1, sd2 = m1 * cv1, m2 * cv2  # population form
    rows = stats.summary_rows(
        *(np.asarray([x], dtype=float) for x in (m1, sd1, n1, m2, sd2, n2)), absolute=np.asarray([True])
    )
    wanted = scipy_stats.ttest_ind_from_stats(
        m1, sd1 * math.sqrt(n1 / (n1 - 1)), n1, m2, sd2 * math.sqrt(n2 / (n2 - 1)), n2, equal_var=False
    )
    assert rows.p[0] == pytest.approx(wanted.pvalue, rel=1e-6, abs=1e-12)
    assert (rows.low[0] <= 0 <= rows.high[0]) == (wanted.pvalue >= 0.05) or wanted.pvalue == pytest.approx(0.05)


@given(st.floats(10, 1e6), st.floats(0.001, 0.3), st.floats(0.5, 2), st.integers(3, 12))
def test_relative_interval_excludes_zero_exactly_when_the_test_is_significant(
    mean: float, cv: float, ratio: float, n: int
) -> None:
    values = (mean, mean * cv, n, mean * ratio, mean * ratio * cv, n)
    arrays = [np.asarray([x], dtype=float) for x in values]
    rows = stats.summary_rows(*arrays, absolute=np.asarray([False]))
    if math.isnan(rows.low[0]) or abs(rows.p[0] - 0.05) < 1e-6:
        return
    assert (rows.low[0] <= 0 <= rows.high[0]) == (rows.p[0] >= 0.05)
    assert rows.low[0] <= 100 * (ratio - 1) <= rows.high[0]


def test_base_as_noisy_as_its_mean_has_no_finite_interval() -> None:
    assert stats.summary_change((10.0, 15.9, 4), (20.0, 1.0, 4)) is None


def test_bootstrap_covers_the_truth() -> None:
    """300 seeded experiments of 8 + 8 runs: the 95 % interval holds the true change at least 92 times in 100."""
    draw = np.random.default_rng(7)
    held = 0
    for seed in range(300):
        interval = stats.bootstrap_change(list(draw.normal(100, 8, 8)), list(draw.normal(90, 8, 8)), seed=seed)
        assert interval is not None
        held += interval.low <= -10 <= interval.high
    assert 0.92 <= held / 300 <= 0.99


def test_bootstrap_is_the_same_every_time() -> None:
    assert stats.bootstrap_change(BEFORE, AFTER) == stats.bootstrap_change(BEFORE, AFTER)


@pytest.mark.parametrize(
    ("before", "after", "has_interval"),
    [
        ([5.0], [6.0], False),  # one run a side
        ([5.0], [6.0, 7.0, 8.0], False),  # unequal, one run on a side
        ([5.0] * 6, [6.0] * 6, True),  # no spread at all
        ([-5.0, -6, -5, -6, -5, -6], [-8.0, -9, -8, -9, -8, -9], True),  # negative values
        ([-1.0, 1, -1, 1, -1, 1], [2.0, 3, 2, 3, 2, 3], False),  # a base that may be zero
        ([1.0, 2, 3], [4.0, 5, 6, 7, 8], True),  # unequal, t interval
    ],
)
def test_edges_are_defined(before: list[float], after: list[float], has_interval: bool) -> None:
    interval = stats.bootstrap_change(before, after)
    assert (interval is not None) == has_interval
    p, _ = stats.split_p(before, after)
    assert 0 < p <= 1


def test_edge_values() -> None:
    interval = stats.bootstrap_change([5.0] * 6, [6.0] * 6)
    assert interval is not None
    assert (interval.low, interval.high) == (20, 20)
    negative = stats.bootstrap_change([-5.0, -6, -5, -6, -5, -6], [-8.0, -9, -8, -9, -8, -9])
    assert negative is not None
    assert negative.high < 0  # it fell
    assert stats.split_p([5.0] * 3, [5.0] * 3)[0] == 1
    assert math.isnan(stats.split_p([], [1.0])[0])


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=40))
def test_benjamini_hochberg_agrees_with_scipy(p: list[float]) -> None:
    assert stats.benjamini_hochberg(p) == pytest.approx(list(scipy_stats.false_discovery_control(p)))


def test_benjamini_hochberg_leaves_out_what_was_not_tested() -> None:
    q = stats.benjamini_hochberg([0.01, math.nan, 0.04])
    assert q[0] == pytest.approx(0.02)
    assert math.isnan(q[1])
    assert q[2] == pytest.approx(0.04)


def test_four_runs_a_side_are_the_fewest_that_can_decide() -> None:
    assert stats.smallest_deciding_runs() == 4
    assert stats.permutation_p([1.0, 2, 3], [7.0, 8, 9]) == pytest.approx(0.1)
    assert stats.permutation_p([1.0, 2, 3, 4], [7.0, 8, 9, 10]) < 0.05


def test_runs_to_see_have_the_power_they_claim() -> None:
    n = stats.runs_to_see(3.0, 4.0)
    assert n is not None
    draw = np.random.default_rng(3)
    first, second = draw.normal(0, 4, (2000, n)), draw.normal(3, 4, (2000, n))
    power = float(np.mean(scipy_stats.ttest_ind(first, second, axis=1).pvalue < 0.05))
    assert 0.76 < power < 0.86
    assert stats.runs_to_see(0.0, 1.0) is None


def test_noise_to_explain() -> None:
    """Two single runs differ by less than z·sqrt(2)·sd nineteen times in twenty."""
    assert stats.noise_to_explain(42.2, 1, 1) == pytest.approx(42.2 / (1.96 * math.sqrt(2)), rel=1e-4)


def test_failure_rates_agree_with_scipy() -> None:
    assert stats.events_p(0, 60, 30, 60) == pytest.approx(scipy_stats.fisher_exact([[0, 60], [30, 30]]).pvalue)
    assert math.isnan(stats.events_p(3250, 1, 436, 1))


def test_newcombe_interval() -> None:
    """Newcombe 1998, table II, (a) 56/70 − 48/80: 0.0524 to 0.3339 by method 10."""
    interval = stats.share_change(48, 80, 56, 70)
    assert interval.low == pytest.approx(5.24, abs=0.01)
    assert interval.high == pytest.approx(33.39, abs=0.01)


def test_geomean_needs_matched_positive_values() -> None:
    with pytest.raises(DataError, match="no benchmark is in both"):
        stats.geomean_ratio({"a": 1}, {"b": 1})
    with pytest.raises(DataError, match="a is not positive"):
        stats.geomean_ratio({"a": 0}, {"a": 1})


def test_summary_interval_covers_the_truth() -> None:
    """2000 seeded experiments of 4 + 4 runs known by mean and spread only."""
    draw = np.random.default_rng(2)
    first, second = draw.normal(100, 8, (2000, 4)), draw.normal(90, 8, (2000, 4))
    sides = [x for side in (first, second) for x in (side.mean(axis=1), side.std(axis=1), np.full(2000, 4.0))]
    found = stats.summary_rows(*sides, absolute=np.zeros(2000, dtype=bool))
    assert 0.935 < float(np.mean((found.low <= -10) & (found.high >= -10))) < 0.98


def test_runs_to_rule_out() -> None:
    assert stats.runs_to_rule_out(6.0, 1.0, 5.0) is None
    n = stats.runs_to_rule_out(1.0, 5.0, 5.0)
    assert n is not None
    draw = np.random.default_rng(3)
    first, second = draw.normal(0, 5, (2000, n)), draw.normal(1, 5, (2000, n))
    gap = second.mean(axis=1) - first.mean(axis=1)
    half = 1.96 * np.sqrt((first.var(axis=1, ddof=1) + second.var(axis=1, ddof=1)) / n)
    assert 0.8 < float(np.mean(np.abs(gap) + half < 5)) < 0.95


def test_looked_gives_the_p_for_one_more_row() -> None:
    for q_values, tests, alpha in (([0.01, 0.02, 0.5, math.nan], 3, 0.05), ([0.5] * 10, 10, 0.005)):
        found = stats.Looked.at(q_values)
        assert (found.tests, found.alpha) == (tests, pytest.approx(alpha))
    assert stats.Looked.at([math.nan]).alpha == 0.05
    assert stats.smallest_deciding_runs(0.005) == 6
