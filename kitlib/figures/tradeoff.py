"""The trade-off map with controls that work on a page without a kernel: a machine menu, sliders for CPUs and work.

Plotly's controls know nothing of each other, so each sets properties of its own: the menu what is ``visible``,
the slider for work what is opaque and answers the pointer, the slider for CPUs the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from kitlib.access import Profile
from kitlib.errors import DataError
from kitlib.figures.cost import trade_off_map
from kitlib.figures.style import alt, meta
from kitlib.machine import load_machine
from kitlib.measure import Measurement
from kitlib.model import Layout
from kitlib.tradeoff import TradeOff, trade_offs

MACHINES = ("zen-5-vm", "cascade-lake-8269cy", "zen-3-7r13", "kunpeng-920")
CPUS = (2, 4, 8, 24, 64, 128)
WORK_NS = (15.0, 60.0, 500.0)
POINTS = 21
PARTS = 3
"""Traces of one map: the surface, the break-even line, the workload."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """Maps by machine, then work, then CPUs; ``start`` is the number of the work and of the CPUs shown first."""

    machines: tuple[str, ...]
    works: tuple[float, ...]
    cpus: tuple[int, ...]
    maps: tuple[tuple[tuple[TradeOff, ...], ...], ...]
    start: tuple[int, int]

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Machine and work of each group of traces, in the order in which they are drawn."""
        return [(m, w) for m in range(len(self.machines)) for w in range(len(self.works))]


def trade_off_controls(
    before: Layout,
    after: Layout,
    profile: Profile,
    *,
    machines: Sequence[str] = MACHINES,
    cpus: Sequence[int] = CPUS,
    works: Sequence[float] = WORK_NS,
    measured: Measurement | None = None,
) -> go.Figure:
    """`trade_off_map` for several machines (a menu), numbers of CPUs and ns of work between two path runs (sliders).

    Share of shared and of cold objects are the axes. The sliders start at the workload's own values, or the
    nearest; with `measured`, whose points are drawn on the first machine's maps, CPUs start at its threads.
    Raises `DataError` without a machine, a CPU count or an amount of work.
    """
    if not machines or not cpus or not works:
        raise DataError("a trade-off map needs at least one machine, one number of CPUs and one amount of work")
    grid = _grid(before, after, profile, machines, cpus, works, measured)
    fig = trade_off_map(grid.maps[0][grid.start[0]][grid.start[1]], machine="", measured=measured)
    common = [t for t in fig.data if t.name == "measured"]
    fig.data = ()
    for machine, work in grid.groups:
        for trace, look in zip(
            _traces(grid.maps[machine][work][grid.start[1]]), _looks(work == grid.start[0]), strict=True
        ):
            trace.update(look)
            trace.visible = machine == 0
            fig.add_trace(trace)
    fig.add_traces(common)
    fig.update_layout(
        title_text="When does the change pay?",
        height=700,
        margin={"t": 110, "b": 230},
        legend={"y": 0.0},
        updatemenus=[_menu(grid, len(common))],
        sliders=[_cpu_slider(grid), _work_slider(grid)],
    )
    fig.layout.meta = {"kit": {**meta(fig), "point": _point(grid)}}
    return alt(fig, f"Map of the change in ns a run for {', '.join(machines)}, {cpus[0]} to {cpus[-1]} CPUs.")


def _grid(
    before: Layout,
    after: Layout,
    profile: Profile,
    machines: Sequence[str],
    cpus: Sequence[int],
    works: Sequence[float],
    measured: Measurement | None,
) -> _Grid:
    shared = measured.main("shared") if measured else None
    want = shared.spec.threads if shared else profile.workload.cpus
    start = (
        min(range(len(works)), key=lambda i: abs(works[i] - profile.workload.work_ns)),
        min(range(len(cpus)), key=lambda i: abs(cpus[i] - want)),
    )
    maps = tuple(
        trade_offs(before, after, profile, load_machine(name), cpus=cpus, works=works, points=POINTS)
        for name in machines
    )
    return _Grid(tuple(machines), tuple(works), tuple(cpus), maps, start)


def _traces(result: TradeOff) -> list[Any]:
    """Heat map, break-even line and workload of one map; always `PARTS`, so that traces can be counted."""
    found = {t.name or t.type: t for t in trade_off_map(result).data}
    line = found.get("break-even") or go.Scatter(x=[], y=[], mode="lines", name="break-even")
    return [found["heatmap"], line, found["your workload"]]


def _looks(chosen: bool) -> list[dict[str, Any]]:
    """How the traces of a group look whose amount of work is `chosen`, or is not."""
    pointer = "all" if chosen else "skip"
    look = {"opacity": int(chosen), "hoverinfo": pointer}
    return [look | {"showscale": chosen}, look | {"showlegend": chosen}, look | {"showlegend": chosen}]


def _cpu_slider(grid: _Grid) -> dict[str, Any]:
    held = list(range(PARTS * len(grid.groups)))
    steps = [
        {"label": str(n), "method": "restyle", "args": [_values([grid.maps[m][w][i] for m, w in grid.groups]), held]}
        for i, n in enumerate(grid.cpus)
    ]
    return {
        "active": grid.start[1],
        "y": -0.14,
        "currentvalue": {"prefix": "CPUs that share an object: "},
        "steps": steps,
    }


def _work_slider(grid: _Grid) -> dict[str, Any]:
    steps = []
    for i, work in enumerate(grid.works):
        looks = [look for _, w in grid.groups for look in _looks(w == i)]
        keys = ("opacity", "hoverinfo", "showscale", "showlegend")
        args = {key: [look.get(key) for look in looks] for key in keys}
        steps.append({"label": f"{work:g}", "method": "restyle", "args": [args, list(range(len(looks)))]})
    return {
        "active": grid.start[0],
        "y": -0.38,
        "currentvalue": {"prefix": "Other work between two path runs, ns: "},
        "steps": steps,
    }


def _point(grid: _Grid) -> dict[str, Any]:
    """What a page needs to let the reader move the workload: which traces are maps and which the star on each."""
    shared, cold = grid.maps[0][0][0].point
    groups = range(len(grid.groups))
    return {
        "start": [100 * shared, 100 * cold],
        "maps": [PARTS * g for g in groups],
        "stars": [PARTS * g + 2 for g in groups],
        "labels": ["Your path runs on shared objects, %: ", "Your other runs whose object is cold, %: "],
    }


def _values(results: Sequence[TradeOff]) -> dict[str, list[Any]]:
    """What a step of the CPU slider sets, one entry a trace: z of surfaces, x and y of lines, text of points."""
    found: dict[str, list[Any]] = {key: [] for key in ("z", "x", "y", "text", "zmin", "zmax")}
    for result in results:
        heat, line, point = _traces(result)
        row = {
            "z": [heat.z, None, None],
            "x": [list(heat.x), list(line.x), list(point.x)],
            "y": [list(heat.y), list(line.y), list(point.y)],
            "text": [None, None, list(point.text)],
            "zmin": [heat.zmin, None, None],
            "zmax": [heat.zmax, None, None],
        }
        for key, values in row.items():
            found[key] += values
    return found


def _menu(grid: _Grid, common: int) -> dict[str, Any]:
    """The machine menu; measured points are shown with the first machine only, on which they were measured."""
    buttons = []
    for i, name in enumerate(grid.machines):
        visible = [m == i for m, _ in grid.groups for _ in range(PARTS)] + [i == 0] * common
        buttons.append({"label": name, "method": "restyle", "args": [{"visible": visible}]})
    return {"x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "buttons": buttons}
