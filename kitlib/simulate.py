"""A small discrete-event simulation of N CPUs that share one object, to check `kitlib.cost`'s closed form.

Lines follow MESI with a dirty-sharing state (as MOESI and MESIF parts do) and migratory sharing: a read of a line
that another CPU has written takes it away from there in the share ``migratory`` of cases, and else moves a copy and
leaves the owner able to read; a write takes the line from everybody. A line serves one request at a time, first come
first served. Reads take effect in order: one that would come after a wait is repeated if its line is gone by then.
A plain store of a line the run has not read waits in the store buffer, which an atomic empties. Everything random
comes from one seeded generator, so a run can be repeated. Compare-exchange loops do not fail here: the closed form's
term for that is checked against published runs only.
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
    """Result: ``ns`` per path run and CPU without the work between runs, and line ``moves`` per run."""

    ns: float
    moves: float
    runs: int


@dataclass(slots=True)
class _Line:
    """Until when each CPU may read and write the line, from when on, and when it is free for a request; ``written``
    says whether the CPU that may write it has done so."""

    read_from: list[float]
    read_until: list[float]
    write_from: list[float]
    write_until: list[float]
    free: float = 0.0
    written: bool = False


@dataclass(slots=True)
class _Bus:
    """All lines, and the cost of moving one: ``move`` ns, ``upgrade`` ns where a copy is there already."""

    cpus: int
    move: float
    upgrade: float
    migratory: float
    dice: random.Random
    lines: dict[int, _Line] = field(default_factory=dict)
    moves: int = 0

    def line(self, number: int) -> _Line:
        found = self.lines.get(number)
        if found is None:
            n = self.cpus
            found = self.lines[number] = _Line([0.0] * n, [FOREVER] * n, [FOREVER] * n, [-1.0] * n)
        return found

    def readable(self, cpu: int, number: int, now: float) -> bool:
        """Whether `cpu` has the line, or has asked for it."""
        return now < self.line(number).read_until[cpu]

    def request(self, cpu: int, number: int, now: float, write: bool, soon: bool = False) -> float:
        """Time at which `cpu` may use the line, which changes hands meanwhile; ``soon``: a read that asks to own the
        line if it has to be fetched, as a write follows."""
        line = self.line(number)
        since, until = line.write_from[cpu], line.write_until[cpu]
        if not write and not max(now, since) < until:
            since, until = line.read_from[cpu], line.read_until[cpu]
        if max(now, since) < until:
            line.written |= write
            return max(now, since)  # here already, or on its way
        start = max(now, line.free)
        others = [c for c in range(self.cpus) if c != cpu]
        copy = line.read_from[cpu] <= start < line.read_until[cpu]
        elsewhere = line.written and any(line.write_until[c] > start for c in others)
        alone = write or soon or (elsewhere and self.dice.random() < self.migratory)
        takes = self.upgrade if write and copy else self.move
        lost = start + HOLD * takes
        for other in others:
            line.write_until[other] = min(line.write_until[other], lost)
            if alone:
                line.read_until[other] = min(line.read_until[other], lost)
        done = start + takes
        if not (write and copy):
            line.read_from[cpu] = done
        line.read_until[cpu] = FOREVER
        line.written = write or soon
        if alone:
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


@dataclass(slots=True)
class _Cpu:
    """Where a CPU is: the turn and the access in it, what its store buffer waits for, and the lines that must still be
    there when its reads take effect."""

    turn: int
    position: int = 0
    stored: float = 0.0
    held: tuple[int, ...] = ()


class _Simulation:
    def __init__(self, turns: Sequence[Sequence[_Use]], machine: Machine, cpus: int, work_ns: float, seed: int) -> None:
        self.turns, self.machine, self.cpus, self.work_ns = turns, machine, cpus, work_ns
        self.dice = random.Random(seed)
        move = float(move_ns(machine, cpus))
        self.bus = _Bus(cpus, move, move * machine["upgrade"], machine["migratory"], self.dice)

    def go(self, runs: int) -> Simulated:
        """Run until `runs` path runs have ended; the first fifth is warm-up."""
        state = [_Cpu(self.dice.randrange(len(self.turns))) for _ in range(self.cpus)]
        # (time, cpu): a CPU is in the heap once, with when it does what its state says next
        heap = [(self.dice.uniform(0, 2 * self.work_ns + 1), cpu) for cpu in range(self.cpus)]
        heapq.heapify(heap)
        ended, warm, worked = 0, runs // 5, 0.0
        start = moves = 0.0
        now = 0.0
        while ended < runs:
            now, number = heapq.heappop(heap)
            cpu = state[number]
            then = self._step(number, cpu, now, self.turns[cpu.turn])
            if cpu.position == len(self.turns[cpu.turn]) and not cpu.held:
                cpu.position, cpu.turn, ended = 0, (cpu.turn + 1) % len(self.turns), ended + 1
                work = self.dice.uniform(0, 2 * self.work_ns)
                then += self.machine["run_ns"] + work
                if ended == warm:
                    start, moves, worked = now, self.bus.moves, 0.0
                worked += work
            heapq.heappush(heap, (then, number))
        counted = ended - warm
        spent = (now - start) * self.cpus - worked
        return Simulated(spent / counted, (self.bus.moves - moves) / counted, counted)

    def _step(self, number: int, cpu: _Cpu, now: float, uses: Sequence[_Use]) -> float:
        """Do the reads that can overlap, or one write; returns the time at which the CPU goes on."""
        if cpu.held:
            gone = [line for line in cpu.held if not self.bus.readable(number, line, now)]
            cpu.held = ()
            return max((self.bus.request(number, line, now, write=False) for line in gone), default=now)
        use = uses[cpu.position]
        if use.op == "read":
            return self._reads(number, cpu, now, uses)
        cpu.position += 1
        if use.op == "write":
            done = max(self.bus.request(number, line, now, write=True) for line in use.lines)
            if any(u.op == "read" and line in u.lines for u in uses[: cpu.position - 1] for line in use.lines):
                return done
            cpu.stored = max(cpu.stored, done)
            return now
        emptied = max(now, cpu.stored)
        done = max(self.bus.request(number, line, emptied, write=True) for line in use.lines)
        return done + self.machine["atomic_ns"]

    def _reads(self, number: int, cpu: _Cpu, now: float, uses: Sequence[_Use]) -> float:
        # a write to a line that follows in the run asks to own it while the read is under way
        owned = {line for u in _until_atomic(uses, cpu.position) for line in u.lines}
        arrival: dict[int, float] = {}
        behind: set[int] = set()
        while cpu.position < len(uses) and uses[cpu.position].op == "read":
            for line in uses[cpu.position].lines:
                if any(there > now for other, there in arrival.items() if other != line):
                    behind.add(line)
                if line not in arrival:
                    arrival[line] = self.bus.request(number, line, now, write=False, soon=line in owned)
            cpu.position += 1
        waits = [there - now for there in arrival.values()]
        longest = max(waits)
        cpu.held = tuple(behind)
        return now + longest + self.machine["move_overlap"] * (sum(waits) - longest)


def _until_atomic(uses: Sequence[_Use], position: int) -> list[_Use]:
    """Writes that follow `position` in the run, up to and with the next atomic."""
    found = []
    for use in uses[position:]:
        if use.op != "read":
            found.append(use)
        if use.op in ATOMIC:
            break
    return found
