"""Figures of benchmark evidence: deltas with their intervals, where the time went, and every run as a dot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from kitlib.benchtext import change, interval, side
from kitlib.benchtext import figure as short
from kitlib.errors import DataError
from kitlib.figures.style import AFTER, BEFORE, GREY, INK, alt, badge, figure, safe
from kitlib.series import Delta, Plot, Value
from kitlib.verdict import Judged, JudgedTable, plot_table

ROW_PX = 30
MOST_ROWS = 200  # of one view; a longer list is cut, and says so
NOISE = "rgba(128,132,140,0.28)"

VERDICTS: dict[str, tuple[str, str]] = {
    "better": ("#2fae85", "triangle-up"),
    "worse": ("#d55e00", "triangle-down"),
    "changed": ("#56b4e9", "diamond"),
    "no difference": ("#b5a642", "square"),
    "undecided": ("#8fa3b8", "circle-open"),
}
"""Colour and marker of each verdict."""
MATTER = "rows that matter"


def delta_forest(
    judged: JudgedTable | Iterable[JudgedTable],
    *,
    title: str = "",
    links: dict[str, tuple[str, ...]] | None = None,
    name_chars: int = 44,
) -> go.Figure:
    """Every change with its 95 % interval over the band of its run-to-run noise, grouped by machine and benchmark.

    The menu shows the hidden rows, one entry for each reason they are hidden. `links` (metric → members) puts the
    members a row is about behind its name, which is cut to `name_chars`. Changes in % are drawn above those in
    plain units. Measured (badge).
    Raises `DataError` if there is no row.
    """
    tables = [judged] if isinstance(judged, JudgedTable) else list(judged)
    views = _views(tables)
    if not any(views.values()):
        raise DataError("no row to draw; read a report with a table first")
    fig = figure(title or _title(tables), "measured", _in_words(views[MATTER]), min_width=900)
    buttons: list[dict[str, Any]] = []
    starts: list[tuple[int, int]] = []
    for rows in views.values():
        first = len(fig.data)
        for trace in _view_traces(rows, links or {}):
            fig.add_trace(trace)
        starts.append((first, len(fig.data)))
    layouts = [_view_layout(rows, links or {}, name_chars) for rows in views.values()]
    for index, (name, rows) in enumerate(views.items()):
        visible = [starts[index][0] <= i < starts[index][1] for i in range(len(fig.data))]
        label = safe(f"{len(rows)} {name}")
        buttons.append({"label": label, "method": "update", "args": [{"visible": visible}, _flat(layouts[index])]})
    for i, trace in enumerate(fig.data):
        trace.visible = i < starts[0][1]
    fig.update_layout(layouts[0])
    fig.update_layout(margin={"l": 16, "r": 24, "t": 104, "b": 76}, showlegend=True, hovermode="closest")
    fig.update_layout(legend={"yref": "container", "y": 0.0, "yanchor": "bottom"})
    if len(views) > 1:
        fig.update_layout(updatemenus=[_menu(buttons)])
    return badge(fig, "measured", "bars: 95 % intervals; grey: ± one sd from run to run")


def _menu(buttons: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "buttons": buttons, "x": 0, "xanchor": "right", "y": 1, "yanchor": "bottom", "pad": {"b": 8, "r": 6},
        "bgcolor": "#f4f4f4", "font": {"color": INK, "size": 12}, "bordercolor": GREY, "direction": "down",
    }  # fmt: skip


def _title(tables: Sequence[JudgedTable]) -> str:
    first = tables[0].table
    name = " on ".join(part for part in (first.testcase or first.kind, first.machine) if part)
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    return f"{name if len(name) <= 66 else name[:65] + '…'}{more}"


Row = tuple[JudgedTable, Judged]


def _views(tables: Sequence[JudgedTable]) -> dict[str, list[Row]]:
    """Rows that matter, then those hidden for each reason."""
    views: dict[str, list[Row]] = {MATTER: [(t, row) for t in tables for row in t.shown]}
    for table in tables:
        for row in table.rows:
            if row.hidden:
                views.setdefault(f"hidden: {_brief(row.hidden)}", []).append((table, row))
    return views


def _brief(reason: str) -> str:
    """A reason short enough for the menu; the hover text has it whole."""
    first = reason.partition(";")[0].partition(":")[0]
    return first if len(first) <= 34 else first[:33] + "…"


def _split(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The two panels: changes in %, and plain differences."""
    drawn = [(t, row) for t, row in rows if row.change is not None][:MOST_ROWS]
    panels = [
        ("change in % of before", [(t, row) for t, row in drawn if row.in_pct]),
        ("plain difference (points)", [(t, row) for t, row in drawn if not row.in_pct]),
    ]
    return [(name, part) for name, part in panels if part]


