"""Where the data files that come with the kit are."""

from __future__ import annotations

from pathlib import Path

from kitlib.errors import NotFound


def data_root() -> Path:
    """The ``data`` folder: beside the package in a checkout, inside it once installed."""
    package = Path(__file__).resolve().parent
    for candidate in (package.parent / "data", package / "_data"):
        if (candidate / "layouts").is_dir() or (candidate / "benchmarks").is_dir():
            return candidate
    raise NotFound(f"the kit's data folder is not beside {package}; install it with 'make report'")


def path(name: str) -> Path:
    """Path of the data file `name` (``"benchmarks/x.toml"``). Raises `NotFound` if it is not there."""
    found = data_root() / name
    if not found.exists():
        raise NotFound(f"no data file '{name}' in {data_root()}")
    return found
