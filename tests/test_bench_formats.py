"""UnixBench, samples, will-it-scale, perf stat, JSON tools and tables; and ASCII plots."""

from __future__ import annotations

import json
import math
import re

import pandas as pd
import pytest

from kitlib import benchfiles
from kitlib.benchcases import case, cases, links, members_of
from kitlib.benchfiles.perfstat import number
from kitlib.datafiles import path
from kitlib.errors import NotFound, SourceError
from kitlib.series import Report, Series
from kitlib.verdict import judge_report, plot_table

ROBOT = path("benchmarks/struct-file-5.8-robot.txt").read_text("utf-8")


def series(text: str) -> dict[str, Series]:
    return {s.metric: s for s in benchfiles.read_text(text).series}


# --- ASCII plots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["as printed", "quoted", "collapsed"])
def test_plots_give_the_table_back(form: str) -> None:
    """Counted by eye in the upper plot: 17 O; the means of both sides are within 2 % of the table's."""
    text = {"as printed": ROBOT, "quoted": re.sub("(?m)^", "> ", ROBOT), "collapsed": re.sub(" +", " ", ROBOT)}[form]
    score, workload = benchfiles.read_text(text).plots
    assert (score.metric, workload.metric) == ("unixbench.score", "unixbench.workload")
    assert len(score.bad) == len(workload.bad) == 17
    assert len(score.good) == 31
    for plot, good, bad in ((score, 2297, 3038), (workload, 1.366e9, 1.812e9)):
        assert sum(m.value for m in plot.good) / len(plot.good) == pytest.approx(good, rel=0.02)
        assert sum(m.value for m in plot.bad) / len(plot.bad) == pytest.approx(bad, rel=0.02)
        assert all(mark.half_row == pytest.approx(plot.row_step / 2) for mark in (*plot.good, *plot.bad))


def test_plot_marks_ticks_and_frames() -> None:
    plot = """
                    a.metric

  40 +-O----------------+
     |                  |
  30 |-+   *        O +-|
     | *.+.             |
  20 |-+                |
     |                  |
  10 +------------------+
     0    5    10
"""
    (found,) = benchfiles.read_text(plot).plots
    assert found.metric == "a.metric"
    assert found.row_step == 5
    assert sorted(m.value for m in found.good) == [25, 25, 30]
    assert sorted(m.value for m in found.bad) == [30, 40]
    assert plot_table(found).rows[0].before.n == 3


# --- UnixBench ---------------------------------------------------------------------------------------


def block(value: str, index: str = "2107.2", label: str = "with this patch", copies: int = 24) -> str:
    return f"""{label}:
40 CPUs in system; running {copies} parallel copies of tests

System Call Overhead                        {value} lps   (10.0 s, 1 samples)

System Benchmarks Partial Index              BASELINE       RESULT    INDEX
System Call Overhead                          15000.0    {value}   {index}
                                                                   ========
System Benchmarks Index Score (Partial Only)                         {index}

"""


def test_a_printed_score_that_does_not_follow_is_flagged() -> None:
    good = block("3160841.4")
    assert not benchfiles.read_text(good).notes
    wrong = good.replace(
        "(Partial Only)                         2107.2", "(Partial Only)                         2207.2"
    )
    (note,) = benchfiles.read_text(wrong).notes
    assert "the index score is printed as 2,207.2 but follows from its row as 2,107.2" in note
    scores = [s.value.mean for s in benchfiles.read_text(wrong).series if s.metric.startswith("System Benchmarks")]
    assert scores == [2207.2]  # shown as printed


def test_with_may_come_before_without() -> None:
    report = benchfiles.read_text(block("3160841.4") + block("2222456.0", "1481.6", "Without this patch"))
    (table,) = report.tables
    assert (table.before_label, table.after_label) == ("Without this patch", "with this patch")
    assert table.rows[0].change_pct == pytest.approx(42.2229, abs=1e-3)
    assert table.rows[0].before.n == 1
    assert dict(table.parameters) == {"copies": "24"}
    assert report.notes == ()
    assert judge_report(report)[0].rows[0].verdict == "undecided"


def test_several_copies_are_scaling_not_before_and_after() -> None:
    report = benchfiles.read_text(block("100.0", "0.1", "running", 1) + block("900.0", "0.6", "running", 8))
    assert report.tables == ()
    groups = {s.group: s.value.mean for s in report.series if s.metric == "System Call Overhead"}
    assert groups == {"1 copy": 100.0, "8 copies": 900.0}


