"""Measure what a layout costs on this machine: before and after, interleaved, in three modes.

Every mode runs one generated program (`kitlib.measure_c`) with both layouts in turn, A B A B, on the
same memory and with the same machine code. All figures are *measured*, in ns per path run and thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kitlib.access import ATOMIC, Profile, locate, spacing
from kitlib.errors import DataError, PlacementError
from kitlib.measure_c import arguments, program_text
from kitlib.measure_plan import Plan, make_plan
from kitlib.measure_run import Reading, compiled, run
from kitlib.model import Layout
from kitlib.series import Delta, Table, Value
from kitlib.topology import Topology, read_topology
from kitlib.verdict import MARGIN_PCT, Judged, Options, Verdict, judge

ModeName = Literal["shared", "unshared-hot", "unshared-cold"]
MODES: tuple[ModeName, ...] = ("shared", "unshared-hot", "unshared-cold")
UNIT = "ns/run"
Tick = Callable[[str, int, int], None]
"""Called with a mode's label, the slices done so far and their number in all."""

COLD_BYTES = 256 << 20
"""Working set of the cold mode: at least this, and 4 times L3 where that is more (at most 1 GiB)."""


SMALL_PCT = 0.5
"""A change whose interval is within ± this is no difference, however certain."""
DRIFT_ROUNDS = 3
"""Rounds on either side over which drift is estimated."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: ``samples`` a side in each of ``rounds`` program starts (a new start gives new memory
    pages), a sample being the median of ``slices`` of ``sample_ms``; ``sweep``: several working sets and numbers
    of threads; ``limit_s`` ends a mode that hangs."""

    samples: int = 12
    slices: int = 3
    sample_ms: int = 12
    rounds: int = 3
    sweep: bool = True
    limit_s: int = 60


DEFAULT = Effort()
QUICK = Effort(samples=8, sample_ms=8, rounds=2, sweep=False, limit_s=20)


@dataclass(frozen=True, slots=True)
class ModeSpec:
    """A mode to run: ``threads`` CPUs, ``objects`` in use, all on one object if ``shared``."""

    mode: ModeName
    threads: int
    objects: int
    shared: bool
    bytes_in_use: int = 0

    @property
    def label(self) -> str:
        """``shared, 2 threads`` or ``unshared-cold, 256 MiB``."""
        if self.mode == "unshared-cold":
            size = self.bytes_in_use
            return f"{self.mode}, {size >> 20} MiB" if size >= 1 << 20 else f"{self.mode}, {size >> 10} KiB"
        return f"{self.mode}, {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `kitlib.verdict` says of a mode: ``change`` and its 95 % interval in %, the verdict and why."""

    change: float | None
    ci95: tuple[float, float] | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class ModeResult:
    """Samples in ns per path run, before and after (empty without an after), and what was noted on the way.
    A sample is the median of ``slices`` slices.

    ``judged`` is None without an after. ``main`` marks the mode's headline.
    """

    spec: ModeSpec
    before: tuple[float, ...]
    after: tuple[float, ...]
    judged: Outcome | None
    preempted: int
    retries: tuple[float, float]
    main: bool = True
    slices: int = 1


@dataclass(frozen=True, slots=True)
class Refused:
    """A mode that cannot run here, and why."""

    mode: ModeName
    reason: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """All modes of one measurement."""

    layout: str
    profile: str
    work_ns: float
    results: tuple[ModeResult, ...]
    refused: tuple[Refused, ...]
    machine: str
    notes: tuple[str, ...]
    seconds: float

    def main(self, mode: ModeName) -> ModeResult | None:
        """The headline result of `mode`; None if it was refused."""
        return next((r for r in self.results if r.spec.mode == mode and r.main), None)


