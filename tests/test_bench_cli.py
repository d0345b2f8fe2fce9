"""``kitlib bench`` and ``kitlib compare`` as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kitlib.datafiles import path

ROBOT = path("benchmarks/struct-file-5.8-robot.txt")
AIM7 = path("benchmarks/inode-4.16-aim7.csv")


def kitlib(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from kitlib.cli import main; main()", *arguments],
        capture_output=True,
        input=stdin,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_text_begins_with_what_a_reviewer_wants() -> None:
    status, out, _ = kitlib("bench", str(ROBOT))
    assert status == 0
    first = next(line for line in out.splitlines() if line.startswith("unixbench.score"))
    assert "+32.3 %" in first
    assert "better" in first
    assert "163 of 172 rows hidden (--all shows them):" in out


def test_all_shows_every_row() -> None:
    _, out, _ = kitlib("bench", "--all", str(ROBOT))
    assert sum(1 for line in out.splitlines() if "interrupts.CPU" in line) == 53
    assert "rows hidden" not in out


def test_json() -> None:
    status, out, _ = kitlib("bench", "--format", "json", str(ROBOT), str(AIM7))
    assert status == 0
    record = json.loads(out)
    assert [len(t["rows"]) for t in record["tables"]] == [172, 1, 1, 1]
    assert {t["source"] for t in record["tables"]} == {str(ROBOT), str(AIM7)}
    aim7 = record["tables"][-1]["rows"][0]
    assert aim7["change_pct"] == pytest.approx(-18.07, abs=0.01)
    assert aim7["verdict"] == "worse"
    assert aim7["ci95"][0] < -18.07 < aim7["ci95"][1]
    assert record["unread"] == []


def test_csv_can_be_read_back(tmp_path: Path) -> None:
    status, out, _ = kitlib("bench", "--format", "csv", str(ROBOT))
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 174
    assert rows[0]["metric"] == "unixbench.score"
    assert float(rows[0]["change_pct"]) == pytest.approx(32.26, abs=0.01)
    again = tmp_path / "again.csv"
    again.write_text("\n".join(out.splitlines()[:20]) + "\n", encoding="utf-8")
    _, second, _ = kitlib("bench", "--format", "json", str(again))
    back = json.loads(second)["tables"][0]["rows"][0]
    assert (back["metric"], back["before"], back["before_n"]) == ("unixbench.score", 2297, 4)


def test_standard_input() -> None:
    status, out, _ = kitlib("bench", "-", stdin=ROBOT.read_bytes())
    assert status == 0
    assert "standard input" in out


def test_compare_two_sample_sets(tmp_path: Path) -> None:
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text('{"aim7.jobs-per-min": [100, 101, 99, 100, 102]}', encoding="utf-8")
    after.write_text('{"aim7.jobs-per-min": [80, 81, 79, 80, 82]}', encoding="utf-8")
    status, out, _ = kitlib("compare", str(before), str(after))
    assert status == 0
    assert "worse" in out
    assert "-19.9 %" in out
    after.write_text('{"other": [1, 2]}', encoding="utf-8")
    status, out, error = kitlib("compare", str(before), str(after))
    assert (status, out) == (2, "")
    assert "no metric is in both" in error


def test_compare_wants_one_set_a_side() -> None:
    status, _, error = kitlib("compare", str(ROBOT), str(AIM7))
    assert status == 2
    assert "holds both sides of a comparison already" in error


def test_options_are_checked() -> None:
    status, _, error = kitlib("bench", "--runs", "1", str(ROBOT))
    assert status == 2
    assert error.count("\n") == 1


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("\x1b]0;title\x07x.y: [1, 2, 3]\n z: [1, 2]\n", encoding="utf-8")
    _, out, _ = kitlib("bench", str(file))
    assert "\x1b" not in out
