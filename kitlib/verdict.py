"""Which rows of a report are real, in which direction they are good, and which ones matter.

`judge` takes a table and gives each row a change with its 95 % interval, a test, and a verdict:
"better", "worse", "changed" (real, but no direction is good), "no difference" (none shown within ± x), or
"undecided" with the reason and how many more runs would decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kitlib import stats
from kitlib.metrics import UNKNOWN, Meaning, Meanings, meanings
from kitlib.series import Delta, Plot, Report, Series, Table, Value, printed_range

Verdict = Literal["better", "worse", "changed", "no difference", "undecided"]
MARGIN_PCT = 5.0  # "no difference" must be shown to be smaller than this; about LKP's own visible threshold
MARGIN_POINTS = 1.0  # the same for rows compared by plain difference
_TRIED_RUNS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge: `runs` a side where the text does not say, `margin_pct`, a forced `better` direction."""

    runs: int | None = None
    margin_pct: float = MARGIN_PCT
    better: Literal["higher", "lower"] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A row with its verdict.

    `change`, `ci95` and `noise` (one sd, run to run) are in % of before, or in the row's unit when `in_pct` is
    False; `change` is the printed one where that follows from the values and is finer than they are. `hidden`
    says why a row is not among the few that matter (None: it is).
    """

    row: Delta
    meaning: Meaning
    in_pct: bool
    change: float | None
    ci95: tuple[float, float] | None
    method: str
    p: float | None
    q: float | None
    noise: float | None
    verdict: Verdict
    reason: str
    more_runs: int | None = None
    hidden: str | None = None
    printed_check: str = "not printed"

    @property
    def effect(self) -> float | None:
        """Size of the change in run-to-run standard deviations; None where the noise is not known."""
        return None if self.change is None or not self.noise else abs(self.change) / self.noise


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """A table with a verdict for every row, in the order of the text."""

    table: Table
    rows: tuple[Judged, ...]

    @property
    def shown(self) -> tuple[Judged, ...]:
        """The rows that matter, headline first."""
        kept = [row for row in self.rows if row.hidden is None]
        return tuple(sorted(kept, key=lambda row: row.row.metric != self.table.headline))

    @property
    def lead(self) -> Judged | None:
        """The row to speak of first: the report's headline, else the test's own first result, else the clearest."""
        t, shown = self.table, self.shown or self.rows
        own = [row for row in shown if t.testcase and row.row.metric.startswith(f"{t.testcase}.")]
        named = [row for row in shown if row.row.metric == t.headline]
        return next(iter((*named, *own)), max(shown, key=lambda row: row.effect or 0.0, default=None))

    def hidden_counts(self) -> dict[str, int]:
        """How many rows are hidden for which reason, most frequent first."""
        found: dict[str, int] = {}
        for row in self.rows:
            if row.hidden:
                found[row.hidden] = found.get(row.hidden, 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@dataclass(slots=True)
class _Work:
    """A row on its way to a verdict."""

    row: Delta
    in_pct: bool
    change: float | None
    p: float = math.nan
    ci: tuple[float, float] | None = None
    method: str = ""
    noise: float | None = None
    check: str = "not printed"  # whether the printed change follows from the values
    lacking: str = ""  # why no test was possible
    n: int | None = None


def judge_report(report: Report, options: Options | None = None) -> tuple[JudgedTable, ...]:
    """All tables of a report judged; its ASCII plots follow as tables of their own samples."""
    tables = [judge(table, options) for table in report.tables]
    claims = {t.headline: t.claim for t in report.tables if t.headline}
    return (*tables, *(judge(plot_table(plot, claims.get(plot.metric)), options) for plot in report.plots))


def plot_table(plot: Plot, claim: str | None = None) -> Table:
    """A plot's good and bad samples as a table of one row (none if a side has no mark)."""
    sides = [tuple(mark.value for mark in marks) for marks in (plot.good, plot.bad)]
    rows: tuple[Delta, ...] = ()
    if all(sides):
        before, after = (replace(Value.of(side), low=min(side), high=max(side)) for side in sides)
        rows = (Delta(plot.metric, before, after, line=plot.line),)
    note = f"each value is read to ± {plot.row_step / 2:.4g}; marks drawn over each other count once"
    return Table(
        "ascii plot", rows, "bisect-good samples", "bisect-bad samples", plot.metric, headline=plot.metric, claim=claim,
        n_source="counted marks (at least)", line=plot.line, also_at=plot.also_at, notes=(note,),
    )  # fmt: skip


