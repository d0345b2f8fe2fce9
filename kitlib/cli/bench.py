"""``kitlib bench`` and ``kitlib compare``."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable
from typing import Literal

import click

from kitlib import benchfiles
from kitlib.benchtext import CSV_COLUMNS, Record, csv_rows, records, text_report
from kitlib.cli.common import F, format_option, write_out
from kitlib.compare import base_conflicts, compare_reports
from kitlib.errors import SourceError
from kitlib.series import Report
from kitlib.text import printable
from kitlib.verdict import JudgedTable, Options, judge_report


def judging_options(command: F) -> F:
    """The options that say how rows are judged."""
    command = click.option(
        "--better", type=click.Choice(["higher", "lower"]), help="Direction of metrics without one."
    )(command)
    command = click.option(
        "--margin",
        type=click.FloatRange(0, min_open=True),
        default=5.0,
        show_default=True,
        help="'No difference' must be shown to be smaller than this, in %.",
    )(command)
    command = click.option("--runs", type=click.IntRange(2), help="Runs a side, where the text does not say.")(command)
    return click.option("--all", "show_all", is_flag=True, help="Show every row, with the reason to hide it.")(command)


@click.command()
@click.argument("files", nargs=-1, required=True)
@judging_options
@format_option("csv")
def bench(
    files: tuple[str, ...], show_all: bool, runs: int | None, margin: float,
    better: Literal["higher", "lower"] | None, fmt: str,
) -> None:  # fmt: skip
    """Read benchmark text of any known kind, and say which changes are real and which way they go.

    FILE is a 0-day/LKP report as mailed, UnixBench output, will-it-scale CSV, lists of samples, perf stat,
    JSON of hyperfine, pyperf, Google Benchmark or fio, or a CSV table of samples; '-' reads standard input.
    """
    options = Options(runs, margin, better)
    reports = [_read(name) for name in files]
    _write([(report, judge_report(report, options)) for report in reports], show_all, fmt, base_conflicts(reports))
    for report in reports:
        if report.cut_at is not None:
            raise SourceError(
                f"{report.source}: cut off in the middle of a row (line {report.cut_at}); what stands before it is "
                "shown, but rows are missing: get the whole text"
            )


@click.command()
@click.argument("before")
@click.argument("after")
@judging_options
@format_option("csv")
def compare(
    before: str, after: str, show_all: bool, runs: int | None, margin: float,
    better: Literal["higher", "lower"] | None, fmt: str,
) -> None:  # fmt: skip
    """Compare two sample sets, metric by metric. Sets with different baselines are refused."""
    report = compare_reports(_read(before), _read(after))
    _write([(report, judge_report(report, Options(runs, margin, better)))], show_all, fmt, [])


def _read(name: str) -> Report:
    if name != "-":
        return benchfiles.read(name)
    if sys.stdin is None:
        raise SourceError("standard input: it is closed; name a file")
    return benchfiles.read_unseekable(sys.stdin.buffer, "standard input")


def _write(found: Iterable[tuple[Report, tuple[JudgedTable, ...]]], show_all: bool, fmt: str, notes: list[str]) -> None:
    if fmt == "text":
        parts = [text_report(report, judged, show_all=show_all) for report, judged in found]
        write_out("\n\n".join([*parts, *(f"note: {printable(note)}" for note in notes)]))
        return
    each = [records(report, judged) for report, judged in found]
    if fmt == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for record in each:
            writer.writerows(csv_rows(record))
        write_out(out.getvalue().removesuffix("\n"))
        return
    write_out(json.dumps(_merged(each, notes), ensure_ascii=False, allow_nan=False))


def _merged(each: list[Record], notes: list[str]) -> Record:
    """All files in one record: every table says its source."""
    merged: Record = {"files": [{"source": r["source"], "kinds": r["kinds"]} for r in each]}
    for key in ("tables", "notes", "unread"):
        merged[key] = [item for r in each if isinstance(r[key], list) for item in r[key]]  # type: ignore[attr-defined]
    merged["notes"] = [*merged["notes"], *notes]  # type: ignore[misc]
    return merged
