"""SARIF is valid by its schema and says what happened; JUnit XML parses and counts right."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kitlib.guard import Outcome, Report, evaluate
from kitlib.rules import Rule, Scope, StructRules
from kitlib.sarif import to_junit, to_sarif
from kitlib.shorthand import make_layout

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
LAYOUT = make_layout("a:8 b:8 c:64")


def report(rules: str = "layout rules.toml") -> Report:
    made = (
        Rule("good", "together", ("a", "b"), file_line=5),
        Rule("bad", "apart", ("a", "b"), file_line=9, why='never <both> & "one"'),
        Rule("gone", "no_straddle", ("x",)),
        Rule("other", "size", (), (("max_bytes", 1),), Scope(abis=("aarch64",))),
    )
    outcomes: list[Outcome] = []
    for rule in made:
        outcomes += evaluate(StructRules("s", (rule,)), LAYOUT)
    outcomes[1] = replace(outcomes[1], edits=("x inserted \x1b[31m",))
    return Report(rules, "<source>", tuple(outcomes))


def test_sarif_is_valid_by_the_schema() -> None:
    log = to_sarif(report())
    validator = jsonschema.Draft4Validator(SCHEMA)
    assert list(validator.iter_errors(log)) == []
    assert list(validator.iter_errors({**log, "runs": [{"results": []}]})) != []  # the schema does refuse


def test_sarif_says_what_became_of_each_rule() -> None:
    (run,) = to_sarif(report())["runs"]
    rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
    found: dict[str, dict[str, Any]] = {r["ruleId"]: r for r in run["results"]}
    kinds = {key: (r["kind"], r["level"]) for key, r in found.items()}
    assert kinds == {
        "s/good": ("pass", "none"),
        "s/bad": ("fail", "error"),
        "s/gone": ("open", "error"),
        "s/other": ("notApplicable", "none"),
    }
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in run["results"])
    assert found["s/bad"]["locations"][0]["physicalLocation"]["region"]["startLine"] == 9
    assert run["artifacts"][0]["location"]["uri"] == "layout%20rules.toml"
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "share line 0" in found["s/bad"]["message"]["text"]


def test_an_absolute_path_is_a_file_uri() -> None:
    log = to_sarif(report("/some dir/rules.toml"))
    assert log["runs"][0]["artifacts"][0]["location"]["uri"] == "file:///some%20dir/rules.toml"
    assert list(jsonschema.Draft4Validator(SCHEMA).iter_errors(log)) == []


def test_junit_parses_and_counts() -> None:
    root = ET.fromstring(to_junit(report()))
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"good": [], "bad": ["failure"], "gone": ["error"], "other": ["skipped"]}
    failure = root.find(".//failure")
    assert failure is not None
    assert "\ufffd[31m" in (failure.text or "")
    assert "<source>" in (failure.text or "")


@pytest.mark.parametrize(("form", "status"), [("sarif", 1), ("junit", 1)])
def test_the_command_line_writes_both(tmp_path: Path, form: str, status: int) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'format = "kitlib-rules"\nversion = 1\n[[struct]]\nname = "mm_struct"\n'
        '[[struct.rule]]\nkind = "straddle"\nmembers = ["mmap_lock"]\n'
    )
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", "check", str(rules), "mm-5.13-seq"]
    done = subprocess.run([*command, "--format", form], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    if form == "sarif":
        jsonschema.Draft4Validator(SCHEMA).validate(json.loads(done.stdout))
    else:
        assert ET.fromstring(done.stdout).get("failures") == "1"
