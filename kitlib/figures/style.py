"""The one visual language: colours, marks and fonts, and the badge that says what kind a figure is.

Hues follow Okabe and Ito's palette for colour-blind readers (https://jfly.uni-koeln.de/color/), lightened so
that dark text is readable on every one of them; a mark or a hatch always says the same as the colour.
Backgrounds are transparent and the text grey has a contrast of at least 4.5 on white and 4.1 on #111, so that
figures are readable in dark and in light; pages set the text colour of their theme on top.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Literal

import plotly.graph_objects as go
import plotly.io
import plotly.offline

from kitlib.text import visible

FigureKind = Literal["exact", "model", "measured"]

PLOTLY: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}
"""Plotly's configuration everywhere: no logo, and no button that would upload the figure."""

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
INK = "#16181d"
"""Text on coloured ground."""
GREY = "#767b85"
"""Text and lines on the transparent background."""
GRID = "rgba(128,132,140,0.25)"
ACCENT = "#b3006b"
"""Outline of what the reader chose."""
GHOST = "#8a6fd1"
"""Outline of a moved member's old place."""

BEFORE, AFTER = "#8fa3b8", "#e69f00"
"""The two states of a comparison."""
COLORWAY = ("#56b4e9", "#e69f00", "#2fae85", "#cc79a7", "#d55e00", "#8f86d8", "#b5a642", "#8fa3b8")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
PATTERNS = ("", "/", ".", "x", "\\", "-", "|", "+")


@dataclass(frozen=True, slots=True)
class TagStyle:
    """How a tag is drawn: ``color`` behind dark text, ``mark`` before the name, ``pattern`` as a hatch."""

    label: str
    color: str
    mark: str = ""
    pattern: str = ""


TAGS: dict[str, TagStyle] = {
    "lock": TagStyle("lock", "#e8834b", "■", "/"),
    "atomic": TagStyle("atomic", "#f0b03a", "●"),
    "refcount": TagStyle("refcount", "#f3e55a", "◆", "."),
    "counter": TagStyle("counter", "#f7efa8", "▲", "."),
    "percpu": TagStyle("per-CPU", "#f7efa8", "✚", "|"),
    "wait": TagStyle("wait queue", "#dfa6c8", "◑"),
    "work": TagStyle("work, timer", "#dfa6c8", "▶", "\\"),
    "rcu": TagStyle("rcu", "#68c9a8", "↻"),
    "list": TagStyle("list", "#84caf0", "≡"),
    "tree": TagStyle("tree", "#84caf0", "⋔", "|"),
    "pointer": TagStyle("pointer", "#c3d5e8", "→"),
    "plain": TagStyle("plain data", "#e4e4e4"),
    "hole": TagStyle("hole", "rgba(128,132,140,0.10)", "", "x"),
    "padding": TagStyle("padding", "rgba(128,132,140,0.10)", "", "\\"),
    "marker": TagStyle("zero-size marker", GREY, "▾"),
}
"""Tags in order of weight: a member with several is drawn as the first of them."""

KINDS: dict[FigureKind, TagStyle] = {
    "exact": TagStyle("exact", "#c9ead9", "="),
    "model": TagStyle("model", "#ddd2f4", "≈"),
    "measured": TagStyle("measured", "#fbdfb4", "±"),
}
KIND_MEANS: dict[FigureKind, str] = {
    "exact": "layout arithmetic, the compiler's own figures",
    "model": "a prediction from an access profile and a machine profile",
    "measured": "benchmark samples",
}

plotly.io.renderers["plotly_mimetype"].config = PLOTLY  # the default has a button that uploads the figure


def series(index: int) -> dict[str, str]:
    """Colour, marker symbol, dash and hatch of the `index`-th series; no two of eight look alike in grey."""
    i = index % len(COLORWAY)
    return {"color": COLORWAY[i], "symbol": SYMBOLS[i], "dash": DASHES[i], "pattern": PATTERNS[i]}


def safe(text: object) -> str:
    """`text` with markup escaped: Plotly reads a subset of HTML in names, labels and hover text.

    >>> safe("<a href=x>")
    '&lt;a href=x&gt;'
    """
    return escape(visible(str(text)), quote=False)


def template() -> go.layout.Template:
    """The kit's Plotly template, in place of the default one (which weighs 7 kB in every figure)."""
    axis = {"gridcolor": GRID, "linecolor": GRID, "zerolinecolor": GRID, "automargin": True}
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": GREY},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(COLORWAY),
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": "#fffdf5", "bordercolor": "#5b5f68", "font": {"color": INK, "size": 13}},
            "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 0.0, "yanchor": "bottom"},
            "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 16}},
            "margin": {"l": 60, "r": 16, "t": 64, "b": 84},
        }
    )


def figure(title: str, kind: FigureKind, alt: str, *, height: int = 420, min_width: int = 0) -> go.Figure:
    """An empty figure in the kit's style, with its badge and its alternative text.

    `title` is plain text (it is escaped). `height` and `min_width` are in CSS pixels; a page narrower than
    `min_width` scrolls the figure sideways rather than squeezing it.
    """
    fig = go.Figure()
    fig.update_layout(template=template(), title_text=safe(title), height=height)
    fig.update_layout(meta={"kit": {"alt": alt, "min_width": min_width}})
    return badge(fig, kind)


def badge(fig: go.Figure, kind: FigureKind, note: str = "", *, above: int = 8) -> go.Figure:
    """Put the kind of its numbers on `fig`, `above` pixels over the plot; `note` (plain text) follows it.

    Returns `fig`; a second call takes the place of the first.

    Raises `KeyError` for a kind that is none of exact, model and measured.
    """
    style = KINDS[kind]
    text = f"<b>{style.mark} {style.label}</b>" + (f" · {safe(note)}" if note else "")
    kept = tuple(a for a in fig.layout.annotations if a.name != "kit-badge")
    fig.layout.annotations = kept
    fig.add_annotation(
        name="kit-badge",
        text=text,
        showarrow=False,
        xref="paper",
        yref="paper",
        x=1,
        y=1,
        xanchor="right",
        yanchor="bottom",
        yshift=above,
        bgcolor=style.color,
        bordercolor=INK,
        borderwidth=1,
        borderpad=3,
        font={"color": INK, "size": 12},
    )
    _meta(fig, kind=kind, note=note)
    return fig


def alt(fig: go.Figure, text: str) -> go.Figure:
    """Say in words what `fig` shows, for readers who do not see it. Returns `fig`."""
    _meta(fig, alt=text)
    return fig


def meta(fig: go.Figure) -> dict[str, Any]:
    """What the page needs of `fig`: ``kind``, ``note``, ``alt``, ``min_width`` and ``point`` (those that are known)."""
    held = fig.layout.meta
    return dict(held.get("kit", {})) if isinstance(held, dict) else {}


def _meta(fig: go.Figure, **values: object) -> None:
    held = fig.layout.meta if isinstance(fig.layout.meta, dict) else {}
    fig.layout.meta = {**held, "kit": {**held.get("kit", {}), **values}}


@cache
def plotly_js() -> bytes:
    """plotly.js as it comes with the Plotly package, gzipped (1.5 MB)."""
    return gzip.compress(plotly.offline.get_plotlyjs().encode(), 9, mtime=0)
