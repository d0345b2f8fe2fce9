"""Check reports as plain values for JSON and as text for terminals."""

from __future__ import annotations

from typing import Any

from kitlib.guard import Outcome, Report
from kitlib.text import printable

_WORDS = {"pass": "ok", "fail": "BROKEN", "undecided": "UNDECIDED", "skipped": "skipped"}


def report_record(report: Report) -> dict[str, Any]:
    """Plain values: counts, and one entry a rule. ``places`` are [line_bytes, phase] at which it is broken."""
    return {
        "rules": report.rules,
        "source": report.source,
        "ok": report.ok,
        "passed": report.count("pass"),
        "failed": report.count("fail"),
        "undecided": report.count("undecided"),
        "skipped": report.count("skipped"),
        "outcomes": [_outcome_record(outcome) for outcome in report.outcomes],
    }


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {
        "struct": outcome.struct,
        "id": outcome.rule.id,
        "kind": outcome.rule.kind,
        "members": list(outcome.rule.members),
        "status": outcome.status,
        "message": outcome.message,
        "why": outcome.rule.why,
        "edits": list(outcome.edits),
        "places": [list(place) for place in outcome.places],
        "file_line": outcome.rule.file_line or None,
    }


def report_text(report: Report) -> str:
    """A line a rule; for a broken one what is wrong, which edit did it, and why the rule is there."""
    out: list[str] = []
    for outcome in report.outcomes:
        out.append(f"{_WORDS[outcome.status]:9}  {outcome.struct}: {outcome.rule.id}")
        if outcome.status != "pass":
            out.append(f"           {outcome.message}")
            out += [f"           since the baseline: {edit}" for edit in outcome.edits]
        if outcome.status == "fail" and outcome.rule.why:
            out.append(f"           why the rule: {outcome.rule.why}")
    words = [(report.count("pass"), "hold"), (report.count("fail"), "broken"), (report.count("undecided"), "undecided")]
    words.append((report.count("skipped"), "for other builds"))
    counts = ", ".join(f"{number} {word}" for number, word in words if number or word == "hold")
    out.append(f"{report.rules} on {report.source}: {counts}" + ("" if report.ok else ": not ok"))
    return "\n".join(printable(line) for line in out)
