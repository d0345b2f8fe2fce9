"""Pictures of randomised layouts: how likely a line is shared, the size of the struct, the lines of a path."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from kitlib.errors import DataError
from kitlib.figures.style import AFTER, BEFORE, GREY, INK, badge, figure, safe
from kitlib.randstats import CostSpread, Counts, Risk
from kitlib.randstruct import MODE_TITLES

_STATES = (("before", BEFORE, ""), ("after", AFTER, "/"))


def probability_bars(before: Sequence[Risk], after: Sequence[Risk] = (), *, title: str = "") -> go.Figure:
    """Probability of a shared line in each mode, with 95 % intervals; a diamond is the layout as declared.

    `before` and `after` hold one answer a mode, the same modes in the same order. Raises `DataError` otherwise.
    """
    if not before or (after and [r.mode for r in after] != [r.mode for r in before]):
        raise DataError("probability_bars: give one answer a mode, before and after in the same order")
    first = before[0]
    asked = f"{first.pair[0]} with {' or '.join(first.pair[1:])}"
    fig = figure(
        title or f"{first.struct}, randomised: {asked} on one line", "model", _words(before, after), height=440
    )
    for (label, color, pattern), risks in zip(_STATES, (before, after), strict=True):
        if risks:
            fig.add_trace(_bars(label if after else "randomised", color, pattern, risks))
            fig.add_trace(_declared(label if after else "", risks))
    fig.update_layout(barmode="group", scattermode="group")
    fig.update_layout(margin_t=88)
    fig.update_yaxes(range=[-0.05, 1.12], title_text="probability")
    return badge(fig, "model", f"{first.trials:,} layouts drawn a mode, {first.line_bytes}-byte lines, 95 % intervals")


def _bars(label: str, color: str, pattern: str, risks: Sequence[Risk]) -> go.Bar:
    values = [risk.p_same_line.value for risk in risks]
    bounds = [risk.p_same_line.ci95 for risk in risks]
    return go.Bar(
        name=label,
        offsetgroup=label,
        x=[_mode(risk) for risk in risks],
        y=values,
        text=[f"{value:.3f}" for value in values],
        textposition="auto",
        insidetextanchor="middle",
        marker={"color": color, "line": {"color": INK, "width": 1}, "pattern": _hatch(pattern)},
        error_y={
            "type": "data",
            "array": [high - value for value, (_, high) in zip(values, bounds, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(values, bounds, strict=True)],
            "color": GREY,
        },
        customdata=[[safe(MODE_TITLES[risk.mode]), *bound] for risk, bound in zip(risks, bounds, strict=True)],
        hovertemplate="%{customdata[0]}<br>%{y:.4f} (%{customdata[1]:.4f}–%{customdata[2]:.4f})",
    )


def _declared(label: str, risks: Sequence[Risk]) -> go.Scatter:
    name = f"not randomised, {label}" if label else "not randomised"
    return go.Scatter(
        name=name,
        offsetgroup=label or "randomised",
        x=[_mode(risk) for risk in risks],
        y=[int(risk.same_line_declared) for risk in risks],
        mode="markers",
        marker={
            "symbol": "diamond" if label != "after" else "diamond-open",
            "size": 11,
            "color": INK if label != "after" else GREY,
            "line": {"width": 2, "color": GREY},
        },
        hovertemplate="as declared: %{y}",
    )


def _mode(risk: Risk) -> str:
    return {
        "gcc-full": "GCC full",
        "gcc-performance": "GCC performance<br>(since Nov 2023)",
        "gcc-performance-prefix": "GCC performance<br>(before the fix)",
        "clang": "clang",
    }[risk.mode]


def _words(before: Sequence[Risk], after: Sequence[Risk]) -> str:
    parts = [f"{MODE_TITLES[risk.mode]}: {risk.p_same_line.value:.2f}" for risk in before]
    if after:
        parts = [f"{part}, after {risk.p_same_line.value:.2f}" for part, risk in zip(parts, after, strict=True)]
    return "Bars of the probability that the members share a line. " + "; ".join(parts)


def size_bars(before: Risk, after: Risk | None = None) -> go.Figure:
    """Share of random layouts with each size in bytes; a dotted line marks the declared size."""
    title = f"Size of {before.struct}, randomised ({MODE_TITLES[before.mode]})"
    return _distribution(title, "size in bytes", before.size, after.size if after else None, before)


def line_bars(before: Risk, path: str, after: Risk | None = None) -> go.Figure:
    """Share of random layouts in which the members of `path` touch each number of lines.

    Raises `DataError` if the answers were not asked for that path.
    """
    title = f"Lines touched by {path}, {before.struct} randomised ({MODE_TITLES[before.mode]})"
    counts = [_lines(risk, path) if risk else None for risk in (before, after)]
    assert counts[0] is not None
    return _distribution(title, "cache lines", counts[0], counts[1], before)


def _lines(risk: Risk, path: str) -> Counts:
    for label, counts in risk.lines:
        if label == path:
            return counts
    raise DataError(
        f"path '{path}' was not asked about; there are {', '.join(label for label, _ in risk.lines) or 'none'}"
    )


def _distribution(title: str, unit: str, before: Counts, after: Counts | None, risk: Risk) -> go.Figure:
    words = f"{unit}: mean {before.mean:.1f}, from {before.min} to {before.max}, declared {before.declared}"
    fig = figure(title, "model", f"Distribution of {words}", height=380)
    for (label, color, pattern), counts in zip(_STATES, (before, after), strict=True):
        if counts is None:
            continue
        values = [value for value, _ in counts.counts]
        fig.add_trace(
            go.Bar(
                name=label if after else "randomised",
                x=values,
                y=[count / counts.total for _, count in counts.counts],
                marker={
                    "color": color,
                    "line": {"color": INK, "width": 0.5},
                    "pattern": _hatch(pattern),
                },
                hovertemplate=f"%{{x}} {unit}: %{{y:.2%}}",
            )
        )
    for declared in {counts.declared for counts in (before, after) if counts is not None}:
        text = f"declared: {declared}"
        fig.add_vline(declared, line={"color": GREY, "dash": "dot", "width": 2}, annotation_text=text)
    fig.update_layout(barmode="group")
    fig.update_xaxes(title_text=unit)
    fig.update_yaxes(title_text="share of layouts", tickformat=".0%")
    means = f"mean {before.mean:.1f}" + (f" before, {after.mean:.1f} after" if after else "")
    return badge(fig, "model", f"{means}; {risk.trials:,} layouts drawn")


def _hatch(pattern: str) -> dict[str, str]:
    """A hatch drawn over the bar's colour."""
    return {"shape": pattern, "fillmode": "overlay", "fgcolor": INK}


def cost_histogram(spread: CostSpread, *, unit: str, title: str) -> go.Figure:
    """What a cost model says of random layouts (see `kitlib.randstats.sample_costs`) beside the declared layout."""
    low, high = spread.worse.ci95
    worse = f"{spread.worse.value:.0%} ({low:.0%}–{high:.0%})"
    said = f"{worse} of {len(spread.costs):,} layouts cost more than the declared one"
    fig = figure(title, "model", f"Histogram of {unit}; {said}", height=380)
    marker = {"color": BEFORE, "line": {"color": INK, "width": 0.5}}
    fig.add_trace(go.Histogram(x=list(spread.costs), name="randomised", marker=marker))
    fig.add_vline(spread.declared, line={"color": AFTER, "dash": "dot", "width": 2}, annotation_text="as declared")
    fig.update_xaxes(title_text=safe(unit))
    fig.update_yaxes(title_text="layouts")
    return badge(fig, "model", said)
