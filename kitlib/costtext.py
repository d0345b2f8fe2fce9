"""Costs and measurements as text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kitlib.access import Profile
from kitlib.cost import Cost
from kitlib.machine import Machine
from kitlib.measure import SMALL_PCT, UNIT, Measurement
from kitlib.model import Layout
from kitlib.published import VARIANTS, PublishedRow
from kitlib.suggest import Suggestion
from kitlib.text import pct, table
from kitlib.tradeoff import Doubt, TradeOff
from kitlib.verdict import MARGIN_PCT


def cost_record(
    before: Cost,
    after: Cost | None,
    profile: Profile,
    machine: Machine,
    result: TradeOff | None,
    doubts: Sequence[Doubt],
    words: str,
    published: Sequence[PublishedRow],
) -> dict[str, Any]:
    """The cost as JSON values; all ns are model figures per path run."""
    record: dict[str, Any] = {
        "kind": "model",
        "layout": before.layout,
        "profile": {"name": profile.name, "unconfirmed": list(profile.unconfirmed), "source": profile.source},
        "machine": {
            "name": machine.name,
            "about": machine.about,
            "numbers": {
                k: {"value": n.value, "certainty": n.certainty, "source": n.source} for k, n in machine.numbers.items()
            },
        },
        "workload": asdict(profile.workload),
        "unit": UNIT,
        "before": asdict(before),
        "after": asdict(after) if after else None,
    }
    if result is not None:
        record["trade_off"] = _trade_off_record(result)
        record["sensitivity"] = [{k: (None if v != v else v) for k, v in asdict(doubt).items()} for doubt in doubts]
        record["conclusion"] = words
    if published:
        record["published"] = [asdict(row) for row in published]
    return record


def _trade_off_record(result: TradeOff) -> dict[str, Any]:
    return {
        "cpus": result.cpus,
        "shared": result.point[0],
        "cold": result.point[1],
        "delta_ns": result.point_ns,
        "break_even_by_cold": [
            {"cold": float(c), "shared": None if v != v else float(v)}
            for c, v in zip(result.cold, result.break_even, strict=True)
        ],
    }


def cost_text(
    before: Cost,
    after: Cost | None,
    profile: Profile,
    machine: Machine,
    doubts: Sequence[Doubt],
    words: str,
    published: Sequence[PublishedRow],
) -> str:
    """The cost for a terminal."""
    use = profile.workload
    out = [
        f"{before.layout}, profile {profile.name}, machine {machine.name}: {machine.about}",
        f"model: {use.cpus} CPUs share an object, {use.work_ns:g} ns between path runs; ns per path run",
        "",
        _path_table(before, after),
    ]
    if after:
        total = 100 * (after.total_ns / before.total_ns - 1) if before.total_ns else 0.0
        out += [
            "",
            f"at this workload ({100 * use.shared:g} % of runs shared, {100 * use.cold:g} % of the others cold): "
            f"{before.total_ns:.2f} → {after.total_ns:.2f} ns ({pct(total)})",
        ]
        out += ["", words]
        out += ["", "what it hangs on:", _doubt_table(doubts)] if doubts else []
    if published:
        rows2 = [(r.label, pct(r.measured_pct), *(pct(p) for p in r.predicted_pct)) for r in published]
        head = ("UnixBench syscall", "measured", *(label for label, _, _ in VARIANTS))
        out += ["", "published runs of this patch (measured) beside the model:", table(head, rows2, right="lrrrrr")]
    if profile.unconfirmed:
        out += ["", f"not confirmed: {', '.join(profile.unconfirmed)}"]
    doubtful = ", ".join(machine.doubts)
    if doubtful:
        out += [f"assumed or nearest known for {machine.name}: {doubtful}"]
    return "\n".join(out)


def _doubt_table(doubts: Sequence[Doubt], most: int = 6) -> str:
    rows = [
        (d.name, d.certainty, f"{d.low:.3g} … {d.high:.3g}", f"{d.delta_low_ns:+.2f} … {d.delta_high_ns:+.2f}")
        for d in doubts[:most]
    ]
    return table(("number", "is", "varied over", "change in ns"), rows, right="llrr")


def _path_table(before: Cost, after: Cost | None) -> str:
    head = ["path", "share", "lines", "hot", "cold", "shared"]
    if not after:
        rows = [(p.name, f"{p.share:.2f}", f"{p.lines:.1f}", *_three(p)) for p in before.paths]
        rows.append(("all", "1.00", "", f"{before.hot_ns:.1f}", f"{before.cold_ns:.1f}", f"{before.shared_ns:.1f}"))
        return table(head, rows, right="lrrrrr")
    both = []
    for a, b in zip(before.paths, after.paths, strict=True):
        pairs = [f"{x} → {y}" for x, y in zip(_three(a), _three(b), strict=True)]
        both.append((a.name, f"{a.share:.2f}", f"{a.lines:.1f} → {b.lines:.1f}", *pairs))
    means = [
        f"{x:.1f} → {y:.1f}"
        for x, y in (
            (before.hot_ns, after.hot_ns),
            (before.cold_ns, after.cold_ns),
            (before.shared_ns, after.shared_ns),
        )
    ]
    both.append(("all", "1.00", "", *means))
    return table(head, both, right="lrrrrr")


def _three(path: Any) -> tuple[str, str, str]:
    return f"{path.hot_ns:.1f}", f"{path.cold_ns:.1f}", f"{path.shared_ns:.1f}"


def measure_text(done: Measurement, *, compared: bool) -> str:
    """A measurement for a terminal."""
    from statistics import median

    rows = []
    for result in done.results:
        before = f"{median(result.before):.2f}"
        if not compared or result.judged is None:
            rows.append((result.spec.label, before, "", "", "", f"{len(result.before)}"))
            continue
        judged = result.judged
        change = pct(judged.change, 2) if judged.change is not None else ""
        interval = f"{judged.ci95[0]:+.2f} … {judged.ci95[1]:+.2f}" if judged.ci95 else ""
        rows.append((result.spec.label, before, f"{median(result.after):.2f}", change, interval, judged.verdict))
    last = "verdict" if compared else "samples"
    out = [
        f"{done.layout}, profile {done.profile}, measured on {done.machine} in {done.seconds:.1f} s",
        f"median {UNIT}; {done.work_ns:g} ns of other work between runs in the shared mode; "
        "slow drift is taken out of the change",
        *([f"no difference: within ±{MARGIN_PCT:g} %, or certain but within ±{SMALL_PCT:g} %"] if compared else []),
        "",
        table(("mode", "before", "after", "change", "95 %", last), rows, right="lrrrrl"),
    ]
    reasons = [
        f"{r.spec.label}: undecided, {r.judged.reason}"
        for r in done.results
        if r.judged and r.judged.verdict == "undecided"
    ]
    out += ["", *reasons] if reasons else []
    out += [f"{r.mode}: refused, {r.reason}" for r in done.refused]
    out += [f"note: {note}" for note in done.notes]
    return "\n".join(out)


def suggestion_record(found: Suggestion) -> dict[str, Any]:
    """Suggested moves as JSON values, with the predicted ns per run before and after."""
    return {
        "before_ns": found.before.total_ns,
        "after_ns": found.after.total_ns,
        "change_pct": found.gain_pct,
        "tried": found.tried,
        "steps": [{"edit": str(s.edit), "total_ns": s.total_ns, "size": s.size} for s in found.steps],
    }


def suggestion_text(found: Suggestion, layout: Layout, profile: Profile, machine: str) -> str:
    """Suggested moves for a terminal."""
    if not found.steps:
        return f"{layout.title}: none of {found.tried} moves is better by the model for profile {profile.name}"
    lines = [f"{layout.title}, profile {profile.name}, machine {machine} (model, not measured):"]
    before = found.before.total_ns
    for step in found.steps:
        lines.append(f"  {step.edit}: {before:.2f} → {step.total_ns:.2f} ns a run, {step.size} bytes")
        before = step.total_ns
    lines.append(f"in all {found.gain_pct:+.1f} % (model); check it with: kitlib measure … --after SCENARIO")
    return "\n".join(lines)
