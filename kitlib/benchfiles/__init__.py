"""Readers of benchmark text and files: `read` finds out what a file holds and returns a `Report`.

One small module per format. Text goes through line by line, so the size of a mailbox does not matter;
JSON and CSV files are read whole, up to `LARGEST_WHOLE_BYTES`.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from kitlib.benchfiles import jsonbench, perfstat, table, willitscale
from kitlib.benchfiles.asciiplot import PlotReader
from kitlib.benchfiles.context import Context
from kitlib.benchfiles.lkp import LkpReader
from kitlib.benchfiles.mailtext import Line, open_lines, whole_text
from kitlib.benchfiles.perfstat import PerfStatReader
from kitlib.benchfiles.runs import Run, pair
from kitlib.benchfiles.samples import SampleReader
from kitlib.benchfiles.unixbench import UnixBenchReader
from kitlib.errors import SourceError
from kitlib.series import Report, Table, Unread

LARGEST_WHOLE_BYTES = 64 * 1024 * 1024
_SNIFF = 64 * 1024
READ_KINDS = (
    "0-day/LKP tables, UnixBench, will-it-scale CSV, sample lists, perf stat, hyperfine, pyperf, "
    "Google Benchmark and fio JSON, CSV"
)


def read(path: str | Path) -> Report:
    """Everything the file at `path` holds. Raises `SourceError` if it cannot be read or holds nothing."""
    try:
        with open(path, "rb") as stream:
            if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty():
                raise SourceError(f"{path}: is a device, not a file; give a file with figures")
            reader = read_stream if stream.seekable() else read_unseekable
            return reader(stream, str(path))
    except OSError as problem:
        raise SourceError(f"{path}: {problem.strerror or problem}; give a file with figures") from None


def read_text(text: str, name: str = "pasted text") -> Report:
    """The same for text at hand, as a notebook pastes it."""
    return read_stream(io.BytesIO(text.encode("utf-8", "surrogatepass")), name)


def from_frame(frame: Any, name: str = "DataFrame") -> Report:
    """The same for a pandas DataFrame of samples (see `kitlib.benchfiles.table`)."""
    tables, series, unread = table.from_frame(frame, name)
    return Report(name, ("table",), tuple(tables), tuple(series), (), tuple(unread), (), len(frame))


def read_unseekable(stream: BinaryIO, name: str) -> Report:
    """The same for a pipe: what comes through is kept in a temporary file on disk, not in memory."""
    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(stream, kept)
        kept.seek(0)
        return read_stream(kept, name)


def read_stream(stream: BinaryIO, name: str) -> Report:
    """The same for an open, seekable byte stream."""
    head = stream.read(_SNIFF)
    stream.seek(0)
    if not head:
        raise SourceError(f"{name}: empty; give a file with figures ({READ_KINDS})")
    whole = _whole_reader(head)
    if whole is None:
        return _read_lines(stream, name)
    data = stream.read(LARGEST_WHOLE_BYTES + 1)
    if len(data) > LARGEST_WHOLE_BYTES:
        raise SourceError(f"{name}: larger than 64 MB for a JSON or CSV file; split it")
    return whole(whole_text(data), name)


def _whole_reader(head: bytes) -> Callable[[str, str], Report] | None:
    """The reader for a file that is one JSON or CSV document, or None for lines of text."""
    start = whole_text(head)
    first = start.lstrip()[:1]
    if first in ("{", "[") or ('"fio version"' in start and "\n{" in start):
        return _read_json
    lines = start.splitlines()[:-1] if len(head) == _SNIFF else start.splitlines()
    shown = [line for line in lines if line.strip()]
    if not shown or max(map(len, shown[:8])) > 10_000:
        return None
    if willitscale.is_header(shown[0]):
        return _read_willitscale
    if perfstat.separator(shown[:20]):
        return _read_perf_separated
    if table.is_column(shown[:50]):
        return _read_column
    return _read_table if table.separator(shown) else None


def _read_json(text: str, name: str) -> Report:
    kind, series, unread = jsonbench.read(text, name)
    return _filled(Report(name, (kind,), (), tuple(series), (), tuple(unread), (), text.count("\n") + 1))


def _read_willitscale(text: str, name: str) -> Report:
    series, unread = willitscale.read(text.splitlines(), name)
    kinds = ("will-it-scale",)
    return _filled(Report(name, kinds, (), tuple(series), (), tuple(unread), (), text.count("\n") + 1))


def _read_perf_separated(text: str, name: str) -> Report:
    lines = text.splitlines()
    mark = perfstat.separator([line for line in lines if line.strip()][:20]) or ","
    series, unread = perfstat.read_separated(lines, mark)
    return _filled(Report(name, ("perf-stat",), (), tuple(series), (), tuple(unread), (), len(lines)))


def _read_table(text: str, name: str) -> Report:
    lines = text.splitlines()
    mark = table.separator([line for line in lines if line.strip()]) or ","
    tables, series, unread = table.read(lines, mark, name)
    return _filled(Report(name, ("table",), tuple(tables), tuple(series), (), tuple(unread), (), len(lines)))


def _read_column(text: str, name: str) -> Report:
    lines = text.splitlines()
    _, series, unread = table.read_column(lines)
    return _filled(Report(name, ("samples",), (), tuple(series), (), tuple(unread), (), len(lines)))


def _read_lines(stream: BinaryIO, name: str) -> Report:
    context = Context()
    plots, lkp, samples = PlotReader(), LkpReader(context), SampleReader(context)
    unixbench, perf = UnixBenchReader(context), PerfStatReader(context)
    long_lines: list[int] = []
    line = Line(0, "", 0)
    for line in open_lines(stream):
        if line.too_long:
            long_lines.append(line.number)
            continue
        if lkp.feed(line):
            continue
        context.feed(line.text, line.number)
        for reader in (plots, samples, unixbench, perf):
            if reader.feed(line):
                break
    tables = lkp.finish()
    runs: list[Run] = [*unixbench.finish(), *samples.finish(), *perf.finish()]
    more, series, notes = pair(runs, context)
    unread = sorted((*lkp.unread, *samples.unread, *unixbench.unread, *perf.unread), key=lambda u: u.line)
    notes = [*unixbench.notes, *notes, *_about_long_lines(long_lines)]
    if context.bare_claim and not (tables or runs):
        notes.append(f"it claims {context.bare_claim} without the figures behind it")
    found = _in_text_order([*tables, *more])
    kinds = tuple(dict.fromkeys([t.kind for t in found] + [run.kind for run in runs]))
    parts = (tuple(found), tuple(series), tuple(plots.plots), tuple(unread), tuple(notes))
    return _filled(Report(name, kinds, *parts, line.number, lkp.cut_at or samples.cut_at))


def _in_text_order(tables: list[Table]) -> list[Table]:
    """Tables by where their experiment begins; those of one experiment keep their order (base first)."""
    begins: dict[tuple[object, ...], int] = {}
    for one in tables:
        key = (one.kind, one.testcase, one.machine, one.parameters)
        begins[key] = min(begins.get(key, one.line), one.line)
    return sorted(tables, key=lambda t: begins[t.kind, t.testcase, t.machine, t.parameters])


def _about_long_lines(numbers: list[int]) -> list[str]:
    if not numbers:
        return []
    return [f"{len(numbers)} line(s) too long for a table row were not looked into, first: {numbers[0]}"]


def _filled(report: Report) -> Report:
    """The report, or `SourceError` saying what was in the file instead of figures."""
    if report.tables or report.series or report.plots:
        return report
    if report.unread:
        first: Unread = report.unread[0]
        raise SourceError(
            f"{report.source}: no whole row in {report.lines} lines; line {first.line} looks like one "
            f"but {first.reason}; was it cut off?"
        )
    about = "; ".join(report.notes)
    raise SourceError(
        f"{report.source}: no benchmark figures in {report.lines} lines"
        f"{f' ({about})' if about else ''}; read are {READ_KINDS}"
    )
