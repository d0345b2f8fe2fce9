"""Cache-line maps: one row a line, one block a member, and what moved against its old place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import plotly.graph_objects as go

from kitlib.blocks import FOLD_FROM, Block, Piece, blocks, fold, map_rows, moved, pieces
from kitlib.figures.style import ACCENT, GHOST, GREY, INK, PLOTLY, TAGS, badge, figure, safe
from kitlib.lines import LINE_SIZES, n_lines
from kitlib.model import Layout
from kitlib.text import visible

ROW_PX = 42
BAR = 0.86
"""Height of a block, in rows."""
EDGE = "rgba(22,24,29,0.55)"
CHARS_PER_ROW = 160
"""Characters of the label font (11 px) that fit in a row of 1,000 pixels."""
MIN_WIDTH = 860
"""Narrower windows scroll the map sideways, in CSS pixels."""


def cacheline_map(
    layout: Layout,
    *,
    line_bytes: int = 64,
    phase: int = 0,
    expand: bool | Collection[str] = False,
    highlight: Collection[str] = (),
    before: Layout | None = None,
    tags: bool = True,
    title: str = "",
) -> go.Figure:
    """Draw `layout` on its cache lines: one row a line, one block a member, holes and padding hatched.

    Four or more lines that one member fills from end to end are one row, which says so.
    `expand` opens structs held by value (all, or those at the given paths). `highlight` names members or paths to
    outline. With `before`, members that changed places are outlined, their old places drawn dashed, and every
    hover text says where a member was. Without `tags` all members have one colour. Exact figures (badge).
    Raises `PlacementError` for a line size or phase that is none, `NotFound` for a highlight that is no member.
    """
    for name in highlight:
        layout.member(name.partition(".")[0])
    fig = _frame(title or _headline(layout, line_bytes, phase), _describe(layout, line_bytes, phase))
    drawn = _Drawing(layout, line_bytes, phase, expand, frozenset(highlight), before, tags)
    for trace in drawn.traces():
        fig.add_trace(trace)
    _axes(fig, drawn, "")
    fig.update_layout(height=len(drawn.rows) * ROW_PX + 176, shapes=drawn.outlines())
    return fig


def before_after(
    before: Layout, after: Layout, *, line_bytes: int = 64, phase: int = 0, highlight: Collection[str] = ()
) -> go.Figure:
    """Two maps, one under the other: `before`, then `after` with the old places of what moved."""
    change = f"{before.size} → {after.size} bytes" if before.size != after.size else f"{after.size} bytes, both"
    title = f"{after.title}: before (above) and after (below) · {change}, lines of {line_bytes} bytes"
    alt = f"Before: {_describe(before, line_bytes, phase)} After: {_describe(after, line_bytes, phase)}"
    fig = _frame(title, alt)
    marked = frozenset(highlight)
    top = _Drawing(before, line_bytes, phase, False, marked, None, True, outline=moved(before, after))
    below = _Drawing(after, line_bytes, phase, False, marked, before, True)
    seen: set[str] = set()
    for drawn, axes in ((top, {}), (below, {"xaxis": "x2", "yaxis": "y2"})):
        for trace in drawn.traces():
            trace.update(axes, showlegend=trace.name not in seen)
            seen.add(str(trace.name))
            fig.add_trace(trace)
    total = len(top.rows) + len(below.rows) + 1.2
    _axes(fig, top, "", domain=(1 - len(top.rows) / total, 1))
    _axes(fig, below, "2", domain=(0, len(below.rows) / total))
    fig.update_layout(height=int(total * ROW_PX) + 176, shapes=top.outlines() + below.outlines("x2", "y2"))
    return fig


def wrap(name: str, chars: int) -> str:
    """`name` on up to three lines of `chars` characters, broken behind underscores; too long ones end in "…".

    >>> wrap("f_write_hint", 6)
    'f_<br>write_<br>hint'
    """
    if len(name) <= chars:
        return name
    if chars < 4:
        return ""
    parts = [""]
    for word in re.findall(r"[^_ ]*[_ ]|[^_ ]+", name):
        if len((parts[-1] + word).rstrip()) > chars:
            parts.append("")
        while len(word.rstrip()) > chars:
            parts[-1:] = [word[:chars], ""]
            word = word[chars:]
        parts[-1] += word
    parts = [part.strip() for part in parts if part.strip()]
    if len(parts) > 3:
        parts = [*parts[:2], parts[2][: chars - 1] + "…"]
    return "<br>".join(parts)


class _Drawing:
    """One map's rows, and the Plotly traces and shapes that show them."""

    def __init__(
        self,
        layout: Layout,
        line_bytes: int,
        phase: int,
        expand: bool | Collection[str],
        marked: frozenset[str],
        before: Layout | None,
        tags: bool,
        outline: frozenset[str] | None = None,
    ) -> None:
        self.layout, self.line_bytes, self.phase, self.marked, self.tags = layout, line_bytes, phase, marked, tags
        self.before = before
        self.moved = outline if outline is not None else moved(before, layout) if before else frozenset()
        self.was = {b.key: b for b in blocks(before, expand=expand, gaps=False)} if before else {}
        every = pieces(blocks(layout, expand=expand), line_bytes, phase)
        old = [b for b in self.was.values() if _top(b) in self.moved]
        self.old = pieces(old, line_bytes, phase)
        lines = max(n_lines(layout, line_bytes, phase), 1)
        self.rows = map_rows(every, lines, line_bytes, {p.line for p in self.old})
        self.pieces = fold(every, self.rows)

    def traces(self) -> list[go.Bar | go.Scatter]:
        """One bar trace for each tag that occurs, and one of markers for members without a size."""
        by_tag: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            tag = piece.block.tag
            by_tag.setdefault(tag if self.tags or tag in ("hole", "padding", "marker") else "plain", []).append(piece)
        found: list[go.Bar | go.Scatter] = [
            go.Bar(**bar_style(tag), **self._bars(by_tag[tag])) for tag in TAGS if tag in by_tag and tag != "marker"
        ]
        if "marker" in by_tag:
            found.append(self._markers(by_tag["marker"]))
        if self.moved and self.before:
            found.append(ghost_key())
        return found

    def _bars(self, parts: Sequence[Piece]) -> dict[str, Any]:
        heights = [BAR / p.block.lanes for p in parts]
        return {
            "y": [p.line for p in parts],
            "base": [p.start_bit / 8 for p in parts],
            "x": [p.bits / 8 for p in parts],
            "width": heights,
            "offset": [-BAR / 2 + p.block.lane * h for p, h in zip(parts, heights, strict=True)],
            "text": [self._label(p) for p in parts],
            "hovertext": [self._hover(p.block) for p in parts],
        }

    def _label(self, piece: Piece) -> str:
        block = piece.block
        chars = int(CHARS_PER_ROW * piece.bits / 8 / self.line_bytes)
        mark = TAGS[block.tag].mark if self.tags else ""
        if mark:
            mark = f"({mark})" if block.inside else mark
        name = block.name if piece.first else f"…{block.name}"
        if piece.lines > 1:
            name = f"{block.name} · {piece.lines} lines"
        if not mark or chars < len(mark) + 2:
            return safe(wrap(name, chars)).replace("&lt;br&gt;", "<br>") or mark
        return safe(wrap(f"{mark} {name}", chars)).replace("&lt;br&gt;", "<br>")

    def _hover(self, block: Block) -> str:
        if block.tag in ("hole", "padding"):
            return f"<b>{block.path}</b><br>from byte {block.bit_offset / 8:g}"
        old = self.was.get(block.key)
        return hover(block, old.bit_offset if old else None, new=bool(self.was) and old is None)

    def _outline(self, block: Block) -> str | None:
        if block.tag in ("hole", "padding"):
            return None
        top = _top(block)
        if block.path in self.marked or top in self.marked:
            return ACCENT
        return GHOST if top in self.moved else None

    def _markers(self, parts: Sequence[Piece]) -> go.Scatter:
        return go.Scatter(
            name=f"{TAGS['marker'].mark} {TAGS['marker'].label}",
            mode="markers",
            marker={"symbol": "triangle-down", "size": 9, "color": GREY, "line": {"color": INK, "width": 1}},
            y=[min(p.line, len(self.rows) - 1) - BAR / 2 - 0.02 for p in parts],
            x=[p.start_bit / 8 if p.line < len(self.rows) else self.line_bytes for p in parts],
            hovertext=[self._hover(p.block) for p in parts],
            hovertemplate="%{hovertext}<extra></extra>",
        )

    def outlines(self, x: str = "x", y: str = "y") -> list[dict[str, Any]]:
        """Frames around what is highlighted or moved, and dashed ones where moved members were."""
        old = (p for p in fold(self.old, self.rows) if p.line < len(self.rows))
        found = [outline(p, GHOST, x, y, "dash") for p in old]
        for piece in self.pieces:
            color = self._outline(piece.block)
            if color and piece.bits:
                found.append(outline(piece, color, x, y))
        return found


