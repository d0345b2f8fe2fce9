"""Three published runs of one patch beside the model: does it get direction and size, and with which line?

The figures are those of the patch's own mail (Kunpeng 920 and Xeon 6248, 24 copies) and of the kernel test
robot (Platinum 9242, nr_task 30 % of 192 CPUs): UnixBench syscall, before and after f_count was moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as _with

from kitlib.access import load_profile
from kitlib.cost import Model
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
