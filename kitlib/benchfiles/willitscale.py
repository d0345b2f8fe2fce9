"""will-it-scale CSV: ``tasks,processes,processes_idle,threads,threads_idle,linear``."""

from __future__ import annotations

from collections.abc import Sequence

from kitlib.benchfiles.table import cells_of, heading_of
from kitlib.series import Series, Unread, Value, usable

COLUMNS = ("tasks", "processes", "processes_idle", "threads", "threads_idle", "linear")


def is_header(first_line: str) -> bool:
    """Whether a file's first line is this format's heading."""
    names = [name.strip() for name in first_line.split(",")]
    return names[:1] == ["tasks"] and ("processes" in names or "threads" in names)


def read(lines: Sequence[str], source: str) -> tuple[list[Series], list[Unread]]:
    """Series per column and number of tasks, by heading. `linear` is the tool's ideal, not a result.

    Raises `SourceError` if a column is there twice or a cell is too long.
    """
    rows = cells_of(lines, ",", source)
    heading = heading_of(next(rows)[1], source)
    series: list[Series] = []
    unread: list[Unread] = []
    for number, row in rows:
        try:
            figures = dict(zip(heading, (float(cell) for cell in row), strict=True))
        except ValueError:
            figures = {}
        if not figures or not all(map(usable, figures.values())) or figures["tasks"] != int(figures["tasks"]):
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
