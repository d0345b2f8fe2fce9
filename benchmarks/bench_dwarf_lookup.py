"""One struct out of a DWARF vmlinux, start-up included: kitlib beside pahole and drgn, in one run.

Run ``python benchmarks/bench_dwarf_lookup.py VMLINUX ...`` (`make test-kernel` leaves one in ``build/kernel``).
Limit: 1.0 s for any struct, wherever it is and whether it is there at all. Best of several runs, file cache warm.
Programs that are not installed are left out; drgn is looked for in the Python named by ``DRGN_PYTHON``.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from kitlib.dwarf import open_dwarf
from kitlib.dwarfscan import UnitScan, definitions
from kitlib.dwarftypes import text_of

RUNS, LIMIT_S = 5, 1.0
SLOW_S = 2.0
"""A program that takes longer is run once only."""

DRGN = """
import sys, drgn
program = drgn.Program()
if hasattr(program, "extra_module"):
    program.extra_module("vmlinux", create=True).try_file(sys.argv[1], force=True)
else:
    program.load_debug_info([sys.argv[1]])
try:
    print(program.type("struct " + sys.argv[2]).size)
except LookupError:
    print("absent")
"""


def last_struct(path: Path) -> str:
    """The struct whose first definition stands nearest to the end of the file."""
    source = open_dwarf(path)
    for unit in reversed(source.info.units):
        scan = UnitScan(source.info, unit, {})
        names = [source.info.name(unit, scan.data, die) for die in definitions(scan.found)]
        for name in reversed([name for name in names if name]):
            first = next(source.offsets(text_of(name)), None)
            if first is not None and unit.offset <= first < unit.end:
                return text_of(name)
    raise SystemExit(f"{path}: no struct in it")


def programs() -> dict[str, list[str]]:
    """Commands that take a file and a struct's name."""
    found = {"kitlib": [sys.executable, "-m", "kitlib", "show"]}
    if shutil.which("pahole"):
        found["pahole"] = ["pahole", "-F", "dwarf", "-C"]
    python = os.environ.get("DRGN_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import drgn"], capture_output=True, check=False).returncode == 0:
        found["drgn"] = [python, "-c", DRGN]
    return found


def seconds(program: str, command: list[str], path: Path, name: str) -> tuple[float, float]:
    """Wall time and CPU time of the quickest run; on a busy machine only the second means much."""
    words = [f"dwarf:{path}" if program == "kitlib" else str(path), name]
    best, least = float("inf"), float("inf")
    for _ in range(RUNS):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, *(words[::-1] if program == "pahole" else words)], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, time.perf_counter() - start)
        least = min(least, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        if best > SLOW_S:
            break
    return best, least


def main(paths: list[str]) -> int:
    """Print one line a file, struct and program; 1 if kitlib is over its limit."""
    over = False
    commands = programs()
    for path in map(Path, paths):
        path.read_bytes()  # warms the file cache
        late = last_struct(path)
        wanted = {"early": "list_head", "large": "task_struct", "late": late, "misspelt": "tsk_struct",
                  "absent": "no_such_struct", "name of a member": "flags", "typedef": "atomic_t"}  # fmt: skip
        print(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")
        for where, name in wanted.items():
            taken = {program: seconds(program, command, path, name) for program, command in commands.items()}
            mine, cpu = taken.pop("kitlib")
            over |= mine > LIMIT_S
            others = [f"{program} {wall:.2f} s (x {mine / wall:.2f})" for program, (wall, _) in taken.items()]
            verdict = "within" if mine <= LIMIT_S else "OVER"
            rest = ", ".join(others)
            print(f"  {where} ({name}): kitlib {mine:.2f} s, CPU {cpu:.2f} s ({verdict} {LIMIT_S:.1f} s); {rest}")
    return int(over)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        kernel = Path("build/kernel/vmlinux")
        if not kernel.exists():
            sys.exit("usage: bench_dwarf_lookup.py VMLINUX ... ('sh tests/kernel/fetch.sh build/kernel' fetches one)")
        sys.argv.append(str(kernel))
    sys.exit(main(sys.argv[1:]))
