"""The trade-off map with controls that work on a page without a kernel: a machine menu and a slider for CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from kitlib.access import Profile
from kitlib.errors import DataError
from kitlib.figures.cost import trade_off_map
from kitlib.figures.style import alt
from kitlib.machine import load_machine
from kitlib.measure import Measurement
from kitlib.model import Layout
from kitlib.tradeoff import TradeOff, trade_off

MACHINES = ("zen-5-vm", "cascade-lake-8269cy", "zen-3-7r13", "kunpeng-920")
CPUS = (2, 4, 8, 16, 24, 64, 128)
POINTS = 26


def trade_off_controls(
    before: Layout,
    after: Layout,
    profile: Profile,
    *,
    machines: Sequence[str] = MACHINES,
    cpus: Sequence[int] = CPUS,
    measured: Measurement | None = None,
) -> go.Figure:
    """`trade_off_map` for several machines (a menu) and numbers of CPUs (a slider), all computed beforehand.

    Share of shared and of cold objects are the axes; work between runs is the profile's. The slider starts at
    the workload's own number of CPUs, or the nearest. Raises `DataError` without a machine or CPU count.
    """
    if not machines or not cpus:
        raise DataError("a trade-off map needs at least one machine and one number of CPUs")
    start = min(range(len(cpus)), key=lambda i: abs(cpus[i] - profile.workload.cpus))
    maps = {
        name: [trade_off(before, after, profile, load_machine(name), cpus=n, points=POINTS) for n in cpus]
        for name in machines
    }
    fig = trade_off_map(maps[machines[0]][start], machine="", measured=measured)
    common = [t for t in fig.data if t.name == "measured here"]
    fig.data = ()
    for index, name in enumerate(machines):
        for trace in _traces(maps[name][start]):
            trace.visible = index == 0
            fig.add_trace(trace)
    each = len(fig.data) // len(machines)
    for trace in common:
        fig.add_trace(trace)
    held = list(range(each * len(machines)))
    fig.update_layout(
        title_text="When does the change pay?",
        height=620,
        margin={"t": 110, "b": 150},
        legend={"y": -0.12},
        updatemenus=[_menu(machines, each, len(common))],
        sliders=[
            {
                "active": start,
                "y": -0.2,
                "currentvalue": {"prefix": "CPUs that share an object: "},
                "steps": [
                    {"label": str(n), "method": "restyle", "args": [_values([maps[m][i] for m in machines]), held]}
                    for i, n in enumerate(cpus)
                ],
            }
        ],
    )
    return alt(fig, f"Map of the change in ns a run for {', '.join(machines)} and {cpus[0]} to {cpus[-1]} CPUs.")


def _traces(result: TradeOff) -> list[Any]:
    """Heat map, break-even line and workload of one map; always three, so that traces can be counted."""
    one = trade_off_map(result)
    found = {t.name or t.type: t for t in one.data}
    line = found.get("break-even") or go.Scatter(x=[], y=[], mode="lines", name="break-even")
    return [found["heatmap"], line, found["your workload"]]


def _values(results: Sequence[TradeOff]) -> dict[str, list[Any]]:
    """What a slider step sets, one entry a trace: z of the heat maps, x and y of the lines, text of the points."""
    z: list[Any] = []
    x: list[Any] = []
    y: list[Any] = []
    text: list[Any] = []
    low: list[Any] = []
    for result in results:
        heat, line, point = _traces(result)
        z += [heat.z, None, None]
        x += [list(heat.x), list(line.x), list(point.x)]
        y += [list(heat.y), list(line.y), list(point.y)]
        text += [None, None, list(point.text)]
        low += [heat.zmin, None, None]
    high = [None if v is None else -v for v in low]
    return {"z": z, "x": x, "y": y, "text": text, "zmin": low, "zmax": high}


def _menu(machines: Sequence[str], each: int, common: int) -> dict[str, Any]:
    total = each * len(machines)
    return {
        "x": 0,
        "y": 1.02,
        "xanchor": "left",
        "yanchor": "bottom",
        "buttons": [
            {
                "label": name,
                "method": "restyle",
                "args": [{"visible": [i * each <= k < (i + 1) * each for k in range(total)] + [True] * common}],
            }
            for i, name in enumerate(machines)
        ],
    }
