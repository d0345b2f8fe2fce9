"""'This machine' as a machine profile: its latencies measured with the measuring program itself.

Small synthetic layouts isolate one number each: a lone line, two lines in one pair or in two, and a few
sharing patterns to which the cost of a move and of an upgrade is fitted, and how often reads migrate and overlap.
None of the layouts that are judged later takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kitlib.access import Access, Path, Profile, Workload
from kitlib.cost import Model
from kitlib.machine import ASSUMED, Machine, Number
from kitlib.measure import Effort, ModeSpec, run_plan
from kitlib.measure_c import program_text
from kitlib.measure_plan import make_plan
from kitlib.measure_run import Reading, compiled
from kitlib.model import Layout
from kitlib.shorthand import make_layout
from kitlib.topology import Topology, read_topology

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EFFORT = Effort(samples=12, slices=1, sample_ms=12, rounds=1, limit_s=30)
COLD_BYTES = 256 << 20
QUIET_PCT = 12.0
SHARE_DOUBT = 0.25
"""By how much fitted shares differ between calibrations of one machine (0.46 to 0.63, 0.22 to 0.36 as measured)."""
POOR_FIT = 0.5
"""Three times the error of the fit, as a share of a move, above which a calibration says that it is uncertain."""
WORK_NS = 60.0
"""Work between runs while sharing: well above a move, so that a CPU does not keep a line by being quick."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The machine, and sentences on what it is (virtual, few CPUs, …)."""

    machine: Machine
    notes: tuple[str, ...]


def calibrate(topology: Topology | None = None, tick: Callable[[str], None] | None = None) -> Calibration:
    """Measure this machine in about ten seconds; shared numbers stay assumed where there is one CPU.

    Raises `ToolError` if there is no compiler or a program fails.
    """
    here = topology or read_topology()
    say = tick or (lambda _: None)
    numbers = dict(ASSUMED)
    for level in ("L1", "L2", "L3"):
        if here.cache_bytes(level):
            numbers[f"{level.lower()}_bytes"] = Number(here.cache_bytes(level), "measured here", "read from the system")
    say("runs that hit")
    numbers |= _hot(here)
    say("cold lines")
    numbers |= _cold(here, numbers["run_ns"].value)
    notes = list(here.notes())
    move = Number(60.0, "assumed", "not measured: one CPU")
    numbers |= {"dirty_near_ns": move, "dirty_far_ns": move}
    machine = Machine("this", here.model, numbers, max(len(here.cpus), 1), max(len(here.cpus), 1), here.line_bytes)
    if len(here.cpus) > 1:
        say("shared lines")
        machine = _with_numbers(machine, _shared(here, machine))
        move = machine.numbers["dirty_near_ns"]
        if move.high - move.value > POOR_FIT * move.value:
            notes.append(
                f"how lines move between CPUs is uncertain: {move.source}, a move being {move.value:.0f} ns; other "
                "programs or guests were in the way, so calibrate again when it is quiet"
            )
    return Calibration(machine, tuple(notes))


def _with_numbers(machine: Machine, numbers: dict[str, Number]) -> Machine:
    return Machine(
        machine.name,
        machine.about,
        {**machine.numbers, **numbers},
        machine.group_cpus,
        machine.max_cpus,
        machine.line_bytes,
        machine.grain_bytes,
    )


def _profile(*paths: Sequence[str], work_ns: float = 0.0) -> Profile:
    """Paths given as words: ``r:a`` reads a, ``w:`` writes, ``+:`` adds, ``x:`` is a compare-exchange loop."""
    ops = {"r": "read", "w": "write", "+": "add", "x": "cmpxchg"}
    found = []
    for number, words in enumerate(paths):
        accesses = tuple(Access(word[2:], ops[word[0]]) for word in words)  # type: ignore[arg-type]
        found.append(Path(f"p{number}", 1.0, accesses))
    return Profile("calibration", "calibration", tuple(found), Workload(2, 1, work_ns), slab_align=64)


