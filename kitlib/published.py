"""Three published runs of one patch beside the model: does it get direction and size, and with which line?

The figures are those of the patch's own mail (Kunpeng 920 and Xeon 6248, 24 copies) and of the kernel test
robot (Platinum 9242, nr_task 30 % of 192 CPUs): UnixBench syscall, before and after f_count was moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as _with

from kitlib.access import load_profile
from kitlib.cost import Model
from kitlib.lines import mates
from kitlib.machine import load_machine
from kitlib.model import Layout

RUNS: tuple[tuple[str, str, int, float, float, str], ...] = (
    ("Kunpeng 920, 24 copies", "kunpeng-920", 24, 2222456.0, 3160841.4, "lps, patch mail"),
    ("Xeon 6248, 24 copies", "xeon-6248", 24, 3666313.0, 4288509.1, "lps, patch mail"),
    ("Platinum 9242, 58 copies", "platinum-9242", 58, 2297.0, 3038.0, "score ± 2 %, kernel test robot"),
)
"""Label, machine profile, CPUs, measured before and after, unit and source."""
VARIANTS: tuple[tuple[str, str, float], ...] = (
    ("64-byte lines, the two named members", "fget_fast_path", 0.0),
    ("64-byte lines, all members of the paths", "unixbench_syscall", 0.0),
    ("128-byte pairs, the two named members", "fget_fast_path", 1.0),
    ("128-byte pairs, all members of the paths", "unixbench_syscall", 1.0),
)
"""Label, access profile and pair weight."""
COUNT = "f_count"
"""The member the patch moved."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One machine: the measured change in % and the predicted one by variant (in the order of `VARIANTS`)."""

    label: str
    machine: str
    cpus: int
    measured_pct: float
    predicted_pct: tuple[float, ...]
    doubts: tuple[str, ...]


def published_rows(before: Layout, after: Layout) -> tuple[PublishedRow, ...]:
    """Predicted and measured change of UnixBench syscall throughput on the three machines."""
    rows = []
    for label, name, cpus, first, second, _ in RUNS:
        machine = load_machine(name)
        predicted = []
        for _, profile_name, weight in VARIANTS:
            profile = load_profile(profile_name)
            plain = _with(machine, grain_bytes=64) if weight == 0 else machine
            work = profile.workload.work_ns
            times = [
                float(Model(layout, profile, plain, pair_weight=weight).shared(cpus, work).ns) + work
                for layout in (before, after)
            ]
            predicted.append(100 * (times[0] / times[1] - 1))
        rows.append(PublishedRow(label, name, cpus, 100 * (second / first - 1), tuple(predicted), machine.doubts))
    return tuple(rows)


def published_words(rows: Sequence[PublishedRow], before: Layout, after: Layout) -> str:
    """What the rows say: how far each variant of the model gets, and which members left the count's line."""
    ranges = [_range([row.predicted_pct[i] for row in rows]) for i in range(len(VARIANTS))]
    freed = sorted(_used_beside_count(before) - _used_beside_count(after))
    who = f"of which {' and '.join(freed)} left the 64-byte line of {COUNT}" if freed else f"none left {COUNT}'s line"
    same = ranges[0] == ranges[2] and ranges[1] == ranges[3]
    pairs = "Pairs make no difference: a line that is asked for all the time moves no more often for a neighbour. "
    return (
        f"Measured: {_range([row.measured_pct for row in rows])}. With 64-byte lines and the two members the patch "
        f"names the model predicts {ranges[0]}, and with 128-byte pairs {ranges[2]}. With all members that the paths "
        f"use, {who}, it predicts {ranges[1]} and {ranges[3]}. {pairs if same else ''}One model for three machines "
        "gives the direction and the order of magnitude; it does not tell the machines apart."
    )


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:+.0f}" for value in (min(values), max(values)))
    low, high = (("0" if text in ("+0", "-0") else text) for text in (low, high))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _used_beside_count(layout: Layout) -> set[str]:
    """Members that the benchmark's paths use and that share a 64-byte line with the count."""
    used = {access.member for path in load_profile(VARIANTS[1][1]).paths for access in path.accesses}
    return used & {leaf.path for leaf in mates(layout, COUNT, 64)}
