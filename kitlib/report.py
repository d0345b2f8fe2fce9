"""Notebooks to pages: each is run from a clean kernel, and becomes one HTML file that works offline."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from traitlets.config import Config

from kitlib.cases import open_case
from kitlib.errors import KitError, SourceError
from kitlib.page import (
    EXPLORER_TYPE,
    PLOTLY_TYPE,
    REVIEW_PREFIX,
    Entry,
    explorer_html,
    figure_html,
    index_html,
    math_to_mathml,
    page_html,
    read_entry,
)
from kitlib.review import review_case
from kitlib.reviewpage import review_html

CELL_SECONDS = 600
"""A cell that runs longer than this is stopped and reported."""
_TEMPLATE = """{% extends 'classic/base.html.j2' %}
{%- block input_group -%}
<details class="kit-input"><summary>code</summary>{{ cell.source | highlight_code(metadata=cell.metadata) }}</details>
{%- endblock input_group -%}
{%- block stream_stderr -%}{%- endblock -%}
"""

Progress = Callable[[str, int, int], None]
"""Called with a notebook's name, the number of cells done and the number there are."""


class PageExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's HTML exporter with figures and explorers that need no kernel, no network and no require.js."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(template_name="classic", raw_template=_TEMPLATE, **kwargs)
        self.exclude_input_prompt = self.exclude_output_prompt = True

    def _preprocess(self, nb: Any, resources: Any) -> Any:
        nb, resources = super()._preprocess(nb, resources)
        number = 0
        for cell in nb.cells:
            if cell.cell_type == "markdown":
                cell.source = links_to_pages(math_to_mathml(cell.source))
            for output in cell.get("outputs", ()):
                number += PLOTLY_TYPE in output.get("data", {})
                _convert(output, number)
        return nb, resources


def links_to_pages(markdown: str) -> str:
    """Links to notebooks become links to their pages, and links to ``../reports/`` those to pages beside.

    >>> links_to_pages("[a](10_struct_file.ipynb) [b](../reports/index.html)")
    '[a](10_struct_file.html) [b](index.html)'
    """
    return re.sub(r"\]\((?:\.\./reports/([\w.-]+)|([\w.-]+)\.ipynb)", _page_link, markdown)


def _page_link(match: re.Match[str]) -> str:
    return f"]({match[1] or match[2] + '.html'}"


def _convert(output: Any, number: int) -> None:
    """Turn a Plotly figure or an explorer among a cell's outputs into the markup of a page."""
    data = output.get("data")
    if not data:
        return
    if EXPLORER_TYPE in data:
        output["data"] = nbformat.from_dict({"text/html": explorer_html(data[EXPLORER_TYPE])})
    elif PLOTLY_TYPE in data:
        output["data"] = nbformat.from_dict({"text/html": figure_html(data[PLOTLY_TYPE], number)})


def default_notebooks() -> list[Path]:
    """The notebooks that come with the kit, in order. Raises `SourceError` if there are none."""
    for folder in (Path("notebooks"), Path(__file__).resolve().parent.parent / "notebooks"):
        found = sorted(folder.glob("*.ipynb"))
        if found:
            return found
    raise SourceError("no notebooks here: give a notebook's path, or run this in a checkout of the kit")


def read_notebook(path: Path) -> Any:
    """The notebook at `path`. Raises `SourceError` if it cannot be read as one."""
    try:
        return nbformat.read(str(path), as_version=4)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; give a notebook (.ipynb)") from None
    except Exception as error:  # nbformat raises ValueError, KeyError, AttributeError, ValidationError by turns
        raise SourceError(f"{path}: no notebook ({type(error).__name__}); give a file that Jupyter saved") from None


def execute(nb: Any, path: Path, progress: Progress | None = None) -> None:
    """Run the cells of `nb` in a clean kernel that starts in the folder of `path`; outputs are put into `nb`.

    Raises `KitError` that names notebook and cell if one fails, takes too long or loses its kernel.
    """
    done, total = 0, sum(cell.cell_type == "code" for cell in nb.cells)

    def step(**_: Any) -> None:
        nonlocal done
        done += 1
        if progress:
            progress(path.stem, done, total)

    with tempfile.TemporaryDirectory(prefix="kitlib-") as private:
        client = NotebookClient(
            nb,
            kernel_name=nb.metadata.get("kernelspec", {}).get("name", "python3"),
            config=_private_sockets(private),
            timeout=CELL_SECONDS,
            resources={"metadata": {"path": str(path.resolve().parent)}},
            store_widget_state=False,
            on_cell_executed=step,
        )
        extra = {"KITLIB_PAGE": "1", "PLOTLY_RENDERER": "plotly_mimetype", "IPYTHONDIR": private}
        try:
            client.execute(env=os.environ | extra)
        except NoSuchKernel as error:
            raise KitError(f"{path.name}: kernel '{error.name}' is not installed; choose Python 3 for it") from None
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise KitError(_failure(nb, path, error)) from None


