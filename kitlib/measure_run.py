"""Compile and run a measuring program: time limits, nothing left running, errors in one line."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kitlib.errors import ToolError

COMPILE_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One timed slice: ``ns`` per path run and thread, ``retries`` of compare-exchange loops per run.

    ``preempted`` counts how often another task took a CPU away; ``fairness`` is the slowest thread's runs
    over the fastest's.
    """

    layout: int
    ns: float
    retries: float
    preempted: int
    fairness: float


def find_compiler() -> str:
    """The system's C compiler (``$CC``, then cc, gcc, clang); raises `ToolError` if there is none."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise ToolError("no C compiler: install gcc or clang (or set CC) to measure on this machine")


@contextmanager
def compiled(text: str, compiler: str | None = None) -> Iterator[Path]:
    """Compile `text` in a folder of its own that is removed afterwards; gives the program's path.

    Raises `ToolError` with the compiler's first error line.
    """
    tool = compiler or find_compiler()
    with tempfile.TemporaryDirectory(prefix="kitlib-") as folder:
        source, program = Path(folder, "measure.c"), Path(folder, "measure")
        source.write_text(text, encoding="ascii")
        command = [tool, "-std=gnu11", "-O2", "-pthread", "-o", str(program), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMPILE_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ToolError(f"{tool} took more than {COMPILE_LIMIT_S:.0f} s to compile the benchmark") from None
        except OSError as error:
            raise ToolError(f"{tool} cannot be run: {error.strerror}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            first = lines[0] if lines else f"exit status {done.returncode}"
            raise ToolError(f"the benchmark did not compile: {first.replace(folder + os.sep, '')}")
        yield program


def run(
    program: Path, arguments: Sequence[str], limit_s: float, tick: Callable[[Reading], None] | None = None
) -> list[Reading]:
    """Run `program`, calling `tick` for every slice (warm-up too); returns the slices after the warm-up.

    Raises `ToolError` if it takes longer than `limit_s`, is killed or fails; the program and its threads
    are gone in every case, also when an exception (an interrupt) passes through.
    """
    child = subprocess.Popen(
        [str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    readings: list[Reading] = []
    warm = False
    try:
        for line in _lines(child, time.monotonic() + limit_s, limit_s):
            if line == "warm":
                warm = True
                continue
            reading = _reading(line)
            if tick:
                tick(reading)
            if warm:
                readings.append(reading)
        status = child.wait(timeout=5)
        if status:
            assert child.stderr is not None
            raise ToolError(_why(status, child.stderr.read().decode(errors="replace"), limit_s))
    finally:
        _end(child)
    return readings


def _reading(line: str) -> Reading:
    try:
        index, ns, retries, preempted, fairness = line.split()
        return Reading(int(index), float(ns), float(retries), int(preempted), float(fairness))
    except ValueError:
        raise ToolError(f"the benchmark wrote what is no reading: {line[:60]!r}") from None


def _lines(child: subprocess.Popen[bytes], deadline: float, limit_s: float) -> Iterator[str]:
    """Lines of the child's output until it ends; raises `ToolError` at the deadline."""
    assert child.stdout is not None
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise ToolError(f"the benchmark did not end within {limit_s:.0f} s and was stopped")
            chunk = os.read(child.stdout.fileno(), 65536)
            if not chunk:
                return
            *whole, buffer = (buffer + chunk).split(b"\n")
            for line in whole:
                yield line.decode("ascii", errors="replace")


def _why(status: int, stderr: str, limit_s: float) -> str:
    if status == -signal.SIGALRM:
        return f"the benchmark did not end within {limit_s:.0f} s and was stopped"
    if status < 0:
        return f"the benchmark was killed by signal {-status} ({signal.Signals(-status).name})"
    first = stderr.splitlines()[0] if stderr.strip() else "no message"
    return f"the benchmark failed with status {status}: {first}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's whole session if it still runs, reap it and close its pipes."""
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
