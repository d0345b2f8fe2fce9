"""Suggest a better member order: a local search by the cost model. The gain it gives is *model*, not measured.

One move at a time (a member taken out and put elsewhere), the best one first, as long as it pays. Only the
members a profile accesses are moved: the others follow, so the diff stays small enough to review.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kitlib.access import Profile
from kitlib.cost import Cost, cost
from kitlib.edit import Move
from kitlib.errors import PlacementError
from kitlib.lines import find_leaf
from kitlib.machine import Machine
from kitlib.model import Layout

LEAST_GAIN_PCT = 0.5
"""A step must lower the cost by this much; less than the model can tell apart is no reason to move a member."""
MOST_STEPS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One edit, the cost in ns per run after it, and the size of the struct in bytes."""

    edit: Move
    total_ns: float
    size: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Edits in order, and the predicted cost before and after them. No steps: nothing better was found."""

    before: Cost
    after: Cost
    layout: Layout
    steps: tuple[Step, ...]
    tried: int

    @property
    def gain_pct(self) -> float:
        """Predicted change of the cost in % (negative: cheaper)."""
        return 100 * (self.after.total_ns / self.before.total_ns - 1) if self.before.total_ns else 0.0


def suggest(
    layout: Layout,
    profile: Profile,
    machine: Machine,
    *,
    most_steps: int = MOST_STEPS,
    grow_bytes: int = 0,
    tick: Callable[[int, int], None] | None = None,
) -> Suggestion:
    """Search for a cheaper order of the members of `layout`; the struct may grow by at most `grow_bytes`.

    Raises `PlacementError` if the layout cannot be re-placed, `NotFound` for a member that is missing.
    """
    if layout.reason is not None:
        raise PlacementError(f"{layout.title} cannot be re-placed: {layout.reason}")
    first = best = cost(layout, profile, machine)
    limit, current, steps, tried = layout.size + grow_bytes, layout, [], 0
    for number in range(most_steps):
        found: tuple[float, Move, Layout, Cost] | None = None
        for move in _moves(current, profile):
            candidate = move.apply(current)
            if candidate.size > limit:
                continue
            tried += 1
            priced = cost(candidate, profile, machine)
            if found is None or priced.total_ns < found[0] - 1e-9:
                found = priced.total_ns, move, candidate, priced
        if tick:
            tick(number + 1, most_steps)
        if found is None or found[0] > best.total_ns * (1 - LEAST_GAIN_PCT / 100):
            break
        _, move, current, best = found
        steps.append(Step(move, best.total_ns, current.size))
    return Suggestion(first, best, current, tuple(steps), tried)


def _moves(layout: Layout, profile: Profile) -> list[Move]:
    """Moves of a member the profile accesses to behind another one; first members can be reached by index 0."""
    names = [m.name for m in layout.members if m.name is not None]
    wanted = {layout.members[find_leaf(layout, a.member).top].name for p in profile.paths for a in p.accesses}
    moves = []
    for name in sorted(n for n in wanted if n is not None):
        place = names.index(name)
        moves += [Move(name, after=other) for i, other in enumerate(names) if other != name and i != place - 1]
        if place:
            moves.append(Move(name, index=0))
    return moves
