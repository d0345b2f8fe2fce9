"""Reviews: verdicts follow from the data of a case; change the data and the verdict changes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kitlib.cases import Case, Claim, open_case, shipped_cases
from kitlib.cli.review import TEMPLATE
from kitlib.errors import NotFound
from kitlib.evidence import findings
from kitlib.review import review_case
from kitlib.reviewpage import review_html


def changed(case: Case, **changes: object) -> Case:
    return dataclasses.replace(case, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def file_case() -> Case:
    return changed(open_case("struct-file-2020"), rules=None)


@pytest.mark.parametrize("name", shipped_cases())
def test_every_shipped_case_answers_every_question(name: str) -> None:
    review = review_case(open_case(name))
    assert [a.key for a in review.answers] == ["claim", "workloads", "keeps", "randomised", "others", "unshared"]
    assert all(a.verdict and a.text for a in review.answers)
    assert all(
        a.confidence == "none" or a.facts or a.verdict.startswith(("does not apply", "no")) for a in review.answers
    )


def test_the_claim_is_false_at_64_bytes_and_true_at_128(file_case: Case) -> None:
    answer = review_case(file_case).answer("claim")
    assert answer.verdict == "false at 64 bytes, true at 128 bytes"
    assert "f_inode" in answer.text
    other = changed(file_case, claim=Claim("f_count and f_inode share a line", "f_count", ("f_inode",)))
    assert review_case(other).answer("claim").verdict == "true"


def test_no_layout_change_excludes_the_layout(file_case: Case) -> None:
    review = review_case(changed(file_case, after=file_case.before))
    assert review.answer("claim").verdict == "no: layout excluded"
    assert review.answer("keeps").verdict == "does not apply"


def test_without_figures_nothing_is_measured(file_case: Case) -> None:
    assert review_case(changed(file_case, evidence=())).answer("workloads").verdict == "not measured"


def test_an_application_changes_the_verdict(file_case: Case) -> None:
    micro = review_case(file_case).answer("workloads")
    assert micro.verdict.startswith("not shown")
    assert micro.confidence == "low"
    evidence = tuple(dataclasses.replace(e, workload="application") for e in file_case.evidence)
    application = review_case(changed(file_case, evidence=evidence)).answer("workloads")
    assert application.verdict.endswith("in an application benchmark")


def test_the_published_changes_are_found(file_case: Case) -> None:
    changes = sorted(round(f.change_pct, 1) for f in findings(file_case) if f.change_pct is not None)
    assert changes == [17.0, 32.3, 42.2]


def test_later_edits_depend_on_the_layout(file_case: Case) -> None:
    after = review_case(file_case).answer("keeps")
    assert after.verdict.startswith("nothing in the change; ")
    assert "insert a member: 0 of" in after.facts[0].text
    undone = review_case(changed(file_case, before=file_case.after, after=file_case.before)).answer("keeps")
    assert undone.verdict == "nothing is gained"
    assert review_case(changed(file_case, guarded=True)).answer("keeps").verdict.startswith("an assertion; ")


def test_random_layouts_follow_the_mark(file_case: Case) -> None:
    assert review_case(file_case).answer("randomised").verdict == "helps in 1 of 4 modes"
    assert review_case(changed(file_case, randomised=False)).answer("randomised").verdict == "does not apply"


def test_without_a_profile_the_lines_of_a_path_are_not_known(file_case: Case) -> None:
    assert review_case(changed(file_case, profile=None)).answer("unshared").verdict == "undecided"


def test_a_measurement_is_shown_as_measured(file_case: Case) -> None:
    kinds = [fact.kind for fact in review_case(file_case).answer("unshared").facts]
    assert kinds.count("measured") >= 3
    without = review_case(changed(file_case, measured=None)).answer("unshared").facts
    assert "measured" not in [fact.kind for fact in without]


def test_a_partial_struct_is_not_edited_by_guesses() -> None:
    case = changed(open_case("iversion-2018"), member="i_version", meets=("i_count",))
    assert review_case(case).answer("keeps").verdict == "does not apply"


def test_an_unknown_member_is_refused(file_case: Case) -> None:
    with pytest.raises(NotFound, match="did you mean f_count"):
        review_case(changed(file_case, member="f_cuont"))


def test_names_are_escaped_in_the_page(file_case: Case) -> None:
    page = review_html(review_case(changed(file_case, title="<script>alert(1)</script>", about="</p><img src=x>")))
    assert "<script>alert(1)" not in page
    assert "<img src=x>" not in page


def run(*args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "kitlib", "review", *args], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, done.stderr
    return done


def test_the_template_is_a_case_that_works(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    run("new", str(mine))
    assert mine.read_text(encoding="utf-8") == TEMPLATE
    record = json.loads(run(str(mine), "--format", "json").stdout)
    assert record["answers"][0]["verdict"] == "false at 64 bytes, true at 128 bytes"
    run(str(mine), "-o", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("args", [("struct-file-202",), ("new",), ("a", "b"), ("struct-file-2020", "-o", "/nowhere/x")])
def test_bad_input_is_one_line(args: tuple[str, ...]) -> None:
    error = run(*args, status=2).stderr
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_lines_of_a_path_are_exact_only_where_every_access_is_confirmed() -> None:
    answer = review_case(open_case("struct-file-2020")).answer("unshared")
    facts = {f.text.split(":")[0]: f.kind for f in answer.facts}
    assert (facts["fget"], facts["close"]) == ("exact", "exact")
    assert (facts["fput"], facts["read"], facts["write"]) == ("model", "model", "model")
