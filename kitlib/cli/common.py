"""Options and output that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

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
    click.echo(out)


def finding(found: bool) -> None:
    """Leave with status 1 if `found`."""
    if found:
        sys.exit(1)
