"""A small discrete-event simulation of N CPUs that share one object, to check `kitlib.cost`'s closed form.

Lines follow MESI with a dirty-sharing state (as MOESI and MESIF parts do): a read of a dirty line moves a
copy and leaves the owner able to read; a write takes the line from everybody. A line serves one request at
a time, first come first served. Everything random comes from one seeded generator, so a run can be repeated.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from kitlib.access import ATOMIC, Profile, locate
from kitlib.cost import move_ns
from kitlib.machine import Machine
from kitlib.model import Layout
from kitlib.schedule import schedule
from kitlib.traffic import lines_of

FOREVER = float("inf")
HOLD = 0.5
"""Share of a move after which the old holder has lost the line: the request has reached it by then."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Result: ``ns`` per path run and CPU without the work between runs, line ``moves`` and ``retries`` per run."""

    ns: float
    moves: float
    retries: float
    runs: int


@dataclass(slots=True)
class _Line:
    """Until when each CPU may read and write the line, from when on, and when it is free for a request."""

    read_from: list[float]
    read_until: list[float]
    write_from: list[float]
    write_until: list[float]
    free: float = 0.0


@dataclass(slots=True)
class _Bus:
    """All lines, and the cost of moving one."""

    cpus: int
    move: float
    lines: dict[int, _Line] = field(default_factory=dict)
    moves: int = 0

    def line(self, number: int) -> _Line:
        found = self.lines.get(number)
        if found is None:
            n = self.cpus
            found = self.lines[number] = _Line([0.0] * n, [FOREVER] * n, [FOREVER] * n, [-1.0] * n)
        return found

    def request(self, cpu: int, number: int, now: float, write: bool) -> float:
        """Time at which `cpu` may use the line; the line changes hands meanwhile."""
        line = self.line(number)
        since, until = line.write_from[cpu], line.write_until[cpu]
        if not write and not since < until:
            since, until = line.read_from[cpu], line.read_until[cpu]
        if max(now, since) < until:
            return max(now, since)  # here already, or on its way
        start = max(now, line.free)
        takes = self.move
        lost = start + HOLD * takes
        for other in range(self.cpus):
            if other != cpu:
                line.write_until[other] = min(line.write_until[other], lost)
                if write:
                    line.read_until[other] = min(line.read_until[other], lost)
        done = start + takes
        if not (write and line.read_from[cpu] <= start < line.read_until[cpu]):
            line.read_from[cpu] = done
        line.read_until[cpu] = FOREVER
        if write:
            line.write_from[cpu], line.write_until[cpu] = done, FOREVER
        line.free = done
        self.moves += 1
        return done


@dataclass(frozen=True, slots=True)
class _Use:
    op: str
    lines: tuple[int, ...]


def simulate(
    layout: Layout,
    profile: Profile,
    machine: Machine,
    *,
    cpus: int,
    work_ns: float | None = None,
    runs: int = 20000,
    seed: int = 1,
    grain_bytes: int | None = None,
    phase: int = 0,
) -> Simulated:
    """Simulate `runs` path runs on `cpus` CPUs that start out of step.

    Work between runs is uniform on 0 to twice its mean. Raises `NotFound` for a member that is not there."""
    places = locate(profile, layout)
    grain = grain_bytes or machine.grain_bytes
    turns = [
        [_Use(p.access.op, tuple(lines_of(p, grain, phase))) for p in (places[turn.path.name][s] for s in turn.steps)]
        for turn in schedule(profile)
    ]
    return _Simulation(turns, machine, cpus, profile.workload.work_ns if work_ns is None else work_ns, seed).go(runs)


class _Simulation:
    def __init__(self, turns: Sequence[Sequence[_Use]], machine: Machine, cpus: int, work_ns: float, seed: int) -> None:
        self.turns, self.machine, self.cpus, self.work_ns = turns, machine, cpus, work_ns
        self.dice = random.Random(seed)
        self.bus = _Bus(cpus, float(move_ns(machine, cpus)))
        self.retries = 0

    def go(self, runs: int) -> Simulated:
        """Run until `runs` path runs have ended; the first fifth is warm-up."""
        # (time, cpu, turn, access): a CPU is in the heap once, with what it does next
        heap = [
            (self.dice.uniform(0, 2 * self.work_ns + 1), cpu, self.dice.randrange(len(self.turns)), 0)
            for cpu in range(self.cpus)
        ]
        heapq.heapify(heap)
        ended, warm, worked = 0, runs // 5, 0.0
        start = moves = retries = 0.0
        now = 0.0
        while ended < runs:
            now, cpu, turn, position = heapq.heappop(heap)
            position, then = self._step(cpu, now, self.turns[turn], position)
            if position == len(self.turns[turn]):
                position, turn, ended = 0, (turn + 1) % len(self.turns), ended + 1
                work = self.dice.uniform(0, 2 * self.work_ns)
                then += self.machine["run_ns"] + work
                if ended == warm:
                    start, moves, retries, worked = now, self.bus.moves, self.retries, 0.0
                worked += work
            heapq.heappush(heap, (then, cpu, turn, position))
        counted = ended - warm
        spent = (now - start) * self.cpus - worked
        return Simulated(
            spent / counted, (self.bus.moves - moves) / counted, (self.retries - retries) / counted, counted
        )

    def _step(self, cpu: int, now: float, uses: Sequence[_Use], position: int) -> tuple[int, float]:
        """Do the reads that can overlap, or one write; returns the next position and the time it is reached."""
        use = uses[position]
        if use.op == "read":
            lines: list[int] = []
            start = position
            while position < len(uses) and uses[position].op == "read":
                lines += [line for line in uses[position].lines if line not in lines]
                position += 1
            # a write to the line that follows in the run asks to own it while the read is under way
            owned = {line for u in _until_atomic(uses, start) for line in u.lines}
            waits = [self.bus.request(cpu, line, now, write=line in owned) - now for line in lines]
            longest = max(waits)
            return position, now + longest + self.machine["move_overlap"] * (sum(waits) - longest)
        done = max(self.bus.request(cpu, line, now, write=True) for line in use.lines)
        if use.op == "write":  # the store buffer empties before the next atomic: measured, a store waits for its line
            return position + 1, done
        return position + 1, done + self.machine["atomic_ns"]


def _until_atomic(uses: Sequence[_Use], position: int) -> list[_Use]:
    """Writes that follow `position` in the run, up to and with the next atomic."""
    found = []
    for use in uses[position:]:
        if use.op != "read":
            found.append(use)
        if use.op in ATOMIC:
            break
    return found
