"""Figures of the cost model: cost by path, scaling over CPUs, the trade-off map, what it all hangs on.

Model figures say so on their badge; measured points are drawn as outlined diamonds wherever they stand
beside a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from kitlib.access import Profile
from kitlib.cost import Cost, Model
from kitlib.figures.style import ACCENT, AFTER, BEFORE, GREY, INK, figure, safe, series
from kitlib.machine import Machine
from kitlib.measure import Measurement
from kitlib.model import Layout
from kitlib.published import RUNS, VARIANTS, PublishedRow
from kitlib.tradeoff import Doubt, TradeOff

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CPU_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MODES = (("hot_ns", "hot"), ("cold_ns", "cold"), ("shared_ns", "shared"))


def cost_by_path(before: Cost, after: Cost | None = None, *, title: str = "") -> go.Figure:
    """Predicted ns per run of every path, by mode, before and after (one panel a mode). Model (badge)."""
    sides = [("before", before, BEFORE, ""), *([("after", after, AFTER, "/")] if after else [])]
    told = f"{len(before.paths)} paths; shared: {before.shared_ns:.0f}" + (
        f" → {after.shared_ns:.0f} ns" if after else " ns"
    )
    fig = figure(
        f"{title or 'Cost by path'}; {100 * before.shared_part:.3g} % of runs on objects shared by {before.cpus} CPUs",
        "model",
        f"Bars of predicted ns per run. {told}.",
        height=150 + 46 * len(before.paths),
        min_width=760,
    )
    for panel, (field, label) in enumerate(MODES, 1):
        axis = "" if panel == 1 else str(panel)
        for name, side, color, pattern in sides:
            fig.add_bar(
                y=[safe(p.name) for p in side.paths],
                x=[getattr(p, field) for p in side.paths],
                orientation="h",
                name=name,
                legendgroup=name,
                showlegend=panel == 1,
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                marker={"color": color, "pattern": {"shape": pattern, "fgcolor": INK, "fillmode": "overlay"}},
                customdata=[[p.lines, p.share] for p in side.paths],
                hovertemplate=f"%{{y}}, {label}, {name}: %{{x:.1f}} ns<br>%{{customdata[0]:.1f}} lines a run, "
                "%{customdata[1]:.0%} of the runs<extra></extra>",
            )
        left = (panel - 1) / 3
        fig.update_layout(
            {
                f"xaxis{axis}": {
                    "domain": [left + 0.02, left + 0.3],
                    "anchor": f"y{axis}",
                    "title": {"text": f"{label}, ns per run"},
                    "rangemode": "tozero",
                },
                f"yaxis{axis}": {"anchor": f"x{axis}", "autorange": "reversed", "showticklabels": panel == 1},
            }
        )
    fig.update_layout(barmode="group", legend={"y": -0.3}, margin={"b": 90})
    return fig


def scaling(
    before: Layout, after: Layout | None, profile: Profile, machine: Machine, *, cpus: Sequence[int] = CPU_STEPS
) -> go.Figure:
    """Predicted ns per run over the number of CPUs that share the object. Model (badge).

    Beyond the machine's own number of CPUs the line is drawn on, and the axis says where that is.
    """
    import numpy as np

    n = np.asarray(cpus, dtype=float)
    sides = [("before", before, BEFORE, "solid"), *([("after", after, AFTER, "dash")] if after else [])]
    costs = [
        np.asarray(Model(side, profile, machine).shared(n, profile.workload.work_ns).ns) for _, side, _, _ in sides
    ]
    words = f"From {costs[0][0]:.1f} ns with {cpus[0]} CPU to {costs[0][-1]:.0f} ns with {cpus[-1]}"
    if after:
        best = float(100 * (costs[1] / costs[0] - 1).min())
        words += f"; the change is worth up to {best:+.1f} %"
    fig = figure(f"All runs on one shared object, {machine.name}", "model", f"{words}.", min_width=520)
    for (name, _, color, dash), ns in zip(sides, costs, strict=True):
        fig.add_scatter(
            x=n,
            y=ns,
            name=name,
            mode="lines+markers",
            line={"color": color, "dash": dash, "width": 3},
            marker={"size": 8},
            hovertemplate=f"{name}, %{{x}} CPUs: %{{y:.1f}} ns<extra></extra>",
        )
    _reach_line(fig, machine, cpus, costs)
    fig.update_xaxes(
        type="log",
        dtick=0.30103,
        title="CPUs that share one object",
        tickvals=list(cpus),
        ticktext=[str(c) for c in cpus],
    )
    fig.update_yaxes(type="log", title="ns per path run")
    return fig


def _reach_line(fig: go.Figure, machine: Machine, cpus: Sequence[int], costs: Sequence[Floats]) -> None:
    """Where the machine has no more CPUs."""
    if machine.max_cpus < max(cpus):
        reach = [float(min(map(min, costs))), float(max(map(max, costs)))]
        fig.add_scatter(
            x=[machine.max_cpus] * 2,
            y=reach,
            mode="lines",
            name=f"the machine has {machine.max_cpus} CPUs",
            line={"color": GREY, "dash": "dot"},
            hoverinfo="skip",
        )


def trade_off_map(result: TradeOff, *, machine: str = "", measured: Measurement | None = None) -> go.Figure:
    """The change of the mean cost over shared share × cold share, its break-even line and the reader's workload.

    `measured` puts this machine's own deltas at the corners they belong to: everything shared, nothing shared
    and hot, nothing shared and cold. Model (badge), measured points outlined.
    """
    import numpy as np

    reach = float(max(abs(result.delta_ns).max(), 0.01))
    where = f" on {machine}" if machine else ""
    pays = 100 * float(np.mean(result.delta_ns < 0))
    fig = figure(
        f"When does it pay? {result.cpus} CPUs{where}",
        "model",
        f"Map of the change in ns a run; the change pays on {pays:.0f} % of it. "
        f"At the given workload it is {result.point_ns:+.2f} ns.",
        height=520,
        min_width=560,
    )
    fig.add_heatmap(
        x=100 * result.shared,
        y=100 * result.cold,
        z=_three_digits(result.delta_ns).tolist(),
        zmid=0,
        zmin=-reach,
        zmax=reach,
        colorscale=[[0, "#2fae85"], [0.5, "#f4f4f4"], [1, "#d55e00"]],
        colorbar={"title": {"text": "ns a run<br>(below 0: pays)"}, "thickness": 14},
        hovertemplate="%{x:.0f} % shared, %{y:.0f} % cold: %{z:+.2f} ns<extra></extra>",
    )
    _break_even_line(fig, result)
    _workload_star(fig, result)
    if measured is not None:
        _measured_corners(fig, result, measured)
    fig.update_xaxes(title="path runs on shared objects, %", range=[-3, 103])
    fig.update_yaxes(title="other runs whose object is cold, %", range=[-5, 105])
    return fig


def _break_even_line(fig: go.Figure, result: TradeOff) -> None:
    inside = result.break_even > 0
    if inside.any():
        fig.add_scatter(
            x=100 * result.break_even[inside],
            y=100 * result.cold[inside],
            mode="lines",
            name="break-even",
            line={"color": INK, "width": 3},
            hovertemplate="break-even: %{x:.2f} % shared at %{y:.0f} % cold<extra></extra>",
        )


def _workload_star(fig: go.Figure, result: TradeOff) -> None:
    fig.add_scatter(
        x=[100 * result.point[0]],
        y=[100 * result.point[1]],
        mode="markers+text",
        name="your workload",
        text=[f"your workload: {result.point_ns:+.2f} ns"],
        textposition="top right",
        textfont={"color": INK},
        marker={"symbol": "star", "size": 18, "color": ACCENT, "line": {"color": INK, "width": 1}},
        hovertemplate="your workload: %{x:.0f} % shared, %{y:.0f} % cold<extra></extra>",
    )


def _three_digits(values: Floats) -> Floats:
    """Rounded to three digits: no model is better, and the page that carries many maps is smaller."""
    import numpy as np

    size = np.floor(np.log10(np.maximum(np.abs(values), 1e-3)))
    return np.asarray(np.round(values / 10.0 ** (size - 2)) * 10.0 ** (size - 2)).round(5)


def _measured_corners(fig: go.Figure, result: TradeOff, measured: Measurement) -> None:
    corners = {"shared": (100.0, 0.0, -1), "unshared-hot": (0.0, 0.0, 0), "unshared-cold": (0.0, 100.0, 0)}
    x, y, text, hover, places = [], [], [], [], []
    for mode, (at_x, at_y, column) in corners.items():
        found = next((r for r in measured.results if r.spec.mode == mode and r.main and r.judged), None)
        if found is None or found.judged is None:
            continue
        before, after = (sum(s) / len(s) for s in (found.before, found.after))
        model = float(result.delta_ns[-1 if mode == "unshared-cold" else 0, column])
        x.append(at_x)
        y.append(at_y)
        cpus = f" ({found.spec.threads} CPUs)" if found.spec.shared else ""  # whatever the map beside it is for
        text.append(f"{after - before:+.2f} ns, {found.judged.verdict}{cpus}")
        hover.append(
            f"measured, {found.spec.label}: {before:.2f} → {after:.2f} ns; "
            f"model here {model:+.2f} ns ({result.cpus} CPUs)"
        )
        places.append("top left" if column else ("bottom right" if mode == "unshared-cold" else "middle right"))
    fig.add_scatter(
        x=x,
        y=y,
        text=text,
        mode="markers+text",
        textposition=places,
        textfont={"color": INK},
        name="measured",
        marker={"symbol": "diamond", "size": 14, "color": "#fbdfb4", "line": {"color": INK, "width": 2}},
        hovertext=hover,
        hoverinfo="text",
    )


def sensitivity_bars(doubts: Sequence[Doubt], *, base_ns: float, most: int = 12) -> go.Figure:
    """How far the change at the given workload moves as each assumed number runs over its range. Model (badge)."""
    shown = list(doubts[:most])
    largest = f"{shown[0].about} moves it most" if shown else "nothing moves it"
    fig = figure(
        "What the prediction hangs on",
        "model",
        f"The change is {base_ns:+.2f} ns a run; {largest}.",
        height=130 + 32 * len(shown),
        min_width=640,
    )
    for name, field, color, pattern in (
        ("at its low value", "delta_low_ns", BEFORE, ""),
        ("at its high value", "delta_high_ns", AFTER, "/"),
    ):
        fig.add_bar(
            y=[safe(d.name) for d in shown],
            x=[getattr(d, field) - base_ns for d in shown],
            base=base_ns,
            orientation="h",
            name=name,
            marker={"color": color, "pattern": {"shape": pattern, "fgcolor": INK, "fillmode": "overlay"}},
            customdata=[[safe(d.about), d.low, d.high, d.certainty, getattr(d, field)] for d in shown],
            hovertemplate="%{customdata[0]}: %{customdata[1]:.3g} to %{customdata[2]:.3g} (%{customdata[3]})<br>"
            f"{name}: %{{customdata[4]:+.2f}} ns<extra></extra>",
        )
    fig.add_vline(x=base_ns, line={"color": GREY, "width": 1})
    fig.update_layout(barmode="overlay")
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(title="change, ns a run (below 0: pays)")
    return fig


def published_bars(rows: Sequence[PublishedRow]) -> go.Figure:
    """The measured gain on three machines beside four variants of the model. Model (badge), measured outlined."""
    parts = [
        f"{r.label}: measured {r.measured_pct:+.0f} %, model {r.predicted_pct[0]:+.0f} to {max(r.predicted_pct):+.0f} %"
        for r in rows
    ]
    fig = figure("Published runs beside the model", "model", "; ".join(parts) + ".", height=460, min_width=680)
    labels = [safe(r.label) for r in rows]
    units = {label: source for label, _, _, _, _, source in RUNS}
    for i, (name, _, _) in enumerate(VARIANTS):
        look = series(i)
        fig.add_bar(
            x=labels,
            y=[r.predicted_pct[i] for r in rows],
            name=name,
            marker={
                "color": look["color"],
                "pattern": {"shape": look["pattern"], "fgcolor": INK, "fillmode": "overlay"},
            },
            hovertemplate=f"%{{x}}, {name}: %{{y:+.1f}} %<extra></extra>",
        )
    fig.add_scatter(
        x=labels,
        y=[r.measured_pct for r in rows],
        mode="markers",
        name="measured",
        marker={"symbol": "diamond", "size": 14, "color": "#fbdfb4", "line": {"color": INK, "width": 2}},
        customdata=[units[r.label] for r in rows],
        hovertemplate="%{x}, measured: %{y:+.1f} % (%{customdata})<extra></extra>",
    )
    for label, row in zip(labels, rows, strict=True):  # on a ground of their own: they stand in front of the bars
        fig.add_annotation(
            x=label,
            y=row.measured_pct,
            text=f"{row.measured_pct:+.1f} %",
            yshift=20,
            showarrow=False,
            font={"color": INK},
            bgcolor="rgba(251,223,180,0.9)",
        )
    fig.update_layout(barmode="group")
    fig.update_yaxes(title="change of throughput, %", zeroline=True)
    return fig


def retry_lines(
    variants: Mapping[str, Profile], layout: Layout, machine: Machine, *, cpus: Sequence[int] = CPU_STEPS
) -> go.Figure:
    """A compare-exchange loop against a fetch-and-add: ns per run over CPUs, one line a profile. Model (badge)."""
    import numpy as np

    n = np.asarray(cpus, dtype=float)
    fig = figure(
        f"Compare-exchange loop or fetch-and-add, {machine.name}",
        "model",
        "Predicted ns per run over CPUs.",
        min_width=520,
    )
    for i, (name, profile) in enumerate(variants.items()):
        found, look = Model(layout, profile, machine).shared(n, profile.workload.work_ns), series(i)
        fig.add_scatter(
            x=n,
            y=found.ns,
            name=safe(name),
            mode="lines+markers",
            line={"color": look["color"], "dash": look["dash"], "width": 3},
            marker={"symbol": look["symbol"], "size": 8},
            customdata=found.retries,
            hovertemplate="%{x} CPUs: %{y:.1f} ns, %{customdata:.2f} retries a run<extra></extra>",
        )
    fig.update_xaxes(
        type="log", title="CPUs that share one object", tickvals=list(cpus), ticktext=[str(c) for c in cpus]
    )
    fig.update_yaxes(type="log", title="ns per path run")
    return fig
