"""What several test modules share: programs that may be missing, and compiled C."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def need_tool(name: str, *, required: bool = True) -> str:
    """Path of the program `name`. Without it the test is skipped; under CI (``CI`` is set) a required one fails."""
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not installed"
        if required and os.environ.get("CI"):
            pytest.fail(f"{reason}, and under CI it may not be missing")
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session", name="need_tool")
def _need_tool() -> object:
    """`need_tool` for modules that cannot import this file."""
    return need_tool


@pytest.fixture
def compile_c(tmp_path: Path) -> object:
    """A function ``(C text, *flags, compiler="gcc", name="unit") -> path of the object file``."""

    def run(text: str, *flags: str, compiler: str = "gcc", name: str = "unit") -> Path:
        source, target = tmp_path / f"{name}.c", tmp_path / f"{name}.o"
        source.write_text(text)
        command = [need_tool(compiler), "-w", "-c", *flags, "-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return target

    return run