def test_two_by_two_with_a_missing_cell() -> None:
    text = block("9516926.2", "6344.6", "with this patch and the patch [1]") + block(
        "5290449.3", "3527.0", "with this patch and without the patch [1]"
    )
    report = benchfiles.read_text(text + block("4102310.5", "2734.9", "without any patch"))
    changes = [round(t.rows[0].change_pct or 0, 1) for t in report.tables]
    assert changes == [29.0, 132.0, 79.9]
    assert len(report.notes) == 1
    assert "'with patch [1], without this patch' is missing" in report.notes[0]
    assert "cannot be separated" in report.notes[0]


def test_a_wrong_index_is_flagged_and_kept() -> None:
    report = benchfiles.read_text(block("3160841.4", "2170.2"))
    assert any("printed as 2,170.2 but follows from its row as 2,107.2" in note for note in report.notes)
    score = next(s for s in report.series if "Score" in s.metric)
    assert score.value.mean == 2170.2


def test_touching_columns_and_empty_cells() -> None:
    text = """System Benchmarks Index Values               BASELINE       RESULT    INDEX
Dhrystone 2 using register variables         116700.0 123456789.010578.9
Double-Precision Whetstone                       55.0          ---      ---
                                                                   ========
System Benchmarks Index Score                                       10578.9
"""
    found = series(text)
    assert found["Dhrystone 2 using register variables"].value.mean == 123456789.0
    assert found["System Benchmarks Index Score"].value.mean == 10578.9
    assert "Double-Precision Whetstone" not in found


def test_version_4_1() -> None:
    text = """                     INDEX VALUES
TEST                                        BASELINE     RESULT      INDEX

Execl Throughput                                43.0     1000.0      232.6
Pipe Throughput                              12440.0   124400.0      100.0
                                                                 =========
     FINAL SCORE                                                     152.5
"""
    report = benchfiles.read_text(text)
    assert {s.metric: s.value.mean for s in report.series} == {
        "Execl Throughput": 1000.0, "Pipe Throughput": 124400.0, "System Benchmarks Index Score": 152.5,
    }  # fmt: skip
    assert report.notes == ()


# --- samples -----------------------------------------------------------------------------------------


def aim7(first: str, second: str) -> str:
    rows = [line.split(",")[1:] for line in path("benchmarks/inode-4.16-aim7.csv").read_text("utf-8").split()[1:]]
    lists = {"c0cef30e4ff0": [r[1] for r in rows], "3da90b159b14": [r[0] for r in rows]}
    parts = ["> commit: c0cef30e4ff0dc025f4a1660b8f0ba43ed58426e", ">"]
    for label in (first, second):
        parts += [f"> > {label}:", '> >  "aim7.jobs-per-min": [']
        parts += [f"> >     {value}," for value in lists[label][:-1]] + [
            f"> >     {lists[label][-1]}",
            "> >   ],",
            "> >",
        ]
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("order", [("c0cef30e4ff0", "3da90b159b14"), ("3da90b159b14", "c0cef30e4ff0")])
def test_sample_lists_are_paired_by_the_named_commit(order: tuple[str, str]) -> None:
    (table,) = benchfiles.read_text(aim7(*order)).tables
    assert table.after_label == "c0cef30e4ff0"
    assert (table.rows[0].before.n, table.rows[0].after.n) == (8, 8)
    assert f"{table.rows[0].change_pct:.1f}" == "-18.1"
    judged = judge_report(benchfiles.read_text(aim7(*order)))[0].rows[0]
    assert judged.verdict == "worse"


def test_samples_in_one_line_with_gaps_and_without_an_end() -> None:
    found = series("x:\n a.b: [1, 2.5, null, 4]\n")
    assert found["a.b"].value.samples == (1, 2.5, 4)
    assert found["a.b"].note == "1 of 4 samples are not numbers"
    with pytest.raises(SourceError, match="the list has no end"):
        benchfiles.read_text("a.b: [1, 2,\n3,\n")


# --- will-it-scale -----------------------------------------------------------------------------------


def test_will_it_scale_by_headings() -> None:
    head = "tasks,processes,processes_idle,threads,threads_idle,linear\n"
    text = head + "0,0,100,0,100,0\n1,500,97.5,480,97.4,500\n2,990,95,700,95.1,1000\n"
    found = series(text)
    assert found["will-it-scale.processes@2"].value.mean == 990
    assert found["will-it-scale.threads@1"].unit == "ops/s"
    assert found["will-it-scale.processes_idle@1"].unit == "%"
    assert not any("linear" in name or "@0" in name for name in found)
    swapped = "tasks,threads,threads_idle,processes\n1,480,97.4,500\n1,2\n"
    report = benchfiles.read_text(swapped)
    assert {s.metric: s.value.mean for s in report.series}["will-it-scale.processes@1"] == 500
    assert [u.line for u in report.unread] == [3]


# --- perf stat ---------------------------------------------------------------------------------------

