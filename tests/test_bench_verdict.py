"""Verdicts: what is real, which way it goes, how many more runs would decide, and what is put aside."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kitlib import benchfiles
from kitlib.benchcases import members_of
from kitlib.benchtext import CSV_COLUMNS, csv_rows, records, side, text_report
from kitlib.compare import base_conflicts, compare_reports
from kitlib.datafiles import path
from kitlib.errors import DataError
from kitlib.metrics import UNKNOWN, Meanings, meanings
from kitlib.series import Baseline, Delta, Report, Series, Table, Value, baseline_conflict
from kitlib.verdict import Judged, Options, judge, judge_report

ROBOT = benchfiles.read(path("benchmarks/struct-file-5.8-robot.txt"))


def one(row: Delta, options: Options | None = None) -> Judged:
    return judge(Table("samples", (row,)), options).rows[0]


def sides(metric: str, before: list[float], after: list[float]) -> Delta:
    return Delta(metric, Value.of(before), Value.of(after))


def robot(metric: str) -> Judged:
    return next(row for row in judge_report(ROBOT)[0].rows if row.row.metric == metric)


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [
        ("unixbench.score", "better"),
        ("perf-stat.i.node-load-misses", "better"),
        ("perf-stat.i.cpi", "better"),
        ("perf-profile.self.cycles-pp.dnotify_flush", "changed"),
        ("perf-profile.self.cycles-pp.__fget_files", "undecided"),
        ("perf-stat.ps.dTLB-store-misses", "undecided"),  # +212.7 %, spread 109 %
        ("perf-profile.self.cycles-pp.do_syscall_64", "no difference"),
    ],
)
def test_verdicts_of_the_robot_report(metric: str, verdict: str) -> None:
    assert robot(metric).verdict == verdict


def test_headline_interval_and_its_kind() -> None:
    row = robot("unixbench.score")
    assert row.ci95 is not None
    assert row.ci95[0] < 32.3 < row.ci95[1]
    assert "at most" in row.method  # the after side has no printed spread
    assert row.q is not None
    assert row.p is not None
    assert row.q > row.p


def test_printed_change_is_used_where_it_is_finer() -> None:
    row = robot("perf-stat.overall.ipc")
    assert row.row.change_pct == pytest.approx(25)
    assert row.change == pytest.approx(21.3)


def test_few_rows_matter_and_none_is_lost() -> None:
    table = judge_report(ROBOT)[0]
    assert len(table.rows) == 172
    assert 6 <= len(table.shown) <= 14
    assert len(table.shown) + sum(table.hidden_counts().values()) == 172
    names = [row.row.metric for row in table.shown]
    assert {"unixbench.score", "perf-profile.self.cycles-pp.dnotify_flush", "perf-stat.i.node-load-misses"} <= set(
        names
    )
    assert not any("CPU1" in name for name in names)


def test_one_run_a_side_is_undecided() -> None:
    row = one(Delta("System Call Overhead", Value(2222456.0, n=1), Value(3160841.4, n=1)))
    assert row.verdict == "undecided"
    assert row.change == pytest.approx(42.2, abs=0.03)
    assert "one run a side" in row.reason
    assert "15 %" in row.reason  # the spread that would make this mere noise
    assert row.more_runs == 3


def test_unknown_number_of_runs_is_undecided_and_says_from_when() -> None:
    value = Value(100.0, spread_pct=3.0, spread_kind="printed")
    row = one(Delta("aim7.jobs-per-min", value, Value(112.0, spread_pct=3.0, spread_kind="printed")))
    assert row.verdict == "undecided"
    assert "does not say how many runs; with 3 or more" in row.reason
    told = one(Delta("aim7.jobs-per-min", value, Value(112.0, spread_pct=3.0, spread_kind="printed")), Options(runs=3))
    assert told.verdict == "better"


def test_three_clear_runs_cannot_decide_exactly() -> None:
    row = one(sides("aim7.jobs-per-min", [1, 2, 3], [101, 102, 103]))
    assert row.verdict == "undecided"
    assert "at least 4 a side" in row.reason
    assert row.more_runs == 1


def test_no_difference_shown_within_the_margin() -> None:
    row = one(sides("aim7.jobs-per-min", [100, 101, 99, 100, 101, 99], [100, 99, 101, 100, 101, 100]))
    assert row.verdict == "no difference"
    assert row.reason.startswith("none shown within ± ")
    tight = one(
        sides("aim7.jobs-per-min", [100, 101, 99, 100, 101, 99], [100, 99, 101, 100, 101, 100]), Options(None, 0.1)
    )
    assert tight.verdict == "undecided"


def test_more_runs_would_decide() -> None:
    row = one(sides("aim7.jobs-per-min", [100, 110, 90, 105, 95], [104, 118, 92, 112, 99]))
    assert row.verdict == "undecided"
    assert row.more_runs is not None
    assert row.more_runs > 5
    assert f"about {row.more_runs:,} more runs" in row.reason


def test_direction_comes_from_the_table_never_from_a_guess() -> None:
    slower = one(sides("time: sort", [1.0, 1.01, 0.99, 1.0], [2.0, 2.01, 1.99, 2.0]))
    assert slower.verdict == "worse"
    unknown = one(sides("my.metric", [1.0, 1.01, 0.99, 1.0], [2.0, 2.01, 1.99, 2.0]))
    assert unknown.verdict == "changed"
    assert unknown.meaning.direction == "unknown"
    assert (
        one(sides("my.metric", [1.0, 1.01, 0.99, 1.0], [2.0, 2.01, 1.99, 2.0]), Options(better="higher")).verdict
        == "better"
    )


def test_the_report_may_say_the_direction_of_its_own_headline() -> None:
    row = Delta("odd.thing", Value.of([1.0, 1.01, 0.99, 1.0]), Value.of([0.5, 0.51, 0.49, 0.5]))
    judged = judge(Table("lkp", (row,), headline="odd.thing", claim="50.0% improvement")).rows[0]
    assert judged.verdict == "better"
    assert "report calls it" in judged.meaning.source


def test_chance_finds_are_corrected_for() -> None:
    """200 rows of pure noise: uncorrected, about ten would look real."""
    import random

    draw = random.Random(5)
    rows = tuple(
        sides(f"my.row{i}", [draw.gauss(100, 5) for _ in range(6)], [draw.gauss(100, 5) for _ in range(6)])
        for i in range(200)
    )
    judged = judge(Table("samples", rows)).rows
    assert sum(1 for row in judged if row.p is not None and row.p < 0.05) >= 4
    assert all(row.verdict in ("undecided", "no difference") for row in judged)


def test_edges_are_undecided_not_errors() -> None:
    for before, after in (
        (Value(None), Value(1.0, n=3)),
        (Value(0.0, n=4), Value(0.0, n=4)),
        (Value(5.0, n=4), Value(5.0, n=4)),
        (Value(-5.0, -5.0, -5.0, 300.0, "printed", 4), Value(5.0, 5.0, 5.0, 300.0, "printed", 4)),
        (Value.of([1.0]), Value.of([1.0, 2.0])),
    ):
        row = one(Delta("a.b", before, after))
        assert row.verdict == "undecided"
        assert row.reason


def test_nan_samples_are_left_out_and_none_at_all_is_an_error() -> None:
    assert Value.of([1.0, math.nan, 3.0]).samples == (1.0, 3.0)
    with pytest.raises(DataError, match="no finite sample"):
        Value.of([math.nan])


def test_failing_runs_are_tested_by_counts() -> None:
    row = Delta("dmesg.BUG", Value(0.0, n=60, events=0), Value(50.0, n=60, events=30), True)
    assert one(row).verdict == "worse"
    few = Delta("dmesg.BUG", Value(0.0, n=4, events=0), Value(50.0, n=4, events=2), True)
    assert one(few).verdict == "undecided"


def test_baselines_that_differ_are_not_joined() -> None:
    first = Baseline("System Call Overhead", 2222456.0, "lps", "Kunpeng 920", "S0")
    second = Baseline("System Call Overhead", 4102310.5, "lps", "Kunpeng 920", "S3")
    why = baseline_conflict(first, second)
    assert why is not None
    assert "84.6 % apart" in why
    assert "not joined" in why
    assert baseline_conflict(first, first) is None


def unixbench(label: str, value: float) -> str:
    head = f"on Huawei Kunpeng920 {label}:\n24 x System Call Overhead 1\n\n"
    return f"{head}System Call Overhead {value} lps (10.0 s, 1 samples)\n\n"


def test_compare_refuses_two_experiments_with_other_bases() -> None:
    first = benchfiles.read_text(
        unixbench("with this patch", 3160841.4) + unixbench("Without this patch", 2222456.0), "A"
    )
    second = benchfiles.read_text(
        unixbench("with this patch", 5290449.3) + unixbench("without any patch", 4102310.5), "B"
    )
    assert len(base_conflicts([first, second])) == 1
    with pytest.raises(DataError, match="baselines differ"):
        compare_reports(first, second)


def test_compare_pairs_by_metric_and_unit() -> None:
    def report(name: str, *series: Series) -> Report:
        return Report(name, ("samples",), (), series)

    a = report(
        "a", Series("x", Value.of([1.0, 2, 3, 4])), Series("only", Value.of([1.0])), Series("u", Value(1.0), "s")
    )
    b = report("b", Series("x", Value.of([5.0, 6, 7, 8])), Series("u", Value(1.0), "ms"))
    table = compare_reports(a, b).tables[0]
    assert [row.metric for row in table.rows] == ["x"]
    assert any("on one side only: only" in note for note in table.notes)
    assert any("u is in s in one and ms in the other" in note for note in table.notes)
    with pytest.raises(DataError, match="bring both to one unit"):
        compare_reports(report("a", Series("u", Value(1.0), "s")), report("b", Series("u", Value(1.0), "ms")))
    with pytest.raises(DataError, match="no metric is in both"):
        compare_reports(report("a", Series("p", Value(1.0))), report("b", Series("q", Value(1.0))))


def test_geometric_mean_only_over_metrics_of_one_kind() -> None:
    def report(name: str, *values: float, third: str = "") -> Report:
        series = [Series(f"time: {i}", Value(v), "s") for i, v in enumerate(values)]
        return Report(name, ("x",), (), (*series, *([Series(third, Value(1.0), "s")] if third else [])))

    (note,) = compare_reports(report("a", 1.0, 4.0), report("b", 2.0, 2.0)).tables[0].notes
    assert note == "geometric mean over the 2 matched metrics: +0.0 %"
    mixed = compare_reports(report("a", 1.0, 4.0, third="my.x"), report("b", 2.0, 2.0, third="my.x")).tables[0]
    assert mixed.notes == ()


def test_metric_table_covers_what_the_reports_show() -> None:
    known = meanings()
    for row in ROBOT.tables[0].rows:
        assert known.of(row.metric) is not UNKNOWN, row.metric
    for metric, direction in {
        "will-it-scale.per_process_ops": "higher",
        "aim7.jobs-per-min": "higher",
        "vm-scalability.throughput": "higher",
        "stress-ng.mq.ops_per_sec": "higher",
        "netperf.Throughput_Mbps": "higher",
        "hackbench.throughput": "higher",
        "unixbench.time.user_time": "neither",
        "perf-stat.i.node-load-misses": "lower",
        "perf-profile.self.cycles-pp.[k]": "neither",
        "sched_debug.cpu.clock.stddev": "neither",
        "interrupts.CPU1.NMI:Non-maskable_interrupts": "neither",
        "never.heard-of": "unknown",
    }.items():
        assert known.of(metric).direction == direction, metric


def test_first_pattern_that_matches_counts() -> None:
    entry = {"what": "w", "unit": "", "source": "s"}
    table = Meanings(
        [{**entry, "pattern": "a.*.b", "better": "higher"}, {**entry, "pattern": "*.b", "better": "lower"}], "here"
    )
    assert [table.of(name).direction for name in ("a.x.b", "c.b", "a.b", "a.x.c")] == [
        "higher",
        "lower",
        "lower",
        "unknown",
    ]
    with pytest.raises(DataError, match="better is 'up'"):
        Meanings([{**entry, "pattern": "a", "better": "up"}], "here")
    with pytest.raises(DataError, match="no what, unit, better, source"):
        Meanings([{"pattern": "a"}], "here")


def test_text_says_what_is_hidden_and_why() -> None:
    text = text_report(ROBOT, judge_report(ROBOT))
    assert "163 of 172 rows hidden" in text
    assert "one CPU or node of many" in text
    assert "unixbench.score" in text.splitlines()[8]
    whole = text_report(ROBOT, judge_report(ROBOT), show_all=True)
    assert whole.count("[hidden: ") == 163


def test_json_rows_have_the_promised_keys() -> None:
    record = records(ROBOT, judge_report(ROBOT))
    tables = record["tables"]
    assert isinstance(tables, list)
    assert [len(t["rows"]) for t in tables] == [172, 1, 1]
    wanted = {
        "metric", "before", "before_spread_pct", "after", "after_spread_pct", "printed_change", "ci95", "unit",
        "direction", "verdict", "line",
    }  # fmt: skip
    for row in tables[0]["rows"]:
        assert wanted <= set(row)
        assert ("change_pct" in row) != ("change_abs" in row)
    score = tables[0]["rows"][0]
    assert score["after_spread_pct"] is None
    assert score["after_spread_at_most_pct"] == 2


def noisy(mean: float, spread: float, n: int) -> Value:
    return Value(mean, mean, mean, spread, "printed", n)


def test_more_runs_count_the_other_rows() -> None:
    """Among 50 rows a p of 0.03 is nothing: it takes more runs than for the same row by itself."""
    row = Delta("unixbench.score", noisy(100, 5, 6), noisy(106, 5, 6))
    null = tuple(Delta(f"x.y{i}", noisy(100, 5, 6), noisy(100 + i % 2, 5, 6)) for i in range(49))
    alone, among = judge(Table("x", (row,))).rows[0], judge(Table("x", (row, *null))).rows[0]
    assert (alone.verdict, among.verdict) == ("undecided", "undecided")
    assert alone.more_runs is not None
    assert among.more_runs is not None
    assert among.more_runs > 1.5 * alone.more_runs


def test_the_runs_asked_for_do_decide() -> None:
    """Simulated: after the runs asked for, at least two of three experiments without a change say so."""
    draw = np.random.default_rng(5)
    asked = decided = 0
    for _ in range(60):
        before, after = draw.normal(100, 5, (2, 5))
        first = judge(Table("x", (Delta("a.b", Value.of(before), Value.of(after)),))).rows[0]
        if first.verdict != "undecided" or first.more_runs is None:
            continue
        more = draw.normal(100, 5, (2, first.more_runs))
        sides = [Value.of([*side, *extra]) for side, extra in zip((before, after), more, strict=True)]
        asked += 1
        decided += judge(Table("x", (Delta("a.b", *sides),))).rows[0].verdict != "undecided"
    assert asked > 40
    assert decided / asked > 0.67


def test_a_single_run_says_how_many_more_are_needed() -> None:
    one = judge(Table("x", (Delta("a.b", Value(1.0, n=1), Value(2.0, n=1)),))).rows[0]
    assert one.more_runs == 3
    assert "at least 3 more run(s) a side" in one.reason
    spreadless = judge(Table("x", (Delta("a.b", Value(1.0, n=8), Value(2.0, n=8)),))).rows[0]
    assert spreadless.more_runs is None  # more runs are not what is missing


def test_false_finds_stay_rare() -> None:
    """Simulated: 60 reports of 20 rows in which nothing changed; at most one in ten may claim anything."""
    draw = np.random.default_rng(9)
    claims = 0
    for _ in range(60):
        sides = draw.normal(100, 4, (20, 2, 5))
        rows = tuple(
            Delta(f"a.b{i}", *(noisy(s.mean(), 100 * s.std() / s.mean(), 5) for s in pair))
            for i, pair in enumerate(sides)
        )
        claims += any(row.verdict == "changed" for row in judge(Table("x", rows)).rows)
    assert claims <= 6


def test_rounding_widens_the_interval() -> None:
    """0.04 → 0.05 stands for anything from 0.035 → 0.055 to 0.045 → 0.045."""
    exact = Delta("a.b", noisy(0.04, 2, 6), noisy(0.05, 2, 6))
    sides = (Value(0.04, 0.035, 0.045, 2, "printed", 6), Value(0.05, 0.045, 0.055, 2, "printed", 6))
    narrow, wide = (judge(Table("x", (row,))).rows[0] for row in (exact, Delta("a.b", *sides)))
    assert narrow.ci95 is not None
    assert wide.ci95 is not None
    assert narrow.ci95[0] > 20
    assert wide.ci95[0] < 0
    assert (narrow.verdict, wide.verdict) == ("changed", "undecided")


def test_figures_say_what_they_are_in_text() -> None:
    assert side(Value(2297, spread_pct=2, spread_kind="at most")) == "2,297 ≤ 2 %"
    assert side(Value(2297, spread_pct=2, spread_kind="printed")) == "2,297 ± 2 %"
    assert side(Value(None)) == "-"


def test_csv_cells_are_no_formulas() -> None:
    """Metric names are a stranger's text: a spreadsheet must not run one."""
    report = benchfiles.read_text('{"=cmd()": [1], "@x": [2], "a=b": [3]}')
    names = [row[CSV_COLUMNS.index("metric")] for row in csv_rows(records(report, judge_report(report)))]
    assert names == ["'=cmd()", "'@x", "a=b"]


def test_only_the_function_itself_is_linked_not_its_callers() -> None:
    chain = "perf-profile.calltrace.cycles-pp"
    assert "f_inode" in members_of(f"{chain}.dnotify_flush.filp_close.__x64_sys_close", "file")
    assert members_of(f"{chain}.unknown.dnotify_flush.filp_close", "file") == ()
    assert members_of(f"{chain}.dnotify_flush.filp_close", "inode") == ()
    assert members_of("unixbench.score", "file") == ()
