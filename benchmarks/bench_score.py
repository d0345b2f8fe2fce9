"""Measure the model's score on this machine and write it to a file.

    python benchmarks/bench_score.py [--machine NAME] [--seed N] [-o data/scores/NAME.json]

Random orders of struct file and of one more struct run in three modes; the machine is calibrated first, on
synthetic layouts that are not among those scored, unless a profile is named. Takes about three and a half
minutes; needs a quiet machine. The checksum in the folder's manifest is renewed.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Iterator
from pathlib import Path

from kitlib.access import Profile, load_profile
from kitlib.calibrate import calibrate
from kitlib.machine import load_machine
from kitlib.manifest import renew
from kitlib.measure import MODES, Effort
from kitlib.model import Layout
from kitlib.score import DEVELOPED_ON, ModeScore, Score, random_layouts, score_mode, score_text
from kitlib.sources import open_source

CASES = (("file-5.8", "file", "struct_file", "file-5.8-patch"), ("linux-6.1", "dentry", "dentry", None))


HELD_OUT = 2022
"""Default seed: orders that were not looked at while the model was made."""
FULL = Effort(samples=40, slices=1, sample_ms=4, rounds=3, sweep=False, limit_s=240)
QUICK = Effort(samples=16, slices=1, sample_ms=4, rounds=1, sweep=False, limit_s=120)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("score.json"))
    parser.add_argument("--layouts", type=int, default=64, help="random orders of each struct")
    parser.add_argument(
        "--seed", type=int, default=HELD_OUT, help=f"of the orders ({', '.join(map(str, DEVELOPED_ON))}: not held out)"
    )
    parser.add_argument("--machine", help="a machine profile instead of calibrating")
    parser.add_argument("--quick", action="store_true", help="fewer samples: about 40 s, for trying out")
    return parser.parse_args()


def cases(count: int, seed: int) -> Iterator[tuple[Profile, dict[str, Layout]]]:
    """Every struct's profile and labelled layouts."""
    for source, struct, profile_name, patched in CASES:
        base = open_source(source).struct(struct)
        layouts = {"as it is": base}
        if patched:
            layouts["patched"] = open_source(patched).struct(struct)
        layouts |= {f"random {i}": layout for i, layout in enumerate(random_layouts(base, count, seed))}
        yield load_profile(profile_name), layouts


def told(result: ModeScore) -> str:
    rho = "nothing to rank" if result.spearman is None else f"Spearman {result.spearman:.3f}"
    sign = "" if result.sign_right is None else f", sign right in {100 * result.sign_right:.1f} %"
    return (
        f"{result.struct} {result.mode} {result.state} ({result.rounds} of {result.rounds_in_all} rounds): {rho}{sign} "
        f"of {result.decided} pairs; spread {result.spread_ns:.2f}, noise {result.noise_ns:.2f} ns"
    )


def main() -> None:
    options = parsed()
    start = time.monotonic()
    machine = load_machine(options.machine) if options.machine else calibrate(tick=print).machine
    modes, notes = [], []
    for profile, layouts in cases(options.layouts, options.seed):
        for mode in MODES:
            results = score_mode(mode, layouts, profile, machine, effort=QUICK if options.quick else FULL)
            if not results:
                notes.append(f"{profile.struct}, {mode}: not measured; it was too restless, or there is one CPU only")
                print(notes[-1], flush=True)
            for result in results:
                print(told(result), flush=True)
                modes.append(result)
    numbers = {key: number.value for key, number in machine.numbers.items()}
    score = Score(machine.name, datetime.date.today().isoformat(), options.seed, numbers, tuple(modes), tuple(notes))
    options.output.write_text(score_text(score), encoding="utf-8")
    kept = "held out" if score.held_out else "not held out"
    print(f"{options.output}, {kept} (seed {score.seed}), {time.monotonic() - start:.0f} s; {renew(options.output)}")


if __name__ == "__main__":
    main()
