"""Predicted cost of every code path as rows of an explorer's table, quick enough to follow a slider. *Model*."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kitlib.access import Profile
from kitlib.cost import Cost, cost
from kitlib.errors import KitError
from kitlib.machine import Machine
from kitlib.model import Layout

Row = dict[str, str]
MEAN = "mean of all runs"


def cost_rows(profile: Profile, machine: Machine, before: Layout) -> Callable[[Layout], Sequence[Row]]:
    """A function from a layout to its rows, for ``explore(…, extra=…)``: lines and ns per run of each path, and the
    change against `before` while an object is shared and while it is cold.

    A layout in which the profile has no place (a member was removed) gives one row that says why.
    Raises `NotFound` if that is so of `before`.
    """
    base = cost(before, profile, machine)

    def rows(layout: Layout) -> Sequence[Row]:
        try:
            return _rows(cost(layout, profile, machine), base)
        except KitError as error:
            return [{"path": "no prediction", "why": str(error)}]

    return rows


def _rows(now: Cost, base: Cost) -> list[Row]:
    was = {p.name: p for p in base.paths}
    found = [
        {
            "path": p.name,
            "lines": f"{p.lines:.1f}",
            "cold, ns": f"{p.cold_ns:.0f}",
            "change cold": change(was[p.name].cold_ns, p.cold_ns),
            f"shared by {now.cpus}, ns": f"{p.shared_ns:.0f}",
            "change shared": change(was[p.name].shared_ns, p.shared_ns),
        }
        for p in now.paths
    ]
    mean = {
        "path": MEAN,
        "lines": f"{sum(p.lines * p.share for p in now.paths):.1f}",
        "cold, ns": f"{now.cold_ns:.0f}",
        "change cold": change(base.cold_ns, now.cold_ns),
        f"shared by {now.cpus}, ns": f"{now.shared_ns:.0f}",
        "change shared": change(base.shared_ns, now.shared_ns),
    }
    return [*found, mean]


def change(before: float, after: float) -> str:
    """Change in whole %, empty where it rounds to none.

    >>> change(100, 76), change(100, 100.2)
    ('-24 %', '')
    """
    percent = round(100 * (after / before - 1)) if before else 0
    return f"{percent:+d} %" if percent else ""
