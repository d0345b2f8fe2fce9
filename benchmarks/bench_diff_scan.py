"""Speed of whole-kernel commands, start-up included: ``python benchmarks/bench_diff_scan.py``.

``kitlib diff`` of every struct of Linux 6.1 and 6.12, ``kitlib scan`` of the running kernel (of 6.12 if it has no
BTF), ``kitlib check``. Best of three, warm file cache. Prints figures; it is no test (tests hold no timings).
"""

from __future__ import annotations

import subprocess
import sys
import time

from kitlib import datafiles
from kitlib.btf import RUNNING
from kitlib.kernels import WHOLE

KITLIB = [sys.executable, "-c", "from kitlib.cli import main; main()"]


def seconds(*words: str) -> float:
    """Wall time of a kitlib command, best of three; its exit status must be 0 or 1."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([*KITLIB, *words], stdout=subprocess.DEVNULL, check=False)
        best = min(best, time.perf_counter() - start)
        if done.returncode not in (0, 1):
            sys.exit(f"kitlib {' '.join(words)}: exit status {done.returncode}")
    return best


def main() -> None:
    """Measure and print."""
    old, new = (str(datafiles.path(name)) for name in WHOLE.values())
    kernel = "running" if RUNNING.exists() else new
    rules = str(datafiles.path("rules/mm_struct.toml"))
    for fmt in ("text", "json"):
        print(
            f"diff, every struct of 6.1 and 6.12, {fmt}: {seconds('diff', old, new, '--format', fmt):.2f} s (at most 5)"
        )
        print(f"scan, {kernel}, {fmt}: {seconds('scan', kernel, '--format', fmt):.2f} s (at most 2)")
    print(f"check, four rules of mm_struct: {seconds('check', rules, 'mm-5.13-seq'):.2f} s")


if __name__ == "__main__":
    main()
