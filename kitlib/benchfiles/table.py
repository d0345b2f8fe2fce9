"""Samples in a table: CSV text or a DataFrame (duck-typed, so pandas is never imported here).

Columns are told by their headings: ``before``/``after`` (a pair of sample columns or of figures, with
an optional ``metric``), or ``metric``/``value`` with a column naming the side, or one metric a column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kitlib.errors import SourceError
from kitlib.series import Delta, Series, Table, Unread, Value

_SIDES = ("side", "condition", "variant", "label", "kernel", "commit", "version", "when", "group")
_BEFORE = ("before", "base", "baseline", "old", "vanilla", "unpatched")
_AFTER = ("after", "patched", "new", "with")
_VALUE = ("value", "sample", "result", "measurement")
_METRIC = ("metric", "benchmark", "name", "test")

Columns = Mapping[str, Sequence[object]]
Found = tuple[list[Table], list[Series], list[Unread]]


def separator(lines: Sequence[str]) -> str | None:
    """The separator if these first lines are a table with a heading, else None."""
    first = [line for line in lines if line.strip()][:8]
    for mark in (",", "\t", ";"):
        rows = list(csv.reader(first, delimiter=mark))
        if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            continue
        if any(_number(cell) is not None for cell in rows[0]):
            continue
        if any(_number(cell) is not None for row in rows[1:] for cell in row):
            return mark
    return None


def read(lines: Iterable[str], mark: str, name: str) -> Found:
    """Tables and series of delimited text with a heading."""
    rows = csv.reader(lines, delimiter=mark)
    heading = [cell.strip() for cell in next(rows)]
    columns: dict[str, list[object]] = {cell: [] for cell in heading}
    numbers: list[int] = []
    unread: list[Unread] = []
    for row in rows:
        if not row:
            continue
        if len(row) != len(heading):
            reason = f"{len(row)} cells where the heading has {len(heading)}"
            unread.append(Unread(rows.line_num, mark.join(row)[:200], reason))
            continue
        numbers.append(rows.line_num)
        for cell, value in zip(heading, row, strict=True):
            columns[cell].append(value)
    tables, series, more = from_columns(columns, name, numbers)
    return tables, series, unread + more


def from_frame(frame: Any, name: str = "DataFrame") -> Found:
    """Tables and series of a pandas (or like) DataFrame. Raises `SourceError` if it has no figures."""
    columns = {str(column): list(frame[column]) for column in frame.columns}
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
    return [], _metric_columns(columns, name, numbers), []


def _first(named: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    return next((named[key] for key in wanted if key in named), None)


def _number(cell: object) -> float | None:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


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
            elif str(cell).strip():
                unread.append(Unread(line, str(cell)[:100], f"no number under {before}/{after}"))
    spreads = _spread_columns(columns, before, after, numbers, metrics)
    rows = tuple(_row(key, a, b, line, spreads.get(key)) for key, (a, b, line) in sides.items() if _any(a) and _any(b))
    if not rows:
        raise SourceError(f"{name}: no number on both sides; fill the columns {before} and {after}")
    source = "stated" if all(len(row.before.samples) > 1 for row in rows) else "one figure a side"
    return [Table("table", rows, before, after, n_source=source, line=numbers[0])], [], unread


def _any(values: Sequence[float]) -> bool:
    return any(math.isfinite(value) for value in values)


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
    count = int(runs) if runs is not None and runs >= 1 else None
    if spread is None or not spread >= 0:
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
        if number is None or not math.isfinite(number):
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


def _metric_columns(columns: Columns, name: str, numbers: Sequence[int]) -> list[Series]:
    series: list[Series] = []
    for key, cells in columns.items():
        listed = [number for cell in cells if (number := _number(cell)) is not None]
        kept = [number for number in listed if math.isfinite(number)]
        if kept and 2 * len(listed) >= len(cells):
            left = len(cells) - len(kept)
            note = f"{left} of {len(cells)} cells hold no number" if left else ""
            line = numbers[0] if numbers else 0
            series.append(Series(key, Value.of(kept), "", "", "", line, note))
    if not series:
        raise SourceError(f"{name}: a table without a column of numbers; name columns before and after")
    return series
