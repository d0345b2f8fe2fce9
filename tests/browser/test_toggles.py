"""Configurations in the explorer: a switch for each option, a list for each choice; in a page and with a kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kitlib.shorthand import make_layout
from kitlib.states import Session, Subject, View
from kitlib.variantfile import read_variants
from kitlib.variants import Option, Variants

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def mm_page(make_page: Callable[..., Path]) -> Path:
    return make_page(
        "toggles",
        "# Configurations",
        "from kitlib import explore\nfrom kitlib.variantfile import read_variants",
        "explore(variants=read_variants('mm_struct'), member='mmap_lock')",
    )


def offset(page: Any) -> str:
    """What the table says of the chosen member, as shown now."""
    row = page.locator(".kit-tables tr", has_text="offset of")
    return str(row.locator("td").nth(1).inner_text())


def switch(page: Any, act: Callable[[], Any]) -> str:
    before = page.get_attribute(".kit-explorer", "data-draws")
    act()
    page.wait_for_function("(n) => document.querySelector('.kit-explorer').dataset.draws !== n", arg=before)
    return offset(page)


def test_each_option_and_choice_has_a_control_of_its_own(watched: Any, mm_page: Path) -> None:
    page = watched.open(mm_page)
    variants = read_variants("mm_struct")
    assert page.locator("[name=variant]").count() == 0
    assert page.locator(".kit-toggles input[type=checkbox]").count() == len(variants.options)
    assert page.locator("[name=write_protect_seq] option").all_inner_texts() == ["absent", "inserted", "in the hole"]
    assert all(page.is_checked(f"[name={option.name}]") for option in variants.options)
    assert offset(page) == "120 (lines 1 to 2)"
    inserted = switch(page, lambda: page.select_option("[name=write_protect_seq]", label="inserted"))
    assert inserted == "128 (line 2)"
    assert switch(page, lambda: page.uncheck("[name=CONFIG_MEMBARRIER]")) == "120 (lines 1 to 2)"
    page.focus("[name=CONFIG_MMU]")
    both = switch(page, lambda: page.keyboard.press("Space"))
    wanted = {"CONFIG_MEMBARRIER": False, "CONFIG_MMU": False, "write_protect_seq": "inserted"}
    assert both.split()[0] == str(variants.layout(wanted).member("mmap_lock").offset)
    assert not page.is_checked("[name=CONFIG_MMU]")
    assert not page.is_checked("[name=CONFIG_MEMBARRIER]")
    assert watched.complaints == []
    assert watched.outside() == []


def test_every_setting_shows_its_own_layout(watched: Any, mm_page: Path) -> None:
    page = watched.open(mm_page)
    variants = read_variants("mm_struct")
    for setting in variants.settings():
        for name, value in setting.items():
            if isinstance(value, bool):
                page.set_checked(f"[name={name}]", value)
            else:
                page.select_option(f"[name={name}]", label=value)
        assert int(offset(page).split()[0]) == variants.layout(setting).member("mmap_lock").offset, setting


def test_nothing_is_wider_than_a_phone(watched: Any, mm_page: Path) -> None:
    page = watched.open(mm_page)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_names_of_options_are_text(watched: Any, make_page: Callable[..., Path]) -> None:
    path = make_page(
        "hostile_toggles",
        "# Hostile",
        "from kitlib import explore, make_layout\nfrom kitlib.variants import Choice, Option, State, Variants\n"
        f"bad = {HOSTILE!r}\n"
        "states = (State(bad), State(bad + '2'))\n"
        "explore(variants=Variants(make_layout('a:8 b:8'), (Option(bad, ('b',), about=bad),), "
        "(Choice(bad + '3', states, bad),)))",
    )
    page = watched.open(path)
    page.locator(".kit-switch input").uncheck()
    page.wait_for_timeout(300)
    assert "8 bytes" in page.inner_text(".kit-tables")
    assert page.locator("img").count() == 0
    assert HOSTILE in page.inner_text(".kit-toggles")
    assert watched.complaints == []


def test_two_quick_switches_ask_for_both(browser: Any) -> None:
    """With a kernel an answer may come late: the second switch must not undo the first."""
    from kitlib.explore import explore
    from kitlib.page import front_end
    from kitlib.states import subject_data

    variants = Variants(make_layout("a:8 b:8 c:8"), (Option("A", ("a",)), Option("B", ("b",))))
    subject: Subject = explore(variants=variants).session.subject
    session = Session(subject)
    page = browser.new_page()
    page.add_script_tag(type="module", content=f"{front_end()}\nglobalThis.kitExplorer = Explorer;")
    page.wait_for_function("() => Boolean(globalThis.kitExplorer)")
    asked = page.evaluate(
        """([data, value]) => {
             globalThis.Plotly = { react: async () => {}, purge() {} };
             const asked = [], held = { data, value };
             const model = { get: (k) => held[k], on() {}, send: ({ request }) => asked.push(request) };
             const root = document.createElement("div");
             document.body.append(root);
             new kitExplorer(model, root);
             for (const name of ["A", "B"]) root.querySelector(`[name=${name}]`).click();
             return asked; }""",
        [subject_data(subject, View()), session.answer({"op": "show"})],
    )
    page.close()
    assert [request["op"] for request in asked] == ["variant", "variant"]
    for request in asked:
        session.answer(request)
    assert session.layout.member_names() == ["c"]
