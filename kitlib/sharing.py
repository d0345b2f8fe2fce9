"""Which members share a cache line with one member, over several layouts of one struct and several line sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.errors import KitError, NotFound
from kitlib.lines import find_leaf, line_span, mates, n_lines, share_line
from kitlib.model import Layout
from kitlib.sources import open_source

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Collected:
    """One struct from several sources: ``layouts`` by label, and why a source gave none in ``missing``."""

    layouts: dict[str, Layout]
    missing: dict[str, str]

    @property
    def note(self) -> str:
        """What was read, and what was not and why, in words."""
        read = f"read: {', '.join(self.layouts) or 'nothing'}"
        return "\n".join([read, *(f"not here: {label} ({why})" for label, why in self.missing.items())])


def collect(sources: Mapping[str, str], struct: str) -> Collected:
    """Read `struct` from each of `sources` (label to what `open_source` takes); what fails is kept with its reason."""
    layouts: dict[str, Layout] = {}
    missing: dict[str, str] = {}
    for label, source in sources.items():
        try:
            layouts[label] = open_source(source).struct(struct)
        except KitError as error:
            missing[label] = str(error)
    return Collected(layouts, missing)


@dataclass(frozen=True, slots=True)
class Sharing:
    """One member of one layout: where it is and what touches the same line. ``offset`` is in bytes."""

    label: str
    member: str
    line_bytes: int
    offset: int
    lines: tuple[int, int]
    shares_with: tuple[str, ...]


def name_in(layout: Layout, names: Sequence[str]) -> str:
    """The first of `names` (a member that was renamed over time) that `layout` has; `NotFound` if none."""
    known = set(layout.member_names())
    for name in names:
        if name in known:
            return name
    raise NotFound(f"none of {', '.join(names)} is a member of {layout.title}")


def sharing(
    layouts: Mapping[str, Layout], member: str | Sequence[str], line_sizes: Iterable[int] = (64, 128), phase: int = 0
) -> tuple[Sharing, ...]:
    """What shares a line with `member` (or the first of several names) in each layout at each line size, in bytes.

    Members of structs held by value count under the name of the struct. Raises `NotFound` for an unknown member.
    """
    names = [member] if isinstance(member, str) else list(member)
    found = []
    for line_bytes in line_sizes:
        for label, layout in layouts.items():
            name = name_in(layout, names)
            leaf = find_leaf(layout, name)
            others = dict.fromkeys(m.path.partition(".")[0] for m in mates(layout, name, line_bytes, phase))
            span = line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)
            found.append(Sharing(label, name, line_bytes, leaf.offset, span, tuple(others)))
    return tuple(found)


def together(layout: Layout, a: str, b: str, line_sizes: Iterable[int] = (64, 128)) -> str:
    """A sentence that says where `a` and `b` are and at which line sizes (bytes) they are on one line.

    For objects that start on a line. Raises `NotFound` for an unknown member.
    """
    places = " and ".join(f"{name} at byte {find_leaf(layout, name).offset}" for name in (a, b))
    answers = [
        f"{'on one line' if share_line(layout, a, b, size) else 'not on one line'} of {size} bytes"
        for size in line_sizes
    ]
    return f"{layout.title} has {places}: {'; '.join(answers)}."


def sharing_table(
    layouts: Mapping[str, Layout],
    member: str | Sequence[str],
    asked: Sequence[str] = (),
    line_sizes: Iterable[int] = (64, 128),
) -> pd.DataFrame:
    """`sharing` as a table, one row a layout and line size; a column "with X" answers for each X in `asked`."""
    import pandas as pd

    rows = []
    for row in sharing(layouts, member, line_sizes):
        answers = {f"with {x}": "yes" if x in row.shares_with else "no" for x in asked}
        first, last = row.lines
        rows.append(
            {"layout": row.label, "line bytes": row.line_bytes, "member": row.member, "offset": row.offset}
            | {"line": str(first) if first == last else f"{first}-{last}"}
            | answers
            | {"everything on its line": ", ".join(row.shares_with) or "nothing"}
        )
    return pd.DataFrame(rows).set_index("layout")


def size_table(layouts: Mapping[str, Layout], line_bytes: int = 64) -> pd.DataFrame:
    """Size in bytes, members, and lines touched by an object that starts on a line and by one in the worst place."""
    import pandas as pd

    rows = []
    for label, layout in layouts.items():
        step = max(min(layout.align, line_bytes), 1)
        worst = max(n_lines(layout, line_bytes, phase) for phase in range(0, line_bytes, step))
        rows.append(
            {
                "layout": label,
                "size": layout.size,
                "members": len(layout.members),
                f"{line_bytes}-byte lines": n_lines(layout, line_bytes),
                "at the worst phase": worst,
            }
        )
    return pd.DataFrame(rows).set_index("layout")
