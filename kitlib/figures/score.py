"""The honest score as a picture: every layout's predicted and measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import plotly.graph_objects as go

from kitlib.figures.style import GREY, INK, badge, figure, safe, series
from kitlib.score import DECIDED_PCT, ModeScore, Point, Score

COLUMNS = 2
PANEL_PX = 350
HEADING_CHARS = 66


def score_scatter(score: Score, *, title: str = "") -> go.Figure:
    """Predicted against measured cost of every layout, one panel a struct and mode. Measured (badge).

    Bars are two standard errors of the measured mean; the dotted line is where both agree; squares are the struct as it
    is and as patched. A panel's heading says the rank correlation, or that the layouts hardly differ; the figure's note
    says whether the orders are held out.
    """
    told = "held-out orders" if score.held_out else "orders seen while the model was made"
    rows = -(-len(score.modes) // COLUMNS)
    fig = figure(
        title or f"Model against measurement on {score.machine}",
        "measured",
        f"Random orders, seed {score.seed}: {told}; squares: the struct as it is, and as patched. "
        + ". ".join(heading(m) for m in score.modes)
        + ".",
        height=100 + PANEL_PX * max(rows, 1),
        min_width=760,
    )
    for i, mode in enumerate(score.modes):
        _panel(fig, i, rows, mode)
    fig.update_layout(legend={"orientation": "h", "x": 0, "y": 0.01, "yanchor": "bottom", "yref": "container"})
    return badge(fig, "measured", told, above=34)


def heading(mode: ModeScore) -> str:
    """``file, shared, 2 threads (near): Spearman 0.95, sign right in 98.7 % of 1,200 pairs over 1 % apart; …``."""
    name = f"{mode.struct}, {mode.mode}" + (f", {mode.threads} threads" if mode.threads > 1 else "")
    name += f", {mode.state}" if mode.state else ""
    if mode.spearman is None:
        level = sum(p.measured_ns for p in mode.points) / len(mode.points)
        share = 100 * mode.spread_ns / level
        noise = 100 * mode.noise_ns / level
        return (
            f"{name}: nothing to rank: all are the same to the model, and the measured spread is {share:.2g} % of "
            f"{level:.3g} ns (noise {noise:.2g} %)"
        )
    parts = [f"{name}: Spearman {mode.spearman:.3f}"]
    if mode.sign_right is not None:
        parts.append(
            f"sign right in {100 * mode.sign_right:.1f} % of {mode.decided:,} pairs over {DECIDED_PCT:g} % apart"
        )
    if mode.certain_right is not None:
        parts.append(f"and in {100 * mode.certain_right:.1f} % of all {mode.certain:,} that are certain")
    return ", ".join(parts)


def _panel(fig: go.Figure, index: int, rows: int, mode: ModeScore) -> None:
    axis = "" if index == 0 else str(index + 1)
    row, column = divmod(index, COLUMNS)
    width, height = 1 / COLUMNS, 1 / rows
    x_domain = [column * width + 0.04, (column + 1) * width - 0.03]
    y_domain = [max(1 - (row + 1) * height + 0.22 * height, 0), 1 - row * height - 0.16 * height]
    _points(fig, mode.points, axis)
    _agreement(fig, mode.points, axis)
    fig.update_layout(
        {
            f"xaxis{axis}": {"domain": x_domain, "anchor": f"y{axis}", "title": {"text": "model, ns per run"}},
            f"yaxis{axis}": {"domain": y_domain, "anchor": f"x{axis}", "title": {"text": "measured, ns per run"}},
        }
    )
    _heading(fig, mode, x_domain[0], y_domain[1])


def _points(fig: go.Figure, points: Sequence[Point], axis: str) -> None:
    for named in (False, True):
        chosen = [p for p in points if p.label.startswith("random") != named]
        look = series(1 if named else 0)
        fig.add_scatter(
            x=[p.predicted_ns for p in chosen],
            y=[p.measured_ns for p in chosen],
            mode="markers",
            name="the struct as it is, and as patched" if named else "a random order",
            showlegend=not axis,
            error_y={
                "type": "data",
                "array": [2 * p.error_ns for p in chosen],
                "thickness": 1,
                "width": 0,
                "color": GREY,
            },
            marker={
                "symbol": look["symbol"],
                "color": look["color"],
                "size": 12 if named else 7,
                "line": {"color": INK, "width": 1},
            },
            text=[safe(p.label) for p in chosen],
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            hovertemplate="%{text}: model %{x:.2f}, measured %{y:.2f} ns<extra></extra>",
        )


def _agreement(fig: go.Figure, points: Sequence[Point], axis: str) -> None:
    """The line on which model and measurement agree, as far as both reach."""
    both = [p.predicted_ns for p in points], [p.measured_ns for p in points]
    low, high = max(min(both[0]), min(both[1])), min(max(both[0]), max(both[1]))
    if low < high:
        fig.add_scatter(
            x=[low, high],
            y=[low, high],
            mode="lines",
            name="where both agree",
            showlegend=not axis,
            line={"color": GREY, "dash": "dot"},
            hoverinfo="skip",
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
        )


def _heading(fig: go.Figure, mode: ModeScore, x: float, y: float) -> None:
    first, _, rest = heading(mode).partition(": ")
    rest = "<br>".join(safe(line) for line in wrap(rest, HEADING_CHARS))
    fig.add_annotation(
        text=f"<b>{safe(first)}</b><br>{rest}",
        x=x,
        y=y,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        align="left",
        font={"size": 12},
    )
