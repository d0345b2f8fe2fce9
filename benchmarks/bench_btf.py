"""How long it takes, from starting Python, to read a kernel's BTF: every struct, one struct, the list of names.

Run ``python benchmarks/bench_btf.py [SOURCE ...]`` (default: running). Limit: 1.0 s for every struct as a `Layout`;
best of several runs, file cache warm.
"""

from __future__ import annotations

import subprocess
import sys
import time

RUNS, LIMIT_S = 5, 1.0

EVERY = (
    "import sys; from kitlib import open_source; s = open_source(sys.argv[1], prefer='btf')\n"
    "print(sum(1 for layout in s.structs() if layout.size >= 0), 'structs')"
)
COMMANDS = {
    "every struct": [sys.executable, "-c", EVERY],
    "one struct": [sys.executable, "-m", "kitlib", "show"],
    "list of names": [sys.executable, "-m", "kitlib", "list"],
}


def best_of(command: list[str]) -> tuple[float, str]:
    """Seconds of the quickest run, and its last line of output."""
    seconds, line = [], ""
    for _ in range(RUNS):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - start)
        line = done.stdout.splitlines()[-1]
    return min(seconds), line


def main(sources: list[str]) -> None:
    """Print one line a source and task."""
    for source in sources:
        for task, command in COMMANDS.items():
            arguments = [f"btf:{source}" if source != "running" else source]
            if task == "one struct":
                arguments.append("task_struct")
            seconds, line = best_of([*command, *arguments])
            verdict = "within" if seconds <= LIMIT_S else "OVER"
            print(f"{source}: {task}: {seconds:.2f} s ({verdict} {LIMIT_S:.1f} s); {line[:60]}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["running"])
