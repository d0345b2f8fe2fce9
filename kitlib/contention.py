"""How long the CPUs that share an object wait for its lines: the fixed point behind `kitlib.cost`.

All CPUs run the same cycle of path runs out of step; every phase between two of them is equally likely.

1. A cycle takes C = Σ (think + wait of each run). If a CPU last used a line d ns ago, the chance that *one*
   other has written it since is Σ_j min(d, g_j) / C, g_j being the times between successive writes of the
   line in a cycle (the share of phases in which a window of length d holds a write). The CPU the line came
   from had just used it; the other N − 2 may have been in the queue behind the request as well, so for them
   the window starts where the wait did. Independent: 1 − (1 − p_1) (1 − p_2)^(N − 2).
2. A use that finds the line gone waits for a move: T, and the requests in front of it. A CPU that arrives
   sees the queue the other N − 1 make (arrival theorem, Reiser and Lavenberg 1980; approximation of
   Bard 1979 and Schweitzer 1979): R = T (1 + (N − 1) v R / C), v moves of that line a cycle.
3. Waiting makes cycles longer, so 1 and 2 are repeated until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUNDS = 200
"""Most rounds of the fixed point; a few dozen are the rule."""
DAMPING = 0.5
CLOSE_NS = 1e-4


@dataclass(frozen=True, slots=True)
class Waits:
    """Arrays over the sweep: ``event_ns`` waited for by each event (last axis, ns a cycle), ``moves`` of lines a
    cycle, ``busy`` share of time the busiest line is on its way, ``retries`` failed exchanges a cycle."""

    event_ns: Floats
    moves: Floats
    busy: Floats
    retries: Floats


@dataclass(frozen=True, slots=True)
class Tables:
    """The events of a `Traffic` as index arrays."""

    turn: NDArray[np.int64]
    last: NDArray[np.int64]
    line: NDArray[np.int64]
    reads_first: NDArray[np.bool_]
    writes: NDArray[np.bool_]
    plain: NDArray[np.bool_]
    owned: NDArray[np.bool_]
    again: NDArray[np.int64]
    loop: Floats
    touch: NDArray[np.int64]
    write: NDArray[np.int64]
    earlier: Floats
    by_turn: Floats
    by_line: Floats


def tables(view: Traffic) -> Tables:
    """Index arrays for `view`, which must have at least one event."""
    import numpy as np

    events, lines = view.events, view.contended
    turn = np.asarray([e.turn for e in events])
    group = np.asarray([e.group for e in events])
    line = np.asarray([lines.index(e.line) for e in events])
    order = np.arange(len(events))
    same = (turn[:, None] == turn) & (group[:, None] == group)
    return Tables(
        turn=turn,
        last=np.asarray([e.last for e in events]),
        line=line,
        reads_first=np.asarray([e.reads_first for e in events]),
        writes=np.asarray([e.writes for e in events]),
        plain=np.asarray([e.plain for e in events]),
        owned=np.asarray([e.owned for e in events]),
        again=np.asarray([e.again for e in events]),
        loop=np.asarray([float(e.loop) for e in events]),
        touch=_padded([e.touchers for e in events]),
        write=_padded([e.writers for e in events]),
        earlier=(same & (order[:, None] < order)).astype(float),
        by_turn=(turn[:, None] == np.arange(view.cycle)).astype(float),
        by_line=(line[:, None] == np.arange(len(lines))).astype(float),
    )


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Rows as one array, padded by repeating the last entry (which adds a gap of nothing)."""
    import numpy as np

    width = max(map(len, rows))
    return np.asarray([[*row, *[row[-1]] * (width - len(row))] for row in rows])


