"""The history of one struct: its layouts in order, what each change moved, and what was measured with it.

Places and sizes are exact. Figures are those of the review case of a step; none is stored with the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kitlib import datafiles
from kitlib.answer import listed
from kitlib.cases import open_case
from kitlib.diff import StructDiff, diff_layouts
from kitlib.errors import DataError, KitError, NotFound, near
from kitlib.evidence import Finding, findings
from kitlib.lines import find_leaf, n_lines, share_line
from kitlib.model import Layout
from kitlib.sharing import name_in, sharing
from kitlib.sources import open_source
from kitlib.tomlfile import read_toml

if TYPE_CHECKING:
    import pandas as pd

FORMAT, VERSION = "kitlib-history", 1
_STEP = {"label", "year", "layout", "case", "who", "commit", "what", "source", "branch"}


@dataclass(frozen=True, slots=True)
class Step:
    """One state of the struct. ``year`` is 0 where it depends on the machine; a ``branch`` was proposed, and the
    next step does not follow from it. ``case`` names the review case of the change that led here ("" for none)."""

    label: str
    year: int
    layout: str
    what: str
    source: str
    case: str = ""
    who: str = ""
    commit: str = ""
    branch: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """A step with its layout read."""

    step: Step
    layout: Layout


@dataclass(frozen=True, slots=True)
class Change:
    """What led from one state to the next: ``diff`` is exact, ``found`` what was measured."""

    before: State
    after: State
    diff: StructDiff
    found: tuple[Finding, ...]

    def moved(self) -> tuple[str, ...]:
        """Top-level members whose place in the order changed."""
        return self._names("moved")

    def _names(self, change: str) -> tuple[str, ...]:
        known = {*self.before.layout.member_names(), *self.after.layout.member_names()}
        return tuple(m.path for m in self.diff.members if m.change == change and m.path in known)

    def added(self) -> tuple[str, ...]:
        return self._names("added")

    def removed(self) -> tuple[str, ...]:
        return self._names("removed")


@dataclass(frozen=True, slots=True)
class History:
    """The states of ``struct`` that could be read, oldest first; ``missing`` maps the others to the reason.

    ``members`` are the names over time of the member that is followed, ``watch`` those it is compared with.
    """

    title: str
    struct: str
    members: tuple[str, ...]
    watch: tuple[str, ...]
    states: tuple[State, ...]
    missing: Mapping[str, str]

    @property
    def layouts(self) -> dict[str, Layout]:
        """Layouts by label."""
        return {state.step.label: state.layout for state in self.states}

    @property
    def note(self) -> str:
        """Which states were read, and which were not and why, in words."""
        lines = [f"read: {', '.join(self.layouts)}"]
        return "\n".join([*lines, *(f"not here: {label} ({why})" for label, why in self.missing.items())])

    def changes(self) -> tuple[Change, ...]:
        """Each state against the one before it; a branch is left out as what the next one follows from."""
        found, base = [], self.states[0]
        for state in self.states[1:]:
            diff = diff_layouts(base.layout, state.layout)
            measured = findings(open_case(state.step.case)) if state.step.case else ()
            found.append(Change(base, state, diff, measured))
            base = base if state.step.branch else state
        return tuple(found)

    def change(self, label: str) -> Change:
        """The change that led to the state called `label`. Raises `NotFound`, with near labels."""
        known = {change.after.step.label: change for change in self.changes()}
        if label not in known:
            raise NotFound(f"no change led to '{label}'{near(label, known)}")
        return known[label]


def read_history(name: str) -> History:
    """The shipped history `name`, with the layouts that can be read here.

    Raises `DataError` for a file that is no history, and for one of which no layout can be read.
    """
    path = datafiles.path(f"history/{name}.toml")
    record = read_toml(path, form=FORMAT, version=VERSION, make="see data/history/struct-file.toml")
    struct, members, watch = record["struct"], tuple(record["members"]), tuple(record["watch"])
    states, missing = [], {}
    for number, entry in enumerate(record["step"], 1):
        step = _step(entry, f"{path.name}, step {number}")
        try:
            states.append(State(step, open_source(step.layout).struct(struct)))
        except KitError as error:
            missing[step.label] = str(error)
    if not states:
        raise DataError(f"{path.name}: no layout of {struct} could be read")
    return History(record["title"], struct, members, watch, tuple(states), missing)


def _step(entry: Mapping[str, Any], where: str) -> Step:
    for key in entry:
        if key not in _STEP:
            raise DataError(f"{where}: unknown key '{key}'{near(key, _STEP)}")
    try:
        return Step(**entry)
    except TypeError as error:
        raise DataError(f"{where}: {error}") from None


def states_table(history: History, line_bytes: int = 64) -> pd.DataFrame:
    """One row a state: size and lines, where the followed member is, and whether each watched one is on its line."""
    import pandas as pd

    rows = []
    for state in history.states:
        layout = state.layout
        name = name_in(layout, history.members)
        rows.append(
            {"kernel": state.step.label, "year": str(state.step.year or "\u2013"), "size": layout.size}
            | {f"{line_bytes}-byte lines": n_lines(layout, line_bytes), "member": name}
            | {"offset": find_leaf(layout, name).offset}
            | {f"with {w}": _beside(layout, name, w, line_bytes) for w in history.watch}
            | {"what was done": state.step.what}
        )
    return pd.DataFrame(rows).set_index("kernel")


def _beside(layout: Layout, name: str, other: str, line_bytes: int) -> str:
    return "yes" if share_line(layout, name, other, line_bytes) else "no"


def changes_table(history: History) -> pd.DataFrame:
    """One row a change: who, the commit, the size, and the members that moved, came and went."""
    import pandas as pd

    rows = [
        {
            "to": change.after.step.label,
            "by": change.after.step.who or "\u2013",
            "commit": change.after.step.commit or "\u2013",
            "size": f"{change.diff.size_before} \u2192 {change.diff.size_after}",
            "moved": ", ".join(change.moved()) or "nothing",
            "new": ", ".join(change.added()) or "\u2013",
            "gone": ", ".join(change.removed()) or "\u2013",
        }
        for change in history.changes()
    ]
    return pd.DataFrame(rows).set_index("to")


def measured_table(history: History) -> pd.DataFrame:
    """One row a published figure, and one for each change of a review case that states none."""
    import pandas as pd

    rows: list[tuple[str, str, str, str, str]] = []
    for change in history.changes():
        if not change.after.step.case:
            continue
        for found in change.found:
            verdict = found.judged.verdict if found.judged else "undecided (no values)"
            kind = "application" if found.evidence.workload == "application" else "micro-benchmark"
            rows.append((change.after.step.label, kind, found.text, verdict, found.evidence.shared))
        if not change.found:
            rows.append((change.after.step.label, "\u2013", "no figure is stated", "not measured", "\u2013"))
    return pd.DataFrame(rows, columns=["to", "benchmark", "figure", "verdict", "what is shared there"]).set_index("to")


@dataclass(frozen=True, slots=True)
class Move:
    """How one change treated the followed member: ``before`` and ``after`` are bytes, ``gone`` the watched members
    that left its line, ``company`` everything on its line afterwards, ``last`` whether it ended up last."""

    label: str
    name: str
    before: int
    after: int
    gone: tuple[str, ...]
    company: tuple[str, ...]
    last: bool

    def sentence(self) -> str:
        """One sentence about it."""
        left = f"it left the line of {listed(self.gone)}" if self.gone else "it left the line of none of those watched"
        end = ", the end of the struct" if self.last else ""
        beside = listed(self.company[:4])
        more = f" and {len(self.company) - 4} more" if len(self.company) > 4 else ""
        if more:
            beside = ", ".join(self.company[:4])
        went = (
            f"went from byte {self.before} to byte {self.after}{end}"
            if self.after != self.before
            else f"stayed at byte {self.after}"
        )
        return f"{self.name} {went}; {left} and is now beside {beside}{more}"


def move_of(history: History, label: str, line_bytes: int = 64) -> Move:
    """What the change to `label` did to the followed member. Raises `NotFound` for an unknown label."""
    change = history.change(label)
    before, after = change.before.layout, change.after.layout
    old, new = name_in(before, history.members), name_in(after, history.members)
    gone = [w for w in history.watch if share_line(before, old, w, line_bytes) > share_line(after, new, w, line_bytes)]
    row = next(iter(sharing({label: after}, new, (line_bytes,))))
    last = after.members[-1].name == new
    offsets = find_leaf(before, old).offset, find_leaf(after, new).offset
    return Move(label, new, *offsets, tuple(gone), row.shares_with, last)