def judge(table: Table, options: Options | None = None) -> JudgedTable:
    """Verdicts for the rows of one table; the tests are corrected for their number over its rows."""
    options = options or Options()
    known = meanings()
    work = [_prepare(row, options) for row in table.rows]
    _test_summaries(work)
    q_values = stats.benjamini_hochberg([w.p for w in work])
    looked = stats.Looked.at(q_values)
    rows = [
        _decide(w, q, _meaning(known, w, table, options), options, looked) for w, q in zip(work, q_values, strict=True)
    ]
    return JudgedTable(table, tuple(_hide(table, rows)))


def _meaning(known: Meanings, work: _Work, table: Table, options: Options) -> Meaning:
    found = known.of(work.row.metric)
    if options.better and found.direction in ("unknown", "neither"):
        return replace(found, direction=options.better, source="as asked for")
    if found is UNKNOWN and work.row.metric == table.headline and table.claim and work.change:
        good = "improvement" in table.claim
        direction: Literal["higher", "lower"] = "higher" if good == (work.change > 0) else "lower"
        return Meaning("headline of the report", "", direction, f"the report calls it {table.claim}")
    return found


def _prepare(row: Delta, options: Options) -> _Work:
    if options.runs is not None:
        row = replace(row, before=_with_runs(row.before, options.runs), after=_with_runs(row.after, options.runs))
    in_pct = row.change_pct is not None
    work = _Work(row, in_pct, row.change_pct if in_pct else row.change_abs, check=row.printed_check)
    before, after = row.before, row.after
    if before.mean is None or after.mean is None:
        work.lacking = "one side was not measured"
    elif before.events is not None and after.events is not None:
        _test_events(work)
    elif before.samples and after.samples:
        _test_samples(work)
    return work


def _with_runs(value: Value, runs: int) -> Value:
    return value if value.n is not None else replace(value, n=runs)


def _test_events(work: _Work) -> None:
    a, b = work.row.before, work.row.after
    counts = (a.events or 0, a.n or 1, b.events or 0, b.n or 1)
    work.n = min(counts[1], counts[3])
    work.p = stats.events_p(*counts)
    if math.isnan(work.p):
        work.lacking = "more failures than runs: these are values, not counts of failing runs"
        return
    found = stats.share_change(*counts)
    work.ci, work.method = (found.low, found.high), "Fisher's exact test"
    work.noise = (
        100
        * math.sqrt((counts[0] + counts[2]) * (counts[1] + counts[3] - counts[0] - counts[2]))
        / (counts[1] + counts[3])
    )


def _test_samples(work: _Work) -> None:
    before, after = work.row.before.samples, work.row.after.samples
    work.n = min(len(before), len(after))
    work.p, work.method = stats.split_p(before, after)
    found = stats.bootstrap_change(before, after, absolute=not work.in_pct)
    if found:
        work.ci = (found.low, found.high)
        work.method += f", {found.method} interval"
    spreads = [stats.sample_sd(side) for side in (before, after) if len(side) > 1]
    if spreads:
        work.noise = _noise(work, math.sqrt(math.fsum(s * s for s in spreads) / len(spreads)))


def _noise(work: _Work, sd: float) -> float:
    base = abs(work.row.before.mean or 0.0)
    return 100 * sd / base if work.in_pct and base else sd


def _sd(value: Value) -> float | None:
    """Population sd in the value's unit. A mean printed as 0 bounds it: runs of a quantity that is never
    negative, with a mean below `high`, have a sd of at most high·sqrt(n - 1).
    """
    if value.spread_pct is not None:
        return abs(value.mean or 0.0) * value.spread_pct / 100
    if value.mean == 0 and value.high > 0 and value.n is not None:
        return value.high * math.sqrt(value.n - 1)
    return None


def _test_summaries(work: list[_Work]) -> None:
    """Welch's test, all rows at once, where only means, spreads and numbers of runs are known."""
    open_rows: list[tuple[_Work, float, int, float, int]] = []
    unknown_n: list[tuple[_Work, float, float]] = []
    for w in work:
        if w.lacking or w.method:
            continue
        a, b = w.row.before, w.row.after
        sd1, sd2 = _sd(a), _sd(b)
        if a.n is None or b.n is None:
            _no_runs(w, sd1, sd2, unknown_n)
        elif sd1 is None or sd2 is None or min(a.n, b.n) < 2:
            _no_spread(w, a.n, b.n)
        else:
            open_rows.append((w, sd1, a.n, sd2, b.n))
    _welch(open_rows)
    _from_how_many_runs(unknown_n)


