"""Which of a report's rows matter to a reviewer, and why each of the others is put aside.

A report of 170 rows has perhaps ten that bear on the question. The rest repeat them, count one CPU of many,
or say how the machine was used. No row is dropped: each carries the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kitlib.series import Table

if TYPE_CHECKING:
    from kitlib.verdict import Judged

FEW_ROWS = 12  # tables no longer than this are shown whole
MANY_UNKNOWN = 30  # more rows of unknown direction than this tell nothing one by one
PROFILE_POINTS = 1.0  # a function's own share must move by this many points of all cycles
_SELF = "perf-profile.self."
_ONE_CPU = re.compile(r"\.(?:CPU|node|cpu)\d{1,5}\.")

DERIVED = "derived from the rows above"
TOTAL = "a total of the rows above"
UNDECIDED = "undecided"
NO_DIFFERENCE = "no difference shown"
ONE_CPU = "one CPU or node of many; no machine-wide count is given"
USAGE = "how the machine was used; real, but neither way is better"
OTHER_FORM = "the same counter in another form"
SMALL_SHARE = f"moved by less than {PROFILE_POINTS:g} point of all cycles"
INCLUDED = "cycles of callees too; the functions' own (self) rows count each cycle once"
UNKNOWN_DIRECTION = "direction unknown, one of many"


def hide_reasons(table: Table, rows: Sequence[Judged]) -> list[str | None]:
    """For each row the reason to hide it, or None for those that matter."""
    prefix = (table.headline or "").partition(".")[0] or table.testcase
    unknown = sum(1 for row in rows if row.meaning.direction == "unknown")
    shown_counters: set[str] = set()
    own_rows = any(row.row.metric.startswith(_SELF) for row in rows)
    reasons: list[str | None] = []
    for row in rows:
        reason = _always(table, row, prefix)
        if reason == "?":
            reason = _reason(row, len(rows), unknown, shown_counters, own_rows)
        reasons.append(reason)
    return reasons


def _always(table: Table, row: Judged, prefix: str) -> str | None:
    """Reasons that hold in any table; "?" if none does."""
    metric = row.row.metric
    if row.row.total:
        return TOTAL
    if metric == "System Benchmarks Index Score" and len(table.rows) > 1:
        return DERIVED
    if metric == table.headline:
        return None
    if prefix and metric.startswith(prefix + ".") and ".time." not in metric and not _ONE_CPU.search(metric):
        return None
    return None if len(table.rows) <= FEW_ROWS else "?"


def _reason(row: Judged, count: int, unknown: int, shown: set[str], own: bool) -> str | None:
    metric = row.row.metric
    if _ONE_CPU.search(metric):
        return ONE_CPU
    if row.verdict == "undecided":
        return UNDECIDED
    if row.verdict == "no difference":
        return NO_DIFFERENCE
    if metric.startswith("perf-profile."):
        return _profile_reason(row, own)
    if row.meaning.direction == "neither":
        return USAGE
    if row.meaning.direction == "unknown":
        return UNKNOWN_DIRECTION if unknown > MANY_UNKNOWN else None
    if metric.startswith("perf-stat."):
        counter = metric.rpartition(".")[2]
        if counter in shown:
            return OTHER_FORM
        shown.add(counter)
    return None


def _profile_reason(row: Judged, own: bool) -> str | None:
    """Own shares count each cycle once; shares with callees repeat them and matter only without the former."""
    if own and not row.row.metric.startswith(_SELF):
        return INCLUDED
    change = row.row.change_abs
    return SMALL_SHARE if change is None or abs(change) < PROFILE_POINTS else None
