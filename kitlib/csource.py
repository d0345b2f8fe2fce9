"""Layouts of C: the system's compiler makes an object file with debug information, and that is read.

The text is only ever data: it is compiled, never linked or run, and no shell sees it. The include path is
the compiler's own and the file's folder.

A compile that fails for kernel names without their headers (``u32``, ``spinlock_t``, ``__rcu``) is tried
again with the kit's definitions of just those names (see `kitlib.cprelude`); ``source.detail`` lists them.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace as _with
from pathlib import Path

from kitlib.cprelude import defined_by, missing_names, prelude, uses_macros
from kitlib.errors import NotFound, SourceError, ToolError, near
from kitlib.files import read_text
from kitlib.model import Layout, SourceInfo
from kitlib.source import Source

TIME_LIMIT_S = 20.0
MAX_OBJECT_BYTES = 1 << 29
MAX_MEMORY_BYTES = 1 << 32
_COMPILERS = ("gcc", "cc", "clang")
_CPLUSPLUS = {".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh"}
_ROUNDS = 4  # a name that is defined can bring the next unknown one to light


class CSource:
    """The structs of C text, read from its object file; what the kit's prelude defines is not listed."""

    kind = "c"

    def __init__(self, compiled: Source, label: str, added: Sequence[str]) -> None:
        self.label = label
        self._compiled = compiled
        self._hidden = defined_by(list(added))
        detail = f"with the kit's own definition of {', '.join(added)}" if added else ""
        self._info = SourceInfo(label, "c", detail)

    def names(self) -> list[str]:
        return [name for name in self._compiled.names() if name not in self._hidden]

    def struct(self, name: str) -> Layout:
        try:
            return self._own(self._compiled.struct(name))
        except NotFound:
            raise NotFound(f"no struct '{name}' in {self.label}{near(name, self.names())}") from None

    def structs(self) -> Iterator[Layout]:
        return (self._own(layout) for layout in self._compiled.structs() if layout.name not in self._hidden)

    def _own(self, layout: Layout) -> Layout:
        return _with(layout, source=self._info)


def open_c(path: str | Path, *, compiler: str | None = None, flags: Sequence[str] = ()) -> CSource:
    """Compile the C (or, by its suffix, C++) file at `path` and read its structs.

    `compiler` is a program's name (default: gcc, else cc or clang); `flags` are added to its options, such as
    ``-I`` folders. Raises `SourceError` if the file cannot be read, `ToolError` with the compiler's first
    error if it does not compile in 20 s or there is no compiler.
    """
    path = Path(path)
    language = "c++" if path.suffix.lower() in _CPLUSPLUS else "c"
    folder = path.resolve().parent
    return _open(read_text(path), str(path), language, [f"-I{folder}", *flags], compiler)


def open_snippet(text: str, label: str = "C text", *, compiler: str | None = None) -> CSource:
    """Compile C text itself. Raises `ToolError` as `open_c` does.

    >>> open_snippet("struct ring { int head; long tail; };").struct("ring").member("tail").offset
    8
    """
    return _open(text, label, "c", [], compiler)


def _open(text: str, label: str, language: str, flags: list[str], compiler: str | None) -> CSource:
    from kitlib.dwarf import open_dwarf

    program = _find_compiler(compiler)
    added: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kitlib-") as folder:
        target = Path(folder, "unit.o")
        before = ""
        for _ in range(_ROUNDS):
            errors = _compile(program, language, flags, before + f'#line 1 "{_LINES}"\n' + text, target, label)
            if not errors:
                break
            more = [name for name in missing_names(errors, text) if name not in added]
            if not more and (before or not uses_macros(text)):
                raise ToolError(f"{label}: {Path(program).name}: {_first_error(errors)}")
            added += more
            before = prelude(added, text)
        else:
            raise ToolError(f"{label}: {Path(program).name}: {_first_error(errors)}")
        try:
            compiled = open_dwarf(target)
        except SourceError:
            raise SourceError(f"{label}: C without any struct or union; give the text that defines one") from None
        return CSource(compiled, label, added)


_LINES = "line"  # the name the compiler is told, so that its messages read "line:3:5: error: ..."


def _find_compiler(wanted: str | None) -> str:
    for name in (wanted,) if wanted else _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    what = f"the compiler '{wanted}'" if wanted else "a C compiler"
    raise ToolError(f"{what} is needed to read C and is not installed; install gcc (Debian: apt install gcc)")


def _compile(program: str, language: str, flags: list[str], text: str, target: Path, label: str) -> str:
    """Compile `text` to `target`; return the compiler's messages if that fails, else an empty text."""
    command = [program, "-x", language, "-g", "-O0", "-w", "-c", "-fno-eliminate-unused-debug-types"]
    command += [*flags, "-o", str(target), "-"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=target.parent,
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,  # its own group, so that the time limit ends the compiler's children too
        preexec_fn=_limit,
    )
    try:
        _, errors = process.communicate(text.encode("utf-8", "surrogateescape"), timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise ToolError(
            f"{label}: {Path(program).name} took more than {TIME_LIMIT_S:.0f} s; give a smaller file"
        ) from None
    if process.returncode == 0 and target.exists():
        return ""
    return errors.decode("utf-8", "replace") or f"ended with status {process.returncode} and no message"


def _limit() -> None:
    """Keep a hostile text from filling the disk or the memory."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OBJECT_BYTES, MAX_OBJECT_BYTES))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _first_error(errors: str) -> str:
    """The first line that says what is wrong: ``line 3: unknown type name 'foo'``."""
    lines = [line.strip() for line in errors.split("\n") if line.strip()]
    found = next((line for line in lines if "error:" in line), lines[0])
    place, _, message = found.partition("error:")
    parts = place.split(":")
    if message and parts[0] == _LINES and len(parts) > 1 and parts[1].isdigit():
        found = f"line {parts[1]}: {message.strip()}"
    return f"{found[:300]}; put it right, or include what it needs"


__all__ = ["CSource", "open_c", "open_snippet"]
