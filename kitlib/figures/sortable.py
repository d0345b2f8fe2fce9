"""A table that sorts in the page: every order is in the figure, so that it needs no kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from kitlib.figures.style import GREY, INK, FigureKind, figure, safe

_ROW_PX, _HEAD_PX = 25, 130


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its share of the width, and whether it is sorted from the largest."""

    heading: str
    width: float
    descending: bool = False
    right: bool = False


def sortable(
    title: str,
    kind: FigureKind,
    alt: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    *,
    height: int = 620,
) -> go.Figure:
    """A table of `rows` with a menu to sort it by any column; it scrolls if it is higher than `height` pixels."""
    fig = figure(title, kind, alt, height=min(height, _HEAD_PX + _ROW_PX * (len(rows) + 1)), min_width=900)
    fig.add_trace(
        go.Table(
            columnwidth=[c.width for c in columns],
            header={
                "values": [f"<b>{safe(c.heading)}</b>" for c in columns],
                "align": ["right" if c.right else "left" for c in columns],
                "fill": {"color": "#c3d5e8"},
                "font": {"color": INK, "size": 12},
                "line": {"color": GREY},
            },
            cells={
                "values": _cells(rows, len(columns)),
                "align": ["right" if c.right else "left" for c in columns],
                "fill": {"color": "#f7f7f4"},
                "font": {"color": INK, "size": 12},
                "height": _ROW_PX,
                "line": {"color": "rgba(128,132,140,0.25)"},
            },
        )
    )
    buttons = [_button(i, column, columns, rows) for i, column in enumerate(columns)]
    fig.update_layout(
        margin={"l": 4, "r": 4, "t": 96, "b": 8},
        updatemenus=[
            {
                "buttons": buttons,
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "pad": {"b": 6},
                "showactive": True,
                "bgcolor": "#f7f7f4",
                "font": {"color": INK},
            }
        ],
    )
    return fig


def _cells(rows: Sequence[Sequence[Any]], count: int) -> list[list[str]]:
    return [[_shown(row[i]) for row in rows] for i in range(count)]


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else safe(value)


def _button(i: int, column: Column, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    key: Callable[[Sequence[Any]], tuple[bool, Any]] = lambda row: (row[i] is None, row[i])  # noqa: E731
    ordered = sorted((r for r in rows if r[i] is not None), key=key, reverse=column.descending)
    ordered += [r for r in rows if r[i] is None]
    return {
        "label": f"sorted by {safe(column.heading)}",
        "method": "restyle",
        "args": [{"cells.values": [_cells(ordered, len(columns))]}],
    }
