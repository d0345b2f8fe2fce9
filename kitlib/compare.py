"""Putting two reports side by side, or saying why they must not be."""

from __future__ import annotations

from collections.abc import Sequence

from kitlib.errors import DataError
from kitlib.metrics import meanings
from kitlib.series import Baseline, Delta, Report, Series, Table, Value, baseline_conflict
from kitlib.stats import geomean_ratio

_UNCHANGED = ("without", "before", "base", "vanilla", "unpatched", "old")


def compare_reports(before: Report, after: Report) -> Report:
    """One report of the metrics that two reports share, `before` against `after`.

    Raises `DataError` if a side holds comparisons of its own whose baselines differ (they must not be joined),
    or if no metric is on both sides.
    """
    conflicts = base_conflicts([before, after])
    if conflicts:
        raise DataError(conflicts[0])
    first, second = _by_metric(before), _by_metric(after)
    shared = [key for key in first if key in second]
    if not shared:
        raise DataError(_nothing_shared(before, after, first, second))
    rows = tuple(_row(first[key], second[key]) for key in shared)
    lone = sorted({metric for metric, *_ in set(first) ^ set(second)})
    notes = (f"{len(lone)} metrics are on one side only: {', '.join(lone[:8])}{' …' if len(lone) > 8 else ''}",)
    units = [
        f"{metric} is in {a} in one and {b} in the other: not compared"
        for metric, a, b in _unit_conflicts(first, second)
    ]
    stated = all(row.before.n is not None and row.after.n is not None for row in rows)
    table = Table(
        "compare", rows, before.source, after.source, n_source="stated" if stated else "not stated",
        line=rows[0].line, notes=(*(notes if lone else ()), *units, *_together(rows)),
    )  # fmt: skip
    kinds = tuple(dict.fromkeys((*before.kinds, *after.kinds)))
    name = f"{before.source} against {after.source}"
    return Report(name, kinds, (table,), (), (), (*before.unread, *after.unread), (*before.notes, *after.notes))


def _together(rows: Sequence[Delta]) -> list[str]:
    """The geometric mean of the ratios, where all metrics are of one unit and one direction: else it means nothing."""
    known = meanings()
    directions = {known.of(row.metric).direction for row in rows}
    one_kind = len({row.unit for row in rows}) == 1 and len(directions) == 1 and directions <= {"higher", "lower"}
    sides = [{row.metric: value.mean for row, value in pairs} for pairs in _both(rows)]
    if len(rows) < 2 or not one_kind or not all(v is not None and v > 0 for side in sides for v in side.values()):
        return []
    ratio, matched, _ = geomean_ratio(*({k: v for k, v in side.items() if v is not None} for side in sides))
    return [f"geometric mean over the {len(matched)} matched metrics: {100 * (ratio - 1):+.1f} %"]


def _both(rows: Sequence[Delta]) -> tuple[list[tuple[Delta, Value]], list[tuple[Delta, Value]]]:
    return [(row, row.before) for row in rows], [(row, row.after) for row in rows]


Key = tuple[str, str, str]


def _by_metric(report: Report) -> dict[Key, Series]:
    """The one figure a metric, unit and group has in a report. Raises `DataError` if there are several."""
    found: dict[Key, Series] = {}
    for series in _one_sided(report):
        key = (series.metric, series.unit, series.group)
        if key in found:
            raise DataError(
                f"{report.source}: {series.metric} is there twice (lines {found[key].line} and {series.line}), so "
                "which one to compare is not known; give a file with one set"
            )
        found[key] = series
    return found


def _one_sided(report: Report) -> list[Series]:
    """A report's figures as one set: its lone series, or the two sides of its tables if it has none."""
    if report.series or not report.tables:
        return list(report.series)
    raise DataError(
        f"{report.source}: holds both sides of a comparison already; read it with 'kitlib bench', and give "
        "'compare' one set of figures a side"
    )


def _row(before: Series, after: Series) -> Delta:
    return Delta(
        before.metric, before.value, after.value, before.unit == "%", None, before.unit, after.line, before.group
    )


def _unit_conflicts(first: dict[Key, Series], second: dict[Key, Series]) -> list[tuple[str, str, str]]:
    units = {metric: unit for metric, unit, _ in first}
    return sorted(
        (metric, units[metric] or "no unit", unit or "no unit")
        for metric, unit, _ in second
        if metric in units and units[metric] != unit
    )


def _nothing_shared(before: Report, after: Report, first: dict[Key, Series], second: dict[Key, Series]) -> str:
    units = _unit_conflicts(first, second)
    if units:
        metric, a, b = units[0]
        return f"{metric} is in {a} in {before.source} and in {b} in {after.source}; bring both to one unit"
    names = [sorted({metric for metric, *_ in side})[:3] for side in (first, second)]
    return (
        f"no metric is in both: {before.source} has {', '.join(names[0]) or 'none'}, "
        f"{after.source} has {', '.join(names[1]) or 'none'}"
    )


def baselines(report: Report) -> list[Baseline]:
    """The figures of the unchanged system that a report's comparisons start from."""
    found: dict[tuple[str, str], Baseline] = {}
    for table in report.tables:
        label = table.before_label.lower()
        if not label.startswith(_UNCHANGED):
            continue
        for row in table.rows:
            if row.before.mean is None or row.metric.startswith("System Benchmarks Index"):
                continue
            if "patch [" in label and "any" not in label:
                continue  # one of two changes is in there: not the unchanged system
            where = f"{report.source} (line {row.line}, {table.machine or 'machine not named'})"
            found.setdefault(
                (row.metric, table.machine), Baseline(row.metric, row.before.mean, row.unit, table.machine, where)
            )
    return list(found.values())


def base_conflicts(reports: Sequence[Report]) -> list[str]:
    """Why comparisons of different reports must not be put together: one line for each pair of bases."""
    found: list[str] = []
    known: list[Baseline] = []
    for report in reports:
        mine = baselines(report)
        for base in mine:
            for other in known:
                same_thing = (other.metric, other.group) == (base.metric, base.group)
                if same_thing and (why := baseline_conflict(other, base)):
                    found.append(why)
        known += mine
    return found
