"""Every notebook: runs from a clean kernel, also without a compiler and without this kernel's types; its words hold
no figure that data could contradict; its links lead somewhere."""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from kitlib.cases import shipped_cases
from kitlib.report import execute, read_notebook

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = [
    "00_start_here",
    "10_struct_file",
    "11_fget_atomic",
    "12_mm_struct",
    "13_i_version",
    "14_struct_file_history",
    "20_your_struct",
    "21_your_benchmark",
    "22_whole_kernel",
]
CPU_SECONDS = 180
"""What all notebooks may take together, counted in CPU time so that a busy machine does not fail the test."""


def cells(name: str) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def prose(name: str) -> str:
    return "\n\n".join(text for kind, text in cells(name) if kind == "markdown")


def said(nb: Any) -> str:
    """All text that the cells of an executed notebook put out."""
    found = []
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            found.append(output.get("text", ""))
            found.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join("".join(text) for text in found)


def test_every_notebook_is_listed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NOTEBOOKS


@pytest.fixture(scope="module")
def cpu_used() -> list[float]:
    """CPU seconds of the runs so far, in order."""
    return []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_from_a_clean_kernel(name: str, cpu_used: list[float]) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nb = read_notebook(FOLDER / f"{name}.ipynb")
    execute(nb, FOLDER / f"{name}.ipynb")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    run = [cell for cell in nb.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in run)
    assert sum(cpu_used) <= CPU_SECONDS, dict(zip(NOTEBOOKS, cpu_used, strict=False))


# What a notebook needs that may be missing: the words that its output then holds.
WITHOUT = {
    "10_struct_file": "not here: here",
    "13_i_version": "a C compiler is needed",
    "14_struct_file_history": "not here: here",
    "22_whole_kernel": "has no type information",
}
NEEDS = re.compile(r"\"running\"|here_or|two_builds|open_c|read_history|open_snippet")


@pytest.fixture
def poor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that start from now on find no compiler and no types of the running kernel."""
    hook = "import pathlib, kitlib.btf\nkitlib.btf.RUNNING = pathlib.Path('/nonexistent/vmlinux')\n"
    (tmp_path / "sitecustomize.py").write_text(hook)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{FOLDER.parent}")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))


def test_those_that_need_something_are_known() -> None:
    needy = {n for n in NOTEBOOKS if any(k == "code" and NEEDS.search(text) for k, text in cells(n))}
    assert needy == set(WITHOUT)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*WITHOUT, "00_start_here", "20_your_struct"])
def test_says_what_is_missing_and_runs_on(name: str, poor: None) -> None:
    nb = read_notebook(FOLDER / f"{name}.ipynb")
    execute(nb, FOLDER / f"{name}.ipynb")
    assert WITHOUT.get(name, "") in said(nb)


# -- words without figures -----------------------------------------------------------------------------

# A number in a markdown cell is allowed as a kernel version, a year, a count of bytes or a byte's place (these are
# explained in prose and drawn beside it), the name of the 95 % interval, a case number of a chip or test, or a
# small whole number. Everything else is a figure: a cell has to put it out from data.
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
ALLOWED = re.compile(
    r"""
      \bv?[2-7]\.\d{1,2}\b(?!\s*(?:%|×|ns|ms|s\b|lps|Mpps|ops|times|points))  # a kernel version
    | \b(?:19|20)\d\d\b                           # a year
    | \b95\ %\ \*{0,2}interval | \b19\ of\ 20\b   # the interval, and what it means
    | \b(?:byte|bytes|at|of)\ (?:32|64|128|256)\b # a line
    | \b\d{1,3}(?:-|\ )bytes?\b | \b[Bb]yte\ \d{1,3}\b
    | \bE5-2690\ v2\b | \bKunpeng\ 920\b | \b6248\b | \barm64\b
    """,
    re.VERBOSE,
)
NUMBER = re.compile(r"[-+−±≤]?\s?\d[\d,.]*\s*(?:%|×)?")


def typed_figures(text: str) -> list[str]:
    """Numbers in markdown that are no version, year, place or small count."""
    plain = ALLOWED.sub(" ", CODE.sub(" ", text))
    found = [match.strip(" .,") for match in NUMBER.findall(plain)]
    return [number for number in found if not re.fullmatch(r"\d", number)]


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("it fell by 9.2 %", ["9.2 %"]),
        ("2,222,456 lps", ["2,222,456"]),
        ("from 0.53 to 0.97", ["0.53", "0.97"]),
        ("a loss of −18 % in 172 rows", ["−18 %", "172"]),
        ("1.3× as fast", ["1.3×"]),
        ("4.2 Mpps, up to 9 %", ["4.2", "9 %"]),
        ("Linux 6.12 of 2024, 64 bytes, byte 120, 3 lines, a 95 % interval", []),
        ("`2,222,456` in code, [a link](x/12345.html)", []),
    ],
)
def test_the_rule_finds_typed_figures(text: str, figures: list[str]) -> None:
    assert typed_figures(text) == figures


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_figure_is_typed(name: str) -> None:
    assert typed_figures(prose(name)) == []


# -- links, and what a reader sees first ---------------------------------------------------------------


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_lead_somewhere(name: str) -> None:
    pages = {f"../reports/review-{case}.html" for case in shipped_cases()} | {"../reports/index.html"}
    for target in re.findall(r"\]\(([^)]+)\)", prose(name)):
        assert target in pages or (FOLDER / target).is_file() or target.startswith("#"), target


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_begins_with_a_title_and_what_it_is_about(name: str) -> None:
    kind, first = cells(name)[0]
    assert kind == "markdown"
    assert re.match(r"# .+\n\n\S", first)
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
