"""``randomize``: what randomised layouts do to a pair of members."""

from __future__ import annotations

from typing import Any

import click

from kitlib.cli.after import after_layout
from kitlib.cli.common import emit, format_option, line_options
from kitlib.describe import layout_text
from kitlib.errors import DataError
from kitlib.lines import share_line
from kitlib.model import Layout
from kitlib.randclang import randomize_clang
from kitlib.randstats import DEFAULT_TRIALS, CostSpread, Counts, Risk, ask, default_trials, sample_costs
from kitlib.randstruct import MODE_TITLES, MODES, is_ops_struct, randomised_part, randomize_gcc
from kitlib.sources import open_source
from kitlib.text import table


@click.command()
@click.argument("source")
@click.argument("struct")
@click.option("--pair", required=True, metavar="A,B[,C...]", help="A, and the members it may share a line with.")
@click.option(
    "--mode", type=click.Choice(MODES), default="gcc-full", show_default=True, help="Who randomises, and how."
)
@click.option(
    "--trials", type=int, help=f"Layouts to draw. [default: {DEFAULT_TRIALS}; fewer for more than 50 members]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the drawing; the same gives the same.")
@click.option("--after", metavar="X", help="Compare with a scenario file, or with that struct of another SOURCE.")
@click.option("--path", "paths", multiple=True, metavar="NAME=A,B...", help="Count the lines these members touch.")
@click.option(
    "--profile", metavar="P", help="Access profile: count its paths' lines and, with --machine, predict costs."
)
@click.option("--machine", metavar="NAME", help="Machine profile for the predicted cost of 200 of the layouts.")
@click.option("--layout-seed", metavar="TEXT", help="Also show the one layout of this build's seed (randstruct.seed).")
@line_options
@format_option()
def randomize(
    source: str,
    struct: str,
    pair: str,
    mode: str,
    trials: int | None,
    seed: int,
    after: str | None,
    paths: tuple[str, ...],
    profile: str | None,
    machine: str | None,
    layout_seed: str | None,
    line_bytes: int,
    phase: int,
    fmt: str,
) -> None:
    """Draw random layouts of STRUCT and say how likely A shares a line with any of the others.

    Modes: gcc-full; gcc-performance (as fixed in November 2023); gcc-performance-prefix (before that fix); clang.
    """
    layout = open_source(source).struct(struct)
    other = after_layout(after, struct, layout)
    exact = None if layout_seed is None else _exact(layout, layout_seed, mode)
    names = _names(pair)
    options: dict[str, Any] = {
        "trials": default_trials(layout) if trials is None else trials,
        "seed": seed,
        "line_bytes": line_bytes,
        "phase": phase,
        "paths": _paths(paths, profile, machine),
    }
    layouts = {"as is": layout} if other is None else {"before": layout, "after": other}
    risks = [(label, ask(each, mode, names, **options)) for label, each in layouts.items()]
    costs = [] if machine is None else [_predicted(x, mode, profile, machine, seed, phase) for x in layouts.values()]
    record = risk_record(risks[0][1])
    if other is not None:
        record["after"] = risk_record(risks[1][1])
    for into, spread in zip((record, record.get("after", {})), costs, strict=False):
        into["cost"] = cost_record(spread)
    if exact is not None:
        record["layout"] = _exact_record(exact, names, line_bytes, phase)
    emit(record, lambda: _text(layout, risks, costs, exact, line_bytes, phase), fmt)


def risk_record(risk: Risk) -> dict[str, Any]:
    """Plain values for JSON; sizes in bytes."""
    low, high = risk.p_same_line.ci95
    return {
        "struct": risk.struct,
        "kind": "model",
        "mode": risk.mode,
        "trials": risk.trials,
        "seed": risk.seed,
        "pair": list(risk.pair),
        "line_bytes": risk.line_bytes,
        "phase": risk.phase,
        "p_same_line": {"estimate": risk.p_same_line.value, "ci95": [low, high]},
        "same_line_declared": risk.same_line_declared,
        "size": _counts_record(risk.size),
        "lines": {label: _counts_record(counts) for label, counts in risk.lines},
    }


def cost_record(spread: CostSpread) -> dict[str, Any]:
    """Plain values for JSON; costs in ns per path run."""
    low, high = spread.worse.ci95
    return {
        "kind": "model",
        "unit": "ns per path run",
        "layouts": len(spread.costs),
        "declared": spread.declared,
        "mean": spread.mean,
        "min": spread.costs[0],
        "median": spread.quantile(0.5),
        "max": spread.costs[-1],
        "p_worse_than_declared": {"estimate": spread.worse.value, "ci95": [low, high]},
    }


