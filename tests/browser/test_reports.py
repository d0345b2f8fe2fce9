"""Every page the kit writes, in a real browser with the network cut: silent, small, nothing wider than the screen,
each kind of control moved, every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kitlib.cases import shipped_cases
from kitlib.report import default_notebooks, render

MOST_BYTES = 3_000_000
PAGES = ["index", *(path.stem for path in default_notebooks()), *(f"review-{name}" for name in shipped_cases())]
EXPLORER = ".kit-explorer"


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with every page: all notebooks run, all shipped cases reviewed, and the index."""
    folder = tmp_path_factory.mktemp("reports")
    render(default_notebooks(), folder, cases=shipped_cases())
    return folder


class Anchors(HTMLParser):
    """Link targets and ids of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.figures_without_words = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if found.get("role") == "img" and not found.get("aria-label"):
            self.figures_without_words += 1


def anchors(page: Path) -> Anchors:
    parser = Anchors()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


@pytest.mark.timeout(900)
def test_every_page_is_there_and_in_the_index(reports: Path) -> None:
    assert sorted(path.stem for path in reports.glob("*.html")) == sorted(PAGES)
    listed = [link.removesuffix(".html") for link in anchors(reports / "index.html").links]
    assert sorted(name for name in listed if not name.startswith("#")) == sorted(set(PAGES) - {"index"})
    first = next(name for name in listed if not name.startswith("#"))
    assert first == "00_start_here"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_figures_have_words(reports: Path, name: str) -> None:
    page = anchors(reports / f"{name}.html")
    for link in page.links:
        assert not link.endswith(".ipynb"), link
        file, _, anchor = link.partition("#")
        target = reports / file if file else reports / f"{name}.html"
        assert target.is_file(), link
        if anchor:
            assert anchor in anchors(target).ids, link
    assert page.figures_without_words == 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_is_silent_small_and_fits_the_screen(watched: Any, reports: Path, name: str) -> None:
    path = reports / f"{name}.html"
    assert path.stat().st_size <= MOST_BYTES
    page = watched.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert watched.outside() == []
    assert watched.complaints == []


# -- each kind of control, once a page -----------------------------------------------------------------


def redrawn(page: Any, act: Callable[[], Any]) -> None:
    """Do something to the first explorer and wait until its map is drawn again."""
    before = page.get_attribute(f"{EXPLORER} >> nth=0", "data-draws")
    act()
    page.wait_for_function(f"(n) => document.querySelector('{EXPLORER}').dataset.draws !== n", arg=before)


def sliders(page: Any) -> bool:
    found = page.locator(f"{EXPLORER} >> nth=0 >> input[type=range]:not([disabled])")
    for i in range(found.count()):
        slider = found.nth(i)
        value, low, high = (float(slider.evaluate(f"(s) => s.{key}")) for key in ("value", "min || 0", "max || 0"))
        if low == high:
            continue
        slider.focus()
        redrawn(page, lambda up=value < high: page.keyboard.press("ArrowRight" if up else "ArrowLeft"))
    return found.count() > 0


def lists(page: Any) -> bool:
    """Choose another entry of each list; the first explorer's member list comes last, since it is filled anew."""
    found = page.locator(f"{EXPLORER} >> nth=0 >> select")
    for i in range(found.count()):
        chosen = found.nth(i)
        if chosen.evaluate("(s) => s.options.length") > 1:
            other = chosen.evaluate("(s) => (s.selectedIndex + 1) % s.options.length")
            redrawn(page, lambda chosen=chosen, other=other: chosen.select_option(index=other))
    return found.count() > 0


def switches(page: Any) -> bool:
    found = page.locator(f"{EXPLORER} >> input[type=checkbox]")
    if found.count():
        was = found.nth(0).is_checked()
        found.nth(0).click()
        assert found.nth(0).is_checked() != was
    return found.count() > 0


def buttons(page: Any) -> bool:
    explorer = page.locator(f"{EXPLORER} >> nth=0")
    if not explorer.count():
        return False
    for name in ("undo", "redo", "reset"):
        button = explorer.locator(f"[name={name}]")
        if button.is_enabled():
            button.click()
            page.wait_for_timeout(100)
    with page.expect_download() as download:
        explorer.locator("[name=save]").click()
    assert Path(download.value.path()).stat().st_size > 0
    explorer.locator("[name=copy]").click()
    assert "struct" in explorer.locator(".kit-text").input_value()
    return True


def tables(page: Any) -> bool:
    head = page.locator(".kit-sort >> nth=0")
    if head.count() and head.is_visible():
        head.click()
        assert page.locator("th[aria-sort=ascending]").count() == 1
        head.click()
        assert page.locator("th[aria-sort=descending]").count() == 1
        return True
    return False


def folded(page: Any) -> bool:
    found = page.locator("main details > summary")
    for i in range(min(found.count(), 3)):
        found.nth(i).click()
        assert page.locator("main details").nth(i).get_attribute("open") is not None
    return found.count() > 0


def menus(page: Any) -> bool:
    """A menu or row of buttons in a figure: its second entry gives another picture."""
    figure = page.locator(".kit-figure:has(.updatemenu-container) >> nth=0")
    if not figure.count():
        return False
    before = figure.screenshot()
    header = figure.locator(".updatemenu-header >> nth=0")
    if header.count():
        header.click(force=True)
        figure.locator(".updatemenu-dropdown-button").nth(1).click(force=True)
    else:
        figure.locator(".updatemenu-button").nth(1).click(force=True)
    page.wait_for_timeout(300)
    assert figure.screenshot() != before
    return True


def treemap(page: Any) -> bool:
    box = page.locator(".kit-figure .treemaplayer .slice >> nth=3")
    if not box.count():
        return False
    before = box.bounding_box()
    box.click(force=True)
    page.wait_for_timeout(900)
    assert box.bounding_box() != before
    return True


def contents(page: Any) -> bool:
    link = page.locator(".kit-contents a >> nth=1")
    if link.count():
        link.click()
        assert page.evaluate("decodeURIComponent(location.hash).length") > 1
    return link.count() > 0


def theme(page: Any) -> bool:
    def paper() -> Any:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    seen = set()
    for _ in range(3):
        page.click("#kit-theme")
        page.wait_for_timeout(100)
        seen.add(paper())
    assert len(seen) == 2
    return True


KINDS = (sliders, lists, switches, buttons, tables, folded, menus, treemap, contents, theme)
MET: dict[str, set[str]] = {}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_each_kind_of_control_moves(watched: Any, reports: Path, name: str) -> None:
    page = watched.open(reports / f"{name}.html")
    MET[name] = {kind.__name__ for kind in KINDS if kind(page)}
    assert watched.complaints == []
    assert watched.outside() == []
    assert "theme" in MET[name]
    if re.match(r"review-struct-file|00|10|14|20", name):
        assert {"sliders", "lists", "buttons", "tables", "folded"} <= MET[name]


def test_every_kind_was_met() -> None:
    if set(MET) != set(PAGES):
        pytest.skip("only some pages were chosen to run")
    assert set.union(*MET.values()) == {kind.__name__ for kind in KINDS}
