"""The map of configurations: which combinations of options put two members on one line."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from kitlib.errors import DataError
from kitlib.figures.style import INK, badge, figure, safe
from kitlib.variantmatrix import ABSENT, Answers, Matrix
from kitlib.variants import Variants

_COLORS = ("#e4e4e4", "#56b4e9", "#e8834b")
"""Absent, no, yes."""
_MARKS = {ABSENT: "–", 0: "○", 1: "●"}
MAX_MARKED = 96
"""With more cells than this the marks are left out; hovering still tells each cell."""
MAX_TICKS = 32
"""With more rows or columns than this they are told by hovering only."""
_WIDE = 4
"""Up to this many options all of them are laid out along the x axis."""


def combination_map(
    result: Matrix,
    answers: Answers,
    *,
    title: str,
    yes: str = "on one line",
    no: str = "apart",
    numbers: Answers | None = None,
) -> go.Figure:
    """A cell a combination, coloured by its answer (1 `yes`, 0 `no`, `ABSENT`).

    Choices run down, options across (half of them down if there are more than four). `numbers`, one a
    combination, are written into the cells (an offset, say). Raises `DataError` if the lengths differ.
    """
    variants = result.variants
    if len(answers) != variants.count or (numbers is not None and len(numbers) != variants.count):
        raise DataError(f"combination_map: {variants.count} combinations, but {len(answers)} answers")
    down, across = _split(variants)
    shape = (len(down), len(across))
    texts = [_cell(int(a), None if numbers is None else int(numbers[i])) for i, a in enumerate(answers)]
    names = {1: yes, 0: no, ABSENT: "a member is not there"}
    hover = [
        f"{safe(variants.label(setting))}<br><b>{safe(names[int(answers[i])])}</b> {texts[i]}"
        for i, setting in enumerate(variants.settings())
    ]
    counts = {answer: int((answers == answer).sum()) for answer in names}
    said = "; ".join(f"{names[answer]}: {count}" for answer, count in counts.items() if count)
    height = max(280, 150 + 46 * len(down)) if len(down) <= 12 else 760
    fig = figure(title, "exact", f"Map of {variants.count} combinations: {said}", height=height, min_width=640)
    fig.add_trace(
        go.Heatmap(
            z=answers.reshape(shape),
            x=list(range(shape[1])),
            y=list(range(shape[0])),
            zmin=-1.5,
            zmax=1.5,
            colorscale=_steps(),
            showscale=False,
            xgap=0 if variants.count > 1024 else 1,
            ygap=0 if variants.count > 1024 else 1,
            text=np.array(texts).reshape(shape) if variants.count <= MAX_MARKED else None,
            texttemplate="%{text}" if variants.count <= MAX_MARKED else None,
            textfont={"color": INK, "size": 13},
            customdata=np.array(hover).reshape(shape),
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    for answer, name in names.items():
        if counts[answer]:
            fig.add_trace(_key(f"{_MARKS[answer]} {name} ({counts[answer]})", _COLORS[answer + 1]))
    fig.update_yaxes(autorange="reversed")
    _axes(fig, variants, down, across)
    return badge(fig, "exact", f"{variants.count:,} combinations of {variants.base.title}")


def _axes(fig: go.Figure, variants: Variants, down: list[str], across: list[str]) -> None:
    """Label rows and columns; beneath the columns a line an option, with its name on the left."""
    names = [safe(option.name.removeprefix("CONFIG_")) for option in variants.options]
    low = names[_high(variants) :]
    fig.update_layout(
        legend={"x": 0, "y": 1, "yanchor": "bottom"},
        margin={"l": 8 * max(map(len, [*names, *_states(variants)])), "t": 84, "b": 24 + 17 * len(low)},
    )
    plain = {"showgrid": False, "zeroline": False, "tickfont": {"size": 12}, "ticks": ""}
    fits = len(across) <= MAX_TICKS
    fig.update_xaxes(tickvals=list(range(len(across))) if fits else [], ticktext=across, tickangle=0, **plain)
    fits = len(down) <= MAX_TICKS
    fig.update_yaxes(tickvals=list(range(len(down))) if fits else [], ticktext=down, **plain)
    fig.add_annotation(
        text="<br>".join(low) if len(across) <= MAX_TICKS else f"columns: {', '.join(low)}, the last varying fastest",
        showarrow=False,
        xref="paper",
        yref="paper",
        x=0,
        y=0,
        xanchor="right" if len(across) <= MAX_TICKS else "left",
        yanchor="top",
        xshift=-8 if len(across) <= MAX_TICKS else 0,
        yshift=-3,
        align="right",
        font={"size": 12},
    )
    if len(down) > MAX_TICKS:
        rows = ", ".join(names[: _high(variants)])
        fig.update_yaxes(title_text=f"rows: {rows}, the last varying fastest", title_font={"size": 12})


def _high(variants: Variants) -> int:
    """How many options run down instead of across."""
    count = len(variants.options)
    return 0 if count <= _WIDE else count // 2


def _states(variants: Variants) -> list[str]:
    """``write_protect_seq: absent`` for every combination of choices."""
    return [
        ", ".join(f"{choice.name}: {state.label}" for choice, state in zip(variants.choices, chosen, strict=True))
        for chosen in variants.choice_states()
    ]


def _split(variants: Variants) -> tuple[list[str], list[str]]:
    """Labels of the rows and of the columns."""
    names = [safe(option.name.removeprefix("CONFIG_")) for option in variants.options]
    high = _high(variants)
    upper = [
        ", ".join(name if on == "y" else f"not {name}" for name, on in zip(names, row, strict=False))
        for row in _switches(high)
    ]
    rows = ["; ".join(filter(None, (safe(state), row))) for state in _states(variants) for row in upper]
    return rows, ["<br>".join(row) for row in _switches(len(names) - high)]


def _switches(count: int) -> list[list[str]]:
    """``["y", "n"]`` for every combination of `count` options, the last varying fastest."""
    return [["y" if code >> (count - 1 - i) & 1 else "n" for i in range(count)] for code in range(1 << count)]


def _cell(answer: int, number: int | None) -> str:
    mark = _MARKS[answer]
    return mark if number is None or number == ABSENT else f"{mark} {number}"


def _steps() -> list[list[object]]:
    """Three flat colours on the range from -1.5 to 1.5."""
    bounds = (0.0, 1 / 3, 2 / 3, 1.0)
    return [[bound, color] for i, color in enumerate(_COLORS) for bound in bounds[i : i + 2]]


def _key(name: str, color: str) -> go.Scatter:
    marker = {"symbol": "square", "size": 14, "color": color, "line": {"color": INK, "width": 1}}
    return go.Scatter(name=safe(name), x=[None], y=[None], mode="markers", marker=marker, showlegend=True)
