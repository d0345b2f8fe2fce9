"""Speed and memory of reading benchmark reports: ``python benchmarks/bench_reports.py``.

A 10,000-row report from file to printed table, and 50 MB of mail text in bounded memory. Prints figures; it is
no test (tests hold no timings).
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER = """\
=========================================================================================
compiler/tbox_group/test/testcase:
  gcc-13/some-machine/made-up/madeup

commit:
  {a} ("before")
  {b} ("after")

{a}00000 {b}0000000000
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
"""
LOAD_ALL = "import numpy, scipy.special, click, kitlib.cli.bench"


def row(number: int, draw: random.Random) -> str:
    """One row in the tool's own form."""
    before = draw.uniform(1, 1e6)
    after = before * draw.uniform(0.7, 1.5)
    spread = draw.choice(["       ", " ±  7% ", " ± 23% "])
    change = f"{100 * (after / before - 1):+.1f}%"
    return f"{before:11.2f}{spread}{change:>10} {after:11.2f}        perf-stat.i.counter-{number}"


def report(rows: int, seed: int = 1) -> str:
    """A report with `rows` rows, all different."""
    draw = random.Random(seed)
    head = HEADER.format(a=f"{seed:010x}a", b=f"{seed:010x}b")
    return head + "\n".join(row(i, draw) for i in range(rows)) + "\n"


def seconds(command: list[str]) -> float:
    """Wall time of a command, best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def peak_mb(command: list[str]) -> float:
    """Peak resident memory of a command in MB."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    return float(subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True).stdout)


def main() -> None:
    """Measure and print."""
    kitlib = [sys.executable, "-c", "from kitlib.cli import main; main()", "bench"]
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder, "rows.txt")
        big.write_text(report(10_000), encoding="utf-8")
        imports = seconds([sys.executable, "-c", LOAD_ALL])
        for fmt in ("text", "json"):
            whole = seconds([*kitlib, "--format", fmt, str(big)])
            print(f"10,000 rows, {fmt}: {whole:.2f} s, {whole - imports:.2f} s beyond imports ({imports:.2f} s)")
        for distinct in (50, 2_000):
            mail = Path(folder, "mail.txt")
            write_mail(mail, distinct)
            start = time.perf_counter()
            peak = peak_mb([*kitlib, str(mail)])
            taken = time.perf_counter() - start
            print(f"50 MB of mail, {distinct} different reports: {taken:.1f} s, {peak:.0f} MB at most")


def write_mail(path: Path, distinct: int) -> None:
    """50 MB of replies and reports, of which `distinct` differ."""
    prose = "> some words of a reply, as people write them around the figures\n" * 40
    size = seed = 0
    with path.open("w", encoding="utf-8") as stream:
        while size < 50_000_000:
            seed = seed % distinct + 1
            size += stream.write(prose + report(150, seed))


if __name__ == "__main__":
    main()
