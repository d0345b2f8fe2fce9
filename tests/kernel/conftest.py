"""Tests on a whole kernel: `make test-kernel` fetches one and sets ``KITLIB_VMLINUX`` to it or its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.dwarf import DwarfSource, open_dwarf
from kitlib.model import Layout

if not os.environ.get("KITLIB_VMLINUX"):
    collect_ignore_glob = ["test_*.py"]  # no part of `make test`: a kernel is 300 MB


_FIGURES: list[str] = []


@pytest.fixture
def say() -> Callable[[str], None]:
    """Show a line at the end of the run: the counts are what these tests are for."""
    return _FIGURES.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _FIGURES:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def vmlinux() -> Path:
    path = Path(os.environ["KITLIB_VMLINUX"])
    return path / "vmlinux" if path.is_dir() else path


@pytest.fixture(scope="session")
def dwarf(vmlinux: Path) -> DwarfSource:
    return open_dwarf(vmlinux)


@pytest.fixture(scope="session")
def layouts(dwarf: DwarfSource) -> list[Layout]:
    """All structs of the kernel: about a minute."""
    return list(dwarf.structs())
