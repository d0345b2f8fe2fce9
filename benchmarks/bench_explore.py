"""How long the explorer takes from a slider's move to the redrawn figure, and a page to its first figure.

Run ``python benchmarks/bench_explore.py [PAGE.html ...]``. Limits: 50 ms in the kernel for a struct of 60 members;
a page at most 3,000,000 bytes and 3.0 s to its first figure. Browser figures need chromium and playwright.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kitlib.access import load_profile
from kitlib.costrows import cost_rows
from kitlib.explore import explore
from kitlib.figures.layout import cacheline_map
from kitlib.machine import load_machine
from kitlib.page import explorer_html, page_html
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.states import Subject, View, page_data

LIMIT_MS, LIMIT_BYTES, LIMIT_OPEN_S = 50.0, 3_000_000, 3.0
SIZES = (8, 4, 4, 16, 2, 8, 1, 32)
STRUCT = make_layout(" ".join(f"member_{i}:{SIZES[i % len(SIZES)]}" for i in range(60)), "sixty")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def in_the_kernel() -> tuple[float, float]:
    """Median ms of an answer to a slider, and of the same with the whole figure built in Python."""
    widget = explore(STRUCT, member="member_30")
    answers, figures = [], []
    for step in range(200):
        request = {"op": "edit", "member": 30, "position": step % 60, "commit": True, "seq": step}
        start = time.perf_counter()
        widget.request = request
        answers.append(time.perf_counter() - start)
        cacheline_map(widget.layout_now, before=STRUCT).to_json()
        figures.append(time.perf_counter() - start)
    return statistics.median(answers) * 1e3, statistics.median(figures) * 1e3


def with_costs() -> float:
    """Median ms of an answer to a slider on struct file with the predicted cost of every path beside it."""
    base = open_source("file-5.8").struct("file")
    rows = cost_rows(load_profile("struct_file"), load_machine("zen-5-vm"), base)
    widget = explore(base, member="f_count", extra=rows)
    times = []
    for step in range(60):
        start = time.perf_counter()
        request = {"op": "edit", "member": base.index("f_count"), "position": step % 20, "commit": True, "seq": step}
        widget.request = request
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def a_page() -> Path:
    """A page with nothing but an explorer of the 60 members."""
    path = Path(tempfile.mkdtemp(prefix="kitlib-bench-")) / "sixty.html"
    path.write_text(page_html("sixty", explorer_html(page_data(Subject({"sixty": STRUCT}), View("member_30")))))
    return path


def opened(browser: Any, path: Path) -> float:
    """Seconds from asking for the page to its first drawn figure or explorer, in a fresh profile."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    start = time.perf_counter()
    page.goto(path.resolve().as_uri(), wait_until="commit")
    page.wait_for_selector(".kit-plot[data-drawn], .kit-explorer[data-draws]", timeout=60_000)
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def key_to_picture(browser: Any, path: Path) -> float:
    """Median ms from an arrow key to the end of drawing, measured inside the page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector(".kit-explorer[data-draws]")
    page.evaluate(
        """() => { globalThis.times = []; const root = document.querySelector(".kit-explorer");
          root.addEventListener("keydown", () => { globalThis.pressed = performance.now(); }, true);
          new MutationObserver(() => globalThis.times.push(performance.now() - globalThis.pressed))
            .observe(root, { attributes: true, attributeFilter: ["data-draws"] }); }"""
    )
    page.focus("[name=position]")
    for step in range(40):
        page.keyboard.press("ArrowLeft" if step % 20 < 10 else "ArrowRight")
        page.wait_for_timeout(80)
    times: list[float] = page.evaluate("globalThis.times")
    page.close()
    return statistics.median(times)


def main(pages: list[Path]) -> int:
    """Print the figures; return 1 if a limit is exceeded."""
    answer_ms, figure_ms = in_the_kernel()
    print(f"kernel, 60 members: answer {answer_ms:.1f} ms, with the figure built in Python {figure_ms:.1f} ms")
    cost_ms = with_costs()
    print(f"kernel, struct file with predicted costs: answer {cost_ms:.1f} ms")
    failed = max(figure_ms, cost_ms) > LIMIT_MS
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed: pages not measured")
        return int(failed)
    from playwright.sync_api import sync_playwright

    own = a_page()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        print(f"browser, 60 members: key to picture {key_to_picture(browser, own):.0f} ms")
        for path in [own, *pages]:
            seconds = statistics.median(opened(browser, path) for _ in range(3))
            print(f"{path.name}: {path.stat().st_size:,} bytes, first figure after {seconds:.2f} s")
            failed |= seconds > LIMIT_OPEN_S or path.stat().st_size > LIMIT_BYTES
        browser.close()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
