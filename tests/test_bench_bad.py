"""Hostile and broken input: one clear line, exit 2, and work that grows no faster than the input."""

from __future__ import annotations

import json
import os
import random
import re
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
from kitlib.benchtext import records
from kitlib.datafiles import path
from kitlib.errors import KitError
from kitlib.series import Report
from kitlib.verdict import judge_report

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


def header(row: str) -> str:
    return ROBOT.split("      2297")[0] + f"      2297 ±  2%     +32.3%       3038        unixbench.score\n{row}\n"


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
    "test cases": lambda size: "".join(
        header(f"{100 + i} +1.0% {200 + i} a.b{i}") + "=" * 40 + "\n" for i in range(2 * size)
    ),
    "intervals": lambda size: (
        "#           time             counts unit events\n" + "     1.000000001     5      cycles\n" * (20 * size)
    ),
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


ODD_FIGURES = {
    "huge exponent": header("1e400 +1.0% 5 a.b"),
    "endless exponent": header("0e99999999 +1.0% 1e-99999999999 a.b"),
    "superscript spread": header("5 ²% +1% 6 a.b"),
    "opposite giants": header("1e308 ± 3% +1e400% -1e308 a.b"),
    "just usable": header("1e60 ± 1000000% +1% 1e-60 ± 1000000% a.b"),
    "giant integer": f'{{"a": [1{"0" * 400}, 1]}}',
    "giant samples": '{"a": [1e308, 1e308, 1], "b": [1e200, -1e200, 3e200]}',
    "giant samples in text": "a.b: [1e308, 1e308, 1e308]\n",
    "infinity in text": "a.b: [inf]\n",
    "giant axis": " 1e308 +-------------+\n | O * |\n | * O |\n 1 +-----------+\n",
    "superscript count": "System Call Overhead 5.0 lps (10.0 s, ² samples)\n",
    "infinite result": "System Call Overhead inf lps (10.0 s, 1 samples)\n",
    "no run": " Performance counter stats for 'x' (0 runs):\n\n 5 cycles ( +- 9999999% )\n",
    "NaN tasks": "tasks,processes\nnan,1\n1,5\n",
    "infinite tasks": "tasks,processes\ninf,1\n1,1e400\n",
    "giant table": "before,after\n" + "1e308,-1e308\n" * 6,
    "infinite runs": "metric,before,after,before_n,after_n,before_spread_pct\na,1,2,inf,nan,inf\n",
    "exit codes": '{"results": [{"command": "a", "times": [1, 2], "exit_codes": 5}]}',
    "metadata": '{"version": "1", "metadata": [1], "benchmarks": [{"metadata": 5, "runs": [{"values": [1, 2]}, 7]}]}',
    "no runs": '{"version": "1", "benchmarks": [{"runs": null}, {"runs": [1]}, {"runs": "x"}]}',
    "repetitions": '{"benchmarks": [{"name": "a", "run_type": "aggregate", "aggregate_name": "mean", '
    '"repetitions": [1], "real_time": 1}]}',
    "percentiles": '{"fio version": "3", "jobs": [{"read": {"iops": 1, "clat_ns": {"mean": 1, "percentile": [1]}}}]}',
    "half a character": '{"a\\ud800b": [1, 2, 3]}',
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD_FIGURES)
def test_odd_figures_give_a_report_or_a_kit_error(name: str) -> None:
    """No figure is too large or too odd: what cannot be computed with is not read as one."""
    report = read(ODD_FIGURES[name])
    if report is not None:
        record = records(report, judge_report(report))
        json.dumps(record, allow_nan=False, ensure_ascii=False).encode("utf-8")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["times", "a", "values"]), inner),
    max_leaves=6,
)
KNOWN = [
    '{"version": "1", "metadata": 0, "benchmarks": [{"metadata": 1, "runs": [{"values": 2}, 3]}]}',
    '{"results": [{"command": 0, "times": 1, "mean": 2, "exit_codes": 3}]}',
    '{"benchmarks": [{"name": 0, "run_type": "aggregate", "aggregate_name": "mean", '
    '"repetitions": 1, "real_time": 2}]}',
    '{"fio version": 0, "jobs": [{"jobname": 1, "read": {"iops": 2, "clat_ns": {"mean": 1, "percentile": 3}}}]}',
]


@given(st.sampled_from(KNOWN), st.lists(json_values, min_size=4, max_size=4))
def test_json_with_anything_in_any_place(frame: str, values: list[object]) -> None:
    read(re.sub(r"(?<=[ :])([0-3])(?=[,}\]])", lambda found: json.dumps(values[int(found[1])]), frame))


def test_a_cell_without_an_end_is_one_line(tmp_path: Path) -> None:
    for heading in ("before,after\n1,2\n2,3\n3,4\n", "tasks,processes\n1,2\n"):
        file = tmp_path / "x.csv"
        file.write_text(heading + '"' + "9" * 200_000 + ",5\n", encoding="utf-8")
        done = kitlib("bench", str(file))
        assert (done.returncode, done.stdout) == (2, "")
        assert "is a quote left open?" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_column_that_is_there_twice_is_refused() -> None:
    for text in ("before,after,before\n1,2,3\n4,5,6\n", "tasks,processes,processes\n1,5,6\n"):
        with pytest.raises(KitError, match="is there twice"):
            benchfiles.read_text(text)


def test_text_that_cannot_be_written_is_one_line() -> None:
    for form in ("text", "json", "csv"):
        command = [sys.executable, "-c", "from kitlib.cli import main; main()", "bench", "--format", form]
        file = str(path("benchmarks/struct-file-5.8-robot.txt"))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*command, file], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
        done = subprocess.run([*command, file], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == (2 if done.stderr else 0)
        assert done.stderr.count("\n") <= 1


def test_closed_streams_are_one_line() -> None:
    shell = f"exec {sys.executable} -c 'from kitlib.cli import main; main()' bench - <&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "kitlib: standard input: it is closed; name a file\n")


def test_a_pipe_is_read_like_a_file() -> None:
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", "bench", "/dev/stdin"]
    text = path("benchmarks/inode-4.16-aim7.csv").read_bytes()
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"-18.1 %" in done.stdout


def test_a_device_without_an_end_is_refused() -> None:
    with pytest.raises(KitError, match="is a device"):
        benchfiles.read("/dev/zero")
