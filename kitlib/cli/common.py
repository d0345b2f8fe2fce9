"""Options and output that several commands share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kitlib.errors import SourceError

F = TypeVar("F", bound=Callable[..., Any])


def format_option(*choices: str) -> Callable[[F], F]:
    """``--format``: text (the default), json and what else `choices` names."""
    return click.option(
        "--format",
        "fmt",
        type=click.Choice(["text", "json", *choices]),
        default="text",
        show_default=True,
        help="Output format.",
    )


def line_options(command: F) -> F:
    """``--line-bytes`` and ``--phase``."""
    command = click.option("--phase", type=int, default=0, help="Byte within a line at which the object starts.")(
        command
    )
    return click.option(
        "--line-bytes", type=int, default=64, show_default=True, help="Cache line size: 32, 64, 128 or 256."
    )(command)


def emit(record: object, text: Callable[[], str], fmt: str) -> None:
    """Print `record` as JSON, or what `text` gives."""
    out = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) if fmt == "json" else text()
    write_out(out)


def write_out(text: str) -> None:
    """Print `text`. Raises `SourceError` if it cannot be written (a full disk); a closed pipe is left to `main`."""
    try:
        click.echo(text)
        if sys.stdout is not None:  # it is None if it was closed before the start
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        raise SourceError(f"standard output: {error.strerror}; the result was not written whole") from None
    except UnicodeEncodeError as error:
        shown = error.object[error.start : error.end]
        raise SourceError(f"standard output: {error.encoding} has no {shown!r}; set PYTHONIOENCODING=utf-8") from None


def _discard_stdout() -> None:
    """Point stdout elsewhere, so that the interpreter does not fail on what is left in its buffer at exit."""
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def finding(found: bool) -> None:
    """Leave with status 1 if `found`."""
    if found:
        sys.exit(1)