def spread_layout(offsets: Mapping[str, int], size: int = 320) -> Layout:
    """Words of 8 bytes, by name at their `offsets`, in a struct of `size` bytes."""
    words, end = [], 0
    for number, (name, offset) in enumerate(sorted(offsets.items(), key=lambda item: item[1])):
        if offset > end:
            words.append(f"pad{number}:{offset - end}")
        words.append(f"{name}:8")
        end = offset + 8
    if size > end:
        words.append(f"pad:{size - end}")
    return make_layout(" ".join(words), "calibration")


def partitions(names: str) -> list[tuple[str, ...]]:
    """All ways to share out `names` over lines; Bell's number of them (15 for four names).

    >>> partitions("ab")
    [('ab',), ('a', 'b')]
    """
    if len(names) == 1:
        return [(names,)]
    found: list[tuple[str, ...]] = []
    for blocks in partitions(names[:-1]):
        found += [(*blocks[:i], blocks[i] + names[-1], *blocks[i + 1 :]) for i in range(len(blocks))]
        found.append((*blocks, names[-1]))
    return found


def _times(
    here: Topology, profile: Profile, layouts: Sequence[Layout], spec: ModeSpec, effort: Effort = EFFORT
) -> list[float]:
    """Median ns per run for each layout, the rounds' common disturbance divided out."""
    plan = make_plan(profile, *layouts)
    with compiled(program_text(plan.program)) as program:
        return round_medians(run_plan(program, spec, plan, layouts, profile, here, effort), len(layouts))


def round_medians(readings: Sequence[Reading], layouts: int) -> list[float]:
    """Median over the quiet rounds for each layout, after dividing each round by its own median.

    A machine's numbers are those it has when nothing else runs, so only rounds within `QUIET_PCT` of the
    fastest tenth count: the others had a CPU taken away or the CPUs of a guest moved apart.
    """
    import numpy as np

    grid = np.asarray([r.ns for r in readings]).reshape(-1, layouts)
    level = np.median(grid, axis=1)
    quiet = level <= np.quantile(level, 0.1) * (1 + QUIET_PCT / 100)
    grid, level = grid[quiet], level[quiet]
    flat = grid / level[:, None] * np.median(level) if layouts > 2 else grid
    return [float(x) for x in np.median(flat, axis=0)]


def _hot(here: Topology) -> dict[str, Number]:
    spec = ModeSpec("unshared-hot", 1, 1, False)
    one = [spread_layout({"a": 0})]
    read = _times(here, _profile(["r:a"]), one, spec)[0]
    add = _times(here, _profile(["+:a"]), one, spec)[0]
    source = "median of a loop on one line"
    return {
        "run_ns": Number(read, "measured here", source),
        "l1_ns": Number(read, "measured here", source),
        "atomic_ns": Number(max(add - read, 0.1), "measured here", source),
    }