def measure(
    before: Layout,
    after: Layout | None,
    profile: Profile,
    *,
    effort: Effort = DEFAULT,
    modes: Sequence[ModeName] = MODES,
    topology: Topology | None = None,
    phase: int = 0,
    tick: Tick | None = None,
    seed: int = 1,
) -> Measurement:
    """Measure `before`, and `after` beside it, in `modes`.

    Raises `NotFound` for a member that is missing, `PlacementError` or `DataError` for a layout that
    cannot be run, `ToolError` if there is no compiler, it fails, or a program hangs.
    """
    start = time.monotonic()
    here = topology or read_topology()
    layouts = (before,) if after is None else (before, after)
    _check_phase(layouts, profile, phase)
    plan = make_plan(profile, *layouts)
    specs, refused = plan_modes(profile, layouts, here, modes, effort)
    raw: list[_Raw] = []
    with compiled(program_text(plan.program)) as program:
        for spec in specs:
            starts = [
                _one(program, spec, plan, layouts, profile, here, effort, phase, seed + turn, turn, tick)
                for turn in range(effort.rounds)
            ]
            raw.append(_Raw(spec, tuple(map(tuple, starts))))
    found = _results(raw, len(layouts), effort.slices)
    return Measurement(
        before.title,
        profile.name,
        profile.workload.work_ns,
        tuple(found),
        refused,
        here.model,
        (*here.notes(), *_disturbances(found, here.cache_bytes("L3"))),
        time.monotonic() - start,
    )


def _check_phase(layouts: Sequence[Layout], profile: Profile, phase: int) -> None:
    """A misaligned object, or an atomic across two lines, would measure split locks, which no allocator causes."""
    for layout in layouts:
        if phase % max(layout.align, 1):
            raise DataError(
                f"{layout.title}: no object starts at byte {phase} of a line, as it is aligned to {layout.align}; "
                "give a phase that is a multiple"
            )
        step = spacing(profile, layout)
        for placed in (p for found in locate(profile, layout).values() for p in found if p.access.op in ATOMIC):
            if phase % placed.size or step % placed.size:
                raise PlacementError(
                    f"{layout.title}: objects every {step} bytes from byte {phase} on leave {placed.access.label} "
                    f"across {placed.size}-byte boundaries, where no atomic is done in one piece; give a phase and a "
                    f"slab_align that are multiples of {placed.size}"
                )


