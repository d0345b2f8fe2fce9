"""The page a reviewer opens: offline, silent, and its explorer agrees with Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kitlib.blocks import title_of
from kitlib.edit import Align, Move, apply
from kitlib.figures.layout import cacheline_map, wrap
from kitlib.lines import holes, line_span, n_lines
from kitlib.model import Layout
from kitlib.page import front_end
from kitlib.scenario import Scenario
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.states import Session, Subject, View, page_data

RING = "lock=spinlock_t:4 head:8 mode:1 name:56 flags=u32:4:3 more=u32:4:7 refs=atomic_t:4 tail:8"
HOSTILE = "</script><img src=x onerror=alert(1)>"
MAP = ".kit-explorer .kit-plot"


@pytest.fixture(scope="session")
def ring_page(make_page: Callable[..., Path]) -> Path:
    return make_page(
        "ring",
        "# A ring\n\nA first paragraph.",
        "from kitlib import explore, make_layout\nfrom kitlib.figures.layout import cacheline_map\n"
        f"ring = make_layout('{RING}', 'ring')",
        "## Map\n\nText with $x^2$.",
        "cacheline_map(ring, highlight=['refs'])",
        "## Table",
        "import pandas as pd\npd.DataFrame({'n': [10, 9, 2], 'name': ['b', 'a', 'c']})",
        "## Explorer",
        "explore(ring, member='refs', extra=lambda s: [{'path': 'read', 'bytes': s.size}], extra_title='Cost')",
    )


def drawn(page: Any, selector: str = MAP) -> list[Any]:
    """The rows on screen, from the figure itself: (trace, line, first byte, bytes, text)."""
    return page.evaluate(
        """(selector) => document.querySelector(selector).data.filter((t) => t.type === "bar").flatMap(
             (t) => t.y.map((y, i) => [t.name, y, t.base[i], t.x[i], t.hovertext[i]]))""",
        selector,
    )


def expected(layout: Layout, before: Layout, **how: Any) -> list[Any]:
    return [
        [t.name, t.y[i], t.base[i], t.x[i], t.hovertext[i]]
        for t in cacheline_map(layout, before=before, **how).data
        if t.type == "bar"
        for i in range(len(t.y))
    ]


def press(page: Any, name: str, key: str, times: int = 1) -> None:
    """Move a slider by keyboard and wait for the map."""
    page.focus(f"[name={name}]")
    for _ in range(times):
        before = page.get_attribute(".kit-explorer", "data-draws")
        page.keyboard.press(key)
        page.wait_for_function("(n) => document.querySelector('.kit-explorer').dataset.draws !== n", arg=before)


def test_the_page_is_silent_small_and_works_by_keyboard(watched: Any, ring_page: Path) -> None:
    assert ring_page.stat().st_size <= 3_000_000
    page = watched.open(ring_page)
    ring = make_layout(RING, "ring")
    assert drawn(page) == expected(ring, ring)
    press(page, "position", "ArrowLeft", 3)
    moved = apply(ring, [Move("refs", index=3)])
    assert drawn(page) == expected(moved, ring)
    press(page, "align", "ArrowRight", 4)
    aligned = apply(ring, [Align("refs", 64), Move("refs", index=3)])
    assert drawn(page) == expected(aligned, ring)
    press(page, "struct_align", "End")
    assert f"{128 * 2} bytes" in page.inner_text(".kit-tables")
    press(page, "line_bytes", "ArrowRight")
    press(page, "phase", "Home")
    assert watched.outside() == []
    assert watched.complaints == []


def test_figures_sit_in_captions_with_badge_and_alternative_text(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    assert page.inner_text(".kit-figure figcaption").split() == [
        "struct",
        "ring",
        "·",
        "88",
        "bytes",
        "on",
        "2",
        "lines",
        "of",
        "64",
        "bytes",
        "=",
        "exact",
    ]
    assert page.get_attribute(".kit-figure .kit-plot", "aria-label").startswith("struct ring · 88 bytes")
    assert page.locator(".kit-figure .kit-plot .legend").count() == 1
    assert page.locator("math").count() == 1
    assert page.locator(".kit-contents a").all_inner_texts() == ["Map", "Table", "Explorer"]


def test_large_members_are_folded_as_in_python(watched: Any, make_page: Callable[..., Path]) -> None:
    spec = "lock=spinlock_t:4 buf:65536 refs=atomic_t:4 more:300 tail:8"
    path = make_page(
        "large", "# Large", f"from kitlib import explore, make_layout\nexplore(make_layout({spec!r}, 'big'))"
    )
    page = watched.open(path)
    page.select_option("[name=member]", label="refs")
    press(page, "position", "End")
    big = make_layout(spec, "big")
    moved = apply(big, [Move("refs", index=4)])
    for line_bytes, key in ((64, ""), (128, "ArrowRight"), (32, "Home")):
        if key:
            press(page, "line_bytes", key)
        picture = cacheline_map(moved, before=big, line_bytes=line_bytes)
        assert drawn(page) == expected(moved, big, line_bytes=line_bytes)
        shown = page.evaluate("(s) => document.querySelector(s).layout.yaxis.ticktext", MAP)
        assert shown == list(picture.layout.yaxis.ticktext)
        dashed = page.evaluate(
            "(s) => document.querySelector(s).layout.shapes.filter((f) => f.line.dash === 'dash')", MAP
        )
        assert [[f["x0"], f["x1"], f["y0"]] for f in dashed] == [
            [f.x0, f.x1, f.y0] for f in picture.layout.shapes if f.line.dash == "dash"
        ]
    assert watched.complaints == []


def test_undo_redo_and_reset_go_over_the_visited_states(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    start = drawn(page)
    press(page, "position", "ArrowLeft", 2)
    after = drawn(page)
    page.click("[name=undo]")
    page.click("[name=undo]")
    page.wait_for_timeout(200)
    assert drawn(page) == start
    page.click("[name=redo]")
    page.click("[name=redo]")
    page.wait_for_timeout(200)
    assert drawn(page) == after
    page.click("[name=undo]")
    page.wait_for_timeout(200)
    press(page, "align", "End")
    assert page.is_disabled("[name=redo]")  # a new edit forgets what was undone
    page.click("[name=reset]")
    page.wait_for_timeout(200)
    assert drawn(page) == start
    assert page.is_disabled("[name=undo]")


def test_a_saved_scenario_and_the_copied_text_give_the_layout_shown(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    press(page, "position", "Home")
    with page.expect_download() as download:
        page.click("[name=save]")
    text = Path(download.value.path()).read_text()
    shown = apply(make_layout(RING, "ring"), [Move("refs", index=0)])
    assert Scenario.from_json(text).layout == shown
    page.click("[name=copy]")
    assert open_source(page.input_value(".kit-text")).struct("ring") == shown


def test_clicking_a_block_chooses_its_member(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    label = page.locator(f"{MAP} .bartext", has_text="head")
    label.scroll_into_view_if_needed()
    box = label.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('[name=member]').selectedOptions[0].textContent === 'head'")


def test_tables_sort_by_their_heads(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    page.click("table.dataframe .kit-sort >> text=n")
    cells = page.locator("table.dataframe tbody td:nth-of-type(1)").all_inner_texts()
    assert cells == ["2", "9", "10"]


def test_the_theme_button_recolours_figures(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    colours = []
    for _ in range(3):
        page.click("#kit-theme")
        page.wait_for_timeout(300)
        colours.append(page.evaluate("document.querySelector('.kit-figure .kit-plot').layout.font.color"))
    assert colours[0] != colours[1]
    assert watched.complaints == []


def test_nothing_is_wider_than_a_phone(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def output(page: Any, name: str) -> str:
    return str(page.inner_text(f"label:has([name={name}]) output"))


def test_odd_structs_can_be_shown_and_disabled_controls_say_why(watched: Any, make_page: Callable[..., Path]) -> None:
    setup = (
        "from dataclasses import replace\nfrom kitlib import explore, make_layout\nfrom kitlib.model import Layout\n"
        "from kitlib.model import Member\none = make_layout('a:8 b:8', 's')"
    )
    empty = "explore(Layout('e', 'struct', 0, 1, ()))"
    page = watched.open(make_page("empty", "# E", setup, empty))
    assert output(page, "position") == "no members"
    press(page, "struct_align", "End")
    assert "struct alignment" in page.inner_text(".kit-controls")
    assert output(page, "struct_align") == "128 bytes (is 128)"
    assert page.inner_text(".kit-status") == "0 bytes on 0 lines of 64 bytes."
    page.click("[name=copy]")
    union = "explore(Layout('u', 'union', 8, 8, (Member('a', 'long int', 0, 64, 8), Member('b', 'int', 0, 32, 4))))"
    page = watched.open(make_page("union", "# U", setup, union))
    assert "fixed: the arms of a union all start at byte 0" in output(page, "position")
    page = watched.open(make_page("stuck", "# S", setup, "explore(replace(one, reason='b is odd'))"))
    assert page.inner_text(".kit-problem") == "Members cannot be moved here: b is odd."
    assert page.is_disabled("[name=position]")
    assert page.is_disabled("[name=struct_align]")
    assert watched.complaints == []


def test_a_struct_too_large_for_all_moves_still_aligns(watched: Any, make_page: Callable[..., Path]) -> None:
    code = "explore(make_layout(' '.join(f'm{i}:8' for i in range(300)), 's'), member='m150')"
    page = watched.open(make_page("many", "# M", "from kitlib import explore, make_layout", code))
    press(page, "position", "ArrowLeft")
    assert output(page, "position") == "150 of 300, after m148"
    page.select_option("[name=member]", label="m299")
    assert output(page, "position").endswith("fixed: this page holds no moves of it")
    press(page, "struct_align", "End")
    assert output(page, "struct_align") == "128 bytes (is 128)"
    assert "2432 bytes" in page.inner_text(".kit-tables")


def test_a_dark_page_prints_dark_text_on_white(watched: Any, ring_page: Path) -> None:
    page = watched.open(ring_page)
    page.click("#kit-theme")
    page.click("#kit-theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="print")
    colours = page.evaluate("""() => [document.body, ...document.querySelectorAll(".kit-plot svg text")].map((node) => {
        const style = getComputedStyle(node); return node === document.body ? style.color : style.fill; })""")
    assert len(colours) > 20
    assert set(colours) == {"rgb(27, 30, 36)", "rgb(22, 24, 29)"}
    assert page.locator(".kit-buttons").evaluate("(node) => getComputedStyle(node).display") == "none"
    assert page.locator(".kit-explorer .kit-scroll").evaluate("(n) => getComputedStyle(n).overflowX") == "visible"


def test_names_from_a_file_are_text_everywhere(watched: Any, make_page: Callable[..., Path]) -> None:
    path = make_page(
        "hostile",
        "# Hostile names",
        "from kitlib import explore, make_layout\nfrom dataclasses import replace\n"
        "from kitlib.figures.layout import before_after, cacheline_map\nfrom kitlib.sharing import sharing_table\n"
        "from kitlib.tables import Table\n"
        f"bad = {HOSTILE!r}\n"
        "ring = make_layout('a:8 b:8 c:8', bad)\n"
        "ring = replace(ring, members=tuple(replace(m, name=bad + m.name, type=bad) for m in ring.members))",
        "cacheline_map(ring, highlight=[bad + 'a'])",
        "before_after(ring, ring)",
        "explore(variants={bad: ring, 'x': ring}, extra=lambda s: [{bad: bad}], extra_title=bad)",
        "Table(sharing_table({bad: ring}, bad + 'a', [bad + 'b']), 'exact', bad, bad)",
        "print(bad)",
    )
    page = watched.open(path)
    press(page, "position", "End")
    page.click("[name=copy]")
    page.wait_for_timeout(300)
    assert page.locator("img").count() == 0
    assert HOSTILE + "a" in page.inner_text(".kit-tables")
    assert watched.complaints == []
    assert watched.outside() == []


def requests_for(rng: random.Random, layout: Layout) -> dict[str, Any]:
    member = rng.randrange(len(layout.members))
    return {
        "op": "edit",
        "member": member,
        "position": rng.randrange(len(layout.members)),
        "align": rng.choice([layout.members[member].forced_align, 0, 16, 64, 128]),
        "commit": True,
    }


@pytest.mark.parametrize("name", ["ring", "linux-6.1:file", "linux-6.12:sock"])
def test_a_page_answers_as_a_kernel_does(browser: Any, name: str) -> None:
    source, _, struct = name.partition(":")
    layout = open_source(source).struct(struct) if struct else make_layout(RING, name)
    data = page_data(Subject({"x": layout}), View())
    page = browser.new_page()
    page.add_script_tag(type="module", content=f"{front_end()}\nglobalThis.kitOffline = offline;")
    page.wait_for_function("() => Boolean(globalThis.kitOffline)")
    page.evaluate("(text) => { globalThis.kitData = JSON.parse(text); }", json.dumps(data))
    rng = random.Random(7)
    offered = data["variants"][0]["tables"]
    checked = 0
    for _ in range(60):
        request = requests_for(rng, layout)
        at = offered["members"].index(request["member"])
        if request["align"] not in offered["aligns"][at]:
            continue
        here = page.evaluate(
            """(request) => { const model = kitOffline(structuredClone(kitData));
                 model.send({ kind: "request", request: {...request, seq: 1} }); return model.get("value"); }""",
            request,
        )
        there = Session(Subject({"x": layout})).answer({**request, "seq": 1})
        if "error" in there:
            continue
        same = ("offsets", "forced", "order", "size", "align", "struct_align", "edits", "seq")
        assert {k: here[k] for k in same} == {k: there[k] for k in same}, request
        checked += 1
    page.close()
    assert checked >= 20


@pytest.mark.parametrize("name", ["ring", "linux-6.1:file", "linux-6.12:sock"])
def test_the_table_says_of_every_member_what_python_says(browser: Any, name: str) -> None:
    source, _, struct = name.partition(":")
    layout = open_source(source).struct(struct) if struct else make_layout(RING, name)
    members = [{"name": title_of(m), "bit": m.bit_offset, "bits": m.bit_size} for m in layout.members]
    titles = [m["name"] for m in members]
    page = browser.new_page()
    page.add_script_tag(type="module", content=f"{front_end()}\nglobalThis.kitFigures = figures;")
    page.wait_for_function("() => Boolean(globalThis.kitFigures)")
    rng = random.Random(3)
    for _ in range(40):
        number, line_bytes = rng.randrange(len(members)), rng.choice([32, 64, 128, 256])
        phase, member = rng.randrange(line_bytes), layout.members[number]
        first, last = line_span(member.bit_offset, member.bit_size, line_bytes, phase)
        spans = [line_span(m.bit_offset, m.bit_size, line_bytes, phase) for m in layout.members]
        near = [
            title
            for i, (title, (low, high)) in enumerate(zip(titles, spans, strict=True))
            if i != number and layout.members[i].bit_size and low <= last and high >= first
        ]
        rows = page.evaluate(
            "([members, size, name, line, phase]) => kitFigures(members, size, name, line, phase).map((row) => row[1])",
            [members, layout.size, titles[number], line_bytes, phase],
        )
        lines = n_lines(layout, line_bytes, phase)
        assert rows[:2] == [f"{layout.size} bytes", f"{lines} line{'s' * (lines != 1)} of {line_bytes} bytes"]
        assert rows[2].split(" ")[0] == (str(len(holes(layout))) if holes(layout) else "none")
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        assert rows[4].endswith(f"({where})"), (titles[number], line_bytes, phase)
        assert rows[5] == (", ".join(near) or "nothing"), (titles[number], line_bytes, phase)
    page.close()


def test_labels_wrap_as_in_python(browser: Any) -> None:
    names = ["f_write_hint", "4-byte hole", "■ addr_list_lock", "mmap_compat_legacy_base", "abcdefghijklmnop", "_x_"]
    page = browser.new_page()
    page.add_script_tag(type="module", content=f"{front_end()}\nglobalThis.kitWrap = wrap;")
    page.wait_for_function("() => Boolean(globalThis.kitWrap)")
    pairs = [[name, chars] for name in names for chars in range(1, 24)]
    got = page.evaluate("(pairs) => pairs.map(([name, chars]) => kitWrap(name, chars))", pairs)
    page.close()
    assert got == [wrap(name, chars) for name, chars in pairs]
