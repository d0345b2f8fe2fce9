"""How long the CPUs that share an object wait for its lines: the fixed point behind `kitlib.cost`.

All CPUs run the same cycle of path runs out of step; every phase between two of them is equally likely.

1. A cycle takes C = Σ (think + wait of each run). If a CPU last used a line d ns ago, the chance that *one*
   other has written it since is Σ_j min(d, g_j) / C, g_j being the times between successive writes of the
   line in a cycle (the share of phases in which a window of length d holds a write). The CPU the line came
   from had just used it; the other N − 2 may have been in the queue behind the request as well, so for them
   the window starts where the wait did (less where the line is used again sooner than it could be gone).
   Independent: 1 − (1 − p_1) (1 − p_2)^(N − 2).
2. What a use finds follows from what this CPU's use before left behind, as in the protocols of the field: the
   line written here, exclusive here but not written, or a copy beside others' (`_Chain`). Reading a line that
   another CPU has written brings it exclusively in the share ``migratory`` of cases (migratory sharing, Cox and
   Fowler 1993, Stenström et al. 1993) and else as a copy; reading one that is not written brings a copy. To write
   a copy costs ``upgrade`` of a move.
3. Reads of a run overlap: a miss beside an earlier one of its group costs ``overlap`` of a move. They also take
   effect in order, so a line that was there is fetched again if it is written while the run waits for a line it
   reads before (p as in 1, the window being that wait). An atomic waits for the reads before it.
4. A plain store of a line that the run has not read waits in the store buffer while the run goes on, until an atomic,
   which empties the buffer first. So of the time R it takes, what is left when the next atomic comes is waited for;
   the time until then, Z on average, is taken as uniform on 0 to 2 Z, which leaves R − Z, or R² / 4 Z where R is
   below 2 Z. Another use of the line waits for what is left when it comes. A store of a line read before does wait,
   as measured: the copy is given up while the line is made exclusive.
5. A use that finds the line gone waits for a move: T, and the requests in front of it. A CPU that arrives
   sees the queue the other N − 1 make (arrival theorem, Reiser and Lavenberg 1980; approximation of
   Bard 1979 and Schweitzer 1979): R = T (1 + (N − 1) v R / C), v moves of that line a cycle; at most N T.
6. Waiting makes cycles longer, so 1 to 5 are repeated until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.traffic import Event, Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUNDS = 300
"""Most rounds of the fixed point; a few dozen are the rule, several hundred where a line is asked for all the time."""
DAMPING = 0.5
STEADY_ROUNDS = 100
"""Rounds after which each step gets smaller, so that what swings to and fro settles in between."""
CLOSE = 1e-5
"""The fixed point is found when no wait changes by more than this share of the longest (or this many ns)."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Arrays over the sweep: ``event_ns`` waited for by each event (last axis, ns a cycle), ``moves`` of lines a
    cycle, ``busy`` share of time the busiest line is on its way, ``retries`` failed exchanges a cycle."""

    event_ns: Floats
    moves: Floats
    busy: Floats
    retries: Floats


@dataclass(frozen=True, slots=True)
class Protocol:
    """How lines move: ``migratory``, ``upgrade`` and ``overlap`` as shares, ``atomic_ns`` during which a line used
    again after an atomic of the same run can be lost."""

    migratory: float
    upgrade: float
    overlap: float
    atomic_ns: float


@dataclass(frozen=True, slots=True)
class Tables:
    """The events of a `Traffic` as index arrays. ``behind`` are pairs of an event and one of its group that the run
    waits for first; ``chains`` the events of each line in order; ``runs_on`` the number of runs from an event to the
    next atomic."""

    turn: NDArray[np.int64]
    last: NDArray[np.int64]
    line: NDArray[np.int64]
    reads_first: NDArray[np.bool_]
    again: NDArray[np.int64]
    before: NDArray[np.int64]
    waited_for: NDArray[np.bool_]
    runs_on: Floats
    loop: Floats
    touch: NDArray[np.int64]
    write: NDArray[np.int64]
    earlier: Floats
    by_turn: Floats
    by_line: Floats
    behind: tuple[NDArray[np.int64], NDArray[np.int64]]
    chains: tuple[tuple[int, ...], ...]
    writes: tuple[bool, ...]


def tables(view: Traffic) -> Tables:
    """Index arrays for `view`, which must have at least one event."""
    import numpy as np

    events, lines = view.events, view.contended
    turn = np.asarray([e.turn for e in events])
    group = np.asarray([e.group for e in events])
    line = np.asarray([lines.index(e.line) for e in events])
    order = np.arange(len(events))
    same = (turn[:, None] == turn) & (group[:, None] == group)
    behind = [(i, j) for i, e in enumerate(events) for j in e.behind]
    chains = tuple(tuple(i for i, e in enumerate(events) if e.line == ln) for ln in lines)
    return Tables(
        turn=turn,
        last=np.asarray([e.last for e in events]),
        line=line,
        reads_first=np.asarray([e.reads_first for e in events]),
        again=np.asarray([e.again for e in events]),
        before=_before(chains),
        waited_for=np.asarray([e.waited_for for e in events]),
        runs_on=np.asarray([_runs_on(view, e) for e in events], dtype=float),
        loop=np.asarray([float(e.loop) for e in events]),
        touch=_padded([e.touchers for e in events]),
        write=_padded([e.writers for e in events]),
        earlier=(same & (order[:, None] < order)).astype(float),
        by_turn=(turn[:, None] == np.arange(view.cycle)).astype(float),
        by_line=(line[:, None] == np.arange(len(lines))).astype(float),
        behind=(np.asarray([i for i, _ in behind], dtype=int), np.asarray([j for _, j in behind], dtype=int)),
        chains=chains,
        writes=tuple(e.writes for e in events),
    )


def _runs_on(view: Traffic, event: Event) -> float:
    """Runs from `event` to the next atomic: 0 if it follows in the same run, infinite if there is none."""
    atomics = [e for e in view.events if e.writes and not e.plain]
    if any(e.turn == event.turn and e.group >= event.group for e in atomics):
        return 0
    return min(((e.turn - event.turn - 1) % view.cycle + 1 for e in atomics), default=float("inf"))


def _before(chains: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """For each event the one before it on its line, round the cycle."""
    import numpy as np

    found = {event: chain[at - 1] for chain in chains for at, event in enumerate(chain)}
    return np.asarray([found[i] for i in range(len(found))])


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Rows as one array, padded by repeating the last entry (which adds a gap of nothing)."""
    import numpy as np

    width = max(map(len, rows))
    return np.asarray([[*row, *[row[-1]] * (width - len(row))] for row in rows])


