"""Pictures of a scan: a treemap of what looks contended where, and a table that can be sorted."""

from __future__ import annotations

from pathlib import PurePath

import plotly.graph_objects as go

from kitlib.figures.sortable import Column, sortable
from kitlib.figures.style import INK, TAGS, badge, figure, safe
from kitlib.scan import Row, ScanResult

_COLUMNS = (
    Column("score", 0.6, descending=True, right=True),
    Column("struct", 1.6),
    Column("member", 2.0),
    Column("line", 0.5, right=True),
    Column("kind", 1.4),
    Column("shares its line with", 5.0),
)
_WORDS = {"lock": "locks", "atomic": "atomics", "refcount": "reference counts", "rcu": "RCU heads"}
_WORDS |= {"percpu": "per-CPU counters", "wait": "wait queues"}


def scan_table(result: ScanResult, *, top: int = 120) -> go.Figure:
    """The first `top` rows of `result`, sorted by any column. Lines and mates are exact, the score a model."""
    rows = [(r.score, r.struct, r.member, r.line, r.kind, _mates(r)) for r in result.rows[:top]]
    first = f"first: {result.rows[0].struct}.{result.rows[0].member}" if result.rows else "no rows"
    title = f"Who shares a {result.line_bytes}-byte line with a lock, an atomic or a counter"
    fig = sortable(title, "model", f"Table of {len(rows)} scan rows by score; {first}", _COLUMNS, rows)
    return badge(fig, "model", _note(result, len(rows)))


def scan_treemap(result: ScanResult, *, top: int = 160) -> go.Figure:
    """The first `top` rows by kind of member, then struct; area and shade are the score (a model)."""
    shown = result.rows[:top]
    title = f"{PurePath(result.source).name}: where contended members have company"
    alt = f"Treemap of {len(shown)} scan rows by kind of member and struct; area is the score"
    fig = figure(title, "model", alt, height=620, min_width=720)
    groups = list(dict.fromkeys(_group(row) for row in shown))
    structs = list(dict.fromkeys((_group(row), row.struct) for row in shown))
    boxes = {box: f"s{number}" for number, box in enumerate(structs)}
    ids, labels, parents, values, colors, hover = [], [], [], [], [], []
    for group in groups:
        own = [row.score for row in shown if _group(row) == group]
        ids.append(group)
        labels.append(f"{TAGS[group].mark} {_WORDS[group]}")
        parents.append("")
        values.append(sum(own))
        colors.append(TAGS[group].color)
        hover.append(f"{len(own)} rows")
    for group, struct in structs:
        own = [row.score for row in shown if row.struct == struct and _group(row) == group]
        ids.append(boxes[group, struct])
        labels.append(safe(struct))
        parents.append(group)
        values.append(sum(own))
        colors.append(TAGS[group].color)
        hover.append(f"{len(own)} rows")
    for number, row in enumerate(shown):
        ids.append(f"{number}")
        labels.append(safe(row.member))
        parents.append(boxes[_group(row), row.struct])
        values.append(row.score)
        colors.append(TAGS[_group(row)].color)
        hover.append(f"score {row.score:.0f}<br>{_wrapped(row.reason)}")
    fig.add_trace(
        go.Treemap(
            ids=ids,
            labels=labels,
            parents=parents,
            values=[round(v, 1) for v in values],
            branchvalues="total",
            marker={"colors": colors, "line": {"color": INK, "width": 0.5}},
            textfont={"color": INK},
            hovertext=hover,
            hovertemplate="<b>%{label}</b><br>%{hovertext}<extra></extra>",
            tiling={"pad": 1},
        )
    )
    fig.update_layout(margin={"l": 4, "r": 4, "t": 72, "b": 8}, uniformtext={"minsize": 8, "mode": "hide"})
    return badge(fig, "model", _note(result, len(shown)))


def _group(row: Row) -> str:
    return row.kind.partition("+")[0]


def _note(result: ScanResult, shown: int) -> str:
    return f"{shown:,} of {len(result.rows):,} rows; who shares a line is exact, the score a model"


def _mates(row: Row, limit: int = 6) -> str:
    rest = f" and {len(row.mates) - limit} more" if len(row.mates) > limit else ""
    return ", ".join(row.mates[:limit]) + rest


def _wrapped(text: str, width: int = 70) -> str:
    out, line = [], ""
    for word in safe(text).split():
        if line and len(line) + len(word) > width:
            out.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "<br>".join([*out, line])
