"""What could explain a measured change, and what of it is excluded by data: chance, the data layout, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kitlib.benchtext import change, interval
from kitlib.diff import diff_layouts, diff_sources
from kitlib.model import Layout
from kitlib.sources import open_source
from kitlib.text import count
from kitlib.verdict import Judged

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["excluded", "shown", "open"]
_STRUCT = "struct inode { long i_rcu[2], i_version; int i_count; } keep;"
_BEFORE = "long f(struct inode *i) { return ++i->i_version; }"
_AFTER = "long f(struct inode *i) { return i->i_version += 2; }"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One thing that could explain a change. ``kind`` is that of the figure the status rests on ("" for none);
    ``next`` is what would decide an open one."""

    what: str
    status: Status
    because: str
    kind: str = ""
    next: str = ""


def chance(row: Judged) -> Explanation:
    """Could the runs differ that much by chance alone? Excluded if the row's own test says so."""
    said = f"{change(row)}, 95 % interval {interval(row)}"
    if row.verdict in ("better", "worse", "changed"):
        return Explanation("chance", "excluded", f"{said}; {row.reason}", "measured")
    more = f"{count(row.more_runs, 'run')} a side" if row.more_runs else "more runs"
    return Explanation("chance", "open", f"{said}; {row.reason}", "measured", more)


def data_layout(before: Layout, after: Layout) -> Explanation:
    """Did a member move? Excluded as a cause if none did. Exact."""
    diff = diff_layouts(before, after)
    if not diff.layout_changed:
        text = f"{before.title}: {count(len(before.members), 'known member')}, every one at the same offset"
        return Explanation("data layout", "excluded", text, "exact")
    moved = [m.path for m in diff.members if m.change not in ("stays", "retyped")]
    return Explanation("data layout", "open", f"moved: {', '.join(moved)}", "exact", "measure both layouts")


def still_open(what: str, because: str, settle: str) -> Explanation:
    """Something that nothing here excludes, and what would decide it."""
    return Explanation(what, "open", because, "", settle)


def causes_table(found: Sequence[Explanation]) -> pd.DataFrame:
    """One row an explanation."""
    import pandas as pd

    columns = ["could it be", "status", "because", "kind of figure", "what would decide it"]
    rows = [(e.what, e.status, e.because, e.kind or "\u2013", e.next or "\u2013") for e in found]
    return pd.DataFrame(rows, columns=columns)


def verdict(found: Sequence[Explanation]) -> str:
    """One sentence: what is excluded and what is left."""
    out = [e.what for e in found if e.status == "excluded"]
    left = [e.what for e in found if e.status == "open"]
    return f"excluded: {', '.join(out) or 'nothing'}; open: {', '.join(left) or 'nothing'}"


def two_builds() -> str:
    """What the comparison says of two small builds, one struct and two versions of a function: a stand-in for
    two kernels. Raises `ToolError` without a C compiler."""
    before, after = (open_source(f"{_STRUCT} {function}") for function in (_BEFORE, _AFTER))
    return diff_sources(before, after).verdict
