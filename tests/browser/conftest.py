"""A real browser (the system's Chromium), pages made from notebooks, and watchers for requests and errors."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing(reason: str) -> None:
    """Skip, or under CI fail."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, and under CI nothing is skipped")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("chromium is not installed")
    if importlib.util.find_spec("playwright") is None:
        missing("playwright is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


class Watched:
    """A browser page that notes what it asked for and what it complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, path: Path) -> Any:
        """Open a file and wait until its figures are drawn."""
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        return self.page

    def outside(self) -> list[str]:
        """Requests beyond the file itself and what it carries."""
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A fresh profile with the network cut."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, accept_downloads=True)
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(scope="session")
def make_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that runs cells (code, or markdown if they begin with ``#``) and gives the page's path."""

    def make(name: str, *cells: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        kinds = nbformat.v4
        nb = kinds.new_notebook(
            cells=[kinds.new_markdown_cell(c) if c.startswith("#") else kinds.new_code_cell(c) for c in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(nb, str(folder / f"{name}.ipynb"))
        from kitlib.report import render

        return render([folder / f"{name}.ipynb"], folder / "out")[0]

    return make
