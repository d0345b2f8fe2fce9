r"""What a layout costs: a closed-form model over layout × profile × machine. All figures are *model*.

Per path run, in nanoseconds:

- **hot** (object in this CPU's L1): :math:`h = run + n_{atomic} · atomic`.
- **cold** (in no cache): :math:`h + L · (1 + ω (H_n − 1)) + b · B`, n being the distinct lines of the run,
  :math:`H_n = 1 + 1/2 + … + 1/n`, ω ``overlap``, B the chance that the lines differ in address bit 6 and b
  ``both_halves_ns``. Independent misses overlap, so a run waits for the slowest: the mean of the largest
  of n latencies grows as :math:`H_n` (Rényi 1953, for exponential spread; ω scales how wide it is). With
  adjacent-line pairs the second line of a pair costs nothing in the share ``pair_weight`` of cases. L is the
  memory latency, or a mix over the caches for a working set that partly fits (`latency_ns`).
- **shared** by N CPUs: h plus the waits for lines that some CPU writes, from a fixed point over how long a
  cycle of runs takes, how likely a line has been taken away since it was last used and as what it was left
  (written, exclusive, a copy), each contended line serving one CPU at a time (`kitlib.contention`).
- T is the mean time to move a line between two of the N CPUs: near within ``group_cpus``, else far.
- A compare-exchange loop retries when another CPU's write falls between its load and its exchange, and
  each retry moves the line again; a fetch-and-add never does.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.access import Profile
from kitlib.contention import Protocol, solve
from kitlib.machine import Machine
from kitlib.model import Layout
from kitlib.traffic import Reach, Traffic, traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared mode over a sweep: ``ns`` per path run, ``path_ns`` by path (last axis), ``moves`` of lines
    per run, ``busy`` share of time the busiest line is on its way, ``retries`` per run."""

    ns: Floats
    path_ns: Floats
    moves: Floats
    busy: Floats
    retries: Floats


@dataclass(frozen=True, slots=True)
class PathCost:
    """One path: cost per run in ns by mode; ``lines`` touched and ``pairs`` of lines; ``share`` of all runs."""

    name: str
    share: float
    hot_ns: float
    cold_ns: float
    shared_ns: float
    lines: float
    pairs: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted cost of a layout. ``*_ns`` are means per path run over the mix, without the work between runs;
    ``total_ns`` weights them by the workload's shares of shared and cold objects. ``shared_ns`` is a run on a shared
    object by CPUs that spend the share ``shared_part`` of their runs on it."""

    layout: str
    profile: str
    machine: str
    cpus: int
    shared_part: float
    paths: tuple[PathCost, ...]
    hot_ns: float
    cold_ns: float
    shared_ns: float
    total_ns: float
    moves: float
    busy: float
    retries: float
    contended_lines: tuple[int, ...]


class Model:
    """A layout under a profile on a machine, counted once; sweeps over workloads are then array arithmetic."""

    def __init__(
        self, layout: Layout, profile: Profile, machine: Machine, *, phase: int = 0, pair_weight: float | None = None
    ) -> None:
        """`pair_weight` overrides the machine's (0: every line for itself, 1: 128-byte pairs act as one)."""
        self.layout, self.profile, self.machine = layout, profile, machine
        self.pair_weight = machine["pair_weight"] if pair_weight is None else pair_weight
        line = machine.line_bytes
        grains = [machine.grain_bytes] + ([max(128, machine.grain_bytes)] if self.pair_weight else [])
        self.views = [traffic(layout, profile, grain_bytes=g, line_bytes=line, phase=phase) for g in grains]

    @property
    def traffic(self) -> Traffic:
        return self.views[0]

    @property
    def _shares(self) -> Floats:
        import numpy as np

        return np.asarray(self.traffic.shares)

    def on(self, machine: Machine) -> Model:
        """The same counts on another machine with the same line sizes."""
        other = copy(self)
        other.machine = machine
        return other

    def waiting_ns(self, cpus: float, work_ns: float) -> float:
        """What sharing adds to a path run, in ns."""
        return float(self.shared(cpus, work_ns).ns - self.hot() @ self._shares)

    def hot(self) -> Floats:
        """Cost of each path in ns when the object is in L1 and nobody else uses it."""
        import numpy as np

        m, t = self.machine, self.traffic
        return np.asarray([m["run_ns"] + n * m["atomic_ns"] for n in t.atomics])

    def cold(self, latency: ArrayLike | None = None) -> Floats:
        """Cost of each path (last axis) in ns when the object has to be fetched at `latency` ns (default: memory)."""
        import numpy as np

        far = np.asarray(self.machine["dram_ns"] if latency is None else latency, dtype=np.float64)
        factors = np.asarray([self._spread(r) for r in self.traffic.reach])
        both = np.asarray([r.both for r in self.traffic.reach])
        scale = np.minimum(far / self.machine["dram_ns"], 1.0)
        halves = (self.machine["both_halves_ns"] * scale)[..., None] * both
        return np.asarray(self.hot() + far[..., None] * factors + halves, dtype=np.float64)

    def _spread(self, reach: Reach) -> float:
        """How many latencies a run waits for its lines: 1 + ω (H_n − 1), pairs counted as far as they act."""
        saved = self.pair_weight * (reach.lines - reach.pairs) / max(reach.lines - 1, 1e-9) if reach.lines > 1 else 0.0
        return 1 + self.machine["overlap"] * (reach.harmonic - 1) * (1 - min(saved, 1.0))

    def at_working_set(self, objects: ArrayLike) -> Floats:
        """Mean cost per run in ns over the mix for `objects` objects used in random order by one CPU."""
        import numpy as np

        count = np.asarray(objects, dtype=np.float64)
        latency = latency_ns(self.machine, count * self.traffic.footprint_lines * self.machine.line_bytes)
        return self.cold(latency) @ self._shares

    def shared(self, cpus: ArrayLike, work_ns: ArrayLike = 0.0, share: ArrayLike = 1.0) -> Shared:
        """The object shared by `cpus` CPUs with `work_ns` between runs; arrays broadcast.

        With `share` below 1 a CPU spends the other runs on objects of its own (hot ones).
        """
        parts = [self._shared(view, cpus, work_ns, share) for view in self.views]
        if len(parts) == 1:
            return parts[0]
        w, (a, b) = self.pair_weight, parts
        return Shared(*(w * getattr(b, f) + (1 - w) * getattr(a, f) for f in Shared.__dataclass_fields__))

    def _shared(self, view: Traffic, cpus: ArrayLike, work_ns: ArrayLike, share: ArrayLike) -> Shared:
        import numpy as np

        n, work, part = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (cpus, work_ns, share)))
        hot = self.hot()
        mean_hot = float(hot @ self._shares)
        think = (mean_hot + work) / np.maximum(part, 1e-9)
        m = self.machine
        protocol = Protocol(m["migratory"], m["upgrade"], m["move_overlap"], m["atomic_ns"])
        waits = solve(
            view,
            think,
            n,
            move_ns(self.machine, n),
            protocol,
        )
        path_ns = np.broadcast_to(hot, (*n.shape, len(hot))).copy()
        for i, event in enumerate(view.events):
            path_ns[..., event.path] += waits.event_ns[..., i] / view.runs[event.path]
        return Shared(
            ns=path_ns @ self._shares,
            path_ns=path_ns,
            moves=waits.moves / view.cycle,
            busy=waits.busy,
            retries=waits.retries / view.cycle,
        )


