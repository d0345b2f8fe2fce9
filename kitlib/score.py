"""The honest score: predicted and measured cost of many random layouts, and how often the model is right.

*Measured* and *model* side by side. Layouts are random orders of a struct's own members. All are run by one
program in turn, round after round; each round is divided by its own median, so that what slows a whole
round (another guest, another program) does not pass for an effect of a layout.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kitlib import datafiles
from kitlib.access import Profile
from kitlib.cost import Model
from kitlib.errors import DataError
from kitlib.machine import Machine
from kitlib.measure import Effort, ModeName, ModeSpec, plan_modes, run_plan
from kitlib.measure_c import program_text
from kitlib.measure_plan import make_plan
from kitlib.measure_run import Reading, compiled
from kitlib.model import Layout
from kitlib.place import replace
from kitlib.topology import Topology, read_topology

FORMAT, VERSION = "kitlib-score", 1
GROUP_PCT = 12.0
"""Rounds whose level lies within this of each other count as one state of the machine (see `states_of`)."""
LEAST_ROUNDS = 6
TRIM = 0.2
"""Share of rounds left out at either end before a layout's rounds are averaged (disturbed ones)."""
DEVELOPED_ON = (7, 31, 2020)
"""Seeds of the random orders that were looked at while the model was made; any other gives held-out layouts."""
SPREAD_PCT = 0.5
"""Layouts that differ by less than this in all are the same for every purpose, however small the noise."""
SURE_Z = 3.0
DECIDED_PCT = 1.0
"""A pair of layouts is decided if their measured difference is above `SURE_Z` standard errors and `DECIDED_PCT` of the
cost: a tenth of a nanosecond can be certain, and still be nothing to choose a layout by."""


@dataclass(frozen=True, slots=True)
class Point:
    """One layout: trimmed mean in ns per run with its standard error, and the prediction."""

    label: str
    measured_ns: float
    error_ns: float
    predicted_ns: float


@dataclass(frozen=True, slots=True)
class ModeScore:
    """A mode's points and what they say. ``spread_ns`` and ``noise_ns`` are standard deviations over layouts and
    of one point; ``spearman`` is None where the spread does not exceed the noise or `SPREAD_PCT` (nothing to rank).
    ``decided`` pairs differ by more than `SURE_Z` standard errors and `DECIDED_PCT`, ``certain`` ones by the first."""

    struct: str
    mode: ModeName
    threads: int
    state: str
    rounds: int
    rounds_in_all: int
    points: tuple[Point, ...]
    spread_ns: float
    noise_ns: float
    spearman: float | None
    decided: int
    pairs: int
    sign_right: float | None
    certain: int
    certain_right: float | None
    ceiling: float | None

    @property
    def ranked(self) -> bool:
        return self.spearman is not None


@dataclass(frozen=True, slots=True)
class Score:
    """All modes of one run, with the machine profile the predictions were made with; ``seed`` is that of the
    random orders."""

    machine: str
    date: str
    seed: int
    numbers: Mapping[str, float]
    modes: tuple[ModeScore, ...]
    notes: tuple[str, ...] = ()

    @property
    def held_out(self) -> bool:
        """Whether the random orders are others than those the model was made on."""
        return self.seed not in DEVELOPED_ON


def random_layouts(base: Layout, count: int, seed: int = DEVELOPED_ON[0]) -> list[Layout]:
    """`count` random orders of the members of `base`, placed as the compiler would."""
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        members = list(base.members)
        dice.shuffle(members)
        found.append(replace(base, members))
    return found


