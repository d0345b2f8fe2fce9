"""Which lines a path run touches, in which order, and who else writes them: exact counting.

Everything is counted over the profile's cycle of path runs (`kitlib.schedule`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from kitlib.access import ATOMIC, Placed, Profile, locate, spacing
from kitlib.model import Layout
from kitlib.schedule import schedule


@dataclass(frozen=True, slots=True)
class Event:
    """A run's use of one line that some CPU writes.

    ``turn`` is the run's place in the cycle, ``path`` its index among the mix, ``group`` counts the
    accesses that can overlap (an atomic ends a group). ``reads_first`` and ``writes`` say whether the run
    reads the line before anything else, and whether it writes it at all; ``plain`` that it writes it without
    an atomic. ``last`` is the turn of this CPU's use before. ``touchers`` and ``writers`` are all turns in which
    a CPU touches or writes the line. ``loop`` marks a compare-exchange loop.
    ``again`` is above 0 for a use of the line later in the same run: the atomics that lie between.
    ``behind`` are the events of the group, by index, that come before the line's last use in it (plain stores do not
    count): while the run waits for them, this line can be taken away.
    """

    turn: int
    path: int
    line: int
    group: int
    reads_first: bool
    writes: bool
    plain: bool
    last: int
    touchers: tuple[int, ...]
    writers: tuple[int, ...]
    again: int = 0
    loop: bool = False
    behind: tuple[int, ...] = ()

    @property
    def waited_for(self) -> bool:
        """Whether the run needs the line: not where it does nothing but store."""
        return self.reads_first or not (self.writes and self.plain)


@dataclass(frozen=True, slots=True)
class Reach:
    """What one run of a path touches when the object is cold, averaged over where objects start.

    ``lines`` distinct lines, ``pairs`` distinct 128-byte pairs, ``harmonic`` the mean of 1 + 1/2 + … + 1/n
    over n lines, ``both`` the share of objects with lines on both sides of the pair (address bit 6).
    """

    lines: float
    pairs: float
    harmonic: float
    both: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Events of a layout under a profile. ``runs`` counts path runs in the cycle, by path index."""

    names: tuple[str, ...]
    shares: tuple[float, ...]
    runs: tuple[int, ...]
    events: tuple[Event, ...]
    reach: tuple[Reach, ...]
    atomics: tuple[float, ...]
    footprint_lines: float

    @property
    def cycle(self) -> int:
        return sum(self.runs)

    @property
    def contended(self) -> tuple[int, ...]:
        """Lines that are written and touched by every CPU, in order."""
        return tuple(sorted({e.line for e in self.events}))


