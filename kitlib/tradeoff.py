"""When does a change pay? The trade-off between shared and cold objects, its break-even line and its doubt.

All *model*. The change pays where the mean cost of a path run falls: with a share s of runs on objects that
`cpus` CPUs share, and a share c of the other runs on cold objects,
Δ(s, c) = s Δshared(s) + (1 − s) (c Δcold + (1 − c) Δhot). Δshared depends on s, since a CPU that is busy
elsewhere contends less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.access import Profile
from kitlib.cost import Model
from kitlib.machine import KINDS, Machine
from kitlib.model import Layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GRID = 61
COARSE = 21
"""Steps of a map of which only the workload's point and the break-even are wanted."""
LEAST_SHARE = 1e-5
"""Share of shared runs from which on the break-even is looked for."""
NOTHING_NS = 0.01
"""Differences below this many ns a run are called no difference: far below what any number here is good for."""


@dataclass(frozen=True, slots=True)
class TradeOff:
    """``delta_ns[i, j]`` is after minus before at ``shared[j]`` and ``cold[i]`` (negative: the change pays);
    ``break_even[i]`` the smallest share of shared runs from which on it pays (NaN: nowhere; 0: always)."""

    shared: Floats
    cold: Floats
    delta_ns: Floats
    break_even: Floats
    cpus: int
    point: tuple[float, float]
    point_ns: float
    before_ns: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """What changing one assumed number does to the change at the reader's workload: Δ in ns at its low and
    high value, and the break-even share there."""

    name: str
    about: str
    low: float
    high: float
    certainty: str
    delta_low_ns: float
    delta_high_ns: float
    break_even_low: float
    break_even_high: float


def trade_off(
    before: Layout, after: Layout, profile: Profile, machine: Machine, *, cpus: int | None = None, points: int = GRID
) -> TradeOff:
    """The trade-off map on a `points` × `points` grid. Raises `NotFound` for a missing member."""
    pair = Model(before, profile, machine), Model(after, profile, machine)
    return _map(pair, profile, cpus or profile.workload.cpus, points)


def trade_offs(
    before: Layout,
    after: Layout,
    profile: Profile,
    machine: Machine,
    *,
    cpus: Sequence[int],
    works: Sequence[float],
    points: int = GRID,
) -> tuple[tuple[TradeOff, ...], ...]:
    """`trade_off` for every amount of work (ns between two runs) and number of CPUs, solved as one array."""
    import numpy as np

    pair = Model(before, profile, machine), Model(after, profile, machine)
    n, work = np.asarray(cpus)[None, :, None], np.asarray(works)[:, None, None]
    waits = [np.asarray(m.shared(n, work, _steps(points)).ns) for m in pair]
    return tuple(
        tuple(_mapped(pair, profile, int(cpus[k]), points, [side[i, k] for side in waits]) for k in range(len(cpus)))
        for i in range(len(works))
    )


def _map(pair: tuple[Model, Model], profile: Profile, cpus: int, points: int) -> TradeOff:
    import numpy as np

    waits = [np.asarray(m.shared(cpus, profile.workload.work_ns, _steps(points)).ns) for m in pair]
    return _mapped(pair, profile, cpus, points, waits)