def move_ns(machine: Machine, cpus: ArrayLike) -> Floats:
    """Mean time in ns to move a line between two different CPUs out of `cpus`, groups filled in turn."""
    import numpy as np

    n = np.maximum(np.asarray(cpus, dtype=np.float64), 2)
    group = float(machine.group_cpus)
    full = np.floor(n / group)
    rest = n - full * group
    same = (full * group * (group - 1) + rest * (rest - 1)) / (n * (n - 1))
    same = np.clip(np.where(n <= group, 1.0, same), 0, 1)
    return np.asarray(same * machine["dirty_near_ns"] + (1 - same) * machine["dirty_far_ns"], dtype=np.float64)


def latency_ns(machine: Machine, footprint_bytes: ArrayLike) -> Floats:
    """Mean latency in ns of an access to a working set whose objects are used in turn, in random order.

    What does not fit in a cache is gone before it is used again (least recently used); as replacement is
    not quite that, hits die out between one and two cache sizes. Measured: beyond L3 the number of lines an
    object has in use makes no difference.
    """
    import numpy as np

    size = np.maximum(np.asarray(footprint_bytes, dtype=np.float64), 1.0)
    held = [np.clip(2.0 - size / machine[f"{level}_bytes"], 0.0, 1.0) for level in ("l1", "l2", "l3")]
    inside = np.zeros_like(size)
    total = np.zeros_like(size)
    for share, level in zip(held, ("l1", "l2", "l3"), strict=True):
        share = np.maximum(share, inside)
        # L1's own latency is part of every run already
        total += (share - inside) * (0.0 if level == "l1" else machine[f"{level}_ns"])
        inside = share
    return np.asarray(total + (1 - inside) * machine["dram_ns"], dtype=np.float64)


def cost(
    layout: Layout, profile: Profile, machine: Machine, *, phase: int = 0, pair_weight: float | None = None
) -> Cost:
    """The predicted cost of `layout` for the profile's own workload, by path and mode.

    Raises `NotFound` for a member that is not in the layout.
    """
    import numpy as np

    model = Model(layout, profile, machine, phase=phase, pair_weight=pair_weight)
    use = profile.workload
    shares = np.asarray(model.traffic.shares)
    hot, cold = model.hot(), model.cold()
    shared = model.shared(use.cpus, use.work_ns, max(use.shared, 1e-6))
    paths = tuple(
        PathCost(
            name, float(shares[i]), float(hot[i]), float(cold[i]), float(shared.path_ns[i]), reach.lines, reach.pairs
        )
        for i, (name, reach) in enumerate(zip(model.traffic.names, model.traffic.reach, strict=True))
    )
    means = float(hot @ shares), float(cold @ shares), float(shared.ns)
    total = use.shared * means[2] + (1 - use.shared) * (use.cold * means[1] + (1 - use.cold) * means[0])
    return Cost(
        layout.title,
        profile.name,
        machine.name,
        use.cpus,
        use.shared,
        paths,
        *means,
        total,
        float(shared.moves),
        float(shared.busy),
        float(shared.retries),
        model.traffic.contended,
    )
