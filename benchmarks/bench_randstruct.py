"""How long a million random layouts of a 22-member struct take, and how the scalar form compares.

Run ``python benchmarks/bench_randstruct.py``; limit: 5 s for a million, placement included.
"""

from __future__ import annotations

import time

from kitlib.edit import Insert, apply
from kitlib.model import Layout
from kitlib.randstats import ask
from kitlib.randstruct import MODES, randomize_gcc

DECLARATIONS = [
    "long f_u[2]", "long f_path[2]", "void *f_inode", "void *f_op", "int f_lock", "int f_write_hint", "long f_count",
    "int f_flags", "int f_mode", "long f_pos_lock[4]", "long f_pos", "long f_owner[4]", "void *f_cred", "long f_ra[4]",
    "long f_version", "void *f_security", "void *private_data", "long f_ep_links[2]", "long f_tfile_llink[2]",
    "void *f_mapping", "int f_wb_err", "int f_sb_err",
]  # fmt: skip
TRIALS, SCALAR_TRIALS, LIMIT_S = 1_000_000, 1_000, 5.0


def main() -> None:
    """Print seconds a mode and the ratio to the scalar form."""
    layout = apply(Layout("file", "struct", 0, 1, ()), [Insert(text) for text in DECLARATIONS])
    start = time.perf_counter()
    for seed in range(SCALAR_TRIALS):
        randomize_gcc(layout, (seed, 1, 2, 3), "gcc-full")
    scalar_s = (time.perf_counter() - start) / SCALAR_TRIALS
    print(f"scalar, gcc-full: {scalar_s * 1e6:.0f} us a layout, {scalar_s * TRIALS:.0f} s a million")
    for mode in MODES:
        start = time.perf_counter()
        risk = ask(layout, mode, ("f_count", "f_mode", "f_inode", "f_op"), trials=TRIALS)
        seconds = time.perf_counter() - start
        verdict = "within" if seconds <= LIMIT_S else "OVER"
        print(
            f"{mode}: {seconds:.2f} s ({verdict} {LIMIT_S:.0f} s), {scalar_s * TRIALS / seconds:.0f} times the scalar "
            f"form; p {risk.p_same_line.value:.4f}, mean size {risk.size.mean:.1f}"
        )


if __name__ == "__main__":
    main()
