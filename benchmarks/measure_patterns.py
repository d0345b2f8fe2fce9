"""Measure small sharing patterns of two CPUs on this machine, beside the model and the simulation.

    python benchmarks/measure_patterns.py [--machine NAME] [-o data/scores/patterns-NAME.json]

A pattern is a few paths over words a, b and c; it is run with each word on a line of its own and with b beside a.
What sharing adds is the time with two CPUs less that with one. About half a minute; needs a quiet machine. The
checksum in the folder's manifest is renewed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kitlib.access import Access, Profile, Workload
from kitlib.access import Path as CodePath
from kitlib.calibrate import round_medians, spread_layout
from kitlib.cost import Model
from kitlib.machine import load_machine
from kitlib.manifest import renew
from kitlib.measure import Effort, ModeSpec, run_plan
from kitlib.measure_c import program_text
from kitlib.measure_plan import make_plan
from kitlib.measure_run import compiled
from kitlib.simulate import simulate
from kitlib.topology import read_topology

WORK_NS = 60.0
PLACES = {"apart": {"a": 0, "b": 128, "c": 256}, "beside": {"a": 0, "b": 8, "c": 256}}
PATTERNS = (
    ("write a",),
    ("add a",),
    ("cmpxchg a",),
    ("read a, write a",),
    ("write a", "read b"),
    ("add a", "read b"),
    ("write a", "add b"),
    ("write a", "add c", "read b"),
    ("add a", "read a", "read a", "read a"),
    ("read a, write a", "read a", "read a", "read a"),
    ("read b, cmpxchg a", "read b", "add a"),
    ("read b, read a", "add a", "write b"),
)
EFFORT = Effort(samples=30, slices=1, sample_ms=4, rounds=1, limit_s=30)


def profile_of(pattern: tuple[str, ...]) -> Profile:
    """Paths in words: ``read b, cmpxchg a`` is one path of two accesses."""
    paths = []
    for number, words in enumerate(pattern):
        steps = [step.split() for step in words.split(", ")]
        paths.append(CodePath(f"p{number}", 1.0, tuple(Access(member, op) for op, member in steps)))  # type: ignore[arg-type]
    return Profile("pattern", "pattern", tuple(paths), Workload(2, 1, WORK_NS), slab_align=64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default="zen-5-vm")
    parser.add_argument("-o", "--output", type=Path, default=Path("patterns.json"))
    options = parser.parse_args()
    machine, here = load_machine(options.machine), read_topology()
    layouts = [spread_layout(places) for places in PLACES.values()]
    rows = []
    print(f"{'pattern':46} {'words':8} measured  model  simulated   (ns a run that sharing adds)")
    for pattern in PATTERNS:
        profile = profile_of(pattern)
        plan = make_plan(profile, *layouts)
        took = []
        with compiled(program_text(plan.program)) as program:
            for cpus in (1, 2):
                spec = ModeSpec("shared", cpus, 1, True)
                readings = run_plan(program, spec, plan, layouts, profile, here, EFFORT, place_step=64)
                took.append(round_medians(readings, len(layouts)))
        for number, (place, layout) in enumerate(zip(PLACES, layouts, strict=True)):
            model = Model(layout, profile, machine)
            measured = took[1][number] - took[0][number]
            alone = simulate(layout, profile, machine, cpus=1, runs=2000).ns
            simulated = simulate(layout, profile, machine, cpus=2, runs=20000).ns - alone
            added = model.waiting_ns(2, WORK_NS)
            print(f"{'; '.join(pattern):46} {place:8} {measured:8.1f} {added:6.1f} {simulated:10.1f}", flush=True)
            rows.append({"pattern": pattern, "words": place, "added_ns": round(measured, 2)})
    record = {"machine": machine.name, "work_ns": WORK_NS, "places": PLACES, "rows": rows}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{options.output}; {renew(options.output)}")


if __name__ == "__main__":
    main()
