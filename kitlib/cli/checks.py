"""``diff``, ``check``, ``guard`` and ``scan``: two sources compared, rules checked and written, structs searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kitlib.cli.common import emit, finding, format_option, line_options, write_out
from kitlib.errors import DataError
from kitlib.files import read_text, write_whole
from kitlib.source import Source
from kitlib.sources import open_source
from kitlib.text import printable, table


@click.command()
@click.argument("source_a")
@click.argument("source_b")
@click.argument("structs", nargs=-1, metavar="[STRUCT]...")
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="Structs listed as text.")
@line_options
@format_option()
def diff(
    source_a: str, source_b: str, structs: tuple[str, ...], limit: int, line_bytes: int, phase: int, fmt: str
) -> None:
    """Compare STRUCTs (all, if none is named) of two sources: size, offsets, lines, line-mates.

    Exit status 1 if any layout differs, 0 if none does (a type that only changed its name does not count).
    """
    from kitlib.diff import diff_sources
    from kitlib.difftext import source_record, source_text

    a, b = _open_for_listing(source_a, bool(structs)), _open_for_listing(source_b, bool(structs))
    result = diff_sources(a, b, structs, line_bytes=line_bytes, phase=phase)
    emit(source_record(result), lambda: source_text(result, limit), fmt)
    finding(result.layout_changed)


def _open_for_listing(text: str, one: bool) -> Source:
    """Open a source; for all its structs BTF is preferred where a file has both, since it is read in a second."""
    return open_source(text, prefer="dwarf" if one else "btf")


@click.command()
@click.argument("rules", type=click.Path(dir_okay=False))
@click.argument("source")
@click.option(
    "--config", type=click.Path(dir_okay=False), help="The build's .config, for rules tied to CONFIG_ options."
)
@format_option("sarif", "junit")
def check(rules: str, source: str, config: str | None, fmt: str) -> None:
    """Check the layout rules in the file RULES on SOURCE.

    Exit status 0 if every rule that applies holds, 1 if one is broken or cannot be evaluated, 2 if RULES or
    SOURCE is wrong.
    """
    from kitlib.guard import check as evaluate
    from kitlib.guard import read_config
    from kitlib.guardtext import report_record, report_text
    from kitlib.rulefile import read_rules
    from kitlib.sarif import to_junit, to_sarif

    parsed = read_rules(rules)
    options = None if config is None else read_config(_config_text(Path(config)))
    if options is not None and not options:
        raise DataError(f"{config}: no CONFIG_ option in it; give the .config of the build")
    report = evaluate(parsed, open_source(source), options)
    if fmt == "junit":
        write_out(to_junit(report).rstrip("\n"))
    else:
        emit(to_sarif(report) if fmt == "sarif" else report_record(report), lambda: report_text(report), _plain(fmt))
    finding(not report.ok)


def _config_text(path: Path) -> str:
    """A kernel configuration, which may be compressed as ``/proc/config.gz`` is."""
    if path.suffix != ".gz":
        return read_text(path)
    from kitlib.compression import decompress

    try:
        return decompress(path.read_bytes(), str(path)).decode("utf-8", "replace")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; give the .config of the build") from None


def _plain(fmt: str) -> str:
    return "json" if fmt == "sarif" else fmt


@click.command()
@click.argument("source")
@click.argument("struct")
@click.option("--hot", metavar="A,B", help="Members that matter (default: locks, atomics and counters).")
@click.option(
    "--as",
    "form",
    type=click.Choice(["rules", "asserts", "groups"]),
    default="rules",
    show_default=True,
    help="Rules (TOML), C static_asserts, or the kernel's cache-line groups with what they miss.",
)
@click.option("--line-bytes", default="64", show_default=True, metavar="N[,N]", help="Line sizes the rules are for.")
@click.option(
    "--phases", default="0", show_default=True, metavar="N[,N]|all", help="Bytes into a line at which objects start."
)
@click.option("--exclusive", is_flag=True, help="Also keep newcomers off the hot members' lines.")
@click.option("--rules", type=click.Path(dir_okay=False), help="With --as asserts: the rules to turn into C.")
@click.option("--group", default="hot", show_default=True, metavar="NAME", help="With --as groups: name of the group.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file.")
@format_option()
def guard(
    source: str,
    struct: str,
    hot: str | None,
    form: str,
    line_bytes: str,
    phases: str,
    exclusive: bool,
    rules: str | None,
    group: str,
    output: str | None,
    fmt: str,
) -> None:
    """Write down what holds for STRUCT today, as rules for 'kitlib check' or as C assertions."""
    from kitlib.casserts import kernel_group, static_asserts
    from kitlib.promise import write_rules
    from kitlib.rulefile import rules_to_toml

    opened = open_source(source)
    layout = opened.struct(struct)
    members = [name.strip() for name in (hot or "").split(",") if name.strip()]
    if hot is not None and not members:
        raise DataError(f"--hot '{hot}' names no member; leave it out for locks, atomics and counters")
    sizes = _numbers(line_bytes, "--line-bytes")
    if form == "groups":
        text = kernel_group(layout, members, group, sizes[0])
    else:
        starts = None if phases == "all" else _numbers(phases, "--phases")
        promise = (
            _promise(rules, layout.name or struct)
            if rules
            else write_rules(layout, members, line_bytes=sizes, phases=starts, exclusive=exclusive, source=opened.label)
        )
        text = rules_to_toml([promise]) if form == "rules" else static_asserts(promise, layout)
    if output is not None:
        write_whole(Path(output), text)
    record = {"struct": layout.name, "source": opened.label, "form": form, "text": text, "file": output}
    emit(record, lambda: text.rstrip("\n") if output is None else f"{output}: written", fmt)


def _promise(path: str, struct: str) -> Any:
    from kitlib.rulefile import read_rules

    for group in read_rules(path).structs:
        if group.struct == struct:
            return group
    raise DataError(f"{path}: no rules for struct {struct} in it")


def _numbers(text: str, option: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isascii() and word.isdecimal() and len(word) < 6 for word in words):
        raise DataError(f"{option} {text}: give whole numbers, separated by commas")
    return [int(word) for word in words]


@click.command()
@click.argument("source")
@click.option("--struct", "structs", multiple=True, metavar="GLOB", help="Only structs whose name fits (repeatable).")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only kinds such as lock or atomic+read-mostly.")
@click.option(
    "--min-score", type=click.FloatRange(0, 100), default=50.0, show_default=True, help="Leave out rows below."
)
@click.option("--top", type=click.IntRange(1), help="At most so many rows (text: 40 if not given).")
@click.option("--allow", type=click.Path(dir_okay=False), help="File of struct.member globs that are known and fine.")
@line_options
@format_option()
def scan(
    source: str,
    structs: tuple[str, ...],
    kinds: tuple[str, ...],
    min_score: float,
    top: int | None,
    allow: str | None,
    line_bytes: int,
    phase: int,
    fmt: str,
) -> None:
    """List locks, atomics, counters and RCU heads of SOURCE that share a line with others, worst-looking first.

    Who shares a line is exact; the score is a model, from types and names alone. Exit status 1 if there are
    rows, 0 if there are none.
    """
    from kitlib.scan import ScanFilter, read_allow, scan_source

    allowed = read_allow(read_text(Path(allow)), allow) if allow else ()
    keep = ScanFilter(min_score, structs, kinds, allowed)
    result = scan_source(_open_for_listing(source, False), keep, line_bytes=line_bytes, phase=phase)
    emit(result.record(top), lambda: _scan_text(result, top or 40), fmt)
    finding(bool(result.rows))


def _scan_text(result: Any, top: int) -> str:
    shown = [(f"{r.score:.0f}", r.struct, r.member, r.line, r.kind, _some(r.mates)) for r in result.rows[:top]]
    head = (
        f"{result.source}: {len(result.rows):,} rows in {result.structs:,} structs, {result.line_bytes}-byte lines; "
        "who shares a line is exact, the score a model"
    )
    rest = len(result.rows) - len(shown)
    tail = [f"… and {rest:,} more; see --top, --struct, --kind, --min-score, --allow"] if rest > 0 else []
    headers = ["score", "struct", "member", "line", "kind", "shares the line with"]
    return "\n".join([printable(head), table(headers, shown, right="rllrll"), *tail])


def _some(mates: tuple[str, ...], limit: int = 4) -> str:
    return ", ".join(mates[:limit]) + (f" and {len(mates) - limit} more" if len(mates) > limit else "")