def _cold(here: Topology, run_ns: float) -> dict[str, Number]:
    """Latencies by working set, then how a second, third and fourth line adds to the first."""
    found: dict[str, Number] = {}
    one = [spread_layout({"a": 0}, size=64)]
    for level in ("L2", "L3"):
        size = here.cache_bytes(level) // 2
        if size:
            took = _times(here, _profile(["r:a"]), one, ModeSpec("unshared-cold", 1, size // 64, False))[0]
            found[f"{level.lower()}_ns"] = Number(
                max(took - run_ns, 0.2), "measured here", f"working set of half of {level}"
            )
    places = [(0, 8, 16, 24), (0, 8, 16, 64), (0, 8, 16, 128), (0, 8, 16, 192), (0, 8, 128, 256), (0, 64, 128, 192)]
    layouts = [spread_layout(dict(zip("abcd", offsets, strict=True))) for offsets in places]
    profile = _profile(["r:a", "r:b", "r:c", "r:d"])
    spec = ModeSpec("unshared-cold", 1, COLD_BYTES // 320, False)
    lone, odd1, even, odd3, evens, four = _times(here, profile, layouts, spec)
    dram = max(lone - run_ns, 1.0)
    source = f"working set of {COLD_BYTES >> 20} MiB, objects of 320 bytes in random order"
    # H_2 - 1 = 1/2 and H_3 - 1 = 5/6: least squares through the two points without a change of address bit 6
    extra = (0.5 * (even - lone) + 5 / 6 * (evens - lone)) / (0.25 + 25 / 36)
    both = [odd1 - lone - 0.5 * extra, odd3 - lone - 0.5 * extra, four - lone - 13 / 12 * extra]
    return found | {
        "dram_ns": Number(dram, "measured here", source),
        "overlap": Number(min(max(extra / dram, 0.0), 1.0), "measured here", source),
        "both_halves_ns": Number(max(sum(both) / 3, 0.0), "measured here", source),
    }


_SHARING = (["r:b", "x:a"], ["r:a", "r:c", "+:a"], ["r:c"], ["r:a", "r:d", "w:d"])
"""Paths to fit moves on: a reader before a compare-exchange, a read before a fetch-add, a plain write."""


def _shared(here: Topology, machine: Machine) -> dict[str, Number]:
    """Fit how lines move (the cost of a move, an upgrade, how often reads migrate and overlap) to all ways to share
    four words out.

    One program runs all of them, since a hypervisor may move the CPUs from one program to the next.
    """
    import numpy as np
    from scipy.optimize import least_squares

    layouts = [
        spread_layout({name: 128 * i + 8 * j for i, block in enumerate(blocks) for j, name in enumerate(block)}, 576)
        for blocks in partitions("abcd")
    ]
    profile = _profile(*_SHARING, work_ns=WORK_NS)
    alone = _times(here, profile, layouts[:1], ModeSpec("shared", 1, 1, True))[0]
    added = [ns - alone for ns in _times(here, profile, layouts, ModeSpec("shared", 2, 1, True))]
    models = [Model(layout, profile, machine, pair_weight=0.0) for layout in layouts]
    shares = ("upgrade", "migratory", "move_overlap")

    def errors(values: NDArray[np.float64], /) -> list[float]:
        move, *others = (float(v) for v in values)
        trial = machine.with_values(dirty_near_ns=move, dirty_far_ns=move, **dict(zip(shares, others, strict=True)))
        return [model.on(trial).waiting_ns(2, WORK_NS) - ns for model, ns in zip(models, added, strict=True)]

    start = (max(added), *(machine[key] for key in shares))
    fitted = least_squares(
        errors,
        x0=start,
        bounds=((2.0, 0.0, 0.0, 0.0), (2000.0, 1.0, 1.0, 1.0)),
        x_scale=(10, 0.3, 0.3, 0.3),
        diff_step=[0.02] * len(start),
    )
    error = float(np.sqrt(np.mean(np.square(fitted.fun))))
    source = f"fitted to {len(layouts)} sharing patterns of two CPUs (error {error:.1f} ns)"
    move, *others = (float(v) for v in fitted.x)
    found = {key: _share(value, source) for key, value in zip(shares, others, strict=True)}
    near = Number(move, "fitted here", source, max(move - 3 * error, 0.0), move + 3 * error)
    return found | {"dirty_near_ns": near, "dirty_far_ns": near, "pair_weight": _pair_weight(here, machine)}


def _share(value: float, source: str) -> Number:
    """A fitted share; the patterns leave it open to about `SHARE_DOUBT` either way."""
    return Number(value, "fitted here", source, max(value - SHARE_DOUBT, 0.0), min(value + SHARE_DOUBT, 1.0))


def _pair_weight(here: Topology, machine: Machine) -> Number:
    """How much of the cost of sharing a line is also paid when only the 128-byte pair is shared (0 to 1)."""
    profile = _profile(["+:a"], ["r:b"], work_ns=WORK_NS)
    layouts = [spread_layout({"a": 0, "b": offset}) for offset in (8, 64, 128)]
    same, pair, apart = _times(here, profile, layouts, ModeSpec("shared", 2, 1, True))
    weight = (pair - apart) / (same - apart) if same - apart > 1.0 else 0.0
    return Number(min(max(weight, 0.0), 1.0), "measured here", "a reader beside a writer: same line, same pair, apart")