def _top(block: Block) -> str:
    """Title of the struct's own member that `block` is, or is part of."""
    return visible(block.path.partition(".")[0]) or block.label


def bar_style(tag: str) -> dict[str, Any]:
    """The bar trace of a tag, without its data."""
    style = TAGS[tag]
    return {
        "name": f"{style.mark} {style.label}".strip(),
        "orientation": "h",
        "marker.color": style.color,
        "marker.line": {"color": EDGE, "width": 1},
        "marker.pattern.shape": style.pattern,
        "marker.pattern.fgcolor": GREY if tag in ("hole", "padding") else "rgba(22,24,29,0.38)",
        "marker.pattern.bgcolor": style.color,
        "marker.pattern.size": 7,
        "marker.pattern.solidity": 0.14,
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "inside",
        "textfont": {"size": 11, "color": GREY if tag in ("hole", "padding") else INK},
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def outline(piece: Piece, color: str, x: str = "x", y: str = "y", dash: str = "solid") -> dict[str, Any]:
    """The shape of a frame around `piece`; a dashed one is a little larger, to be seen around a solid one."""
    grow = 0.04 if dash == "dash" else 0.0
    height = BAR / piece.block.lanes
    top = piece.line - BAR / 2 + piece.block.lane * height
    return {
        "type": "rect",
        "xref": x,
        "yref": y,
        "x0": piece.start_bit / 8,
        "x1": (piece.start_bit + piece.bits) / 8,
        "y0": top - grow,
        "y1": top + height + grow,
        "line": {"color": color, "width": 2.5, "dash": dash},
    }


def ghost_key() -> go.Scatter:
    """The legend's entry for old places."""
    marker = {"symbol": "square-open", "size": 12, "color": GHOST, "line": {"width": 2.5}}
    return go.Scatter(name="moved, and its old place (dashed)", x=[None], y=[None], mode="markers", marker=marker)


def hover(block: Block, was_bit: int | None = None, *, new: bool = False) -> str:
    """Hover text of a member: path, type, offset, size, alignment; with its old offset where that is known."""
    head, size, tag = hover_parts(block)
    where = f"offset {_place(block.bit_offset)}"
    if was_bit is not None and was_bit != block.bit_offset:
        where += f", was {_place(was_bit)}"
    elif new:
        where += ", not there before"
    return f"{head}<br>{where}<br>{size}, alignment {block.align}<br>{tag}"


def hover_parts(block: Block) -> tuple[str, str, str]:
    """What stays the same of `hover` wherever a member is put: name and type, size, tag (escaped)."""
    style = TAGS[block.tag]
    size = f"size {block.bit_size // 8} bytes" if block.bit_size % 8 == 0 else f"size {block.bit_size} bits"
    tag = f"{'holds: ' if block.inside else ''}{style.mark} {style.label}".strip()
    name = safe(block.path or block.label or "(unnamed)")
    return f"<b>{name}</b><br>{safe(block.type)}", size, tag


def _place(bit: int) -> str:
    return f"{bit // 8}" if bit % 8 == 0 else f"{bit // 8}, bit {bit % 8}"


def _frame(title: str, alt: str) -> go.Figure:
    fig = figure(title, "exact", alt, min_width=MIN_WIDTH)
    fig.update_layout(
        barmode="overlay",
        bargap=0,
        margin={"l": 110, "r": 16, "t": 92, "b": 72},
        legend={"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0},
        hovermode="closest",
        showlegend=True,
        title={"yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 14}},
    )
    return badge(fig, "exact", above=30)


def _axes(fig: go.Figure, drawn: _Drawing, number: str, domain: tuple[float, float] = (0, 1)) -> None:
    x, y = axes(drawn.rows, drawn.line_bytes, drawn.phase)
    x["anchor"], y["anchor"], y["domain"] = f"y{number}", f"x{number}", domain
    fig.update_layout({f"xaxis{number}": x, f"yaxis{number}": y})


def axes(rows: Sequence[tuple[int, int]], line_bytes: int, phase: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plotly's x axis (bytes in the line) and y axis (first and last line of each row, with the byte it starts at)."""
    step = 8 if line_bytes <= 64 else 16
    x = {"range": [0, line_bytes], "dtick": step, "side": "top", "fixedrange": True, "title": {"text": ""}}
    labels = [f"{_lines(*row)} · byte {max(row[0] * line_bytes - phase, 0)}" for row in rows]
    y = {"range": [len(rows) - 0.5, -0.5], "tickvals": list(range(len(rows))), "ticktext": labels, "fixedrange": True}
    return x | {"zeroline": False}, y | {"zeroline": False, "showgrid": False, "ticklabelstandoff": 8}


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}–{last}"


def _headline(layout: Layout, line_bytes: int, phase: int) -> str:
    lines = n_lines(layout, line_bytes, phase)
    where = f", starting at byte {phase} of one" if phase else ""
    return f"{layout.title} · {layout.size} bytes on {lines} line{'s' * (lines != 1)} of {line_bytes} bytes{where}"


def _describe(layout: Layout, line_bytes: int, phase: int) -> str:
    """The map in words."""
    every = pieces(blocks(layout), line_bytes, phase)
    rows = map_rows(every, n_lines(layout, line_bytes, phase), line_bytes)
    names: dict[int, list[str]] = {}
    for piece in fold(every, rows):
        names.setdefault(min(piece.line, len(rows) - 1), []).append(piece.block.name)
    lines = "; ".join(f"{_lines(*row)}: {', '.join(names.get(i, ()))}" for i, row in enumerate(rows))
    return f"{_headline(layout, line_bytes, phase)}. {lines}."


def explorer_style() -> dict[str, Any]:
    """Everything the explorer's front end needs to draw as `cacheline_map` does: traces without data, the
    layout without title, colours and measures. Plain values for JSON."""
    frame = _frame("", "").to_plotly_json()["layout"]
    for key in ("title", "annotations", "meta"):
        frame.pop(key, None)
    frame["margin"] = {**frame["margin"], "t": 36}
    empty = _Drawing(Layout(None, "struct", 0, 1, ()), 64, 0, False, frozenset(), None, True)
    return {
        "traces": {tag: go.Bar(**bar_style(tag)).to_plotly_json() for tag in TAGS if tag != "marker"},
        "marker": empty._markers(()).to_plotly_json(),
        "ghost": ghost_key().to_plotly_json(),
        "layout": frame,
        "marks": {tag: style.mark for tag, style in TAGS.items()},
        "accent": ACCENT,
        "moved": GHOST,
        "bar": BAR,
        "row_px": ROW_PX,
        "fold_from": FOLD_FROM,
        "chars": CHARS_PER_ROW,
        "min_width": MIN_WIDTH,
        "line_sizes": list(LINE_SIZES),
        "config": PLOTLY,
    }
