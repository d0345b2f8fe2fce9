"""The simulation against cases with a known answer, and the closed form against the simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from kitlib import datafiles
from kitlib.access import Access, Path, Profile, Workload, load_profile
from kitlib.calibrate import partitions, spread_layout
from kitlib.cost import Model
from kitlib.machine import load_machine
from kitlib.simulate import simulate
from kitlib.sources import open_source

MACHINE = load_machine("zen-5-vm")


def one(op: str, work_ns: float = 60.0) -> Profile:
    return Profile("t", "t", (Path("p", 1.0, (Access("a", op),)),), Workload(2, 1, work_ns), slab_align=64)  # type: ignore[arg-type]


def test_one_cpu_pays_for_its_own_work_only() -> None:
    found = simulate(spread_layout({"a": 0}), one("add"), MACHINE, cpus=1, runs=2000)
    assert found.moves == 0
    assert found.ns == pytest.approx(MACHINE["run_ns"] + MACHINE["atomic_ns"], rel=0.02)


def test_readers_do_not_disturb_each_other() -> None:
    found = simulate(spread_layout({"a": 0}), one("read"), MACHINE, cpus=8, runs=4000)
    assert found.moves == 0


def test_the_same_seed_gives_the_same_run_and_another_seed_does_not() -> None:
    layout, profile = open_source("file-5.8").struct("file"), load_profile("struct_file")
    runs = [simulate(layout, profile, MACHINE, cpus=3, runs=1500, seed=seed).ns for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_a_saturated_line_serves_one_cpu_at_a_time() -> None:
    machine = MACHINE.with_values(dirty_near_ns=50, dirty_far_ns=50)
    found = simulate(spread_layout({"a": 0}), one("add", 500.0), machine, cpus=32, runs=12000)
    assert found.ns + 500 == pytest.approx(32 * 50, rel=0.05)


@pytest.mark.parametrize("cpus", [2, 4, 8])
def test_the_closed_form_ranks_sharing_patterns_as_the_simulation_does(cpus: int) -> None:
    paths = tuple(
        Path(name, 1.0, tuple(Access(m, op) for m, op in accesses))  # type: ignore[arg-type]
        for name, accesses in {
            "take": [("b", "read"), ("a", "add")],
            "look": [("c", "read")],
            "note": [("d", "write")],
        }.items()
    )
    profile = Profile("t", "t", paths, Workload(cpus, 1, 150.0), slab_align=64)
    layouts = [
        spread_layout({name: 128 * i + 8 * j for i, block in enumerate(blocks) for j, name in enumerate(block)}, 576)
        for blocks in partitions("abcd")
    ]
    simulated = [simulate(x, profile, MACHINE, cpus=cpus, runs=20000).ns for x in layouts]
    closed = [float(Model(x, profile, MACHINE).shared(cpus, 150.0).ns) for x in layouts]
    assert spearmanr(np.round(closed, 2), np.round(simulated, 1))[0] > 0.75
    assert np.mean(closed) == pytest.approx(np.mean(simulated), rel=0.45)


def test_closed_form_and_simulation_agree_with_what_was_measured() -> None:
    """Small patterns of two CPUs, measured by benchmarks/measure_patterns.py: 0 to 18 ns that sharing adds."""
    record = json.loads(datafiles.path("scores/sharing-patterns.json").read_text(encoding="utf-8"))
    layouts = {name: spread_layout(places) for name, places in record["places"].items()}
    measured, closed, simulated = [], [], []
    for row in record["rows"]:
        paths = tuple(
            Path(f"p{i}", 1.0, tuple(Access(step.split()[1], step.split()[0]) for step in words.split(", ")))  # type: ignore[arg-type]
            for i, words in enumerate(row["pattern"])
        )
        profile, layout = (
            Profile("t", "t", paths, Workload(2, 1, record["work_ns"]), slab_align=64),
            layouts[row["words"]],
        )
        measured.append(row["added_ns"])
        closed.append(Model(layout, profile, MACHINE).waiting_ns(2, record["work_ns"]))
        runs = [simulate(layout, profile, MACHINE, cpus=n, runs=12000).ns for n in (1, 2)]
        simulated.append(runs[1] - runs[0])
    assert len(measured) >= 20
    for predicted, most in ((closed, 3.5), (simulated, 5.5)):
        assert max(abs(p - m) for p, m in zip(predicted, measured, strict=True)) < most
        assert spearmanr(np.round(predicted, 1), measured)[0] > 0.9
