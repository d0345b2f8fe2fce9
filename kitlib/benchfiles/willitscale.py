"""will-it-scale CSV: ``tasks,processes,processes_idle,threads,threads_idle,linear``."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from kitlib.series import Series, Unread, Value

COLUMNS = ("tasks", "processes", "processes_idle", "threads", "threads_idle", "linear")


def is_header(first_line: str) -> bool:
    """Whether a file's first line is this format's heading."""
    names = [name.strip() for name in first_line.split(",")]
    return names[:1] == ["tasks"] and ("processes" in names or "threads" in names)


def read(lines: Iterable[str]) -> tuple[list[Series], list[Unread]]:
    """Series per column and number of tasks, by heading. `linear` is the tool's ideal, not a result."""
    rows = csv.reader(lines)
    heading = [name.strip() for name in next(rows)]
    series: list[Series] = []
    unread: list[Unread] = []
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            figures = dict(zip(heading, (float(cell) for cell in row), strict=True))
        except ValueError:
            reason = f"{len(row)} cells where the heading has {len(heading)}, or no number in one"
            unread.append(Unread(number, ",".join(row)[:200], reason))
            continue
        tasks = int(figures["tasks"])
        if tasks == 0:
            continue  # the tool's first row is the origin of its chart, nothing ran
        for name in heading:
            if name in ("tasks", "linear") or name not in COLUMNS:
                continue
            idle = name.endswith("_idle")
            metric = f"will-it-scale.{name}@{tasks}"
            value = Value(figures[name], n=1)
            series.append(Series(metric, value, "%" if idle else "ops/s", "", f"{tasks} tasks", number))
    return series, unread