PERF = """
 Performance counter stats for './a.out' (5 runs):

          1,234.56 msec task-clock                #    0.998 CPUs utilized            ( +-  0.52% )
     4,567,890,123      cycles                    #    3.700 GHz                      ( +-  1.00% )  (83.31%)
   <not supported>      stalled-cycles-frontend
     <not counted>      node-loads                                                    (0.00%)
       987,654,321      cpu_core/cycles/
       123,456,789      cpu_core/cycles/

           1.23700 +- 0.00643 seconds time elapsed  ( +-  0.52% )
"""


def test_perf_stat_plain() -> None:
    found = series(PERF)
    assert found["perf-stat.task-clock"].value.mean == 1234.56
    assert found["perf-stat.task-clock"].unit == "msec"
    cycles = found["perf-stat.cycles"].value
    assert cycles.mean == 4567890123
    assert cycles.n == 5
    assert cycles.spread_pct == pytest.approx(2.0)  # 1 % standard error of 5 runs, population form
    assert found["perf-stat.cycles"].note == "counted 83.31 % of the time, scaled up"
    assert found["perf-stat.stalled-cycles-frontend"].value.mean is None
    assert found["perf-stat.stalled-cycles-frontend"].note == "not supported"
    assert found["perf-stat.node-loads"].value.mean is None
    assert found["perf-stat.cpu_core/cycles/#2"].value.mean == 123456789
    assert found["perf-stat.time elapsed"].value.mean == 1.237


def test_perf_stat_separated() -> None:
    text = "\n".join(
        [
            "# started on Mon Jan  1 00:00:00 2024", "",
            "1234.56,msec,task-clock,0.52%,1234560000,100.00,0.998,CPUs utilized",
            "4567890123,,cycles,1.00%,1234560000,83.31,3.700,GHz",
            "<not supported>,,stalled-cycles-frontend,0,100.00,,",
            "<not counted>,,node-loads,0,0.00,,", "broken line",
        ]
    )  # fmt: skip
    report = benchfiles.read_text(text.replace("\nbroken line", ""))
    found = {s.metric: s for s in report.series}
    assert found["perf-stat.cycles"].value.mean == 4567890123
    assert "83.31 % of the time" in found["perf-stat.cycles"].note
    assert "standard error of the mean 1.00 %" in found["perf-stat.cycles"].note
    assert found["perf-stat.stalled-cycles-frontend"].value.mean is None
    assert report.kinds == ("perf-stat",)
    semicolons = benchfiles.read_text(text.replace("\nbroken line", "").replace(",", ";"))
    assert len(semicolons.series) == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567", 1234567),
        ("1.234.567", 1234567),
        ("1\u202f234", 1234),
        ("12,5", 12.5),
        ("1,234.5", 1234.5),
        ("x", None),
    ],
)
def test_numbers_of_any_locale(text: str, value: float | None) -> None:
    assert number(text) == value


# --- JSON --------------------------------------------------------------------------------------------


def test_hyperfine() -> None:
    data = {
        "results": [
            {"command": "a", "mean": 2.0, "times": [1.9, 2.1], "exit_codes": [0, 1]},
            {"command": "b", "mean": 3.0},
        ]
    }
    found = series(json.dumps(data))
    assert found["time: a"].value.samples == (1.9, 2.1)
    assert found["time: a"].note == "1 runs ended with an error code"
    assert (found["time: b"].value.mean, found["time: b"].value.n) == (3.0, None)


def test_pyperf_takes_the_process_as_the_run() -> None:
    runs = [{"values": [1.0, 3.0]}, {"values": [2.0, 4.0]}, {"warmups": [[1, 9.0]]}]
    data = {"version": "1.0", "metadata": {"unit": "second"}, "benchmarks": [{"metadata": {"name": "b"}, "runs": runs}]}
    found = series(json.dumps(data))
    assert found["time: b"].value.samples == (2.0, 3.0)
    assert "2 values" in found["time: b"].note


def test_google_benchmark() -> None:
    shared = {"run_name": "BM_x", "time_unit": "ns"}
    rows = [
        {**shared, "name": "BM_x", "run_type": "iteration", "real_time": t, "items_per_second": 5.0} for t in (10, 12)
    ]
    rows.append({**shared, "name": "BM_x_mean", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 11})
    only = {"run_name": "BM_y", "time_unit": "us", "run_type": "aggregate", "repetitions": 4, "name": "BM_y"}
    rows += [
        {**only, "aggregate_name": "mean", "real_time": 100.0},
        {**only, "aggregate_name": "stddev", "real_time": 10.0},
    ]
    rows.append({"name": "BM_z", "run_name": "BM_z", "error_occurred": True, "error_message": "no"})
    report = benchfiles.read_text(json.dumps({"context": {}, "benchmarks": rows}))
    found = {s.metric: s for s in report.series}
    assert found["time: BM_x"].value.samples == (10, 12)
    assert found["items: BM_x"].unit == "items/s"
    assert found["time: BM_y"].value.n == 4
    assert found["time: BM_y"].value.spread_pct == pytest.approx(10 * math.sqrt(3 / 4))
    assert [u.reason for u in report.unread] == ["the benchmark failed: no"]