def solve(
    view: Traffic, think: Floats, cpus: Floats, move: Floats, *, upgrade_ns: float, overlap: float, atomic_ns: float
) -> Waits:
    """Waits of every event. ``think`` ns from the end of a run's waiting to the next run, ``cpus`` that share
    the object and ``move`` ns for a line are arrays of one shape; a line
    used again after an atomic of the same run can be lost for ``atomic_ns``. See the module's text for the method."""
    import numpy as np

    shape = think.shape
    if not view.events:
        return Waits(np.zeros((*shape, 0)), *(np.zeros(shape) for _ in range(3)))
    t = tables(view)
    others = np.maximum(cpus - 1, 0)[..., None]
    upgrade = np.minimum(upgrade_ns / move, 1.0)[..., None]
    wait = np.broadcast_to(0.5 * move[..., None] * (others > 0), (*shape, view.cycle)).copy()
    busy = np.zeros((*shape, t.by_line.shape[1]))
    residence = np.broadcast_to(move[..., None], (*shape, t.by_line.shape[1])).copy()
    for _ in range(ROUNDS):
        length, written, touched = _chances(t, think, wait, others, atomic_ns)
        moves = _moves(t, written, touched, others, upgrade, overlap)
        failed = t.loop * _failures(busy[..., t.line], others)
        moves = moves * (1 + failed)
        visits = moves @ t.by_line
        busy = np.minimum((others + 1) * visits * move[..., None] / length[..., None], 1.0)
        fresh = move[..., None] * (1 + others * visits * residence / length[..., None])
        residence = (1 - DAMPING) * residence + DAMPING * np.minimum(fresh, move[..., None] * (1 + others))
        event_ns = moves * residence[..., t.line]
        new = event_ns @ t.by_turn
        change = float(np.abs(new - wait).max())
        wait = (1 - DAMPING) * wait + DAMPING * new
        if change < CLOSE_NS:
            break
    return Waits(event_ns, moves.sum(axis=-1), busy.max(axis=-1), failed.sum(axis=-1))


def _chances(t: Tables, think: Floats, wait: Floats, others: Floats, atomic_ns: float) -> tuple[Floats, Floats, Floats]:
    """Cycle length, and the chances that others wrote or touched the line since."""
    import numpy as np

    run = think[..., None] + wait
    length = run.sum(axis=-1)
    start = np.cumsum(run, axis=-1) - run
    done = start + wait
    since = start[..., t.turn] - done[..., t.last]
    since = np.where(t.last >= t.turn, since + length[..., None], since)
    since = np.where(t.again > 0, t.again * atomic_ns, since)
    queued = since + np.where(t.again > 0, 0.0, wait[..., t.last])
    found = []
    for index in (t.write, t.touch):
        times = done[..., index]
        gaps = np.diff(times, axis=-1, append=times[..., :1] + length[..., None, None])
        one, another = (
            np.clip(np.minimum(gaps, window[..., None]).sum(axis=-1) / length[..., None], 0, 1)
            for window in (since, queued)
        )
        found.append(1 - (1 - one) ** np.minimum(others, 1) * (1 - another) ** np.maximum(others - 1, 0))
    return length, found[0], found[1]


def _moves(t: Tables, written: Floats, touched: Floats, others: Floats, upgrade: Floats, overlap: float) -> Floats:
    """Moves each event waits for. A use that only reads, or reads first, misses if the line was written; one
    that starts with a write also if it was read, or was not exclusive before. A read that is followed by a
    write then makes the line exclusive: `upgrade` moves after a miss (the request to own it is on its way
    by then) and a whole one if others have read it since. A miss beside an earlier one of its group costs
    `overlap` of a move."""
    import numpy as np

    some = others > 0
    first_write = np.where(t.owned, touched, 1.0 * some)
    miss = np.where(t.reads_first, written, first_write)
    read_since = np.where(t.owned, touched - written, (1 - written) * some)
    after = np.where(t.reads_first & t.writes, written * upgrade + read_since, 0.0)
    hit = np.log(np.clip(1 - miss, 1e-12, 1))
    missed_before = 1 - np.exp(hit @ t.earlier.T)
    return np.asarray(miss * (1 - missed_before * (1 - overlap)) + after, dtype=np.float64)


def _failures(busy: Floats, others: Floats) -> Floats:
    """Failed exchanges for each compare-exchange that succeeds, on a line requested the share `busy` of the time.

    The load brings the line in, and the exchange then queues behind requests that came meanwhile; while the line
    is requested back to back, N - 2 of N CPUs can be in front (the last owner has just been served), half of them
    writers between load and exchange on average. Two CPUs hardly ever fail: 1 to 5 % of runs as measured here.
    """
    import numpy as np

    chance = 0.5 * busy * np.maximum(others - 1, 0) / (others + 1)
    return np.asarray(chance / (1 - chance), dtype=np.float64)
