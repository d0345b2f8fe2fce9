"""The reviewer's question about objects nobody shares, which are far more common: do they pay for the change?"""

from __future__ import annotations

from collections import Counter
from statistics import median

from kitlib.access import Profile
from kitlib.answer import Answer, Fact, FactKind, listed
from kitlib.cost import Cost, cost
from kitlib.machine import load_machine
from kitlib.measure import Measurement
from kitlib.measurefile import load_measurement
from kitlib.questions import Subject
from kitlib.text import pct

MACHINES = ("cascade-lake-8269cy", "zen-3-7r13", "kunpeng-920")
"""One machine of each kind whose latencies are published: two sockets, many core groups, 128-byte outer lines."""
EQUAL_PCT = 1.0
"""A predicted change below this is called none: the model's own error is larger (see the score)."""


def unshared(subject: Subject) -> Answer:
    """Does an object that one CPU uses now touch more lines? Lines are exact for the profile, costs a model."""
    question = "Does an object that nobody shares pay for it?"
    case, profile = subject.case, subject.profile
    settle = f"kitlib measure {case.before} {case.struct} --after {case.after}"
    if profile is None:
        text = "No access profile comes with this case, so the lines a code path touches are not known."
        return Answer("unshared", question, "undecided", "none", text, settle=settle)
    after_profile = changed_code(subject, profile)
    sides = [
        (
            load_machine(name),
            cost(subject.before, profile, load_machine(name)),
            cost(subject.after, after_profile, load_machine(name)),
        )
        for name in MACHINES
    ]
    _, before, after = sides[0]
    more = [b.name for b, a in zip(before.paths, after.paths, strict=True) if a.lines > b.lines]
    fewer = [b.name for b, a in zip(before.paths, after.paths, strict=True) if a.lines < b.lines]
    facts = [
        Fact(
            f"{b.name}: {b.lines:g} line{'s' * (b.lines != 1)} before, {a.lines:g} after",
            _kind(profile, b.name),
            f"profile {profile.name}",
        )
        for b, a in zip(before.paths, after.paths, strict=True)
    ]
    facts += [Fact(_predicted(m.name, b, a), "model", f"machine {m.name}") for m, b, a in sides]
    cold = [_change(b.cold_ns, a.cold_ns) for _, b, a in sides]
    verdict = _verdict(cold)
    span = " to ".join(dict.fromkeys((pct(min(cold)), pct(max(cold)))))
    text = f"{_lines(more, fewer)} For an object in no cache the model says {span} a path run, "
    text += "for one in the nearest cache nothing: every line is there already."
    if case.measured is not None:
        done = load_measurement(case.measured)
        facts += _measured(done, case.measured.name)
        text += _beside(done, cold)
    unknown = tuple(f"{entry} is believed, not confirmed" for entry in profile.unconfirmed)
    return Answer("unshared", question, verdict, "medium", text, tuple(facts), unknown, settle)


def _measured(done: Measurement, source: str) -> list[Fact]:
    """One fact a mode of a measurement: medians before and after, the change and its verdict."""
    facts = []
    for result in done.results:
        judged = result.judged
        if judged is None or judged.change is None:
            continue
        sides = f"{median(result.before):.2f} to {median(result.after):.2f} ns a path run"
        said = f"{result.spec.label}, {done.machine}: {sides}, {pct(judged.change)}; {judged.verdict}"
        facts.append(Fact(said, "measured", source))
    return facts


def _kind(profile: Profile, path: str) -> FactKind:
    """Lines of a path are arithmetic; where an access is only believed, what goes into it is not."""
    return "exact" if all(access.confirmed for access in profile.path(path).accesses) else "model"


def _beside(done: Measurement, predicted: list[float]) -> str:
    """What a measurement says beside the model: verdicts of the unshared modes, and whether one lies outside."""
    found = [(r.spec.label, r.judged) for r in done.results if r.spec.mode != "shared" and r.judged is not None]
    counts = Counter(judged.verdict for _, judged in found)
    said = f" Measured on one machine ({done.machine}), {len(found)} unshared modes: "
    said += ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common()) + "."
    decided = [(label, j.change) for label, j in found if j.change is not None and j.verdict in ("better", "worse")]
    label, change = max(decided, key=lambda each: abs(each[1]), default=("", 0.0))
    low, high = min(0.0, *predicted) - EQUAL_PCT, max(0.0, *predicted) + EQUAL_PCT
    if not low <= change <= high:
        said += f" The largest, {pct(change)} ({label}), is outside what the model predicts: they disagree."
    return said


def changed_code(subject: Subject, profile: Profile) -> Profile:
    """The profile of the code after the change; the same unless the case changes how a member is accessed."""
    code = subject.case.code
    return profile if code is None else profile.with_op(code.member, code.before, code.after)  # type: ignore[arg-type]


def _verdict(cold: list[float]) -> str:
    if max(map(abs, cold)) < EQUAL_PCT:
        return "no difference predicted"
    span = " to ".join(dict.fromkeys((pct(min(cold)), pct(max(cold)))))
    if min(cold) > 0:
        return f"yes, when it is cold: {span} predicted"
    if max(cold) < 0:
        return f"no, it gains when cold: {span} predicted"
    return f"depends on the machine: {span} predicted when cold"


def _lines(more: list[str], fewer: list[str]) -> str:
    if not more and not fewer:
        return "Every path touches as many lines as before."
    few = "fewer" if more else "fewer lines"
    parts = [f"more lines in {listed(more)}"] * bool(more) + [f"{few} in {listed(fewer)}"] * bool(fewer)
    return f"An object touches {' and '.join(parts)}."


def _predicted(machine: str, before: Cost, after: Cost) -> str:
    cold, shared = _change(before.cold_ns, after.cold_ns), _change(before.shared_ns, after.shared_ns)
    return (
        f"{machine}: a path run on a cold object {before.cold_ns:.1f} to {after.cold_ns:.1f} ns ({pct(cold)}), on a "
        f"hot one {before.hot_ns:.1f} to {after.hot_ns:.1f} ns, on one shared by {before.cpus} CPUs "
        f"{before.shared_ns:,.0f} to {after.shared_ns:,.0f} ns ({pct(shared)})"
    )


def _change(before: float, after: float) -> float:
    """Change in % of `before`."""
    return 100 * (after - before) / before
