"""What measuring tools really write: lists, tables of benchmarks, UTF-16, and the shapes of perf stat."""

from __future__ import annotations

import io
import json
import math

import pandas as pd
import pytest

from kitlib import benchfiles
from kitlib.series import Report, Series


def series(text: str) -> dict[str, Series]:
    return {s.metric: s for s in benchfiles.read_text(text).series}


def rows(report: Report) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    return {row.metric: (row.before.samples, row.after.samples) for table in report.tables for row in table.rows}


def test_numbers_without_a_name_are_one_series() -> None:
    """The plainest sample sets: a list in JSON, or one number a line with or without a heading."""
    assert series("[1, 2.5, 3]")["value"].value.samples == (1, 2.5, 3)
    assert series("1\n2.5\n\n3e3\n")["value"].value.samples == (1, 2.5, 3000)
    found = benchfiles.read_text("latency\n1\n2\nx 3\n4\n")
    assert [(s.metric, s.value.samples) for s in found.series] == [("latency", (1, 2, 4))]
    assert [(u.line, u.text) for u in found.unread] == [(4, "x 3")]


def test_a_table_of_benchmarks_keeps_them_apart() -> None:
    """hyperfine and Google Benchmark write a row for each command: a mean over different ones means nothing."""
    hyperfine = "command,mean,stddev\nsleep 1,1.01,0.01\ntrue,0.002,0.001\n"
    found = {(s.metric, s.group): s.value for s in benchfiles.read_text(hyperfine).series}
    assert (found["mean", "sleep 1"].mean, found["mean", "true"].mean) == (1.01, 0.002)
    assert found["mean", "true"].n is None  # a mean of an unknown number of runs
    google = "name,real_time,time_unit\nA,1,ns\nA,2,ns\nB,7,ns\nB,9,ns\n"
    found = {(s.metric, s.group): s.value for s in benchfiles.read_text(google).series}
    assert (found["real_time", "A"].samples, found["real_time", "B"].samples) == ((1, 2), (7, 9))


def test_cells_that_are_no_figures_are_listed() -> None:
    report = benchfiles.read_text("before,after\n1,2\ninf,3\n2,nan\n3,1_0\n4,\n")
    assert rows(report) == {"value": ((1, 2, 3, 4), (2, 3))}
    assert [(u.line, u.text) for u in report.unread] == [(3, "inf"), (4, "nan"), (5, "1_0")]
    lone = benchfiles.read_text("metric,before,after\na,1,2\nb,1,\n")
    assert [(u.text, u.reason) for u in lone.unread] == [("b", "figures on one side only")]
    frame = pd.DataFrame({"before": [1.0, 2.0, 3.0], "after": [1.0, math.nan, None]})
    assert not benchfiles.from_frame(frame).unread


def test_a_damaged_row_among_the_first_is_listed() -> None:
    report = benchfiles.read_text("before,after\n1,2\n3\n5,6\n7,8\n")
    assert rows(report) == {"value": ((1, 5, 7), (2, 6, 8))}
    assert [u.line for u in report.unread] == [3]


def test_utf_16_documents() -> None:
    """What a Windows shell writes with ``>``."""
    for text in ('{"a.b": [1, 2]}', "a.b,c\n1,5\n2,6\n"):
        report = benchfiles.read_stream(io.BytesIO(text.encode("utf-16")), "x")
        assert report.series[0].metric == "a.b"
        assert report.series[0].value.samples == (1, 2)


def test_fio_with_text_behind_its_json() -> None:
    """``--output-format=normal,json`` writes both into one file."""
    data = json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"iops": 5, "bw": 20}}]})
    assert series(data + "\n\na: (groupid=0, jobs=1): err= 0: pid=1\n")["fio.a.read.iops"].value.mean == 5


PERF_PLACES = """
 Performance counter stats for 'system wide':

CPU0                   121.82 msec cpu-clock                        #    1.000 CPUs utilized
CPU1          <not supported>      cycles
S0-D0-C1           2                 23      context-switches       #  185.817 /sec

       0.121825842 seconds time elapsed
"""
PERF_INTERVALS = """
#           time             counts unit events
     0.100156803               0.76 msec task-clock                 #    0.008 CPUs utilized
     0.100156803    <not supported>      cycles
     0.200156803               0.06 msec task-clock                 #    0.001 CPUs utilized
"""
PERF_HYBRID = """
 Performance counter stats for 'x' (5 runs):

     1,234,567,890      cpu_core/cycles/         #    0.100 GHz                ( +-  1.20% )  (83.33%)
     <not counted>      cpu_atom/cycles/                                       (0.00%)
             TopdownL1 (cpu_core)                 #     27.8 %  tma_backend_bound
                                                  #      7.5 %  tma_bad_speculation
           1.00234 +- 0.00123 seconds time elapsed  ( +-  0.12% )
"""


def test_perf_stat_by_place_and_by_time() -> None:
    def found(text: str) -> list[tuple[str, str, float | None]]:
        return [(s.metric, s.group, s.value.mean) for s in benchfiles.read_text(text).series]

    assert found(PERF_PLACES) == [
        ("perf-stat.cpu-clock", "CPU0", 121.82),
        ("perf-stat.cycles", "CPU1", None),
        ("perf-stat.context-switches", "S0-D0-C1", 23),
        ("perf-stat.time elapsed", "", 0.121825842),
    ]
    assert found(PERF_INTERVALS) == [
        ("perf-stat.task-clock", "0.100156803", 0.76),
        ("perf-stat.cycles", "0.100156803", None),
        ("perf-stat.task-clock", "0.200156803", 0.06),
    ]


def test_perf_stat_with_derived_figures_in_between() -> None:
    found = series(PERF_HYBRID)
    assert found["perf-stat.time elapsed"].value.mean == 1.00234
    assert found["perf-stat.cpu_atom/cycles/"].note == "not counted"
    assert found["perf-stat.cpu_core/cycles/"].value.spread_pct == pytest.approx(1.2 * 2)


def test_perf_stat_separated_with_times_and_derived_figures() -> None:
    text = (
        "     0.050118811,107.49,msec,cpu-clock,107493559,100.00,2.150,CPUs utilized\n"
        "     0.050118811,28,,context-switches,107496544,100.00,260.483,/sec\n"
        "     0.050118811,,,,,,0.52,stalled cycles per insn\n"
    )
    found = [(s.metric, s.group, s.value.mean) for s in benchfiles.read_text(text).series]
    assert found == [
        ("perf-stat.cpu-clock", "0.050118811", 107.49),
        ("perf-stat.context-switches", "0.050118811", 28),
        ("perf-stat.stalled cycles per insn", "0.050118811", 0.52),
    ]