def solve(view: Traffic, think: Floats, cpus: Floats, move: Floats, protocol: Protocol) -> Waits:
    """Waits of every event. ``think`` ns from the end of a run's waiting to the next run, ``cpus`` that share
    the object and ``move`` ns for a line are arrays of one shape. See the module's text for the method."""
    import numpy as np

    shape = think.shape
    if not view.events:
        return Waits(np.zeros((*shape, 0)), *(np.zeros(shape) for _ in range(3)))
    t = tables(view)
    others = np.maximum(cpus - 1, 0)[..., None]
    wait = np.broadcast_to(0.5 * move[..., None] * (others > 0), (*shape, view.cycle)).copy()
    busy = np.zeros((*shape, t.by_line.shape[1]))
    residence = np.broadcast_to(move[..., None], (*shape, t.by_line.shape[1])).copy()
    stored, late = (np.zeros((*shape, len(view.events))) for _ in range(2))
    chains = [_Chain(chain, shape) for chain in t.chains]
    for number in range(ROUNDS):
        step = DAMPING * min(1.0, STEADY_ROUNDS / (number + 1))
        clock = _Clock.of(think, wait)
        since = _since(t, clock)
        ready = np.maximum(since - stored[..., t.before] * late[..., t.before], 0.0)
        ready = np.where(t.again > 0, t.again * protocol.atomic_ns, ready)
        written, touched = _chances(t, clock, wait, ready, move, others)
        miss, upgrades = np.zeros(written.shape), np.zeros(written.shape)
        for chain in chains:
            chain.pass_on(t.writes, written, touched, protocol.migratory, miss, upgrades)
        moves, stores = _moves(t, miss, upgrades * protocol.upgrade, protocol.overlap)
        moves = moves + _lost(t, clock, miss, residence, others)
        failed = t.loop * _failures(busy[..., t.line], others)
        moves = moves * (1 + failed)
        visits = moves @ t.by_line
        length = clock.length[..., None]
        wanted = np.minimum((others + 1) * visits * move[..., None] / length, 1.0)
        busy = busy + step * (wanted - busy)
        fresh = move[..., None] * (1 + others * visits * residence / length)
        residence = residence + step * (np.minimum(fresh, move[..., None] * (1 + others)) - residence)
        hidden = _hidden(t, residence[..., t.line], think)
        on_its_way = stored[..., t.before] * np.maximum(late[..., t.before] - since, 0.0)
        event_ns = moves * residence[..., t.line] - stores * hidden + on_its_way * t.waited_for
        stored, late = stored + step * (np.minimum(stores, 1.0) - stored), late + step * (hidden - late)
        new = event_ns @ t.by_turn
        change = float(np.abs(new - wait).max())
        wait = wait + step * (new - wait)
        if change < CLOSE * max(float(wait.max()), 1.0):
            break
    return Waits(event_ns, moves.sum(axis=-1), busy.max(axis=-1), failed.sum(axis=-1))


@dataclass(frozen=True, slots=True)
class _Clock:
    """When each run of a cycle starts and has done waiting, and the cycle's length, in ns."""

    start: Floats
    done: Floats
    length: Floats

    @classmethod
    def of(cls, think: Floats, wait: Floats) -> _Clock:
        import numpy as np

        run = think[..., None] + wait
        start = np.cumsum(run, axis=-1) - run
        return cls(start, start + wait, run.sum(axis=-1))

    def chance(self, turns: NDArray[np.int64], window: Floats) -> Floats:
        """Chance that each event's `window` in ns holds one of another CPU's `turns` (a row for each event)."""
        import numpy as np

        times = self.done[..., turns]
        gaps = np.diff(times, axis=-1, append=times[..., :1] + self.length[..., None, None])
        held = np.minimum(gaps, window[..., None]).sum(axis=-1) / self.length[..., None]
        return np.asarray(np.clip(held, 0, 1), dtype=np.float64)


