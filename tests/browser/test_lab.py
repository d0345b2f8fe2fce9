"""A live JupyterLab: a slider moved by keyboard changes the figure, and chained edits stay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kitlib.cli.pages import lab_command, lab_environment
from kitlib.edit import Align, Move, apply
from kitlib.figures.layout import cacheline_map
from kitlib.shorthand import make_layout

RING = "lock=spinlock_t:4 head:8 name:56 refs=atomic_t:4 tail:8"
CELL = f"from kitlib import explore, make_layout\nx = explore(make_layout({RING!r}, 'ring'), member='refs')\nx"
SETTINGS = """{"@jupyterlab/apputils-extension:notification":
  {"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}}"""
READY = """async () => { const { shell } = window.jupyterapp; const panel = shell.currentWidget;
  if (!panel?.sessionContext) return false;
  await panel.revealed; await panel.sessionContext.ready; await panel.sessionContext.session.kernel.info;
  return true; }"""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab as `kitlib lab` starts it, on notebooks of one and two cells; gives the address with its token."""
    folder = tmp_path_factory.mktemp("lab")
    for name, cells in (("one", (CELL,)), ("two", (CELL, "x"))):
        nb = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(nb, str(folder / f"{name}.ipynb"))
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(SETTINGS)
    log = folder / "log"
    command = lab_command([folder / "one.ipynb"], 18731, True)
    command += ["--expose-app-in-browser", f"--LabApp.app_settings_dir={settings}"]
    private = {"JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_RUNTIME_DIR": str(folder / "run")}
    private |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces"), "JUPYTERLAB_SETTINGS_DIR": str(folder / "user")}
    private |= {"IPYTHONDIR": str(folder / "ipython"), "JUPYTER_PLATFORM_DIRS": "1"}
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=lab_environment() | private, cwd=folder)
    try:
        yield _address(server, log)
    finally:
        server.terminate()
        server.wait(20)


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(240):
        found = re.search(r"http://127\.0\.0\.1:\d+/lab\S*\?token=[0-9a-f]{20,}", log.read_text())
        if found:
            return found[0]
        assert server.poll() is None, log.read_text()
        time.sleep(0.25)
    raise AssertionError(log.read_text())


def test_lab_listens_on_this_machine_only_and_with_a_token(lab: str) -> None:
    assert lab.startswith("http://127.0.0.1:")
    from urllib.error import HTTPError
    from urllib.request import urlopen

    with pytest.raises(HTTPError, match="403"):
        urlopen(lab.split("/lab")[0] + "/api/kernels", timeout=20)


def rows(page: Any) -> list[Any]:
    return page.evaluate(
        """() => document.querySelector(".kit-explorer .kit-plot").data.filter((t) => t.type === "bar").flatMap(
             (t) => t.y.map((y, i) => [t.name, y, t.base[i], t.x[i], t.hovertext[i]]))"""
    )


def expected(*edits: Any) -> list[Any]:
    ring = make_layout(RING, "ring")
    return [
        [t.name, t.y[i], t.base[i], t.x[i], t.hovertext[i]]
        for t in cacheline_map(apply(ring, edits), before=ring).data
        if t.type == "bar"
        for i in range(len(t.y))
    ]


def press(page: Any, name: str, key: str) -> None:
    before = page.get_attribute(".kit-explorer", "data-draws")
    page.focus(f".kit-explorer [name={name}]")
    page.keyboard.press(key)
    page.wait_for_function(
        "(n) => document.querySelector('.kit-explorer').dataset.draws !== n", arg=before, timeout=20_000
    )
    page.wait_for_timeout(250)


def test_a_slider_moved_by_keyboard_changes_the_figure(browser: Any, lab: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    outside: list[str] = []
    page.on(
        "request",
        lambda r: outside.append(r.url) if not r.url.startswith(("http://127.0.0.1", "data:", "blob:")) else None,
    )
    page.goto(lab, timeout=90_000)
    page.wait_for_function("() => Boolean(window.jupyterapp?.shell?.currentWidget?.sessionContext)", timeout=90_000)
    assert page.evaluate(READY)
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_selector(".kit-explorer[data-draws]", timeout=90_000)
    assert rows(page) == expected()
    press(page, "position", "ArrowLeft")
    assert rows(page) == expected(Move("refs", index=2))
    press(page, "position", "ArrowLeft")
    assert rows(page) == expected(Move("refs", index=1))
    page.select_option(".kit-explorer [name=member]", label="head")
    page.wait_for_timeout(250)
    press(page, "align", "End")  # a second member: edits are chained
    assert rows(page) == expected(Move("refs", index=1), Align("head", 128))
    page.click(".kit-explorer [name=undo]")
    page.wait_for_timeout(400)
    assert rows(page) == expected(Move("refs", index=1))
    page.click(".kit-explorer [name=copy]")
    page.wait_for_selector(".kit-explorer .kit-text:not([hidden])", timeout=10_000)
    if os.environ.get("KITLIB_SCREENSHOTS"):
        page.screenshot(path=str(Path(os.environ["KITLIB_SCREENSHOTS"]) / "lab.png"))
    assert complaints == []
    assert outside == []
    context.close()


def test_two_views_of_one_explorer_follow_each_other(browser: Any, lab: str) -> None:
    """The second view is also what a reader has who opened the notebook again while its kernel ran."""
    page = browser.new_context(viewport={"width": 1280, "height": 1400}).new_page()
    page.goto(lab.replace("one.ipynb", "two.ipynb") + "&reset", timeout=90_000)
    page.wait_for_function("() => Boolean(window.jupyterapp?.shell?.currentWidget?.sessionContext)", timeout=90_000)
    assert page.evaluate(READY)
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function("() => document.querySelectorAll('.kit-explorer[data-draws]').length === 2", timeout=90_000)
    both = page.locator(".kit-explorer")

    def positions() -> list[str]:
        page.wait_for_timeout(500)
        return [text.split(",")[0] for text in both.locator("label:has([name=position]) output").all_inner_texts()]

    both.nth(0).locator("[name=position]").focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")  # in quick succession: two edits all the same
    assert positions() == ["2 of 5", "2 of 5"]
    both.nth(1).locator("[name=undo]").press("Enter")
    assert positions() == ["3 of 5", "3 of 5"]
    both.nth(0).locator("[name=undo]").press("Space")
    assert positions() == ["4 of 5", "4 of 5"]
    both.nth(1).locator("[name=position]").press("Home")
    assert positions() == ["1 of 5", "1 of 5"]
    page.context.close()


def test_the_command_line_asks_for_no_open_door() -> None:
    command = lab_command([Path("notebooks/00_start_here.ipynb"), Path("notebooks/10_struct_file.ipynb")], 8888, True)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in command
    assert "--ServerApp.ip=127.0.0.1" in command
    assert not [part for part in command if "token" in part or "password" in part]