def _private_sockets(folder: str) -> Config:
    """Let a kernel be spoken to through sockets in `folder`, so that no network port is opened."""
    if sys.platform == "win32":
        return Config()
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})


def _failure(nb: Any, path: Path, error: Exception) -> str:
    """One line: which cell, and what it said."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells, 1):
        for output in cell.get("outputs", ()):
            if output.get("output_type") == "error":
                said = re.sub(r"\x1b\[[0-9;]*m", "", f"{output['ename']}: {output['evalue']}")
                return f"{path.name}: code cell {number} failed: {said}; run it in 'kitlib lab' to see more"
    at = next((n for n, cell in enumerate(cells, 1) if cell.get("execution_count") is None), len(cells))
    what = f"ran longer than {CELL_SECONDS} s" if isinstance(error, CellTimeoutError) else "lost its kernel"
    return f"{path.name}: code cell {at} {what}; run it in 'kitlib lab' to see more"


def to_page(nb: Any, path: Path) -> str:
    """The page of an executed notebook."""
    body, _ = PageExporter().from_notebook_node(nb)
    entry = entry_of(nb, path)
    return page_html(entry.title, body, about=entry.about)


def entry_of(nb: Any, path: Path) -> Entry:
    """Title (the first heading) and first paragraph of a notebook, as plain text."""
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
    title = heading[1].strip() if heading else path.stem
    rest = text[heading.end() :] if heading else text
    about = next((p for p in re.split(r"\n\s*\n", rest) if p.strip() and not p.lstrip().startswith(("#", "|"))), "")
    return Entry(f"{path.stem}.html", _words(title), _words(about))


def _words(markdown: str) -> str:
    """Markdown as one line of plain text: emphasis, code marks and link targets taken away."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[*`]", "", text).split())


def render(
    notebooks: Sequence[Path], out_dir: Path, progress: Progress | None = None, *, cases: Sequence[str] = ()
) -> list[Path]:
    """Run `notebooks`, review `cases`, write one page each and the index of all pages in `out_dir`.

    Returns what was written. Nothing is written unless everything ran: raises `KitError` otherwise.
    """
    _check_names(notebooks, out_dir)
    pages: dict[str, str] = {}
    for number, name in enumerate(cases, 1):
        pages[f"{REVIEW_PREFIX}{name}.html"] = review_html(review_case(open_case(name)))
        if progress:
            progress("reviews", number, len(cases))
    for path in notebooks:
        nb = read_notebook(path)
        execute(nb, path, progress)
        pages[f"{path.stem}.html"] = to_page(nb, path)
    written = [_write(out_dir, name, text) for name, text in pages.items()]
    return [*written, write_index(out_dir)]


def _check_names(notebooks: Sequence[Path], out_dir: Path) -> None:
    """Raise `SourceError` before anything is run if the pages could not all be written."""
    if out_dir.exists() and not out_dir.is_dir():
        raise SourceError(f"{out_dir}: is a file; choose another folder with -o")
    taken = {"index": "the list of all pages"}
    for path in notebooks:
        if path.stem in taken:
            raise SourceError(f"{path}: its page would overwrite that of {taken[path.stem]}; rename the notebook")
        taken[path.stem] = str(path)


def write_index(out_dir: Path) -> Path:
    """Write ``index.html`` over all the kit's pages in `out_dir`."""
    pages = sorted(path for path in out_dir.glob("*.html") if path.name != "index.html")
    entries = [entry for entry in map(read_entry, pages) if entry is not None]
    return _write(out_dir, "index.html", index_html(entries))


def _write(out_dir: Path, name: str, text: str) -> Path:
    """Write a page beside its place and move it there, so that no half-written page is ever seen."""
    target = out_dir / name
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=out_dir, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise SourceError(f"{target}: {error.strerror}; choose another folder with -o") from None
    return target
