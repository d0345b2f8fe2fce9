"""``list``, ``show`` and ``edit``: one source, one struct."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import click

from kitlib.cli.common import emit, format_option, line_options
from kitlib.describe import layout_record, layout_text
from kitlib.diff import diff_layouts
from kitlib.difftext import diff_record, diff_text
from kitlib.edit import Align, AlignStruct, Edit, Insert, Isolate, Move, Pad, Remove, Swap
from kitlib.errors import DataError, NotFound, near
from kitlib.files import write_whole
from kitlib.model import Layout
from kitlib.randstruct import opened
from kitlib.scenario import Scenario
from kitlib.source import pick
from kitlib.sources import open_source
from kitlib.text import printable


@click.command("list")
@click.argument("source")
@click.argument("pattern", required=False)
@format_option()
def list_(source: str, pattern: str | None, fmt: str) -> None:
    """List the structs of SOURCE whose name fits PATTERN ('sk_*'; a plain word fits anywhere)."""
    opened = open_source(source)
    names = opened.names()
    if pattern is not None:
        glob = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
        found = [name for name in names if fnmatch.fnmatchcase(name, glob)]
        if not found:
            raise NotFound(f"no struct in {opened.label} fits '{pattern}'{near(pattern, names)}")
        names = found
    record = {"source": {"label": opened.label, "kind": opened.kind}, "structs": names}
    emit(record, lambda: "\n".join(map(printable, names)), fmt)


@click.command()
@click.argument("source")
@click.argument("struct", required=False)
@line_options
@click.option("--expand", is_flag=True, help="Open nested structs and unions.")
@format_option("pahole")
def show(source: str, struct: str | None, line_bytes: int, phase: int, expand: bool, fmt: str) -> None:
    """Show STRUCT of SOURCE on its cache lines; without STRUCT, the only one there is."""
    layout = pick(open_source(source), struct)
    if fmt == "pahole":
        from kitlib.paholetext import pahole_text

        click.echo(pahole_text(layout).rstrip("\n"))
        return
    options: dict[str, Any] = {"line_bytes": line_bytes, "phase": phase, "expand": expand}
    emit(layout_record(layout, **options), lambda: _shown(layout, options), fmt)


def _shown(layout: Layout, options: dict[str, Any]) -> str:
    """The text of ``show``: a struct that only wraps an unnamed one, as mm_struct does, is opened."""
    inner = opened(layout)
    note = "" if inner is layout else f"\n{layout.title} only wraps an unnamed struct; its members are shown"
    return layout_text(inner, **options) + note


_EDITS = ("--move", "--swap", "--align", "--align-struct", "--isolate", "--insert", "--pad", "--remove")


class OrderedEdits(click.Command):
    """A command whose edit options are applied in the order in which they were written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        written: list[tuple[str, str]] = []
        words = iter(args)
        for word in words:
            name, equals, value = word.partition("=")
            if name in _EDITS:
                written.append((name, value if equals else next(words, "")))
            elif word == "--":
                break
        ctx.meta["edits"] = written
        return super().parse_args(ctx, args)


@click.command(cls=OrderedEdits)
@click.argument("source")
@click.argument("struct")
@click.option("--move", multiple=True, metavar="M:after=N", help="Move M after=N, before=N or to index=I.")
@click.option("--swap", multiple=True, metavar="A,B", help="Exchange two members.")
@click.option("--align", multiple=True, metavar="M=BYTES", help="Align a member (0: take the attribute away).")
@click.option("--align-struct", multiple=True, metavar="BYTES", help="Align the whole struct.")
@click.option("--isolate", multiple=True, metavar="M[=BYTES]", help="Put a member on lines of its own.")
@click.option("--insert", multiple=True, metavar="'TYPE NAME:before=N'", help="Insert a new member.")
@click.option("--pad", multiple=True, metavar="M=BYTES", help="Insert padding before a member.")
@click.option("--remove", multiple=True, metavar="M", help="Take a member out.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the scenario as JSON.")
@line_options
@format_option("pahole")
def edit(source: str, struct: str, save: str | None, line_bytes: int, phase: int, fmt: str, **_: Any) -> None:
    """Edit STRUCT and show what changes. Edits are applied in the order given.

    SOURCE may be a scenario file written by --save: its edits come first.
    """
    scenario = Scenario(open_source(source).struct(struct))
    for option, text in click.get_current_context().meta["edits"]:
        scenario = scenario.edited(parse_edit(option, text))
    after = scenario.layout
    if save is not None:
        write_whole(Path(save), scenario.to_json())
    if fmt == "pahole":
        from kitlib.paholetext import pahole_text

        click.echo(pahole_text(after).rstrip("\n"))
        return
    change = diff_layouts(scenario.base, after, line_bytes=line_bytes, phase=phase)
    record = {
        "edits": [str(e) for e in scenario.edits],
        "before": layout_record(scenario.base, line_bytes=line_bytes, phase=phase),
        "after": layout_record(after, line_bytes=line_bytes, phase=phase),
        "diff": diff_record(change),
    }
    emit(record, lambda: _edit_text(scenario, after, diff_text(change), line_bytes, phase), fmt)


def _edit_text(scenario: Scenario, after: Any, change: str, line_bytes: int, phase: int) -> str:
    edits = "\n".join(f"  {edit}" for edit in scenario.edits) or "  none"
    return f"edits:\n{edits}\n\n{layout_text(after, line_bytes=line_bytes, phase=phase)}\n\n{change}"


def parse_edit(option: str, text: str) -> Edit:
    """Turn ``--move``'s ``M:after=N`` and the like into an edit. Raises `DataError` for other forms."""
    if option in ("--move", "--insert"):
        return _placed(option, text)
    if option == "--remove":
        return Remove(text)
    if option == "--swap":
        first, comma, second = text.partition(",")
        if not comma:
            raise DataError(f"--swap {text}: write A,B")
        return Swap(first, second)
    if option == "--align-struct":
        return AlignStruct(_bytes(text, f"{option} {text}"))
    member, equals, number = text.partition("=")
    if option == "--isolate":
        return Isolate(member, _bytes(number, f"{option} {text}") if equals else 64)
    kind = Align if option == "--align" else Pad
    return kind(member, _bytes(number, f"{option} {text}"))


def _placed(option: str, text: str) -> Edit:
    match = re.fullmatch(r"(.+?):(before|after|index)=([^:=]+)", text)
    if match is None:
        if option == "--insert" and ":" not in text.rstrip("0123456789:"):
            return Insert(text)
        raise DataError(f"{option} {text}: write NAME:after=OTHER, NAME:before=OTHER or NAME:index=NUMBER")
    what, how, where = match.groups()
    position: dict[str, Any] = {how: _bytes(where, f"{option} {text}") if how == "index" else where}
    return Move(what, **position) if option == "--move" else Insert(what, **position)


def _bytes(text: str, where: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise DataError(f"{where}: '{text}' must be a whole number from 0")
    return int(text)
