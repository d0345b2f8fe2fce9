"""Pictures of a comparison of two sources: what changed where, the hot-looking first."""

from __future__ import annotations

from pathlib import PurePath

import plotly.graph_objects as go

from kitlib.diff import SourceDiff, StructDiff
from kitlib.figures.sortable import Column, sortable
from kitlib.figures.style import BEFORE, COLORWAY, INK, badge, figure, safe

_COLUMNS = (
    Column("score", 0.6, descending=True, right=True),
    Column("struct", 1.8),
    Column("change", 0.9),
    Column("bytes before", 0.8, descending=True, right=True),
    Column("bytes after", 0.8, descending=True, right=True),
    Column("members on another line", 1.0, descending=True, right=True),
    Column("with new line-mates", 1.0, descending=True, right=True),
    Column("why", 4.0),
)
_KINDS = {
    "resized": ("resized", COLORWAY[1]),
    "changed": ("same size, members moved", COLORWAY[0]),
    "added": ("added", COLORWAY[2]),
    "removed": ("removed", BEFORE),
}


def diff_table(result: SourceDiff, *, top: int = 120) -> go.Figure:
    """The first `top` structs that differ, sorted by any column. All but the score is exact."""
    rows = [
        (
            s.score,
            s.name,
            s.change,
            s.size_before,
            s.size_after,
            sum(m.changed_line for m in s.members),
            sum(bool(m.gained) for m in s.members),
            s.reason,
        )
        for s in result.structs[:top]
    ]
    title = f"Structs that differ: {_short(result.a)} → {_short(result.b)}"
    fig = sortable(title, "model", f"Table of {len(rows)} structs that differ; {result.verdict}", _COLUMNS, rows)
    return badge(fig, "model", f"{result.verdict}; sizes and lines are exact, the score a model")


def diff_treemap(result: SourceDiff, *, top: int = 160) -> go.Figure:
    """The first `top` structs that differ by kind of change; area is the number of members it touched, plus one."""
    shown = [s for s in result.structs if s.layout_changed][:top]
    title = f"What changed: {_short(result.a)} → {_short(result.b)}"
    fig = figure(
        title,
        "exact",
        f"Treemap of {len(shown)} structs by kind of change; {result.verdict}",
        height=620,
        min_width=720,
    )
    kinds = list(dict.fromkeys(_kind(s) for s in shown))
    areas = [_area(s) for s in shown]
    totals = [sum(a for s, a in zip(shown, areas, strict=True) if _kind(s) == kind) for kind in kinds]
    fig.add_trace(
        go.Treemap(
            ids=[*kinds, *(f"{i}" for i in range(len(shown)))],
            labels=[*(_KINDS[k][0] for k in kinds), *(safe(s.name) for s in shown)],
            parents=[*("" for _ in kinds), *(_kind(s) for s in shown)],
            values=[*totals, *areas],
            branchvalues="total",
            marker={
                "colors": [*(_KINDS[k][1] for k in kinds), *(_KINDS[_kind(s)][1] for s in shown)],
                "line": {"color": INK, "width": 0.5},
            },
            textfont={"color": INK},
            hovertext=[*("" for _ in kinds), *(_hover(s) for s in shown)],
            hovertemplate="<b>%{label}</b><br>%{hovertext}<extra></extra>",
            tiling={"pad": 1},
        )
    )
    fig.update_layout(margin={"l": 4, "r": 4, "t": 72, "b": 8}, uniformtext={"minsize": 8, "mode": "hide"})
    return badge(fig, "exact", f"{result.verdict}; {result.line_bytes}-byte lines")


def _kind(s: StructDiff) -> str:
    return "resized" if s.change == "changed" and s.size_before != s.size_after else s.change


def _area(s: StructDiff) -> int:
    return 1 + sum(m.change in ("added", "removed", "moved", "resized") or m.changed_line for m in s.members)


def _hover(s: StructDiff) -> str:
    sizes = (
        f"{s.size_before} → {s.size_after} bytes" if s.change == "changed" else f"{s.size_after or s.size_before} bytes"
    )
    moved = sum(m.changed_line for m in s.members)
    gained = sum(bool(m.gained) for m in s.members)
    causes = "".join(f"<br>{safe(c[:90])}" for c in s.causes[:4])
    return f"{sizes}; {moved} members on another line, {gained} with new line-mates{causes}"


def _short(label: str) -> str:
    return PurePath(label).name if "/" in label else label
