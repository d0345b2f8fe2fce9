"""Measure the model's score on this machine and write it to a file.

    python benchmarks/bench_score.py [--quick] [-o data/scores/NAME.json]

Random orders of struct file and of one more struct run in three modes; the machine is calibrated first, on
synthetic layouts that are not among those scored. Takes about three minutes; needs a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
from dataclasses import replace
from pathlib import Path

from kitlib.access import load_profile
from kitlib.calibrate import calibrate
from kitlib.machine import load_machine
from kitlib.measure import MODES, Effort
from kitlib.score import Score, random_layouts, score_mode, score_text
from kitlib.sources import open_source

CASES = (("file-5.8", "file", "struct_file", "file-5.8-patch"), ("linux-6.1", "dentry", "dentry", None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("score.json"))
    parser.add_argument("--layouts", type=int, default=64)
    parser.add_argument("--machine", help="a machine profile instead of calibrating")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    machine = load_machine(options.machine) if options.machine else calibrate(tick=print).machine
    full = Effort(samples=12, slices=1, sample_ms=12, rounds=3, sweep=False, limit_s=240)
    effort = Effort(samples=8, slices=1, sample_ms=8, rounds=1, sweep=False, limit_s=120) if options.quick else full
    modes = []
    for source, struct, profile_name, patched in CASES:
        base = open_source(source).struct(struct)
        profile = load_profile(profile_name)
        layouts = {"as it is": base}
        if patched:
            layouts["patched"] = open_source(patched).struct(struct)
        layouts |= {f"random {i}": layout for i, layout in enumerate(random_layouts(base, options.layouts))}
        for mode in MODES:
            for result in score_mode(mode, layouts, profile, machine, effort=effort):
                rho = "nothing to rank" if result.spearman is None else f"Spearman {result.spearman:.3f}"
                sign = "" if result.sign_right is None else f", sign right in {100 * result.sign_right:.1f} %"
                print(
                    f"{struct} {mode} {result.state} ({result.rounds} of {result.rounds_in_all} rounds): {rho}{sign} "
                    f"of {result.decided} pairs; spread {result.spread_ns:.2f}, noise {result.noise_ns:.2f} ns"
                )
                modes.append(result)
    numbers = {key: number.value for key, number in machine.numbers.items()}
    score = Score(machine.name, datetime.date.today().isoformat(), numbers, tuple(modes))
    options.output.write_text(score_text(replace(score)), encoding="utf-8")


if __name__ == "__main__":
    main()
