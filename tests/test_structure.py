"""The map holds: who may import whom, what the environment lists, what the data folders say."""

from __future__ import annotations

import ast
import fnmatch
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kitlib.manifest import NAME as MANIFEST
from kitlib.manifest import problems

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "kitlib").rglob("*.py"))

# Each heavy library has one home; everything else reaches it through that home.
HOMES = {
    "elftools": ("kitlib/dwarf",),
    "plotly": ("kitlib/figures/",),
    "ipywidgets": ("kitlib/explore",),
    "anywidget": ("kitlib/explore",),
    "nbconvert": ("kitlib/report",),
    "nbclient": ("kitlib/report",),
    "click": ("kitlib/cli/",),
}

# The straight line, by the names of modules (a * stands for any ending): a module may import from its own layer
# and from those above it in this table. What is named in no layer is an analysis.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "text", "files", "datafiles", "manifest", "tomlfile"),
    ("model", "tags", "lines", "place", "cdecl", "edit", "layoutjson", "scenario", "shorthand", "source", "series"),
    ("sources", "elf", "compression", "btf*", "dwarf*", "pahole*", "csource", "cprelude", "vmlinuz", "shipped",
     "kernels", "benchfiles", "metrics", "describe"),
    ("*",),
)  # fmt: skip
VIEWS = ("figures", "explore", "explore_measure", "states", "page", "tables", "prose", "report", "reviewpage", "cli")


def name_of(path: Path) -> str:
    """``kitlib/figures/layout.py`` is ``figures``: a package counts as one module."""
    return path.relative_to(ROOT / "kitlib").parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "kitlib":
                found |= {f"kitlib.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_map(path: Path) -> None:
    shown = str(path.relative_to(ROOT))
    names = imported(path)
    for library, homes in HOMES.items():
        if any(name.split(".")[0] == library for name in names):
            assert shown.startswith(homes), f"{shown} imports {library}; only {homes} may"
    own = name_of(path)
    if own == "__init__":
        return
    ours = {name.split(".")[1] for name in names if name.startswith("kitlib.")} - {own, "__version__"}
    if own not in (*VIEWS, "__main__"):
        assert not ours & set(VIEWS), f"{shown} imports a view: {ours & set(VIEWS)}"
    if own not in ("cli", "__main__"):
        assert "cli" not in ours
    above = {module for module in ours if level(module) > level(own)}
    assert not above, f"{shown} imports from later in the line: {above}"


def level(module: str) -> int:
    """Which layer a module is in, 0 for the first."""
    return next(i for i, layer in enumerate(LAYERS) if any(fnmatch.fnmatchcase(module, name) for name in layer))


def test_importing_kitlib_loads_nothing_heavy() -> None:
    code = "import sys, kitlib; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pandas", "plotly", "ipywidgets", "numpy", "scipy", "elftools", "click"} & set(loaded)


def requirement(line: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z0-9_-]+)\s*(>=[0-9.]+)", line)
    assert match, f"'{line}' is no name>=version"
    return match[1].lower(), match[2]


def test_environment_lists_what_pyproject_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {requirement(line) for line in project["dependencies"]}
    wanted.add(("python", project["requires-python"]))
    listed = re.findall(r"^  - ([A-Za-z0-9_-]+>=[0-9.]+)$", (ROOT / "environment.yml").read_text("utf-8"), re.M)
    assert {requirement(line) for line in listed} == wanted


def test_lock_pins_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines), lines
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    assert {requirement(line)[0].replace("_", "-") for line in wanted} <= pinned


DATA = sorted(p for p in (ROOT / "data").iterdir() if p.is_dir() and p.name != "__pycache__")


@pytest.mark.parametrize("folder", DATA, ids=lambda p: p.name)
def test_data_files_agree_with_their_manifest(folder: Path) -> None:
    assert (folder / MANIFEST).exists()
    assert problems(folder) == []


def test_notebooks_hold_no_outputs() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            assert not cell.get("outputs"), f"{path.name}, cell {number}: stored output; run nbstripout --keep-id"
            assert cell.get("execution_count") is None, f"{path.name}, cell {number}: stored execution count"
            if cell["cell_type"] == "code":
                lines = "".join(cell["source"]).splitlines()
                assert len(lines) <= 9, f"{path.name}, cell {number}: {len(lines)} lines; put logic into kitlib"


def test_modules_stay_small() -> None:
    for path in MODULES:
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= 430, f"{path.relative_to(ROOT)}: {lines} lines; one topic a module"
