"""Pages from notebooks: what is in them, what must not be, and what happens when a cell fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from click.testing import CliRunner

from kitlib.cli import cli
from kitlib.errors import KitError, SourceError
from kitlib.figures.layout import cacheline_map
from kitlib.figures.style import figure
from kitlib.page import (
    CSP,
    Told,
    badge_html,
    contents_html,
    figure_html,
    index_html,
    math_to_mathml,
    page_html,
    read_entry,
    script_json,
)
from kitlib.report import PageExporter, default_notebooks, entry_of, read_notebook, render
from kitlib.sharing import collect, sharing, sharing_table, size_table, together
from kitlib.shorthand import make_layout
from kitlib.tables import Table

HOSTILE = "</script><img src=x onerror=alert(1)>"
MakeNotebook = Callable[..., Path]


@pytest.fixture
def notebook(tmp_path: Path) -> MakeNotebook:
    """A function ``(name, *cells)``; cells that begin with ``#`` are markdown."""

    def make(name: str, *cells: str) -> Path:
        kinds = nbformat.v4
        nb = kinds.new_notebook(
            cells=[kinds.new_markdown_cell(c) if c.startswith("#") else kinds.new_code_cell(c) for c in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        nbformat.write(nb, str(tmp_path / f"{name}.ipynb"))
        return tmp_path / f"{name}.ipynb"

    return make


def test_a_notebook_becomes_a_page_with_folded_code(notebook: MakeNotebook, tmp_path: Path) -> None:
    path = notebook(
        "one", "# Title of *it*\n\nAbout `this`, see [that](x.html).", "print(6 * 7)", "## A", "1 / 8", "## B"
    )
    steps: list[tuple[str, int, int]] = []
    written = render([path], tmp_path / "out", lambda *step: steps.append(step))
    assert [p.name for p in written] == ["one.html", "index.html"]
    text = written[0].read_text()
    assert ">42<" in text.replace("\n", "")
    assert "0.125" in text
    assert text.count('<details class="kit-input">') == 2
    assert '<a href="#A">A</a>' in text
    assert "kit-plotly" not in text.split('<script type="module">')[0]  # nothing to draw: no plotly.js
    assert steps == [("one", 1, 2), ("one", 2, 2)]
    entry = read_entry(written[0])
    assert entry is not None
    assert (entry.file, entry.title, entry.about) == ("one.html", "Title of it", "About this, see that.")
    assert '<a href="one.html">Title of it</a><p>About this, see that.</p>' in written[1].read_text()


def test_a_page_may_load_nothing(notebook: MakeNotebook, tmp_path: Path) -> None:
    text = render([notebook("one", "# T", "1")], tmp_path / "out")[0].read_text()
    assert f'<meta http-equiv="Content-Security-Policy" content="{CSP}">' in text
    assert CSP.startswith("default-src 'none'; script-src 'unsafe-inline';")
    assert not re.search(
        r"""<(script|img|iframe)[^>]+src=|<link[^>]+href="(?!data:)|@import|https?://[^\s"'<]*\.(js|css)""", text
    )


def test_a_failing_cell_is_named_in_one_line_and_nothing_is_written(notebook: MakeNotebook, tmp_path: Path) -> None:
    good = notebook("good", "# G", "1")
    bad = notebook("bad", "# B", "x = 1", "raise ValueError('two\\nlines')")
    done = CliRunner().invoke(cli, ["report", str(good), str(bad), "-o", str(tmp_path / "out")])
    assert isinstance(done.exception, KitError)
    assert (
        str(done.exception)
        == "bad.ipynb: code cell 2 failed: ValueError: two\nlines; run it in 'kitlib lab' to see more"
    )
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_wrote(notebook: MakeNotebook, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["report", str(notebook("one", "# T", "1")), "-o", str(out)]
    assert CliRunner().invoke(cli, command).stdout == f"1 page written; open {out / 'index.html'}\n"
    record = json.loads(CliRunner().invoke(cli, [*command, "--format", "json"]).stdout)
    assert record == {"pages": [str(out / "one.html")], "index": str(out / "index.html")}


def test_a_lost_kernel_is_an_error_too(notebook: MakeNotebook, tmp_path: Path) -> None:
    path = notebook("dead", "# D", "1", "import os\nos._exit(3)")
    with pytest.raises(KitError, match=r"dead\.ipynb: code cell 2 lost its kernel"):
        render([path], tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"{}", b"\x7fELF\x00\xff", b"[1, 2]", b'{"nbformat": 4}'])
def test_what_is_no_notebook_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"x\.ipynb: no notebook"):
        read_notebook(path)


def test_a_missing_notebook_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_notebook(tmp_path / "no.ipynb")


def test_a_kernel_that_is_not_installed_is_named(notebook: MakeNotebook, tmp_path: Path) -> None:
    path = notebook("other", "# O", "1")
    path.write_text(path.read_text().replace('"python3"', '"no-such-kernel"'))
    with pytest.raises(KitError, match=r"other\.ipynb: kernel 'no-such-kernel' is not installed"):
        render([path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", [("a/one", "b/one"), ("index",)])
def test_pages_that_would_overwrite_each_other_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(SourceError, match="would overwrite that of"):
        render([tmp_path / f"{name}.ipynb" for name in names], tmp_path / "out")


def test_ctrl_c_is_left_to_jupyterlab() -> None:
    child = (
        "import signal, sys, time; signal.signal(2, lambda *_: sys.exit(7)); print('up', flush=True); time.sleep(60)"
    )
    command = f"[sys.executable, '-c', {child!r}]"
    code = f"import kitlib.cli.pages as p, sys; p.lab_command = lambda *_: {command}; p.lab.main([])"
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert run.stdout is not None
    assert run.stdout.readline() == b"up\n"
    time.sleep(0.5)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(20) == 7


def test_lab_refuses_a_port_that_is_none() -> None:
    assert CliRunner().invoke(cli, ["lab", "--port", "99999"]).exit_code == 2


def test_without_a_command_the_help_is_shown_as_it_is() -> None:
    said = subprocess.run([sys.executable, "-m", "kitlib"], capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "\nCommands:\n" in said.stderr


def test_the_index_lists_the_kits_pages_only(notebook: MakeNotebook, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "other.html").write_text("<title>other</title>")
    (out / "case.html").write_text(page_html(f"A case of {HOSTILE}", "<h1>x</h1>", about='say "why" & <how>'))
    text = render([notebook("one", "# One", "1")], out)[-1].read_text()
    assert "other" not in re.findall(r'<a href="([^"]+)\.html">', text)
    assert re.findall(r'<li><a href="([^"]+)">', text) == ["case.html", "one.html"]
    assert "<img" not in text
    assert "say &quot;why&quot; &amp; &lt;how&gt;" in text


def test_writing_where_one_cannot_is_said(notebook: MakeNotebook, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    steps: list[str] = []
    with pytest.raises(SourceError, match="choose another folder"):
        render([notebook("one", "# T", "1")], tmp_path / "file", lambda name, *_: steps.append(name))
    assert steps == []  # said before anything was run
    with pytest.raises(SourceError, match="choose another folder"):
        render([notebook("one", "# T", "1")], Path("/proc/kitlib"))


def test_json_in_a_script_cannot_close_it() -> None:
    text = script_json({"a": HOSTILE, "b": "\u2028 & <!--"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": HOSTILE, "b": "\u2028 & <!--"}


def test_figure_markup_escapes_title_alt_and_names() -> None:
    fig = figure(f"of {HOSTILE}", "exact", f'words " {HOSTILE}')
    fig.add_scatter(name=HOSTILE, x=[1], y=[1])
    text = figure_html(fig.to_plotly_json())
    assert "<img" not in text
    assert '<span class="kit-badge kit-exact"' in text
    assert 'aria-label="words &quot; &lt;/script&gt;' in text
    held = json.loads(re.search(r"<script type=\"application/json\">(.*?)</script>", text)[1])
    assert "title" not in held["layout"]
    assert held["layout"]["annotations"] == []
    assert held["config"] == {**held["config"], "displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}


def test_a_map_loses_the_height_of_its_title_in_a_page() -> None:
    fig = cacheline_map(make_layout("a:8"))
    text = figure_html(fig.to_plotly_json())
    assert f'style="height:{fig.layout.height - (fig.layout.margin.t - 36)}px;min-width:860px"' in text


def test_a_plain_plotly_figure_keeps_its_title() -> None:
    text = figure_html({"data": [], "layout": {"title": {"text": "mine"}}}, 3)
    assert 'aria-label="mine"' in text
    assert '"title":{"text":"mine"}' in text


def test_badges_name_their_kind() -> None:
    assert "± measured · n = 8" in badge_html("measured", "n = 8")
    with pytest.raises(KeyError):
        badge_html("guess")


def test_math_becomes_mathml_and_code_is_left_alone() -> None:
    got = math_to_mathml("a $x^2$ b `$y$` and $$\\frac{1}{2}$$ costs 5$ or 6$")
    assert got.count("<math") == 2
    assert 'display="block"' in got
    assert "`$y$`" in got
    assert "5$ or 6$" in got


def test_contents_list_second_and_third_headings() -> None:
    body = (
        '<h1 id="t">T</h1><h2 id="a">A &amp; <code>b</code><a class="anchor-link" href="#a">¶</a></h2><h3 id="c">C</h3>'
    )
    text = contents_html(body)
    assert '<li class="level2"><a href="#a">A &amp; b</a></li><li class="level3"><a href="#c">C</a></li>' in text
    assert contents_html('<h2 id="a">A</h2>') == ""


def test_stderr_of_cells_is_not_shown() -> None:
    output = nbformat.v4.new_output("stream", name="stderr", text="a warning")
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])])
    assert "a warning" not in PageExporter().from_notebook_node(nb)[0]


def test_a_notebook_without_heading_is_called_by_its_file() -> None:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("words")])
    assert entry_of(nb, Path("a_b.ipynb")).title == "a_b"


def test_a_table_is_marked_escaped_and_whole() -> None:
    table = Table(pd.DataFrame({"name": [HOSTILE + "x" * 80]}), "model", HOSTILE)
    text = table._repr_html_()
    assert "<img" not in text
    assert "x" * 80 in text
    assert "≈ model" in text
    assert repr(table).startswith("[model]")


def test_index_explains_the_three_kinds() -> None:
    assert all(mark in index_html([]) for mark in ("= exact", "≈ model", "± measured"))


# -- the first notebook ------------------------------------------------------------------------------------


def test_who_shared_a_line_with_f_count() -> None:
    """The claim of the 2020 patch: false at 64 bytes in this configuration, true at 128."""
    found = collect({"before": "file-5.8", "after": "file-5.8-patch", "none": "no-such"}, "file")
    rows = {(r.label, r.line_bytes): r for r in sharing(found.layouts, ("f_ref", "f_count"))}
    assert "f_mode" not in rows["before", 64].shares_with
    assert {"f_inode", "f_op", "f_path", "f_lock"} <= set(rows["before", 64].shares_with)
    assert "f_mode" in rows["before", 128].shares_with
    assert "f_mode" not in rows["after", 128].shares_with
    assert (rows["before", 64].offset, rows["after", 64].offset) == (56, 248)
    assert together(found.layouts["before"], "f_count", "f_mode") == (
        "struct file has f_count at byte 56 and f_mode at byte 68: "
        "not on one line of 64 bytes; on one line of 128 bytes."
    )
    assert found.note.splitlines()[0] == "read: before, after"
    assert found.note.splitlines()[1].startswith("not here: none (")


def test_tables_of_sharing_and_size() -> None:
    layouts = {"a": make_layout("x:8 n=atomic_t:4 y:48 z:4"), "b": make_layout("n=atomic_t:4@64 y:8@64")}
    table = sharing_table(layouts, "n", ["x"], [64])
    assert table.loc["a", "with x"] == "yes"
    assert table.loc["b", "everything on its line"] == "nothing"
    sizes = size_table(layouts)
    assert list(sizes.loc["a"]) == [64, 4, 1, 2]
    assert list(sizes.loc["b"]) == [128, 2, 2, 2]


def test_notebooks_are_thin_and_stored_without_outputs() -> None:
    for path in default_notebooks():
        for cell in read_notebook(path).cells:
            if cell.cell_type == "code":
                assert cell.outputs == []
                assert cell.execution_count is None
                assert len(cell.source.splitlines()) <= 9, f"{path.name}: {cell.source}"


def test_the_index_shows_the_first_verdicts_of_a_review(tmp_path: Path) -> None:
    told = [Told("Is it <true>?", 'no | "never"', ("exact", "model")), Told("Who pays?", "nobody", ())]
    page = tmp_path / "review-x.html"
    page.write_text(page_html("x", "<h1>x</h1>", verdicts=told), encoding="utf-8")
    entry = read_entry(page)
    assert entry is not None
    assert list(entry.verdicts) == told
    text = index_html([entry])
    assert f"Is it &lt;true&gt;? <strong>no | &quot;never&quot;</strong> {badge_html('exact')}" in text