def _counts_record(counts: Counts) -> dict[str, Any]:
    return {
        "mean": counts.mean,
        "min": counts.min,
        "max": counts.max,
        "declared": counts.declared,
        "counts": [list(row) for row in counts.counts],
    }


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _paths(words: tuple[str, ...], profile: str | None, machine: str | None) -> dict[str, tuple[str, ...]]:
    """The members of each path: those of ``--path`` and those of the profile."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        label, equals, members = word.partition("=")
        if not equals or not label or not all(_names(members)):
            raise DataError(f"--path '{word}': write NAME=A,B with members of the struct")
        if label in found:
            raise DataError(f"--path '{word}': {label} is given already; use another NAME")
        found[label] = _names(members)
    if profile is None:
        if machine is not None:
            raise DataError("--machine needs --profile: a cost is that of an access profile")
        return found
    from kitlib.access import load_profile

    for path in load_profile(profile).paths:
        if path.name in found:
            raise DataError(f"--path '{path.name}': the profile has a path of that name; use another NAME")
        found[path.name] = tuple(dict.fromkeys(access.member for access in path.accesses))
    return found


def _predicted(layout: Layout, mode: str, profile: str | None, machine: str, seed: int, phase: int) -> CostSpread:
    from kitlib.access import profile_for
    from kitlib.cost import cost
    from kitlib.machine import load_machine

    use, on = profile_for(layout, profile), load_machine(machine)
    return sample_costs(layout, mode, lambda other: cost(other, use, on, phase=phase).total_ns, seed=seed)


def _exact(layout: Layout, seed: str, mode: str) -> Layout:
    part = randomised_part(layout)
    return randomize_clang(part, seed) if mode == "clang" else randomize_gcc(part, seed, mode)


def _exact_record(layout: Layout, names: tuple[str, ...], line_bytes: int, phase: int) -> dict[str, Any]:
    return {
        "kind": "exact",
        "size": layout.size,
        "order": [member.name for member in layout],
        "offsets": [member.offset for member in layout],
        "same_line": any(share_line(layout, names[0], other, line_bytes, phase) for other in names[1:]),
    }


def _text(
    layout: Layout,
    risks: list[tuple[str, Risk]],
    costs: list[CostSpread],
    exact: Layout | None,
    line_bytes: int,
    phase: int,
) -> str:
    risk = risks[0][1]
    headers = ["", "as declared", "probability", "95 % interval", "size mean", "min", "max"]
    lines = [
        f"{risk.struct}: {MODE_TITLES[risk.mode]}, {risk.trials:,} layouts drawn (model), seed {risk.seed}",
        f"{risk.pair[0]} on one {risk.line_bytes}-byte line with {' or '.join(risk.pair[1:])}:",
        table(headers, _rows(risks), right="llrrrrr"),
    ]
    if risk.lines:
        lines.append(
            table(["lines touched by", "", "declared", "mean", "min", "max"], _line_rows(risks), right="llrrrr")
        )
    for (label, _), spread in zip(risks, costs, strict=False):
        lines.append(
            f"predicted cost {label} (model, {len(spread.costs)} layouts): declared {spread.declared:.2f} ns, "
            f"mean {spread.mean:.2f}, from {spread.costs[0]:.2f} to {spread.costs[-1]:.2f}; "
            f"{spread.worse.value:.0%} cost more than declared"
        )
    if is_ops_struct(layout):
        lines.append("All members are function pointers: it is randomised unless marked no_randomize_layout.")
    else:
        lines.append(
            "Only a struct marked __randomize_layout is randomised; whether it is, debug information does not say."
        )
    if exact is not None:
        lines += ["", "The layout of the given seed (exact):", layout_text(exact, line_bytes=line_bytes, phase=phase)]
    return "\n".join(lines)


def _line_rows(risks: list[tuple[str, Risk]]) -> list[list[str]]:
    return [
        [label, state, str(counts.declared), f"{counts.mean:.2f}", str(counts.min), str(counts.max)]
        for state, risk in risks
        for label, counts in risk.lines
    ]


def _rows(risks: list[tuple[str, Risk]]) -> list[list[str]]:
    rows = []
    for label, risk in risks:
        low, high = risk.p_same_line.ci95
        rows.append(
            [
                label,
                "shares" if risk.same_line_declared else "apart",
                f"{risk.p_same_line.value:.4f}",
                f"{low:.5f}..{high:.5f}",
                f"{risk.size.mean:.1f}",
                str(risk.size.min),
                str(risk.size.max),
            ]
        )
    return rows