def test_fio_behind_warnings() -> None:
    part = {"iops": 1000.5, "bw": 4000, "total_ios": 9, "clat_ns": {"mean": 950.0, "percentile": {"99.000000": 2000}}}
    data = {"fio version": "fio-3.33", "jobs": [{"jobname": "j", "error": 0, "read": part, "write": {"iops": 0}}]}
    found = series("fio: some warning\n" + json.dumps(data))
    assert found["fio.j.read.iops"].value.mean == 1000.5
    assert found["fio.j.read.clat_p99"].unit == "ns"
    assert not any("write" in name for name in found)
    assert "not from run to run" in found["fio.j.read.bw"].note


def test_plain_json_samples_and_unknown_json() -> None:
    assert series('{"a.b": [1, 2, NaN], "c": 5}')["a.b"].value.samples == (1, 2)
    for text in ('[{"a": 1}]', "[]", '{"a": "b"}', '{"a": ', '{"results": []}'):
        with pytest.raises(SourceError):
            benchfiles.read_text(text)


# --- tables ------------------------------------------------------------------------------------------


def rows(report: Report) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    return {r.metric: (r.before.samples, r.after.samples) for t in report.tables for r in t.rows}


def test_csv_with_two_columns() -> None:
    report = benchfiles.read_text("metric,before,after\nx,1,4\nx,2,5\ny,7,\ny,8,9\n")
    assert rows(report) == {"x": ((1, 2), (4, 5)), "y": ((7, 8), (9,))}
    assert rows(benchfiles.read_text("after;before\n4;1\n5;2\n"))["value"] == ((1, 2), (4, 5))


def test_csv_in_long_form() -> None:
    report = benchfiles.read_text(
        "metric,kernel,value\nx,patched,4\nx,vanilla,1\nx,patched,5\nx,vanilla,2\nx,vanilla,oops\n"
    )
    assert rows(report) == {"x": ((1, 2), (4, 5))}
    assert report.tables[0].before_label == "vanilla"
    assert [u.line for u in report.unread] == [6]


def test_csv_of_metrics_by_column_and_spreads() -> None:
    assert series("tput\tlat\n1\t9\n2\t8\n")["lat"].value.samples == (9, 8)
    text = "metric,before,before_spread_pct,before_n,after,after_spread_pct,after_n\nx,100,3,4,120,5,4\n"
    row = benchfiles.read_text(text).tables[0].rows[0]
    assert (row.before.spread_pct, row.before.n, row.after.spread_pct) == (3, 4, 5)


def test_data_frames() -> None:
    frame = pd.DataFrame({"metric": ["x", "x"], "before": [1.0, 2.0], "after": [3.0, float("nan")]})
    assert rows(benchfiles.from_frame(frame)) == {"x": ((1, 2), (3,))}
    with pytest.raises(SourceError, match="without a column of numbers"):
        benchfiles.from_frame(pd.DataFrame({"a": ["p", "q"]}))


# --- shipped figures ---------------------------------------------------------------------------------


def test_shipped_cases() -> None:
    found = {c.id: c for c in cases()}
    unix = found["struct-file-5.8-unixbench"].tables()
    assert [round(t.rows[0].change_pct or 0, 1) for t in unix] == [42.2, 17.0]
    assert "not measured on this base" in found["fget-atomic-add"].status
    later = case("struct-file-6.5").tables()
    assert [round(t.rows[0].change_pct or 0, 1) for t in later] == [42.7, 0.2]
    with pytest.raises(NotFound, match="did you mean struct-zone"):
        case("struct-zome")


def test_every_stated_percentage_follows_from_its_values() -> None:
    for one in cases():
        for figure in one.figures:
            stated = figure.printed_change
            if stated and figure.before and figure.after:
                change = 100 * (figure.after / figure.before - 1)
                tolerance = 1.0 if "." not in stated else 0.15  # some are stated as whole per cent
                assert change == pytest.approx(float(stated.rstrip("%")), abs=tolerance), (one.id, figure.metric)


def test_links_from_functions_to_members() -> None:
    assert members_of("perf-profile.self.cycles-pp.dnotify_flush", "file") == ("f_inode",)
    assert members_of("perf-profile.calltrace.cycles-pp.__fget_files.ksys_dup.x", "file") == ("f_mode", "f_count")
    assert members_of("perf-profile.self.cycles-pp.dnotify_flush", "inode") == ()
    assert members_of("unixbench.score", "file") == ()
    assert any(not link.confirmed for link in links())
