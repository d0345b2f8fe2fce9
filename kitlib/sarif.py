"""Check reports in the forms other tools read: SARIF 2.1.0 (OASIS, errata 01) and JUnit XML."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from kitlib import __version__
from kitlib.guard import Outcome, Report
from kitlib.rules import KINDS

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"pass": "none", "skipped": "none", "fail": "error", "undecided": "error"}
_KINDS = {"pass": "pass", "skipped": "notApplicable", "fail": "fail", "undecided": "open"}


def to_sarif(report: Report) -> dict[str, Any]:
    """A SARIF log with one run: a result for each rule, passed ones included (``kind``: pass).

    A rule that could not be evaluated is ``open``, and the run's ``executionSuccessful`` is then false.
    """
    ids = list(dict.fromkeys(_rule_id(outcome) for outcome in report.outcomes))
    rules = {_rule_id(outcome): outcome for outcome in report.outcomes}
    return {
        "$schema": SCHEMA_URI,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kitlib",
                        "version": __version__,
                        "rules": [_descriptor(i, rules[i]) for i in ids],
                    }
                },
                "invocations": [{"executionSuccessful": report.count("undecided") == 0}],
                "artifacts": [{"location": {"uri": _uri(report.rules)}}],
                "results": [_result(outcome, ids.index(_rule_id(outcome)), report) for outcome in report.outcomes],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule_id(outcome: Outcome) -> str:
    return f"{outcome.struct}/{outcome.rule.id}"


def _descriptor(rule_id: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": rule_id,
        "name": outcome.rule.kind,
        "shortDescription": {"text": f"struct {outcome.struct}: {KINDS[outcome.rule.kind].about}"},
        "fullDescription": {"text": outcome.rule.why or KINDS[outcome.rule.kind].about},
        "defaultConfiguration": {"level": "error"},
    }


def _result(outcome: Outcome, index: int, report: Report) -> dict[str, Any]:
    members = outcome.rule.members or ("",)
    names = [f"{outcome.struct}.{member}" if member else outcome.struct for member in members]
    logical = [{"fullyQualifiedName": name, "kind": "member" if "." in name else "type"} for name in names]
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(report.rules), "index": 0},
            "region": {"startLine": max(outcome.rule.file_line, 1)},
        },
        "logicalLocations": logical,
    }
    return {
        "ruleId": _rule_id(outcome),
        "ruleIndex": index,
        "kind": _KINDS[outcome.status],
        "level": _LEVELS[outcome.status],
        "message": {"text": _sentence(outcome, report)},
        "locations": [place],
        "partialFingerprints": {"structRule/v1": _rule_id(outcome)},
        "properties": {"edits": list(outcome.edits), "source": report.source},
    }


def _sentence(outcome: Outcome, report: Report) -> str:
    text = f"struct {outcome.struct} in {report.source}: {outcome.message}"
    return text + (f". Since the baseline: {'; '.join(outcome.edits)}" if outcome.edits else "")


def _uri(path: str) -> str:
    """A relative path as a relative reference, an absolute one as a file URI."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())


def to_junit(report: Report) -> str:
    """JUnit XML: a test suite for each struct, a test case for each rule; undecided rules are errors."""
    total = (len(report.outcomes), report.count("fail"), report.count("undecided"), report.count("skipped"))
    out = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="kitlib check" {_counts(*total)}>']
    for struct in dict.fromkeys(outcome.struct for outcome in report.outcomes):
        own = [outcome for outcome in report.outcomes if outcome.struct == struct]
        each = [sum(o.status == s for o in own) for s in ("fail", "undecided", "skipped")]
        out.append(f"  <testsuite name={_attribute('struct ' + struct)} {_counts(len(own), *each)}>")
        out += [_case(outcome, report) for outcome in own]
        out.append("  </testsuite>")
    return "\n".join([*out, "</testsuites>"]) + "\n"


def _counts(tests: int, failures: int, errors: int, skipped: int) -> str:
    return f'tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _case(outcome: Outcome, report: Report) -> str:
    head = f"    <testcase classname={_attribute(outcome.struct)} name={_attribute(outcome.rule.id)}"
    if outcome.status == "pass":
        return head + "/>"
    tag = {"fail": "failure", "undecided": "error", "skipped": "skipped"}[outcome.status]
    body = "" if tag == "skipped" else escape(_clean(_sentence(outcome, report)))
    return f"{head}>\n      <{tag} message={_attribute(outcome.message)}>{body}</{tag}>\n    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _in_xml(c: str) -> bool:
    return c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c >= "\U00010000"


def _clean(text: str) -> str:
    """XML 1.0 has no place for control characters, surrogates, U+FFFE and U+FFFF, not even escaped (section 2.2)."""
    return "".join(c if _in_xml(c) else "\N{REPLACEMENT CHARACTER}" for c in text)