def score_mode(
    mode: ModeName,
    layouts: Mapping[str, Layout],
    profile: Profile,
    machine: Machine,
    *,
    effort: Effort,
    topology: Topology | None = None,
    seed: int = 1,
    tick: Callable[[Reading], None] | None = None,
) -> list[ModeScore]:
    """Measure and predict every layout in `mode`; one result for each state the machine was in long enough.

    Returns an empty list where the mode is refused (one CPU). Raises as `kitlib.measure.measure` does.
    """
    here = topology or read_topology()
    every = list(layouts.values())
    specs, _ = plan_modes(profile, every, here, [mode], effort)
    if not specs:
        return []
    spec = specs[-1]
    plan = make_plan(profile, *every)
    # where pairs of lines do not act, an object may start on either line of one: see `kitlib.measure_c.arguments`
    step = 128 if machine["pair_weight"] else 64
    readings: list[Reading] = []
    with compiled(program_text(plan.program)) as program:
        for start in range(effort.rounds):
            readings += run_plan(
                program, spec, plan, every, profile, here, effort, place_step=step, seed=seed + start, tick=tick
            )
    found = []
    for rows in states_of(readings, len(every)):
        state, predicted = predict_state(every, profile, machine, spec, float(rows.mean()))
        found.append(
            _mode_score(profile.struct, spec, state, rows, len(readings) // len(every), list(layouts), predicted)
        )
    return found


def predict_state(
    layouts: Sequence[Layout], profile: Profile, machine: Machine, spec: ModeSpec, level_ns: float
) -> tuple[str, list[float]]:
    """Predictions for the state of the machine whose mean is nearer to the measured `level_ns`.

    A hypervisor can place two CPUs of a guest on neighbouring cores or far apart; the machine profile has a move
    for either. One yes-or-no is taken from the measurement this way, for all layouts alike.
    """
    if spec.mode != "shared" or machine["dirty_far_ns"] == machine["dirty_near_ns"]:
        return "", [predict(layout, profile, machine, spec) for layout in layouts]
    far = machine.with_values(dirty_near_ns=machine["dirty_far_ns"])
    found = {
        "CPUs near": [predict(layout, profile, machine, spec) for layout in layouts],
        "CPUs far": [predict(layout, profile, far, spec) for layout in layouts],
    }
    name = min(found, key=lambda key: abs(sum(found[key]) / len(layouts) - level_ns))
    return name, found[name]


def predict(layout: Layout, profile: Profile, machine: Machine, spec: ModeSpec) -> float:
    """The model's ns per run in a measured mode, the work between runs included as in the measurement."""
    import numpy as np

    model = Model(layout, profile, machine)
    if spec.mode == "shared":
        work = profile.workload.work_ns
        return float(model.shared(spec.threads, work).ns) + work
    shares = np.asarray(model.traffic.shares)
    if spec.mode == "unshared-hot":
        return float(model.hot() @ shares)
    return float(model.at_working_set(spec.objects))


def states_of(readings: Sequence[Reading], layouts: int) -> list[Any]:
    """Rounds grouped by the state of the machine, each group an array (rounds × layouts) in ns.

    A hypervisor can put two CPUs of a guest on neighbouring cores or far apart, for seconds at a time; a move
    then costs several times as much, so such rounds are other measurements, not outliers. Rounds are sorted
    by level and split where they leave `GROUP_PCT` of the group's lowest; groups of fewer than
    `LEAST_ROUNDS` rounds are transitions.
    """
    import numpy as np

    grid = np.asarray([r.ns for r in readings]).reshape(-1, layouts)
    level = np.median(grid, axis=1)
    order = np.argsort(level)
    groups: list[list[int]] = [[int(order[0])]]
    for i in order[1:]:
        if level[i] > level[groups[-1][0]] * (1 + GROUP_PCT / 100):
            groups.append([])
        groups[-1].append(int(i))
    return [grid[sorted(g)] for g in groups if len(g) >= LEAST_ROUNDS]


def _mode_score(
    struct: str,
    spec: ModeSpec,
    state: str,
    grid: Any,
    rounds_in_all: int,
    labels: Sequence[str],
    predicted: Sequence[float],
) -> ModeScore:
    import numpy as np
    from scipy.stats import spearmanr, trim_mean
    from scipy.stats.mstats import trimmed_stde

    level = np.median(grid, axis=1)
    flat = grid / level[:, None] * np.median(level)
    middle = trim_mean(flat, TRIM, axis=0)
    error = np.asarray(trimmed_stde(flat, (TRIM, TRIM), axis=0))
    halves = [trim_mean(flat[k::2], TRIM, axis=0) for k in range(2)]
    half = float(spearmanr(halves[0], halves[1])[0])
    spread, noise = float(middle.std()), float(np.sqrt(np.mean(error**2)))
    exceeds = spread > max(2 * noise, SPREAD_PCT / 100 * float(middle.mean()))
    guess = np.asarray(predicted)
    ranked = float(spearmanr(guess, middle)[0]) if exceeds and guess.std() > 0 else None
    above, right = _decided(middle, error, guess)
    certain, _ = _decided(middle, error, guess, floor_pct=0.0)
    decided = int(above.sum())
    return ModeScore(
        struct,
        spec.mode,
        spec.threads,
        state,
        len(flat),
        rounds_in_all,
        tuple(
            Point(label, float(m), float(e), float(p))
            for label, m, e, p in zip(labels, middle, error, predicted, strict=True)
        ),
        spread,
        noise,
        ranked,
        decided,
        len(labels) * (len(labels) - 1) // 2,
        float(right[above].mean()) if exceeds and decided else None,
        int(certain.sum()),
        float(right[certain].mean()) if exceeds and certain.any() else None,
        # Spearman-Brown: what a perfect model would reach against the means of all rounds
        math.sqrt(max(2 * half / (1 + half), 0.0)) if exceeds and half > -1 else None,
    )


def _decided(middle: Any, error: Any, guess: Any, floor_pct: float = DECIDED_PCT) -> tuple[Any, Any]:
    """Which pairs of layouts (upper triangle) the measurement decides, and of which the prediction has the sign."""
    import numpy as np

    gap, sure = middle[:, None] - middle, SURE_Z * np.sqrt(error[:, None] ** 2 + error**2)
    sure = np.maximum(sure, floor_pct / 100 * float(np.median(middle)))
    right = np.sign(np.round(guess[:, None] - guess, 9)) == np.sign(gap)
    return np.triu(np.abs(gap) > sure, 1), right


# -- files ---------------------------------------------------------------------------------------------


def score_text(score: Score) -> str:
    """The score as JSON that `load_score` reads."""
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(score)}, indent=1, allow_nan=False) + "\n"


def load_score(path: Path | None = None) -> Score:
    """Read a published score (default: the one shipped). Raises `DataError` if it is something else."""
    file = path or datafiles.path("scores/zen-5-vm.json")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["format"] != FORMAT or record["version"] != VERSION:
            raise DataError(f"{file.name}: no score of version {VERSION}; make one with benchmarks/bench_score.py")
        modes = tuple(
            ModeScore(**{**mode, "points": tuple(Point(**point) for point in mode["points"])})
            for mode in record["modes"]
        )
        seed = record["seed"]
        if not isinstance(seed, int):
            raise DataError(f"{file.name}: seed = {seed!r} is no whole number")
        return Score(record["machine"], record["date"], seed, record["numbers"], modes, tuple(record["notes"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file.name}: no score file ({error})") from None
