"""``kitlib review CASE`` and ``kitlib review new FILE``."""

from __future__ import annotations

from pathlib import Path

import click

from kitlib.cases import open_case
from kitlib.cli.common import emit, format_option
from kitlib.errors import DataError
from kitlib.files import write_whole
from kitlib.review import review_case

TEMPLATE = """\
# A review case for 'kitlib review FILE'. Paths are relative to this file.
format = "kitlib-case"
version = 1
title = "What the change is, in one line"
about = "Why it was made and what is asked of it, in one paragraph."
source = "Where the change and its figures are from."

# The struct, and where to read it before and after: a build (vmlinux, .o, .ko), pahole text, a C file, a layout
# JSON, a scenario saved by 'kitlib edit --save', or a shipped name.
struct = "file"
before = "file-5.8"
after = "file-5.8-patch"

# The member the change is about, and the members it should not share a line with.
[member]
name = "f_count"
meets = ["f_mode", "f_inode", "f_op"]

# What the change says of the layout before it; checked first. Leave it out if it says nothing.
[claim]
text = "f_count and f_mode are on the same cache line"
member = "f_count"
with = ["f_mode"]

# Benchmark figures, read as 'kitlib bench' reads them. workload: "micro" (a loop of a few calls) or "application".
# [[evidence]]
# files = ["before-and-after.txt"]
# workload = "micro"
# shared = "what the CPUs share in this benchmark"

# What is not known, and what would settle it.
[[unknown]]
text = "What it does for real workloads."
settle = "kitlib measure BEFORE STRUCT --after AFTER"

# Further keys, to be set above the first [table]:
# profile = "struct_file"       which paths touch which members; a shipped name or a TOML file
# rules = "layout-rules.toml"   a rules file for 'kitlib check'
# measured = "mine.json"         what 'kitlib measure ... --format json' wrote for this change
# randomised = true             the struct is marked __randomize_layout
# guarded = true                the change itself carries an assertion
"""


@click.command()
@click.argument("case")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write one HTML page.")
@format_option()
def review(case: str, file: Path | None, output: Path | None, fmt: str) -> None:
    """Answer a reviewer's questions about a change of layout.

    CASE is a shipped case (struct-file-2020, mm-struct-2021, ...) or a case file; 'kitlib review new FILE' writes
    a commented one to start from.
    """
    if case == "new":
        _new(file)
        return
    if file is not None:
        raise DataError(f"'{file}' is one word too many; write the page with -o {file}")
    done = review_case(open_case(case))
    if output is not None:
        from kitlib.reviewpage import review_html

        write_whole(output, review_html(done))
        click.echo(f"wrote {output}", err=True)
        return
    from kitlib.reviewtext import review_text

    emit(done.record(), lambda: review_text(done), fmt)


def _new(file: Path | None) -> None:
    if file is None:
        raise DataError("review new: say where to write it, e.g. 'kitlib review new my-change.toml'")
    if file.exists():
        raise DataError(f"{file}: exists already; choose another name")
    write_whole(file, TEMPLATE)
    click.echo(f"wrote {file}; edit it, then run 'kitlib review {file}'", err=True)
