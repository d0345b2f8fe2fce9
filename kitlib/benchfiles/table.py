"""Samples in a table: CSV text or a DataFrame (duck-typed, so pandas is never imported here).

Columns are told by their headings: ``before``/``after`` (a pair of sample columns or of figures, with
an optional ``metric``), or ``metric``/``value`` with a column naming the side, or one metric a column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kitlib.errors import SourceError
from kitlib.series import LARGEST_RUNS, LARGEST_SPREAD_PCT, Delta, Series, Table, Unread, Value, usable

_NUMBER = re.compile(r"\s*[-+]?(?:\d[\d.]*|\.\d+)(?:[eE][-+]?\d{1,4})?\s*\Z", re.ASCII)
_SIDES = ("side", "condition", "variant", "label", "kernel", "commit", "version", "when", "group")
_BEFORE = ("before", "base", "baseline", "old", "vanilla", "unpatched")
_AFTER = ("after", "patched", "new", "with")
_VALUE = ("value", "sample", "result", "measurement")
_METRIC = ("metric", "benchmark", "name", "test", "command")

Columns = Mapping[str, Sequence[object]]
Found = tuple[list[Table], list[Series], list[Unread]]


def separator(lines: Sequence[str]) -> str | None:
    """The separator if these first lines are a table with a heading, else None.

    More than half of the rows must have as many cells as the heading: a damaged one is reported later on.
    """
    first = [line for line in lines if line.strip()][:8]
    for mark in (",", "\t", ";"):
        try:
            heading, *rows = csv.reader(first, delimiter=mark)
        except (csv.Error, ValueError):
            continue
        whole = [row for row in rows if len(row) == len(heading)]
        if len(heading) < 2 or 2 * len(whole) <= len(rows) or any(_number(cell) is not None for cell in heading):
            continue
        if any(_number(cell) is not None for row in whole for cell in row):
            return mark
    return None


def cells_of(lines: Sequence[str], mark: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each line that is not blank. Raises `SourceError` if a cell is too long."""
    rows = csv.reader(lines, delimiter=mark)
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, row
    except csv.Error as problem:
        raise SourceError(f"{name}: line {rows.line_num}: {problem}; is a quote left open?") from None


def heading_of(cells: Sequence[str], name: str) -> list[str]:
    """The names of the columns. Raises `SourceError` if one is there twice."""
    heading = [cell.strip() for cell in cells]
    twice = next((cell for cell in heading if heading.count(cell) > 1), None)
    if twice is not None:
        raise SourceError(f"{name}: the column '{twice[:60]}' is there twice; give each column a name of its own")
    return heading


def read(lines: Sequence[str], mark: str, name: str) -> Found:
    """Tables and series of delimited text with a heading."""
    rows = cells_of(lines, mark, name)
    heading = heading_of(next(rows)[1], name)
    columns: dict[str, list[object]] = {cell: [] for cell in heading}
    numbers: list[int] = []
    unread: list[Unread] = []
    for number, row in rows:
        if len(row) != len(heading):
            reason = f"{len(row)} cells where the heading has {len(heading)}"
            unread.append(Unread(number, mark.join(row)[:200], reason))
            continue
        numbers.append(number)
        for cell, value in zip(heading, row, strict=True):
            columns[cell].append(value)
    tables, series, more = from_columns(columns, name, numbers)
    return tables, series, unread + more


def from_frame(frame: Any, name: str = "DataFrame") -> Found:
    """Tables and series of a pandas (or like) DataFrame. Raises `SourceError` if it has no figures."""
    heading = heading_of([str(column) for column in frame.columns], name)
    columns = {key: list(frame[column]) for key, column in zip(heading, frame.columns, strict=True)}
    return from_columns(columns, name, list(range(1, len(frame) + 1)))


