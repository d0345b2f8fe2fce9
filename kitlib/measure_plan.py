"""From a profile to a program: which path runs when, and which access of it goes to which slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kitlib.access import ATOMIC, Placed, Profile, locate, refuse_split_locks, spacing
from kitlib.errors import DataError
from kitlib.measure_c import Program, Step
from kitlib.model import Layout
from kitlib.schedule import schedule

MAX_OBJECT_BYTES = 1 << 20
"""Largest object that is measured: beyond it no cache holds one object, let alone many."""
MAX_STEPS = 4096
"""Most accesses in one turn of the generated loop, to keep it in the instruction cache's reach."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A program and what its slots stand for: (path, position in the path)."""

    program: Program
    slots: tuple[tuple[str, int], ...]

    def offsets(self, places: Mapping[str, tuple[Placed, ...]]) -> tuple[int, ...]:
        """The program's offset table for one layout, in bytes."""
        return tuple(places[path][position].offset for path, position in self.slots)


def make_plan(profile: Profile, *layouts: Layout) -> Plan:
    """The program that measures `profile` on each of `layouts`.

    Raises `NotFound` for a member that is missing, `PlacementError` for an atomic that would straddle,
    `DataError` for a member that is too large or an access of another width in one of the layouts.
    """
    placed = [locate(profile, layout) for layout in layouts]
    for places, layout in zip(placed, layouts, strict=True):
        _check_size(profile, layout)
        refuse_split_locks(places, layout)
    slots: list[tuple[str, int]] = []
    number: dict[tuple[str, int], int] = {}
    rounds: list[tuple[Step, ...]] = []
    for turn in schedule(profile):
        steps: list[Step] = []
        for position in turn.steps:
            key = (turn.path.name, position)
            if key not in number:
                number[key] = len(slots)
                slots.append(key)
            width = min(_width(p[turn.path.name][position]) for p in placed)
            steps.append(Step(number[key], turn.path.accesses[position].op, width))
        rounds.append(tuple(steps))
    if sum(map(len, rounds)) > MAX_STEPS:
        raise DataError(f"profile {profile.name}: more than {MAX_STEPS} accesses in a turn; lower 'times'")
    return Plan(Program(tuple(rounds), len(slots)), tuple(slots))


def _width(placed: Placed) -> int:
    """Largest power of two in the access's size; for an atomic it also divides the offset."""
    width = 1 << (placed.size.bit_length() - 1)
    while placed.access.op in ATOMIC and placed.offset % width:
        width //= 2
    return width


def _check_size(profile: Profile, layout: Layout) -> None:
    if spacing(profile, layout) > MAX_OBJECT_BYTES >= layout.size:
        raise DataError(
            f"profile {profile.name}: slab_align = {profile.slab_align} puts an object every "
            f"{spacing(profile, layout)} bytes; at most {MAX_OBJECT_BYTES} can be measured"
        )
    if layout.size > MAX_OBJECT_BYTES:
        largest = max(layout.members, key=lambda m: m.size)
        raise DataError(
            f"{layout.title} is too large for the benchmark: {layout.size} bytes, of which {largest.name} takes "
            f"{largest.size}; at most {MAX_OBJECT_BYTES} bytes can be measured"
        )
