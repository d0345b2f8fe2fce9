"""The measured deltas of a layout change beside the map of that very change."""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go

from kitlib.benchcases import members_of
from kitlib.benchtext import change
from kitlib.errors import DataError
from kitlib.figures.bench import delta_forest
from kitlib.figures.layout import before_after
from kitlib.figures.style import alt, badge, meta
from kitlib.model import Layout
from kitlib.verdict import JudgedTable

MAP_SHARE = 0.55
FOREST_FROM = 0.77
MOST_LABELLED = 20
NAME_CHARS = 28
MIN_WIDTH = 1040
"""Narrower windows scroll the figure sideways, in CSS pixels: members of 4 bytes lose their names below that."""


def evidence_links(judged: Iterable[JudgedTable], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Metric → members of `layout` that the evidence names (perf-profile functions, see ``data/benchmarks``)."""
    present = {member.name for member in layout.members if member.name}
    found: dict[str, tuple[str, ...]] = {}
    for table in judged:
        for row in table.rows:
            members = tuple(m for m in members_of(row.row.metric, layout.name) if m in present)
            if members:
                found[row.row.metric] = members
    return found


def overlay(
    before: Layout, after: Layout, judged: JudgedTable | Iterable[JudgedTable], *, line_bytes: int = 64, phase: int = 0
) -> go.Figure:
    """Beside the maps before and after, the measured deltas; members that the shown rows name are lit.

    A profile row of a function that reads f_inode lights f_inode. The maps are exact and the deltas measured: the
    badge says so. The menu brings up the hidden rows. Raises `DataError` if there is no row to draw.
    """
    tables = [judged] if isinstance(judged, JudgedTable) else list(judged)
    links = evidence_links(tables, after)
    shown = [row for table in tables for row in table.shown]
    if not shown:
        raise DataError("no row that matters in these tables; an overlay needs at least one")
    lit = sorted({member for row in shown for member in links.get(row.row.metric, ())})
    fig = before_after(before, after, line_bytes=line_bytes, phase=phase, highlight=lit)
    words = str(meta(fig).get("alt", ""))
    forest = delta_forest(tables, links=links, name_chars=NAME_CHARS)
    _beside(fig, forest)
    linked = "; ".join(
        f"{row.row.metric} {change(row)} concerns {', '.join(links[row.row.metric])}"
        for row in shown
        if row.row.metric in links
    )
    alt(fig, f"{words} Measured: {meta(forest).get('alt', '')} {linked}")
    fig.layout.meta = {"kit": {**meta(fig), "min_width": MIN_WIDTH}}
    return badge(fig, "measured", "right; maps: exact", above=30)


def _beside(fig: go.Figure, forest: go.Figure) -> None:
    """Put the forest's panels to the right of the maps, as axes 3 and 4, with its menu."""
    rename = {"x": "x3", "x2": "x4", "y": "y3", "y2": "y4"}
    first = len(fig.data)
    for trace in forest.data:
        trace.update(xaxis=rename[str(trace.xaxis or "x")], yaxis=rename[str(trace.yaxis or "y")])
        if len(trace.x) > MOST_LABELLED or trace.visible is False:
            trace.update(text=None)  # hidden rows stand too close for figures beside them; the hover has them
        fig.add_trace(trace)
    for old, new in (("xaxis", "xaxis3"), ("yaxis", "yaxis3"), ("xaxis2", "xaxis4"), ("yaxis2", "yaxis4")):
        axis = forest.layout[old].to_plotly_json() if old in forest.layout else {"visible": False}
        if "anchor" in axis:
            axis["anchor"] = rename[str(axis["anchor"])]
        if old.startswith("x"):
            axis["domain"] = [FOREST_FROM, 1.0]
        fig.layout[new] = axis
    fig.update_layout(xaxis={"domain": [0, MAP_SHARE]}, xaxis2={"domain": [0, MAP_SHARE]})
    _menu(fig, forest, first)


_AXES = {"xaxis2": "xaxis4", "yaxis2": "yaxis4", "xaxis": "xaxis3", "yaxis": "yaxis3"}


def _menu(fig: go.Figure, forest: go.Figure, first: int) -> None:
    """The forest's menu, switching its own traces only and keeping the figure's height."""
    if not forest.layout.updatemenus:
        return
    menu = forest.layout.updatemenus[0].to_plotly_json()
    buttons = []
    for button in menu["buttons"]:
        visible, layout = button["args"][0]["visible"], button["args"][1]
        kept: dict[str, object] = {}
        for key, value in layout.items():
            axis, dot, inner = key.partition(".")
            if not dot or (axis.startswith("x") and inner == "domain"):
                continue
            if inner == "anchor":
                value = {"x": "x3", "x2": "x4", "y": "y3", "y2": "y4"}[value]
            kept[f"{_AXES[axis]}.{inner}"] = value
        args = [{"visible": list(visible)}, kept, list(range(first, first + len(visible)))]
        buttons.append({**button, "args": args})
    fig.update_layout(
        updatemenus=[{**menu, "buttons": buttons, "x": FOREST_FROM - 0.02, "y": 1, "pad": {"b": 30, "r": 6}}]
    )