def _no_runs(w: _Work, sd1: float | None, sd2: float | None, unknown: list[tuple[_Work, float, float]]) -> None:
    w.lacking = "the text does not say how many runs"
    if sd1 is not None and sd2 is not None:
        unknown.append((w, sd1, sd2))
        w.noise = _noise(w, math.sqrt((sd1 * sd1 + sd2 * sd2) / 2))


def _no_spread(w: _Work, n1: int, n2: int) -> None:
    w.n = min(n1, n2)
    runs = "one run a side" if max(n1, n2) == 1 else f"{n1} and {n2} runs"
    w.lacking = f"{runs} and no run-to-run spread"
    if w.change:
        needed = stats.noise_to_explain(w.change, n1, n2)
        unit = " %" if w.in_pct else ""
        w.lacking += f" (as mere noise this would take a spread of {needed:.2g}{unit})"


def _welch(rows: Sequence[tuple[_Work, float, int, float, int]]) -> None:
    """Welch's test on rows (with population sd and runs of each side), allowing for how they were rounded.

    Where the printed change is finer than its rounded values and follows from them, the interval is about the
    printed change; otherwise the rounding of both values is taken off the change and added to the interval.
    """
    if not rows:
        return
    import numpy as np

    sides = [(w.row.before.mean or 0.0, s1, n1, *_after_and_slack(w), s2, n2) for w, s1, n1, s2, n2 in rows]
    m1, s1, n1, m2, slack, s2, n2 = np.asarray(sides, dtype=np.float64).T
    _take_finer_change(rows, m2.tolist())
    absolute = np.asarray([not w.in_pct for w, *_ in rows])
    found = stats.summary_rows(m1, s1, n1, m2, s2, n2, absolute=absolute)
    gap = m2 - m1
    least = m1 + np.sign(gap) * np.maximum(np.abs(gap) - slack, 0.0)
    p = stats.summary_p(m1, s1, n1, least, s2, n2)
    with np.errstate(divide="ignore", invalid="ignore"):
        widen = np.where(absolute, slack, 100 * slack / np.abs(m1))
    low, high = found.low - widen, found.high + widen
    for (w, sd1, runs1, sd2, runs2), one, a, b in zip(rows, p.tolist(), low.tolist(), high.tolist(), strict=True):
        bounded = "at most" in (w.row.before.spread_kind, w.row.after.spread_kind)
        w.p, w.n = one, min(runs1, runs2)
        w.method = "Welch's t, spread at most" if bounded else "Welch's t"
        w.ci = None if math.isnan(a) else (a, b)
        w.noise = _noise(w, math.sqrt((sd1 * sd1 * runs1 / (runs1 - 1) + sd2 * sd2 * runs2 / (runs2 - 1)) / 2))


def _take_finer_change(rows: Sequence[tuple[_Work, float, int, float, int]], after: Sequence[float]) -> None:
    """Where rounding hides the change that was printed (0.04 → 0.05, +21.3 %), go by the printed one."""
    for (w, *_), mean in zip(rows, after, strict=True):
        if w.in_pct and w.check == "within rounding" and mean != w.row.after.mean:
            base = w.row.before.mean or 0.0
            w.change = 100 * (mean - base) / abs(base)


def _after_and_slack(w: _Work) -> tuple[float, float]:
    """The after mean to test with, and what rounding may still have added to the difference."""
    row = w.row
    a, b = row.before, row.after
    base, mean = a.mean or 0.0, b.mean or 0.0
    slack = (b.high - b.low) / 2 + (a.high - a.low) / 2 * (abs(mean / base) if base and not row.absolute else 1.0)
    if not row.absolute and base and row.printed_change and slack:
        printed, half = printed_range(row.printed_change.rstrip("%"))
        if half * abs(base) / 100 < slack and w.check in ("same", "within rounding"):
            return base * (1 + printed / 100), half * abs(base) / 100
    return mean, slack