def from_columns(columns: Columns, name: str, numbers: Sequence[int]) -> Found:
    """The same from columns by heading; `numbers` are the rows' line numbers."""
    named = {key.lower(): key for key in columns}
    metric = _first(named, _METRIC)
    before, after = _first(named, _BEFORE), _first(named, _AFTER)
    value, side = _first(named, _VALUE), _first(named, _SIDES)
    if before and after:
        return _two_columns(columns, before, after, metric, numbers, name)
    if value:
        return _long_form(columns, value, side, metric, numbers, name)
    return [], _metric_columns(columns, metric, name, numbers), []


def _first(named: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    return next((named[key] for key in wanted if key in named), None)


def _number(cell: object) -> float | None:
    """The figure in a cell, or None (also for NaN and infinity)."""
    if isinstance(cell, str) and not _NUMBER.match(cell):
        return None
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return value if usable(value) else None


def _blank(cell: object) -> bool:
    """Whether a cell is empty; a DataFrame fills those with NaN, None, NA or NaT."""
    if isinstance(cell, str):
        return not cell.strip()
    return str(cell) in ("nan", "None", "<NA>", "NaT")


def is_column(lines: Sequence[str]) -> bool:
    """Whether these lines are one number each (but for a damaged one), perhaps under a heading of one word."""
    shown = [line for line in lines if line.strip()]
    below = shown[1:] if shown and _number(shown[0]) is None and len(shown[0].split()) == 1 else shown
    return len(below) > 1 and 4 * sum(_number(line) is not None for line in below) >= 3 * len(below)


def read_column(lines: Sequence[str]) -> Found:
    """A single series of one number a line; its metric is the heading, else "value"."""
    metric, start = "value", 0
    kept: list[float] = []
    unread: list[Unread] = []
    for at, text in enumerate(lines, start=1):
        number = _number(text)
        if number is not None:
            kept.append(number)
            start = start or at
        elif text.strip() and not kept and metric == "value":
            metric = text.strip()
        elif text.strip():
            unread.append(Unread(at, text.strip()[:200], "no number"))
    return [], [Series(metric, Value.of(kept), line=start)], unread


def _two_columns(
    columns: Columns, before: str, after: str, metric: str | None, numbers: Sequence[int], name: str
) -> Found:
    sides: dict[str, tuple[list[float], list[float], int]] = {}
    unread: list[Unread] = []
    metrics = columns[metric] if metric else ["value"] * len(numbers)
    for index, line in enumerate(numbers):
        key = str(metrics[index])
        first, second, _ = sides.setdefault(key, ([], [], line))
        for cell, into in ((columns[before][index], first), (columns[after][index], second)):
            number = _number(cell)
            if number is not None:
                into.append(number)
            elif not _blank(cell):
                unread.append(Unread(line, str(cell)[:100], f"no number under {before}/{after}"))
    spreads = _spread_columns(columns, before, after, numbers, metrics)
    rows = tuple(_row(key, a, b, line, spreads.get(key)) for key, (a, b, line) in sides.items() if a and b)
    unread += [
        Unread(line, key[:100], "figures on one side only") for key, (a, b, line) in sides.items() if bool(a) != bool(b)
    ]
    if not rows:
        raise SourceError(f"{name}: no number on both sides; fill the columns {before} and {after}")
    source = "stated" if all(len(row.before.samples) > 1 for row in rows) else "one figure a side"
    return [Table("table", rows, before, after, n_source=source, line=numbers[0])], [], unread


def _spread_columns(
    columns: Columns, before: str, after: str, numbers: Sequence[int], metrics: Sequence[object]
) -> dict[str, tuple[float | None, float | None, float | None, float | None]]:
    """(spread before, spread after, n before, n after) by metric, where such columns are there."""
    wanted = (f"{before}_spread_pct", f"{after}_spread_pct", f"{before}_n", f"{after}_n")
    if not any(key in columns for key in wanted):
        return {}
    found: dict[str, tuple[float | None, float | None, float | None, float | None]] = {}
    for index in range(len(numbers)):
        a, b, c, d = (_number(columns[key][index]) if key in columns else None for key in wanted)
        found[str(metrics[index])] = (a, b, c, d)
    return found


def _row(
    metric: str, before: list[float], after: list[float], line: int,
    spread: tuple[float | None, float | None, float | None, float | None] | None,
) -> Delta:  # fmt: skip
    if spread and len(before) == 1 and len(after) == 1:
        return Delta(metric, _given(before[0], spread[0], spread[2]), _given(after[0], spread[1], spread[3]), line=line)
    return Delta(metric, Value.of(before), Value.of(after), line=line)


def _given(mean: float, spread: float | None, runs: float | None) -> Value:
    count = int(runs) if runs is not None and 1 <= runs <= LARGEST_RUNS else None
    if spread is None or not 0 <= spread <= LARGEST_SPREAD_PCT:
        return Value(mean, n=count)
    return Value(mean, mean, mean, spread, "printed", count)


def _long_form(
    columns: Columns, value: str, side: str | None, metric: str | None, numbers: Sequence[int], name: str
) -> Found:
    found: dict[tuple[str, str], list[float]] = {}
    lines: dict[tuple[str, str], int] = {}
    unread: list[Unread] = []
    for index, line in enumerate(numbers):
        number = _number(columns[value][index])
        if number is None:
            unread.append(Unread(line, str(columns[value][index])[:100], f"no number under {value}"))
            continue
        key = (
            str(columns[metric][index]) if metric else value,
            str(columns[side][index]) if side else "",
        )
        found.setdefault(key, []).append(number)
        lines.setdefault(key, line)
    if not found:
        raise SourceError(f"{name}: no number in the column {value}")
    labels = list(dict.fromkeys(label for _, label in found))
    if len(labels) == 2:
        return [_paired(found, lines, labels)], [], unread
    series = [Series(m, Value.of(values), "", label, "", lines[m, label]) for (m, label), values in found.items()]
    return [], series, unread


def _paired(
    found: Mapping[tuple[str, str], list[float]], lines: Mapping[tuple[str, str], int], labels: list[str]
) -> Table:
    first, second = labels
    note = ""
    if second.lower() in _BEFORE or first.lower() in _AFTER:
        first, second = second, first
    elif first.lower() not in _BEFORE and second.lower() not in _AFTER:
        note = f"'{first}' is taken as before, as it stands first"
    rows = tuple(
        Delta(m, Value.of(values), Value.of(found[m, second]), line=lines[m, label])
        for (m, label), values in found.items()
        if label == first and (m, second) in found
    )
    line = min(lines.values())
    return Table("table", rows, first, second, n_source="stated", line=line, notes=(note,) if note else ())


def _metric_columns(columns: Columns, metric: str | None, name: str, numbers: Sequence[int]) -> list[Series]:
    """One metric a column; where a column names what a row is of (a benchmark), only its own rows go together."""
    rows: dict[str, list[int]] = {}
    for index in range(len(numbers)):
        rows.setdefault(str(columns[metric][index]) if metric else "", []).append(index)
    series: list[Series] = []
    for key, cells in columns.items():
        listed = [_number(cell) for cell in cells]
        if key == metric or 2 * sum(number is not None for number in listed) < len(cells):
            continue
        for group, indices in rows.items():
            kept = [number for index in indices if (number := listed[index]) is not None]
            left = len(indices) - len(kept)
            note = f"{left} of {len(indices)} cells hold no number" if left else ""
            if kept:
                series.append(Series(key, _pooled(kept, metric is not None), "", "", group, numbers[indices[0]], note))
    if not series:
        raise SourceError(f"{name}: a table without a column of numbers; name columns before and after")
    return series


def _pooled(samples: list[float], named: bool) -> Value:
    """A lone figure of a named row may be a mean: how many runs it is of is not known."""
    return Value(samples[0]) if named and len(samples) == 1 else Value.of(samples)
