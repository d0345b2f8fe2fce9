"""The reviewer's question about real workloads: what was measured, by whom, and whether it decides anything."""

from __future__ import annotations

from dataclasses import dataclass

from kitlib.answer import Answer, Confidence, Fact, listed
from kitlib.benchcases import PublishedFigure
from kitlib.benchcases import case as published_case
from kitlib.benchfiles import read
from kitlib.benchtext import figure as number_text
from kitlib.cases import Case, Evidence
from kitlib.questions import Subject
from kitlib.series import printed_range
from kitlib.text import count, pct
from kitlib.verdict import Judged, JudgedTable, judge, judge_report

_LAYOUT_UNITS = ("bytes", "lines")


@dataclass(frozen=True, slots=True)
class Finding:
    """One headline figure: its change in %, the verdict (None for a change stated alone) and where it is from."""

    text: str
    change_pct: float | None
    judged: Judged | None
    evidence: Evidence
    source: str

    @property
    def decided(self) -> bool:
        return self.judged is not None and self.judged.verdict in ("better", "worse", "no difference")


def findings(case: Case) -> tuple[Finding, ...]:
    """The headline of every benchmark table of a case, and the changes that were stated alone.

    Raises `NotFound` for an unknown published case and `SourceError` for a file that cannot be read.
    """
    return tuple(found for evidence in case.evidence for found in _of(evidence))


def tables(case: Case) -> tuple[JudgedTable, ...]:
    """All tables of a case, judged: what `kitlib.figures.bench.delta_forest` draws."""
    every: list[JudgedTable] = []
    for evidence in case.evidence:
        if evidence.published:
            every += [judge(table) for table in published_case(evidence.published).tables()]
        for file in evidence.files:
            every += judge_report(read(file))
    return tuple(every)


def _of(evidence: Evidence) -> list[Finding]:
    if evidence.published:
        known = published_case(evidence.published)
        found = [_headline(judge(table), evidence, known.source) for table in known.tables()]
        alone = [f for f in known.figures if _stated_alone(f)]
        return [*(f for f in found if f is not None), *(_alone(f, evidence, known.source) for f in alone)]
    found = [_headline(judge(t), evidence, file.name) for file in evidence.files for t in read(file).tables]
    return [f for f in found if f is not None]


def _stated_alone(figure: PublishedFigure) -> bool:
    return figure.printed_change is not None and figure.before is None and figure.unit not in _LAYOUT_UNITS


def _headline(table: JudgedTable, evidence: Evidence, source: str) -> Finding | None:
    """The row the table is about: its stated headline, else its first row of a benchmark's result."""
    rows = [row for row in table.rows if row.row.metric == table.table.headline] or list(table.rows)
    rows = [row for row in rows if row.change is not None and not row.row.metric.startswith("perf ")]
    if not rows:
        return None
    row, where = rows[0], table.table
    sides = " \u2192 ".join(number_text(value.mean) for value in (row.row.before, row.row.after))
    place = ", ".join(part for part in (where.testcase, where.machine) if part)
    runs = count(row.row.before.n, "run") + " a side" if row.row.before.n else "runs not stated"
    change = row.change if row.in_pct else None
    said = f"{pct(row.change or 0.0)}" if row.in_pct else f"{row.change:+.4g} {row.row.unit}"
    interval = f" ({row.ci95[0]:+.1f} to {row.ci95[1]:+.1f})" if row.ci95 and row.in_pct else ""
    name = f"{row.row.metric}, {place}".removesuffix(", ")
    text = f"{name}: {sides} {row.row.unit}".rstrip() + f", {said}{interval}; {runs}; {row.verdict}"
    if row.verdict == "undecided":
        text += f" ({row.reason})"
    return Finding(text, change, row, evidence, source)


def _alone(figure: PublishedFigure, evidence: Evidence, source: str) -> Finding:
    printed = str(figure.printed_change)
    value, _ = printed_range(printed.rstrip("%"))
    place = ", ".join(part for part in (figure.parameters, figure.machine, figure.note) if part)
    return Finding(f"{figure.metric} {printed} ({place}); no values given", value, None, evidence, source)


def real_workloads(subject: Subject) -> Answer:
    """What does the change do for real workloads? Measured figures, and whether any of them is an application."""
    question = "What does it do for real workloads?"
    found = findings(subject.case)
    facts = tuple(
        Fact(("the opposite change: " if f.evidence.reverse else "") + f.text, "measured", f.source) for f in found
    )
    unknown = tuple(f"{u.text} Would settle it: {u.settle}" for u in subject.case.unknown)
    settle = "" if subject.case.unknown else _measure(subject.case)
    if not found:
        text = "No benchmark figure comes with this case."
        return Answer("workloads", question, "not measured", "none", text, facts, unknown, settle)
    application = [f for f in found if f.evidence.workload == "application"]
    decided = [f for f in found if f.decided]
    if application:
        verdict = f"{_range(application)} in an application benchmark"
        lead = f"{count(len(application), 'figure')} from an application benchmark: {_range(application)}."
    else:
        verdict = f"not shown; {_range(found)} in micro-benchmarks ({len(decided)} of {len(found)} decided)"
        lead = f"No application was measured. In micro-benchmarks: {_range(found)}."
    shared = listed(list(dict.fromkeys(e.shared for e in subject.case.evidence if e.shared)), "")
    where = f" There {shared}." if shared else ""
    proof = f" {len(decided)} of {count(len(found), 'figure')} can be told from noise by their own runs."
    confidence: Confidence = "low" if not application or not decided else "medium"
    return Answer("workloads", question, verdict, confidence, lead + where + proof, facts, unknown, settle)


def _range(found: list[Finding] | tuple[Finding, ...]) -> str:
    parts = []
    for reverse, words in ((False, ""), (True, " by the opposite change")):
        changes = sorted(f.change_pct for f in found if f.change_pct is not None and f.evidence.reverse == reverse)
        if changes:
            ends = dict.fromkeys((pct(changes[0]), pct(changes[-1])))
            parts.append(" to ".join(ends) + words)
    return ", ".join(parts) or "no percentage"


def _measure(case: Case) -> str:
    return f"kitlib measure {case.before} {case.struct} --after {case.after}"