def plan_modes(
    profile: Profile, layouts: Sequence[Layout], here: Topology, modes: Sequence[ModeName], effort: Effort
) -> tuple[tuple[ModeSpec, ...], tuple[Refused, ...]]:
    """Which modes to run on this machine, and which it cannot run."""
    step = max(spacing(profile, layout) for layout in layouts)
    specs: list[ModeSpec] = []
    refused: list[Refused] = []
    for mode in modes:
        if mode == "shared":
            if len(here.cpus) < 2:
                refused.append(Refused(mode, "it needs two CPUs and this process may use one"))
            specs += [ModeSpec(mode, n, 1, True) for n in _thread_counts(len(here.cpus), effort)]
        elif mode == "unshared-hot":
            specs.append(ModeSpec(mode, 1, 1, False, step))
        else:
            specs += [ModeSpec(mode, 1, max(size // step, 2), False, size) for size in _sizes(here, effort)]
    return tuple(specs), tuple(refused)


def _thread_counts(cpus: int, effort: Effort) -> list[int]:
    """2, 4, 8, … and all CPUs; all of them alone when in a hurry."""
    if cpus < 2:
        return []
    doubling = [n for k in range(1, 11) if (n := 2**k) < cpus] if effort.sweep else []
    return [*doubling, cpus]


def _sizes(here: Topology, effort: Effort) -> list[int]:
    """Working sets from half of L1 to beyond L3, in bytes; the last one alone when in a hurry."""
    large = min(max(COLD_BYTES, 4 * here.cache_bytes("L3")), 1 << 30)
    if not effort.sweep:
        return [large]
    halves = [here.cache_bytes(level) // 2 for level in ("L1", "L2", "L3")]
    return [*(size for size in halves if size), large]


def _one(
    program: Path,
    spec: ModeSpec,
    plan: Plan,
    layouts: Sequence[Layout],
    profile: Profile,
    here: Topology,
    effort: Effort,
    phase: int,
    seed: int,
    turn: int,
    tick: Tick | None,
) -> list[Reading]:
    total = (effort.samples * effort.slices + 1) * len(layouts) * effort.rounds
    done = (effort.samples * effort.slices + 1) * len(layouts) * turn

    def count(_: Reading) -> None:
        nonlocal done
        done += 1
        if tick:
            tick(spec.label, done, total)

    return run_plan(program, spec, plan, layouts, profile, here, effort, phase=phase, seed=seed, tick=count)


def run_plan(
    program: Path,
    spec: ModeSpec,
    plan: Plan,
    layouts: Sequence[Layout],
    profile: Profile,
    here: Topology,
    effort: Effort,
    *,
    phase: int = 0,
    place_step: int = 128,
    seed: int = 1,
    tick: Callable[[Reading], None] | None = None,
) -> list[Reading]:
    """Run a compiled program once for `spec` over all `layouts`; returns its slices after the warm-up.

    A shared object is moved about by multiples of `place_step` bytes (128 keeps pairs of lines together), or of its
    alignment where that is more.
    """
    work = profile.workload.work_ns if spec.mode == "shared" else 0.0
    table = [(spacing(profile, layout), phase, plan.offsets(locate(profile, layout))) for layout in layouts]
    given = arguments(
        cpus=here.pick(spec.threads),
        shared=spec.shared,
        samples=effort.samples * effort.slices,
        sample_ms=effort.sample_ms,
        work_ns=work,
        objects=spec.objects,
        limit_s=effort.limit_s,
        seed=seed,
        layouts=table,
        place_step=max(place_step, *(layout.align for layout in layouts)),
    )
    return run(program, given, effort.limit_s + 2, tick)


@dataclass(frozen=True, slots=True)
class _Raw:
    """One mode's slices, program start after program start."""

    spec: ModeSpec
    starts: tuple[tuple[Reading, ...], ...]

    @property
    def readings(self) -> list[Reading]:
        return [reading for start in self.starts for reading in start]


def _results(raw: Sequence[_Raw], sides: int, slices: int) -> list[ModeResult]:
    """Samples of every mode with a verdict; all modes are judged as one table, so that many modes do not make
    one of them real by chance."""
    judged: list[Judged | None] = [None] * len(raw)
    if sides == 2:
        rows = []
        for part in raw:
            before, after = steadied(part.starts, sides, slices)
            rows.append(Delta(part.spec.label, Value.of(before), Value.of(after), unit=UNIT))
        looked = judge(Table("measure", tuple(rows)), options=Options(better="lower")).rows
        judged = [settled(j, by_start(part.starts)) for j, part in zip(looked, raw, strict=True)]
    found = []
    for part, verdict in zip(raw, judged, strict=True):
        last = [p.spec for p in raw if p.spec.mode == part.spec.mode][-1]
        samples = [grouped([r.ns for r in part.readings if r.layout == side], slices) for side in range(2)]
        failed = [[r.retries for r in part.readings if r.layout == side] for side in range(2)]
        mean = [sum(x) / len(x) if x else 0.0 for x in failed]
        preempted = sum(r.preempted for r in part.readings)
        outcome = Outcome(verdict.change, verdict.ci95, verdict.verdict, verdict.reason) if verdict else None
        found.append(
            ModeResult(
                part.spec, samples[0], samples[1], outcome, preempted, (mean[0], mean[1]), part.spec == last, slices
            )
        )
    return found


def grouped(values: Sequence[float], slices: int) -> tuple[float, ...]:
    """One sample from every `slices` slices in a row: their median, so that a lost time slice is not a sample."""
    from statistics import median

    return tuple(median(values[i : i + slices]) for i in range(0, len(values) - slices + 1, slices))


def steadied(starts: Sequence[Sequence[Reading]], sides: int, slices: int = 1) -> list[tuple[float, ...]]:
    """Samples of each side with slow drift taken out, in the unit they have.

    Other guests and programs slow both sides alike for seconds at a time. Each slice is divided by the
    median of the slices of both sides in the `DRIFT_ROUNDS` rounds before and after it of the same program
    start, and multiplied by the median of all. With 14 slices in a window a side's own noise is reduced by about
    1/14, no more.
    """
    import numpy as np

    parts = []
    for readings in starts:
        rows = len(readings) // sides
        grid = np.asarray([r.ns for r in readings[: rows * sides]]).reshape(rows, sides)
        windows = [grid[max(0, i - DRIFT_ROUNDS) : i + DRIFT_ROUNDS + 1] for i in range(rows)]
        parts.append(grid / np.asarray([np.median(w) for w in windows])[:, None])
    flat = np.concatenate(parts) * np.median([r.ns for readings in starts for r in readings])
    return [grouped([float(x) for x in flat[:, side]], slices) for side in range(sides)]


def by_start(starts: Sequence[Sequence[Reading]]) -> list[float]:
    """Change in % of each program start: the median over its rounds of after to before."""
    import numpy as np

    found = []
    for readings in starts:
        grid = np.asarray([r.ns for r in readings[: len(readings) // 2 * 2]]).reshape(-1, 2)
        found.append(100 * float(np.median(grid[:, 1] / grid[:, 0]) - 1))
    return found


def settled(judged: Judged, changes: Sequence[float] = ()) -> Judged:
    """The verdict with the interval over program starts, whose `changes` are in %, where that is the wider one.

    It is held back where test and interval disagree (a few disturbed samples can do that) or the starts do, which have
    memory of their own each; and where the whole interval is within `SMALL_PCT`: certain, but nothing to choose a
    layout by. Two starts are too few for an interval (Student's t).
    """
    judged, told = _over_starts(judged, changes)
    if told and judged.verdict == "no difference" and judged.ci95 and max(map(abs, judged.ci95)) > MARGIN_PCT:
        return replace(judged, verdict="undecided", reason=f"{judged.reason}, {told}")
    if judged.verdict not in ("better", "worse") or not judged.ci95:
        return judged
    if max(map(abs, judged.ci95)) <= SMALL_PCT:
        return replace(judged, verdict="no difference", reason=f"{judged.reason}, but within ± {SMALL_PCT:g} %")
    if judged.ci95[0] <= 0 <= judged.ci95[1]:
        why = told or "but the 95 % interval of the mean includes 0: some samples were disturbed"
        return replace(judged, verdict="undecided", reason=f"{judged.reason}, {why}")
    return judged


def _over_starts(judged: Judged, changes: Sequence[float]) -> tuple[Judged, str]:
    """`judged` with the wider of its interval and that over starts, and what to say if the latter decides."""
    from statistics import mean, stdev

    if len(changes) < 3 or not judged.ci95:
        return judged, ""
    from scipy.stats import t

    half = float(t.ppf(0.975, len(changes) - 1)) * stdev(changes) / len(changes) ** 0.5
    if 2 * half <= judged.ci95[1] - judged.ci95[0]:
        return judged, ""
    middle = mean(changes)
    shown = ", ".join(f"{change:+.1f}" for change in changes)
    return replace(judged, ci95=(middle - half, middle + half)), f"but the program's starts differ ({shown} %)"


def _disturbances(results: Sequence[ModeResult], l3_bytes: int) -> tuple[str, ...]:
    """Sentences on what may have disturbed the measurement."""
    found = []
    for result in results:
        slices = (len(result.before) + len(result.after)) * result.slices
        if slices and result.preempted > 2 * slices:
            found.append(
                f"{result.spec.label}: other programs took a CPU away {result.preempted} times in {slices} slices"
            )
        if result.spec.mode == "unshared-cold" and l3_bytes / 4 <= result.spec.bytes_in_use <= 2 * l3_bytes:
            found.append(
                f"{result.spec.label}: about the size of L3, where the result depends on the pages a run gets and on "
                "what else is in that cache; it can differ from one measurement to the next by more than its interval"
            )
    return tuple(found)