def _since(t: Tables, clock: _Clock) -> Floats:
    """Ns from the end of this CPU's use of the line before to the start of each event's run."""
    import numpy as np

    since = clock.start[..., t.turn] - clock.done[..., t.last]
    return np.asarray(np.where(t.last >= t.turn, since + clock.length[..., None], since), dtype=np.float64)


def _chances(
    t: Tables, clock: _Clock, wait: Floats, since: Floats, move: Floats, others: Floats
) -> tuple[Floats, Floats]:
    """Chances that others wrote, and touched, the line in the `since` ns after this CPU had it."""
    import numpy as np

    queued = since + np.where(t.again > 0, 0.0, wait[..., t.last]) * np.minimum(since / move[..., None], 1.0)
    found = []
    for turns in (t.write, t.touch):
        one, another = (clock.chance(turns, window) for window in (since, queued))
        found.append(1 - (1 - one) ** np.minimum(others, 1) * (1 - another) ** np.maximum(others - 1, 0))
    return found[0], found[1]


class _Chain:
    """A line's events in order, and the chances of what the last one left: the line written here, exclusive here
    but not written, or a copy. Going round the cycle again and again, they settle."""

    def __init__(self, events: Sequence[int], shape: tuple[int, ...]) -> None:
        import numpy as np

        self.events = events
        self.written, self.exclusive, self.copy = np.ones(shape), np.zeros(shape), np.zeros(shape)

    def pass_on(
        self,
        writes: Sequence[bool],
        written: Floats,
        touched: Floats,
        migratory: float,
        miss: Floats,
        upgrades: Floats,
    ) -> None:
        """Once round: sets the chances of a `miss` and of a write to a copy (`upgrades`) for this line's events."""
        import numpy as np

        for i in self.events:
            taken = written[..., i]
            read = np.maximum(touched[..., i] - taken, 0)
            alone = 1 - taken - read
            had = self.written + self.exclusive + self.copy
            gone = self.written * migratory * read
            copy = (self.written * (1 - migratory) + self.exclusive) * read + self.copy * (alone + read)
            miss[..., i] = had * taken + gone
            if writes[i]:
                upgrades[..., i] = copy
                self.written, self.exclusive, self.copy = np.ones_like(had), np.zeros_like(had), np.zeros_like(had)
            else:
                self.exclusive = self.exclusive * alone + migratory * had * taken
                self.copy = copy + (1 - migratory) * had * taken + gone
                self.written = self.written * alone


def _moves(t: Tables, miss: Floats, upgrades: Floats, overlap: float) -> tuple[Floats, Floats]:
    """Moves of each event, and those among them that a store buffer can hide; a read that misses beside an earlier miss
    of its group costs `overlap` of a move."""
    import numpy as np

    hit = np.log(np.clip(1 - miss, 1e-12, 1))
    missed_before = 1 - np.exp(hit @ t.earlier)
    fetches = miss * (1 - np.where(t.reads_first, missed_before * (1 - overlap), 0.0))
    return fetches + upgrades, np.where(t.waited_for, 0.0, fetches + upgrades)


def _hidden(t: Tables, takes: Floats, think: Floats) -> Floats:
    """Of the ns that a store takes, how many pass before the next atomic."""
    import numpy as np

    between = np.maximum(t.runs_on * think[..., None], 1e-9)
    left = np.where(takes < 2 * between, takes**2 / (4 * between), takes - between)
    return np.asarray(takes - left, dtype=np.float64)


def _lost(t: Tables, clock: _Clock, miss: Floats, residence: Floats, others: Floats) -> Floats:
    """Moves of lines that were there, but are written while the run waits for another that comes before."""
    import numpy as np

    found = np.zeros(miss.shape)
    this, first = t.behind
    if len(this):
        taken = 1 - (1 - clock.chance(t.write[this], residence[..., t.line[first]])) ** others
        chance = (1 - miss[..., this]) * miss[..., first] * taken
        found += chance @ (this[:, None] == np.arange(miss.shape[-1])).astype(float)
    return found


def _failures(busy: Floats, others: Floats) -> Floats:
    """Failed exchanges for each compare-exchange that succeeds, on a line requested the share `busy` of the time.

    The load brings the line in, and the exchange then queues behind requests that came meanwhile; while the line
    is requested back to back, N - 2 of N CPUs can be in front (the last owner has just been served), half of them
    writers between load and exchange on average. Two CPUs hardly ever fail: 1 to 5 % of runs as measured here with
    60 ns of other work between runs (with none, every other run).
    """
    import numpy as np

    chance = 0.5 * busy * np.maximum(others - 1, 0) / (others + 1)
    return np.asarray(chance / (1 - chance), dtype=np.float64)