def _from_how_many_runs(rows: Sequence[tuple[_Work, float, float]]) -> None:
    """Say for rows without a number of runs from how many runs a side on the change would be real."""
    if not rows:
        return
    import numpy as np

    m1, s1, m2, s2 = np.asarray(
        [(w.row.before.mean or 0.0, a, w.row.after.mean or 0.0, b) for w, a, b in rows], dtype=np.float64
    ).T
    first = [0] * len(rows)
    for runs in reversed(_TRIED_RUNS):
        n = np.full(len(rows), float(runs))
        p = stats.summary_p(m1, s1, n, m2, s2, n)
        first = [runs if real else before for real, before in zip((p < stats.ALPHA).tolist(), first, strict=True)]
    for (w, _, _), runs in zip(rows, first, strict=True):
        w.lacking += f"; with {runs} or more a side it would be real" if runs else "; even 100 would not do"


def _decide(w: _Work, q: float, meaning: Meaning, options: Options, looked: stats.Looked) -> Judged:
    verdict, reason, more = _verdict(w, q, meaning, options, looked)
    return Judged(
        w.row, meaning, w.in_pct, w.change, w.ci, w.method, _or_none(w.p), _or_none(q), w.noise, verdict, reason, more,
        printed_check=w.check,
    )  # fmt: skip


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _verdict(
    w: _Work, q: float, meaning: Meaning, options: Options, looked: stats.Looked
) -> tuple[Verdict, str, int | None]:
    if w.lacking or w.change is None or math.isnan(w.p):
        more = _more_runs(w, options, looked)
        wanted = f"; at least {more} more run(s) a side can tell" if more else ""
        return "undecided", (w.lacking or "no test is possible on these figures") + wanted, more
    if q <= stats.ALPHA:
        among = f" among {looked.tests} rows" if looked.tests > 1 else ""
        reason = f"q = {q:.2g}{among}"
        if meaning.direction in ("neither", "unknown"):
            why = "neither way is better by itself" if meaning.direction == "neither" else "direction unknown"
            return "changed", f"{reason}; {why}", None
        good = (w.change > 0) == (meaning.direction == "higher")
        return ("better" if good else "worse"), reason, None
    margin = options.margin_pct if w.in_pct else MARGIN_POINTS
    if w.ci is not None and max(map(abs, w.ci)) <= margin:
        unit = " %" if w.in_pct else ""
        return "no difference", f"none shown within ± {max(map(abs, w.ci)):.2g}{unit}", None
    more = _more_runs(w, options, looked)
    return "undecided", _why_undecided(w, q, more, looked), more


def _why_undecided(w: _Work, q: float, more: int | None, looked: stats.Looked) -> str:
    smallest = stats.smallest_deciding_runs(looked.alpha)
    if w.n is not None and w.n < smallest and "permutation" in w.method:
        why = f"{w.n} run(s) on a side cannot decide; at least {smallest} a side can"
    elif w.p <= stats.ALPHA:
        why = f"p = {w.p:.2g} by itself, q = {q:.2g} after counting all rows looked at"
    else:
        why = f"p = {w.p:.2g}: within what the runs differ by themselves"
    return f"{why}; about {more:,} more runs a side would decide" if more else why


def _more_runs(w: _Work, options: Options, looked: stats.Looked) -> int | None:
    """Further runs a side after which the change would show, or be shown smaller than the margin."""
    have = w.n or 0
    if w.noise is None:
        return stats.smallest_deciding_runs() - have if 0 < have < stats.smallest_deciding_runs() else None
    margin = options.margin_pct if w.in_pct else MARGIN_POINTS
    change = w.change or 0.0
    ways = (stats.runs_to_see(change, w.noise, looked.alpha), stats.runs_to_rule_out(change, w.noise, margin))
    wanted = [n for n in ways if n]
    return max(1, min(wanted) - have) if wanted and have else None


def one_sided(series: Series) -> Judged:
    """A figure without a partner, in the form of a row: always undecided."""
    value = series.value
    row = Delta(series.metric, value, Value(None), False, None, series.unit, series.line, series.group or series.label)
    noise = value.spread_pct if value.spread_kind in ("samples", "printed") else None
    reason = "one set of figures: nothing to compare with"
    return Judged(
        row, meanings().of(series.metric), False, None, None, "", None, None, noise, "undecided", reason, None
    )


def _hide(table: Table, rows: Sequence[Judged]) -> list[Judged]:
    """The rows, each with the reason it is not among the few that matter (or None)."""
    from kitlib.relevance import hide_reasons

    return [replace(row, hidden=why) if why else row for row, why in zip(rows, hide_reasons(table, rows), strict=True)]