def _view_traces(rows: Sequence[Row], links: dict[str, tuple[str, ...]]) -> list[go.Scatter | go.Bar]:
    traces: list[go.Scatter | go.Bar] = []
    seen: set[str] = set()
    for number, (_, part) in enumerate(_split(rows)):
        axes = {"xaxis": "x2", "yaxis": "y2"} if number else {}
        limit = _limit(part)
        traces.append(_noise_band(part, axes, limit))
        for verdict in VERDICTS:
            chosen = [(i, t, row) for i, (t, row) in enumerate(part) if row.verdict == verdict]
            if chosen:
                traces.append(_points(verdict, chosen, axes, verdict not in seen, links, limit))
                seen.add(verdict)
    return traces


def _limit(part: Sequence[Row]) -> float:
    """How far from 0 a panel reaches: a change ten times the median is drawn at the edge, its figure beside it."""
    sizes = sorted(abs(row.change or 0.0) for _, row in part)
    usual = 10 * max(sizes[len(sizes) // 2], 1e-12)
    ends = [abs(end) for _, row in part if abs(row.change or 0.0) <= usual for end in (row.ci95 or ())]
    largest = max((size for size in sizes if size <= usual), default=1.0)
    return max([largest, *(end for end in ends if end <= 2 * largest)]) or 1.0


def _clip(value: float, limit: float) -> float:
    return min(limit, max(-limit, value))


def _noise_band(part: Sequence[Row], axes: dict[str, str], limit: float) -> go.Bar:
    widths = [2 * min(row.noise or 0.0, limit) for _, row in part]
    return go.Bar(
        orientation="h", y=list(range(len(part))), x=widths, base=[-w / 2 for w in widths], width=0.8,
        marker={"color": NOISE, "line": {"width": 0}}, name="run-to-run noise", hoverinfo="skip", showlegend=not axes,
        **axes,
    )  # fmt: skip


def _points(
    verdict: str, chosen: Sequence[tuple[int, JudgedTable, Judged]], axes: dict[str, str], legend: bool,
    links: dict[str, tuple[str, ...]], limit: float,
) -> go.Scatter:  # fmt: skip
    color, symbol = VERDICTS[verdict]
    rows = [row for _, _, row in chosen]
    x = [_clip(row.change or 0.0, limit) for row in rows]
    ends = [(row.ci95 or (at, at)) for row, at in zip(rows, x, strict=True)]
    return go.Scatter(
        mode="markers+text", name=verdict, legendgroup=verdict, showlegend=legend,
        x=x, y=[i for i, _, _ in chosen], text=[f"  {change(row)}" for row in rows], textposition="top center",
        textfont={"size": 10, "color": GREY}, cliponaxis=False,
        error_x={
            "type": "data", "symmetric": False, "color": color, "thickness": 1.6, "width": 4,
            "array": [max(0.0, _clip(high, limit) - at) for (_, high), at in zip(ends, x, strict=True)],
            "arrayminus": [max(0.0, at - _clip(low, limit)) for (low, _), at in zip(ends, x, strict=True)],
        },
        marker={"color": color, "symbol": symbol, "size": 10, "line": {"color": INK, "width": 1}},
        hovertext=[_hover(t, row, links) for _, t, row in chosen], hovertemplate="%{hovertext}<extra></extra>", **axes,
    )  # fmt: skip


def _hover(table: JudgedTable, row: Judged, links: dict[str, tuple[str, ...]]) -> str:
    parts = [
        f"<b>{safe(row.row.metric)}</b>",
        safe(f"{side(row.row.before)} → {side(row.row.after)} {row.row.unit or row.meaning.unit}"),
        safe(f"{change(row)}, 95 % interval {interval(row)}"),
        safe(f"{row.verdict}: {row.reason}"),
        safe(f"{row.meaning.what}; better: {row.meaning.direction}"),
    ]
    if row.row.metric in links:
        parts.append(safe("members: " + ", ".join(links[row.row.metric])))
    if row.hidden:
        parts.append(safe(f"hidden: {row.hidden}"))
    parts.append(safe(f"line {row.row.line} of {table.table.kind} text"))
    return "<br>".join(parts)


def _view_layout(rows: Sequence[Row], links: dict[str, tuple[str, ...]], name_chars: int) -> dict[str, Any]:
    """Axes of one view: domains by number of rows, names of rows, a line between groups."""
    panels = _split(rows)
    total = sum(len(part) for _, part in panels) or 1
    gap_px = 64 if len(panels) > 1 else 0
    height = total * ROW_PX + gap_px + 190
    plot_px = total * ROW_PX + gap_px
    layout: dict[str, Any] = {"height": height, "annotations": None}
    top = 1.0
    for number in (0, 1):
        key = "2" if number else ""
        if number >= len(panels):
            layout[f"xaxis{key}"] = layout[f"yaxis{key}"] = {"visible": False, "domain": [0, 1]}
            continue
        name, part = panels[number]
        bottom = max(0.0, top - len(part) * ROW_PX / plot_px)
        layout[f"yaxis{key}"] = {
            "visible": True, "domain": [bottom, top], "range": [len(part) - 0.5, -0.5], "showgrid": False,
            "tickvals": list(range(len(part))), "ticktext": _names(part, links, name_chars), "anchor": f"x{key}",
            "zeroline": False, "automargin": True, "tickfont": {"size": 11},
        }  # fmt: skip
        layout[f"xaxis{key}"] = {
            "visible": True, "title": {"text": name, "standoff": 4}, "anchor": f"y{key}", "zeroline": True,
            "zerolinecolor": GREY, "zerolinewidth": 1.5, "automargin": True, "range": _span(part),
        }  # fmt: skip
        top = bottom - gap_px / plot_px
    layout.pop("annotations")
    return layout


def _span(part: Sequence[Row]) -> list[float]:
    """The x range: from the lowest to the highest thing drawn, 0 among them."""
    limit = _limit(part)
    drawn = [_clip(v, limit) for _, row in part for v in (row.change or 0.0, *(row.ci95 or ()))]
    low, high = min(0.0, *drawn), max(0.0, *drawn)
    room = 0.08 * ((high - low) or 1.0)
    return [low - room, high + room]


def _names(part: Sequence[Row], links: dict[str, tuple[str, ...]], name_chars: int) -> list[str]:
    """Row names; the first of a group says which machine and benchmark it is if there are several."""
    several = len({id(table) for table, _ in part}) > 1
    names: list[str] = []
    last: JudgedTable | None = None
    for table, row in part:
        name = _short_name(row.row.metric, name_chars) + (f" [{row.row.group}]" if row.row.group else "")
        if row.row.metric in links:
            name += " → " + ", ".join(links[row.row.metric])
        text = safe(name)
        if several and table is not last:
            text = f"<b>{safe(_group(table))}</b><br>{text}"
        last = table
        names.append(text)
    return names


def _group(table: JudgedTable) -> str:
    t = table.table
    machine = t.machine if len(t.machine) <= 48 else t.machine[:45] + "…"
    kind = "plot read back" if t.kind == "ascii plot" else machine or t.kind
    sides = f": {t.after_label}" if t.kind == "unixbench" and t.after_label else ""
    return f"{kind}{sides}"[:80]


def _short_name(metric: str, chars: int) -> str:
    """A metric short enough for an axis: the function of a profile row, else the middle left out."""
    if metric.startswith("perf-profile."):
        parts = metric.split(".", 3)
        metric = f"{parts[1]}: {parts[3].split('.')[0] if len(parts) > 3 else metric}"
    return metric if len(metric) <= chars else f"{metric[: chars // 3]}…{metric[chars // 3 + 1 - chars :]}"


def _flat(layout: dict[str, Any]) -> dict[str, Any]:
    """Nested layout as dotted keys, which an update merges instead of replacing whole axes."""
    flat: dict[str, Any] = {}
    for key, value in layout.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": one for inner, one in value.items()})
        else:
            flat[key] = value
    return flat


def _in_words(rows: Sequence[Row]) -> str:
    parts = [f"{row.row.metric} {change(row)}, {row.verdict}" for _, row in rows[:12]]
    return "Changes with their verdicts: " + "; ".join(parts) + "."


def profile_shift(judged: JudgedTable, *, kind: str = "self", most: int = 12, title: str = "") -> go.Figure:
    """Where the time went: the share of cycles of each function before and after, largest shift first.

    `kind` is self, children or calltrace, as perf-profile names them; whiskers are the printed run-to-run spread.
    Raises `DataError` if the report has no such rows.
    """
    prefix = f"perf-profile.{kind}."
    rows = [row for row in judged.rows if row.row.metric.startswith(prefix) and row.change is not None]
    if not rows:
        raise DataError(f"the report has no rows {prefix}*; use kind self, children or calltrace")
    rows.sort(key=lambda row: -abs(row.change or 0.0))
    rows = rows[:most]
    words = "; ".join(
        f"{_function(r)} {short(r.row.before.mean)} to {short(r.row.after.mean)}, {r.verdict}" for r in rows
    )
    fig = figure(
        title or f"Where the time went ({kind})", "measured", f"Share of cycles by function: {words}.", min_width=640
    )
    names = [safe(_function(row)) for row in rows]
    for label, color, pattern, values in (
        ("before", BEFORE, "", [row.row.before for row in rows]),
        ("after", AFTER, "/", [row.row.after for row in rows]),
    ):
        fig.add_trace(
            go.Bar(
                orientation="h", name=label, y=names, x=[v.mean for v in values],
                marker={"color": color, "line": {"color": INK, "width": 1}, "pattern": {"shape": pattern}},
                error_x={"type": "data", "array": [_sd(v) for v in values], "color": GREY, "thickness": 1.2},
                hovertext=[_hover(judged, row, {}) for row in rows], hovertemplate="%{hovertext}<extra></extra>",
            )
        )  # fmt: skip
    labels = [f"{change(row)} {'' if row.verdict == 'changed' else f'({row.verdict})'}".strip() for row in rows]
    ends = [max(row.row.before.mean or 0.0, row.row.after.mean or 0.0) for row in rows]
    gap = 0.05 * max(ends)
    fig.add_trace(
        go.Scatter(
            mode="text", x=[end + gap + _sd(row.row.after) for end, row in zip(ends, rows, strict=True)], y=names,
            text=labels, textposition="middle right", textfont={"color": GREY}, hoverinfo="skip", showlegend=False,
        )
    )  # fmt: skip
    fig.update_layout(barmode="group", bargap=0.25, height=44 * len(rows) + 190)
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(title_text="% of cycles", range=[0, 1.28 * (max(ends) + gap)])
    return fig


def _function(row: Judged) -> str:
    parts = row.row.metric.split(".", 3)
    return parts[3].split(".")[0] if len(parts) > 3 else row.row.metric


def _sd(value: Value) -> float:
    return abs(value.mean or 0.0) * (value.spread_pct or 0.0) / 100


def samples(source: Delta | Plot | JudgedTable, *, title: str = "") -> go.Figure:
    """Every run as a dot, in the order it was made or drawn, with the mean and ± one sd of each side.

    Takes a row with samples, a judged table (its first such row) or an ASCII plot read back (whose dots carry the
    half row of the axis they are known to). Raises `DataError` if no single runs are known.
    """
    row, half = _sampled(source)
    fig = figure(title or f"{row.metric}: every run", "measured", "", height=400)
    offset = 0
    words: list[str] = []
    for label, color, symbol, value in (
        ("before", BEFORE, "circle", row.before),
        ("after", AFTER, "diamond", row.after),
    ):
        runs = len(value.samples)
        x = list(range(offset + 1, offset + runs + 1))
        error = {"type": "constant", "value": half, "color": GREY, "thickness": 1, "width": 2} if half else None
        fig.add_trace(
            go.Scatter(
                mode="markers", name=f"{label} ({runs} runs)", x=x, y=list(value.samples), error_y=error,
                marker={"color": color, "symbol": symbol, "size": 9, "line": {"color": INK, "width": 1}},
                hovertemplate=f"{label}, run %{{x}}: %{{y:,}}<extra></extra>",
            )
        )  # fmt: skip
        mean, spread = value.mean or 0.0, _sd(value)
        fig.add_shape(
            type="rect", x0=offset + 0.5, x1=offset + runs + 0.5, y0=mean - spread, y1=mean + spread,
            fillcolor=NOISE, line={"width": 0}, layer="below",
        )  # fmt: skip
        fig.add_shape(
            type="line", x0=offset + 0.5, x1=offset + runs + 0.5, y0=mean, y1=mean, line={"color": color, "width": 2.5}
        )
        words.append(f"{label}: {runs} runs, mean {short(value.mean)}, sd {short(spread)}")
        offset += runs + 1
    fig.update_xaxes(title_text="run", showticklabels=False, showgrid=False)
    fig.update_yaxes(title_text=safe(f"{row.metric} {row.unit}".strip()))
    alt(fig, f"{row.metric}, every run. {'. '.join(words)}.")
    note = f"bands are ± one sd; each dot is read to ± {half:.4g}" if half else "bands are ± one sd"
    return badge(fig, "measured", note)


def _sampled(source: Delta | Plot | JudgedTable) -> tuple[Delta, float]:
    if isinstance(source, Plot):
        table = plot_table(source)
        if not table.rows:
            raise DataError(f"the plot of {source.metric} has marks of one side only; nothing to compare")
        return table.rows[0], source.row_step / 2
    rows = [source] if isinstance(source, Delta) else [row.row for row in source.rows]
    for row in rows:
        if row.before.samples and row.after.samples:
            return row, 0.0
    raise DataError("no single runs are known here, only means; a report's ASCII plots or raw samples have them")