def _fine(points: int) -> Floats:
    """Shares at which the break-even is looked for: it often lies far below the first step of the map."""
    import numpy as np

    return np.concatenate([[0.0], np.geomspace(LEAST_SHARE, 1, 2 * points // 3)])


def _steps(points: int) -> Floats:
    """Shares at which the shared mode is solved: those of the map, then those of `_fine`."""
    import numpy as np

    return np.asarray(np.maximum(np.concatenate([np.linspace(0, 1, points), _fine(points)]), LEAST_SHARE))


def _mapped(pair: tuple[Model, Model], profile: Profile, cpus: int, points: int, waits: Sequence[Floats]) -> TradeOff:
    """The map from the shared cost of both sides at `_steps`."""
    import numpy as np

    use = profile.workload
    shared, cold, fine = np.linspace(0, 1, points), np.linspace(0, 1, points), _fine(points)
    gain, gain_fine = [w[:points] for w in waits], [w[points:] for w in waits]
    part = np.asarray([m.traffic.shares for m in pair])
    colds = [float(m.cold() @ p) for m, p in zip(pair, part, strict=True)]
    hots = [float(m.hot() @ p) for m, p in zip(pair, part, strict=True)]

    def total(i: int, s: Floats, c: Floats, at: Floats) -> Floats:
        return np.asarray(s * at + (1 - s) * (c * colds[i] + (1 - c) * hots[i]))

    def delta(s: Floats, at: Sequence[Floats]) -> Floats:
        return total(1, s, cold[:, None], at[1]) - total(0, s, cold[:, None], at[0])

    here = [np.asarray(np.interp(use.shared, shared, g)) for g in gain]
    at = [float(total(i, np.asarray(use.shared), np.asarray(use.cold), here[i])) for i in range(2)]
    lines = np.asarray([_crossing(fine, row) for row in delta(fine[None, :], gain_fine)])
    surface = delta(shared[None, :], gain)
    return TradeOff(shared, cold, surface, lines, cpus, (use.shared, use.cold), at[1] - at[0], at[0])


def _crossing(shared: Floats, row: Floats) -> float:
    """Smallest share from which on `row` stays negative, by linear interpolation."""
    import numpy as np

    if row[-1] > -NOTHING_NS:
        return float("nan")
    losing = np.nonzero(row > 0)[0]
    if not len(losing):
        return 0.0
    i = int(losing[-1])
    return float(shared[i] + (shared[i + 1] - shared[i]) * row[i] / (row[i] - row[i + 1]))


@dataclass(frozen=True, slots=True)
class _Trial:
    """A number to vary: its two values, and the map that a value gives."""

    name: str
    about: str
    ends: tuple[float, float]
    certainty: str
    run: Callable[[float], TradeOff]

    def doubt(self) -> Doubt:
        results = [self.run(value) for value in self.ends]
        breaks = [_at_cold(r) for r in results]
        return Doubt(self.name, self.about, *self.ends, self.certainty, *(r.point_ns for r in results), *breaks)


def sensitivity(
    before: Layout, after: Layout, profile: Profile, machine: Machine, *, cpus: int | None = None
) -> tuple[Doubt, ...]:
    """Vary every number of the machine over its own range, and the workload's shares, work and CPUs by a factor of
    two; largest effect first."""
    n = cpus or profile.workload.cpus
    pair = Model(before, profile, machine), Model(after, profile, machine)
    trials = [*_machine_trials(pair, profile, n), _pair_trial(before, after, profile, machine, n)]
    trials += _workload_trials(pair, profile, n)
    return tuple(sorted((t.doubt() for t in trials), key=lambda d: -abs(d.delta_high_ns - d.delta_low_ns)))


def _machine_trials(pair: tuple[Model, Model], profile: Profile, n: int) -> list[_Trial]:
    machine = pair[0].machine
    found = []
    for key, number in machine.numbers.items():
        if key.endswith("_bytes") or key in ("l1_ns", "l2_ns", "l3_ns", "pair_weight") or number.low == number.high:
            continue
        low, high = (min(max(v, KINDS[key].low), KINDS[key].high) for v in (number.low, number.high))

        def vary(value: float, key: str = key) -> TradeOff:
            trial = machine.with_values(**{key: value})
            return _map((pair[0].on(trial), pair[1].on(trial)), profile, n, COARSE)

        found.append(_Trial(key, KINDS[key].about, (low, high), number.certainty, vary))
    return found


def _pair_trial(before: Layout, after: Layout, profile: Profile, machine: Machine, n: int) -> _Trial:
    weight = machine.numbers["pair_weight"]

    def vary(value: float) -> TradeOff:
        models = (Model(before, profile, machine, pair_weight=value), Model(after, profile, machine, pair_weight=value))
        return _map(models, profile, n, COARSE)

    ends = max(weight.low, 0.0), min(weight.high, 1.0)
    return _Trial("pair_weight", KINDS["pair_weight"].about, ends, weight.certainty, vary)


def _workload_trials(pair: tuple[Model, Model], profile: Profile, n: int) -> list[_Trial]:
    use = profile.workload
    values = {
        "shared": ("share of path runs on shared objects", use.shared, 1.0),
        "cold": ("share of the other runs whose object is cold", use.cold, 1.0),
        "work_ns": ("other work between two path runs", use.work_ns, float("inf")),
    }
    found = []
    for key, (about, value, most) in values.items():

        def vary(number: float, key: str = key) -> TradeOff:
            return _map(pair, profile.with_workload(**{key: number}), n, COARSE)

        found.append(_Trial(key, about, (value / 2, min(2 * value, most)), "assumed", vary))
    ends = max(n // 2, 2), n * 2
    count = _Trial("cpus", "CPUs that share the object", ends, "assumed", lambda v: _map(pair, profile, int(v), COARSE))
    return [*found, count]


def _at_cold(result: TradeOff) -> float:
    import numpy as np

    return float(result.break_even[int(np.abs(result.cold - result.point[1]).argmin())])


def conclusion(result: TradeOff, doubts: Sequence[Doubt], machine: Machine) -> str:
    """One or two sentences that follow from the numbers, with how far they hold."""
    even = _at_cold(result)
    where, n = f"On {machine.name}", result.cpus
    if abs(result.delta_ns).max() < NOTHING_NS:
        return f"{where} the model sees no difference for this profile (model)."
    ends = sorted(v for d in doubts for v in (d.break_even_low, d.break_even_high) if v == v)
    if even != even:
        doubt = "for some values of the assumed numbers it does" if ends else "whatever the assumed numbers"
        return f"{where} the change does not pay with {n} CPUs, however often objects are shared; {doubt} (model)."
    cold = f"when {100 * result.point[1]:.0f} % of the other runs find their object cold"
    if even == 0:
        text = f"{where} the change costs nothing {cold}, and pays as soon as objects are shared by {n} CPUs"
    else:
        text = f"{where} the change pays once more than {_share(even)} of path runs hit an object shared by {n} CPUs"
        text += f", {cold}"
    if ends and ends[-1] - ends[0] > 5e-4:
        text += f"; between {_share(ends[0])} and {_share(ends[-1])} as the assumed numbers vary"
    if len(ends) < 2 * len(doubts):
        text += "; for some of their values it does not pay at all"
    share = 100 * result.point_ns / result.before_ns if result.before_ns else 0.0
    return f"{text}. At the given workload a run changes by {result.point_ns:+.2f} ns ({share:+.1f} %) (model)."


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"
