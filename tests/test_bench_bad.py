"""Hostile and broken input: one clear line, exit 2, and work that grows no faster than the input."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitlib import benchfiles
from kitlib.datafiles import path
from kitlib.errors import KitError
from kitlib.series import Report

ROBOT = path("benchmarks/struct-file-5.8-robot.txt").read_text("utf-8")
CPU_SECONDS = 20  # a bound no linear reader comes near on these inputs; a backtracking one never ends


def kitlib(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line under a limit on processor time, which ends it if a pattern backtracks."""
    return subprocess.run(
        [sys.executable, "-c", "from kitlib.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
    )


BAD: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n \n\t\n",
    "prose": b"Hello,\n\nno table in here.\n" * 50,
    "random": random.Random(1).randbytes(200_000),
    "nul": b"\0" * 100_000,
    "nul in lines": b"a\0b\n" * 1000,
    "cut in the only row": (ROBOT.split("      2297")[0] + "      2297 ±  2%     +3").encode(),
    "long line": b"a" * 1_000_000,
    "long line of numbers": b"1 " * 500_000,
    "long line of signs": "± ".encode() * 400_000 + b"%",
    "long line of quotes": b"> " * 500_000,
    "long line of commas": b"1," * 500_000 + b"\n" + b"1," * 500_000,
    "broken JSON": b'{"results": [',
    "deep JSON": b"[" * 100_000,
    "JSON of something else": b'{"name": "x", "members": []}',
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_and_exit_2(name: str, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(BAD[name])
    done = kitlib("bench", str(file))
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("kitlib: ")
    assert "Traceback" not in done.stderr


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nowhere"), str(tmp_path)):
        done = kitlib("bench", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert name in done.stderr


def test_cut_mid_row_shows_the_rows_before_it_and_exits_2(tmp_path: Path) -> None:
    file = tmp_path / "cut.txt"
    file.write_text(ROBOT.split(" 1.366e+09")[0] + " 1.366e+09           +32.6%  1.8", encoding="utf-8")
    done = kitlib("bench", str(file))
    assert done.returncode == 2
    assert "cut off in the middle of a row (line 15)" in done.stderr
    assert "unixbench.score" in done.stdout


def lines_of(pattern: str) -> Callable[[int], str]:
    return lambda size: (pattern * (4000 // len(pattern)) + "\n") * size


GROWING: dict[str, Callable[[int], str]] = {
    "rows": lambda size: ROBOT + "\n".join(f"  {i}.50 ± 3%  +1.0%  {i}.90  a.b{i}" for i in range(20 * size)),
    "copies": lambda size: ROBOT * (size // 4),
    "open rows": lambda size: ROBOT + "2297 ± 2% +32.3%\n" * (20 * size),
    "plots": lambda size: "  5 ------+-----\n" * (20 * size) + "  5 +-----------+\n" * (20 * size),
    "plot without an end": lambda size: "  5 +-----------+\n" + "   | O |\n" * (20 * size),
    "lists": lambda size: "a.b: [1,\n" * (20 * size),
    "one list": lambda size: "a.b: [\n" + "1,\n" * (20 * size) + "]\n",
    "patches": lines_of("with patch "),
    "places": lines_of("a on B patch "),
    "headers": lambda size: "---------- ----------\n" * (20 * size),
    "claims": lines_of("noticed a 5% "),
    "digits": lambda size: "NAME BASELINE RESULT INDEX\n" + ("1" * 4000 + "\n") * size,
    "conditions": lambda size: "with this patch:\nA 1.0 lps (10.0 s, 1 samples)\n" * (20 * size),
    "brackets": lines_of("a : ["),
}


def calls(text: str) -> int:
    """Function calls, Python's and C's, that reading `text` takes."""
    count = 0

    def tick(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tick)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


def read(text: str) -> Report | None:
    try:
        return benchfiles.read_text(text)
    except KitError:
        return None


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_input_takes_twice_the_work(name: str) -> None:
    make = GROWING[name]
    first, second, third = (calls(make(size)) for size in (8, 16, 32))
    assert third - second <= 2.4 * (second - first) + 2000


@pytest.mark.parametrize("name", GROWING)
def test_no_pattern_backtracks(name: str, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text(GROWING[name](200), encoding="utf-8")
    assert kitlib("bench", str(file)).returncode in (0, 2)


@given(st.binary(max_size=400))
def test_any_bytes_give_a_report_or_a_kit_error(data: bytes) -> None:
    try:
        report = benchfiles.read_stream(BytesIO(data), "x")
    except KitError:
        return
    assert report.tables or report.series or report.plots


@given(st.lists(st.sampled_from(ROBOT.splitlines()), max_size=40), st.integers(0, 200))
def test_any_part_of_a_report_is_read_without_a_crash(lines: list[str], cut: int) -> None:
    read("\n".join(lines)[: -cut or None])


def test_nul_bytes_inside_a_good_report_are_taken_out() -> None:
    report = benchfiles.read_text(ROBOT.replace("unixbench.score", "unixbench\0.score"))
    assert report.tables[0].rows[0].metric == "unixbench.score"
