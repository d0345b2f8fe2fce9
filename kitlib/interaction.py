"""Two changes, each with and without the other: what was measured, what is missing, and what the model says.

The figures are those of the published case ``fget-atomic-add``; the effect of one change with and without the
other (their interaction) needs all four cells, and one was never measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.access import Op, Profile
from kitlib.benchcases import Case, PublishedFigure, case
from kitlib.benchtext import figure as number_text
from kitlib.cost import Model
from kitlib.errors import DataError
from kitlib.machine import Machine
from kitlib.model import Layout
from kitlib.text import pct

if TYPE_CHECKING:
    import pandas as pd

CASE, OTHER_CASE = "fget-atomic-add", "struct-file-5.8-unixbench"
METRIC = "System Call Overhead"
NEITHER, ADD, BOTH = "neither patch", "atomic_add only", "both"
LAYOUT = "layout patch only"


@dataclass(frozen=True, slots=True)
class Square:
    """Results with none, one or both of two changes, in ``unit``; None where nothing was measured."""

    neither: float
    add: float
    layout: float | None
    both: float
    unit: str
    source: str

    def cells(self) -> dict[str, float | None]:
        """The four cells by name."""
        return {NEITHER: self.neither, ADD: self.add, LAYOUT: self.layout, BOTH: self.both}

    @property
    def add_pct(self) -> float:
        """Effect of the add without the layout patch, in %."""
        return _change(self.neither, self.add)

    @property
    def both_pct(self) -> float:
        """Effect of both together, in %."""
        return _change(self.neither, self.both)

    @property
    def layout_on_add_pct(self) -> float:
        """Effect of the layout patch where the add is there already, in %."""
        return _change(self.add, self.both)

    @property
    def layout_if_independent(self) -> float:
        """What the missing cell would be if the two effects multiplied: an assumption, no measurement."""
        return self.neither * self.both / self.add


@dataclass(frozen=True, slots=True)
class OtherBase:
    """The layout patch on its own base, another set-up: results before and after, on ``machine``."""

    before: float
    after: float
    machine: str

    @property
    def change_pct(self) -> float:
        return _change(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Predicted:
    """One cell by the model: ns per path run with the work between runs, its throughput against the cell with
    neither change in %, and failed compare-exchanges per path run."""

    cell: str
    ns: float
    change_pct: float
    retries: float


def _change(before: float, after: float) -> float:
    return 100 * (after / before - 1)


def square() -> Square:
    """The published cells. Raises `DataError` if the case no longer has them."""
    known = case(CASE)
    pairs = {f.note.partition("->")[2].strip(): f for f in known.figures if f.metric == METRIC}
    missing = [cell for cell in (ADD, BOTH) if cell not in pairs]
    if missing:
        raise DataError(f"case {CASE} has no figure '{METRIC}' noted '{NEITHER} -> {missing[0]}'")
    add, both = pairs[ADD], pairs[BOTH]
    layout = pairs.get(LAYOUT)
    before, after = _sides(add, known)
    return Square(before, after, layout.after if layout else None, _sides(both, known)[1], add.unit, known.source)


def other_base(machine: str = "Kunpeng 920") -> OtherBase:
    """The layout patch in its own thread, on the same kind of machine but another base."""
    known = case(OTHER_CASE)
    for found in known.figures:
        if found.metric == METRIC and found.machine.startswith(machine):
            return OtherBase(*_sides(found, known), found.machine)
    raise DataError(f"case {OTHER_CASE} has no figure '{METRIC}' of a {machine}")


def _sides(figure: PublishedFigure, known: Case) -> tuple[float, float]:
    if figure.before is None or figure.after is None:
        raise DataError(f"case {known.id}: '{figure.metric}' needs both sides")
    return figure.before, figure.after


def square_table(found: Square) -> pd.DataFrame:
    """Two rows (how the reference is taken) by two columns (where f_count is)."""
    import pandas as pd

    rows = [
        ("compare-exchange loop", _cell(found, found.neither), _cell(found, found.layout)),
        ("atomic add", _cell(found, found.add), _cell(found, found.both)),
    ]
    columns = ["how the reference is taken", "f_count in its old place", "f_count at the end"]
    return pd.DataFrame(rows, columns=columns)


def _cell(found: Square, value: float | None) -> str:
    if value is None:
        return "not measured"
    change = "" if value == found.neither else f" ({pct(_change(found.neither, value))})"
    return f"{number_text(value)} {found.unit}{change}"


def why_not_joined(found: Square, other: OtherBase) -> str:
    """What putting the other thread's figure into the empty cell would say, in one sentence."""
    wrong = _change(found.neither, other.after)
    return (
        f"Its {number_text(other.after)} {found.unit} in the empty cell would make the layout patch a change of "
        f"{pct(wrong)} here, although its own thread shows {pct(other.change_pct)}: the base there is "
        f"{number_text(other.before)}, here {number_text(found.neither)}, on the same kind of machine"
    )


def predicted(
    before: Layout, after: Layout, profile: Profile, machine: Machine, *, member: str, new: Op = "add", cpus: int
) -> tuple[Predicted, ...]:
    """The four cells by the model for `cpus` CPUs that share one object: in `after` the member is moved, and
    `new` replaces the compare-exchange loop on `member`."""
    work = profile.workload.work_ns
    changed = profile.with_op(member, "cmpxchg", new)
    runs: Sequence[tuple[str, Layout, Profile]] = (
        (NEITHER, before, profile), (ADD, before, changed), (LAYOUT, after, profile), (BOTH, after, changed),
    )  # fmt: skip
    found = [(cell, Model(layout, p, machine).shared(cpus, work)) for cell, layout, p in runs]
    base = float(found[0][1].ns) + work
    return tuple(
        Predicted(cell, float(s.ns) + work, _change(float(s.ns) + work, base), float(s.retries)) for cell, s in found
    )


def predicted_table(found: Square, model: Sequence[Predicted]) -> pd.DataFrame:
    """One row a cell: the model's ns, change and retries beside the measured change."""
    import pandas as pd

    measured = found.cells()
    rows = []
    for row in model:
        value = measured[row.cell]
        seen = (
            "not measured" if value is None else pct(_change(found.neither, value)) if row.cell != NEITHER else "base"
        )
        change = "base" if row.cell == NEITHER else pct(row.change_pct)
        rows.append((row.cell, f"{row.ns:,.0f}", change, f"{row.retries:.2f}", seen))
    columns = ["cell", "ns a path run", "model, throughput", "failed exchanges a path run", "measured, throughput"]
    return pd.DataFrame(rows, columns=columns)


def agreement(found: Square, model: Sequence[Predicted]) -> str:
    """Whether the model gets the two measured effects, in words; half of the effect counts as getting it."""
    by = {row.cell: row.change_pct for row in model}
    told = []
    for cell, seen in ((ADD, found.add_pct), (BOTH, found.both_pct)):
        near = abs(by[cell] - seen) <= abs(seen) / 2
        told.append(f"{cell}: {pct(by[cell])} by the model, {pct(seen)} measured ({'near' if near else 'far off'})")
    return "; ".join(told)
