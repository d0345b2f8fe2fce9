"""``kitlib report`` and ``kitlib lab``."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from kitlib.cli.common import emit, format_option
from kitlib.errors import ToolError
from kitlib.text import count

if TYPE_CHECKING:
    from kitlib.report import Progress


@click.command()
@click.argument("notebooks", nargs=-1, metavar="[NOTEBOOK ...]", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="reports", type=click.Path(path_type=Path), help="Folder to write to.")
@format_option()
def report(notebooks: tuple[Path, ...], output: Path, fmt: str) -> None:
    """Run notebooks and write each as one HTML page that works offline, and an index of all pages.

    Without NOTEBOOK, all that come with the kit, and a review page for each shipped case. If a cell fails,
    nothing is written.
    """
    from kitlib.cases import shipped_cases
    from kitlib.report import default_notebooks, render

    chosen = list(notebooks) or default_notebooks()
    cases = [] if notebooks else shipped_cases()
    with _progress([*(["reviews"] if cases else []), *(path.stem for path in chosen)]) as progress:
        written = render(chosen, output, progress, cases=cases)
    *pages, index = written
    record = {"pages": [str(path) for path in pages], "index": str(index)}
    emit(record, lambda: f"{count(len(pages), 'page')} written; open {index}", fmt)


@contextmanager
def _progress(names: list[str]) -> Iterator[Progress]:
    """A bar on a terminal's stderr that counts the cells of each notebook, and is gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = {name: bar.add_task(name, total=None, start=False) for name in names}

        def step(name: str, done: int, total: int) -> None:
            bar.start_task(tasks[name])
            bar.update(tasks[name], completed=done, total=total)

        yield step


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8888,
    show_default=True,
    help="Port on 127.0.0.1; the next free one is taken.",
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
def lab(port: int, no_browser: bool) -> None:
    """Open the notebooks in JupyterLab, on this machine only (127.0.0.1, with a token)."""
    from kitlib.report import default_notebooks

    if importlib.util.find_spec("jupyterlab") is None:
        raise ToolError("JupyterLab is not installed; run 'make lab', or pip install jupyterlab")
    command = lab_command(default_notebooks(), port, no_browser)
    server = subprocess.Popen(command, env=lab_environment())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is JupyterLab's: it asks first, then stops its kernels
    sys.exit(server.wait())


def lab_command(notebooks: list[Path], port: int, no_browser: bool) -> list[str]:
    """JupyterLab's command line. It makes a token of its own; without one anybody on the machine could run code.

    Nothing is asked of the network: neither Jupyter's news nor its check for newer versions.
    """
    start = next((path for path in notebooks if path.stem.startswith("00_")), notebooks[0]).resolve()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={start.parent}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.allow_remote_access=False"]
    command += [f"--LabApp.default_url=/lab/tree/{quote(start.name)}", "--LabApp.news_url=None"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # JupyterLab refuses otherwise; in a container there is often no one else
    return [*command, "--no-browser"] if no_browser else command


def lab_environment() -> dict[str, str]:
    """Figures as MIME data: Plotly's other renderer would load scripts from the network."""
    return os.environ | {"PLOTLY_RENDERER": "plotly_mimetype"}