def lines_of(placed: Placed, line_bytes: int, phase: int) -> range:
    """Lines an access touches when the object starts `phase` bytes into a line."""
    start = placed.offset + phase
    return range(start // line_bytes, (start + placed.size - 1) // line_bytes + 1)


def traffic(
    layout: Layout, profile: Profile, *, grain_bytes: int = 64, line_bytes: int = 64, phase: int = 0
) -> Traffic:
    """Count what `profile` does to the lines of `layout`.

    ``grain_bytes`` is what moves between CPUs in one piece (64; 128 where lines move in pairs);
    ``line_bytes`` is what a cold miss fetches. ``phase`` is that of the shared object; cold objects lie
    side by side in their slab, so their phases follow from the spacing.
    """
    places = locate(profile, layout)
    turns = schedule(profile)
    mix = profile.mix
    index = {path.name: i for i, (path, _) in enumerate(mix)}
    uses = [_uses([places[t.path.name][s] for s in t.steps], grain_bytes, phase) for t in turns]
    starts = _phases(spacing(profile, layout), phase)
    reach, footprint = _reach(places, [p.name for p, _ in mix], starts, line_bytes)
    runs = [0] * len(mix)
    for turn in turns:
        runs[index[turn.path.name]] += 1

    def per_run(wanted: Sequence[str]) -> tuple[float, ...]:
        return tuple(sum(a.times for a in path.accesses if a.op in wanted) for path, _ in mix)

    return Traffic(
        names=tuple(p.name for p, _ in mix),
        shares=tuple(n / len(turns) for n in runs),
        runs=tuple(runs),
        events=tuple(_events(uses, [index[t.path.name] for t in turns])),
        reach=reach,
        atomics=per_run(("add", "cmpxchg")),
        footprint_lines=footprint,
    )


@dataclass(frozen=True, slots=True)
class _Use:
    line: int
    group: int
    reads_first: bool
    writes: bool
    plain: bool
    loop: bool
    first: int
    last: int

    @property
    def waited_for(self) -> bool:
        return self.reads_first or not (self.writes and self.plain)


def _uses(steps: Sequence[Placed], grain_bytes: int, phase: int) -> list[_Use]:
    """A run's lines in the order of first use, once for each group in which the line is used."""
    found: dict[tuple[int, int], _Use] = {}
    group = 0
    for at, step in enumerate(steps):
        atomic, loop = step.access.op in ATOMIC, step.access.op == "cmpxchg"
        for line in lines_of(step, grain_bytes, phase):
            old = found.get((line, group))
            # A compare-exchange loop loads first, but the exchange asks for the line at the same time.
            reads = step.access.op == "read"
            if old is None:
                found[line, group] = _Use(line, group, reads, step.access.writes, not atomic, loop, at, at)
            elif step.access.writes:
                found[line, group] = _Use(
                    line,
                    group,
                    old.reads_first,
                    True,
                    old.plain and not atomic,
                    old.loop or loop,
                    old.first,
                    at if atomic else old.last,
                )
            else:
                # a read of a line that is on its way for a store waits for it as for any other
                found[line, group] = replace(old, reads_first=True, last=at)
        group += atomic
    return list(found.values())


def _events(uses: Sequence[Sequence[_Use]], path_of: Sequence[int]) -> list[Event]:
    cycle = len(uses)
    touchers: dict[int, list[int]] = {}
    writers: dict[int, list[int]] = {}
    for turn, run in enumerate(uses):
        for use in run:
            touchers.setdefault(use.line, []).append(turn)
            if use.writes:
                writers.setdefault(use.line, []).append(turn)
    events: list[Event] = []
    for turn, run in enumerate(uses):
        before: dict[int, _Use] = {}
        contended = [use for use in run if use.line in writers]
        number = len(events)
        for use in contended:
            behind = tuple(
                number + i
                for i, other in enumerate(contended)
                if other is not use and other.group == use.group and other.first < use.last
                if other.waited_for and use.waited_for
            )
            touch, write = tuple(sorted(set(touchers[use.line]))), tuple(sorted(set(writers[use.line])))
            earlier = before.get(use.line)
            last = turn if earlier else next(t for g in range(1, cycle + 1) if (t := (turn - g) % cycle) in touch)
            again = use.group - earlier.group if earlier else 0
            events.append(
                Event(
                    turn,
                    path_of[turn],
                    use.line,
                    use.group,
                    use.reads_first,
                    use.writes,
                    use.plain and use.writes,
                    last,
                    touch,
                    write,
                    again,
                    use.loop,
                    behind,
                )
            )
            before[use.line] = use
    return events


def _phases(step: int, phase: int) -> list[int]:
    """Where objects start within a 128-byte pair: `phase` plus every multiple of the spacing."""
    count = 128 // gcd(step, 128)
    return [(phase + k * step) % 128 for k in range(count)]


def _reach(
    places: dict[str, tuple[Placed, ...]], names: Sequence[str], starts: Sequence[int], line_bytes: int
) -> tuple[tuple[Reach, ...], float]:
    """`Reach` by path, and the mean number of lines that all paths together touch in an object."""
    found = []
    footprint = 0.0
    for start in starts:
        every = {ln for name in names for p in places[name] for ln in lines_of(p, line_bytes, start)}
        footprint += len(every) / len(starts)
    per_pair = max(128 // line_bytes, 1)
    for name in names:
        lines = pairs = harmonic = both = 0.0
        for start in starts:
            own = {ln for p in places[name] for ln in lines_of(p, line_bytes, start)}
            lines += len(own)
            pairs += len({ln // per_pair for ln in own})
            harmonic += sum(1 / i for i in range(1, len(own) + 1))
            both += len({ln % 2 for ln in own}) > 1
        n = len(starts)
        found.append(Reach(lines / n, pairs / n, harmonic / n, both / n))
    return tuple(found), footprint
