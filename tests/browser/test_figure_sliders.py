"""Sliders of a figure on a page: moved by keyboard, offline, and the figure is the one that Python computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kitlib.access import load_profile
from kitlib.figures.tradeoff import POINTS
from kitlib.machine import load_machine
from kitlib.sources import open_source
from kitlib.tradeoff import trade_off

CELL = """from kitlib import open_source
from kitlib.access import load_profile
from kitlib.figures.tradeoff import trade_off_controls
profile = load_profile('struct_file')
old, new = (open_source(name).struct('file') for name in ('file-5.8', 'file-5.8-patch'))
trade_off_controls(old, new, profile, machines=('rome', 'kunpeng-920'), cpus=(2, 24), works=(60, 900))"""
SEEN = """() => document.querySelector(".kit-plot")._fullData.filter((t) => t.type === "heatmap" && t.visible !== false
          && t.opacity !== 0).map((t) => ({ z: Array.from(t.z, (row) => Array.from(row)), bar: t.showscale }))"""


@pytest.fixture(scope="module")
def map_page(make_page: Callable[..., Path]) -> Path:
    return make_page("map", "# A map", CELL)


def press(page: Any, slider: Any, key: str) -> None:
    before = page.get_attribute(".kit-plot", "data-step")
    slider.focus()
    page.keyboard.press(key)
    page.wait_for_function("(n) => (document.querySelector('.kit-plot').dataset.step ?? null) !== n", arg=before)


def shown(page: Any) -> Any:
    (surface,) = page.evaluate(SEEN)
    assert surface["bar"]
    return np.asarray(surface["z"])


def expected(machine: str, cpus: int, work_ns: float) -> Any:
    old, new = (open_source(name).struct("file") for name in ("file-5.8", "file-5.8-patch"))
    profile = load_profile("struct_file").with_workload(work_ns=work_ns)
    return trade_off(old, new, profile, load_machine(machine), cpus=cpus, points=POINTS).delta_ns


def test_sliders_move_by_keyboard_and_are_independent(watched: Any, map_page: Path) -> None:
    page = watched.open(map_page)
    cpus, work = (page.locator(".kit-figure-slider input").nth(i) for i in range(2))
    close = {"rtol": 1e-2, "atol": 1e-3}
    assert np.allclose(shown(page), expected("rome", 24, 60.0), **close)
    press(page, cpus, "ArrowLeft")
    assert np.allclose(shown(page), expected("rome", 2, 60.0), **close)
    press(page, work, "ArrowRight")
    assert np.allclose(shown(page), expected("rome", 2, 900.0), **close)
    press(page, cpus, "End")
    assert np.allclose(shown(page), expected("rome", 24, 900.0), **close)
    assert page.locator(".kit-figure-slider output").all_inner_texts() == ["24", "900", "10", "10"]
    page.locator(".updatemenu-header").click(force=True)
    page.locator(".updatemenu-dropdown-button").nth(1).click(force=True)
    page.wait_for_timeout(300)
    assert np.allclose(shown(page), expected("kunpeng-920", 24, 900.0), **close)
    assert watched.outside() == []
    assert watched.complaints == []


STARS = """() => document.querySelector(".kit-plot")._fullData.filter((t) => t.name === "your workload"
          && t.visible !== false && t.opacity !== 0).map((t) => [t.x[0], t.y[0], t.text[0]])"""


def test_the_reader_moves_the_workload_on_the_map(watched: Any, map_page: Path) -> None:
    page = watched.open(map_page)
    cpus, _, shared, cold = (page.locator(".kit-figure-slider input").nth(i) for i in range(4))

    def told(z: Any, row: float, column: float) -> list[Any]:
        ((x, y, text),) = page.evaluate(STARS)
        value = float(text.removeprefix("your workload: ").removesuffix(" ns"))
        low = np.floor([row, column]).astype(int)
        near = z[low[0] : low[0] + 2, low[1] : low[1] + 2]
        slack = 0.02 + 0.01 * float(np.abs(near).max())  # the page carries three digits
        assert near.min() - slack <= value <= near.max() + slack
        return [x, y]

    assert told(expected("rome", 24, 60.0), 2, 2) == [10, 10]
    press(page, shared, "End")
    assert told(expected("rome", 24, 60.0), 2, 20) == [100, 10]
    press(page, cold, "Home")
    assert told(expected("rome", 24, 60.0), 0, 20) == [100, 0]
    press(page, cold, "ArrowRight")
    assert told(expected("rome", 24, 60.0), 0.2, 20) == [100, 1]
    press(page, cpus, "ArrowLeft")
    page.wait_for_timeout(300)
    assert told(expected("rome", 2, 60.0), 0.2, 20) == [100, 1]
    assert watched.complaints == []


def test_on_a_narrow_screen_the_sliders_fit(watched: Any, map_page: Path) -> None:
    page = watched.open(map_page)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
