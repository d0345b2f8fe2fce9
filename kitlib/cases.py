"""Review cases: a change of a layout with its profile, evidence and rules, in one TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kitlib import datafiles
from kitlib import tomlfile as toml
from kitlib.access import OPS
from kitlib.errors import DataError, NotFound, near

FORMAT, VERSION = "kitlib-case", 1
MAKE = "write one with 'kitlib review new FILE'"
Workload = Literal["micro", "application"]
_KEYS = {
    "format", "version", "title", "about", "source", "struct", "before", "after", "line_bytes", "profile", "rules",
    "randomised", "guarded", "claim", "evidence", "code", "unknown", "member", "measured",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """What the change says of the layout before it: `member` shares a line with each of `others`."""

    text: str
    member: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Benchmark figures: the id of a published case, or files for ``kitlib bench``.

    ``workload`` says what the benchmark is: ``micro`` (a loop of one or a few calls) or ``application``.
    ``shared`` says which objects its CPUs share; ``reverse`` that the figures are those of the opposite
    change (the one that this one undoes).
    """

    published: str
    files: tuple[Path, ...]
    workload: Workload
    shared: str
    reverse: bool


@dataclass(frozen=True, slots=True)
class CodeChange:
    """A change of code instead of layout: accesses to `member` go from operation `before` to `after`."""

    member: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that is not known, and the command or step that would settle it."""

    text: str
    settle: str


@dataclass(frozen=True, slots=True)
class Case:
    """A change to review. ``before`` and ``after`` are what `kitlib.sources.open_source` takes.

    ``member`` is the member the change is about; ``meets`` those it should not share a line with.
    ``guarded`` says whether the change itself carries an assertion, ``randomised`` whether the struct is
    marked ``__randomize_layout``. ``measured`` is a result of
    ``kitlib measure --format json`` for this very change.
    """

    name: str
    title: str
    about: str
    source: str
    struct: str
    before: str
    after: str
    member: str
    meets: tuple[str, ...]
    line_bytes: tuple[int, ...] = (64, 128)
    profile: str | None = None
    rules: Path | None = None
    randomised: bool = False
    guarded: bool = False
    claim: Claim | None = None
    evidence: tuple[Evidence, ...] = ()
    code: CodeChange | None = None
    unknown: tuple[Unknown, ...] = ()
    measured: Path | None = None


def shipped_cases() -> list[str]:
    """Names of the cases that come with the kit."""
    return sorted(path.stem for path in (datafiles.data_root() / "cases").glob("*.toml") if path.stem != "MANIFEST")


def open_case(name: str) -> Case:
    """A shipped case by name, or the case file at a path.

    Raises `NotFound`, with near names, if there is neither, and `DataError` for what is no case file.
    """
    if name in shipped_cases():
        return read_case(datafiles.path(f"cases/{name}.toml"))
    if not Path(name).exists():
        known = shipped_cases()
        raise NotFound(f"no case '{name}'{near(name, known)}; shipped cases: {', '.join(known)}, or {MAKE}")
    return read_case(Path(name))


def read_case(path: Path) -> Case:
    """Read a case file. Paths in it are relative to the file. Raises `DataError` naming key and file."""
    record = toml.read_toml(path, form=FORMAT, version=VERSION, make=MAKE)
    where = str(path)
    toml.only(record, _KEYS, where)
    member = record.get("member", {})
    toml.table(member, f"{where}: [member]")
    toml.only(member, {"name", "meets"}, f"{where}: [member]")
    evidence, unknown = (toml.rows(record, key, where) for key in ("evidence", "unknown"))
    return Case(
        name=path.stem,
        title=toml.text(record, "title", where),
        about=toml.text(record, "about", where, ""),
        source=toml.text(record, "source", where, ""),
        struct=toml.text(record, "struct", where),
        before=_near(toml.text(record, "before", where), path),
        after=_near(toml.text(record, "after", where), path),
        member=toml.text(member, "name", f"{where}: [member]"),
        meets=toml.texts(member, "meets", f"{where}: [member]"),
        line_bytes=_lines(record.get("line_bytes", [64, 128]), where),
        profile=_near(record["profile"], path) if record.get("profile") else None,
        rules=_file(record["rules"], path) if record.get("rules") else None,
        measured=_file(record["measured"], path) if record.get("measured") else None,
        randomised=toml.flag(record, "randomised", where),
        guarded=toml.flag(record, "guarded", where),
        claim=_claim(record.get("claim"), where),
        evidence=tuple(_evidence(e, f"{where}: evidence {i}", path) for i, e in enumerate(evidence, 1)),
        code=_code(record.get("code"), where),
        unknown=tuple(_unknown(e, f"{where}: unknown {i}") for i, e in enumerate(unknown, 1)),
    )


def _claim(record: Any, where: str) -> Claim | None:
    if record is None:
        return None
    where = f"{where}: [claim]"
    toml.table(record, where)
    toml.only(record, {"text", "member", "with"}, where)
    others = toml.texts(record, "with", where)
    if not others:
        raise DataError(f"{where}: 'with' must name at least one member")
    return Claim(toml.text(record, "text", where), toml.text(record, "member", where), others)


def _evidence(record: Any, where: str, path: Path) -> Evidence:
    toml.table(record, where)
    toml.only(record, {"published", "files", "workload", "shared", "reverse"}, where)
    workload = record.get("workload")
    if workload not in ("micro", "application"):
        raise DataError(f"{where}: workload must be 'micro' or 'application'")
    files = tuple(_file(name, path) for name in toml.texts(record, "files", where))
    published = toml.text(record, "published", where, "")
    if bool(files) == bool(published):
        raise DataError(f"{where}: give either 'published' (a case id of data/benchmarks) or 'files'")
    return Evidence(
        published, files, workload, toml.text(record, "shared", where, ""), toml.flag(record, "reverse", where)
    )


def _code(record: Any, where: str) -> CodeChange | None:
    if record is None:
        return None
    where = f"{where}: [code]"
    toml.table(record, where)
    toml.only(record, {"member", "before", "after"}, where)
    change = CodeChange(*(toml.text(record, key, where) for key in ("member", "before", "after")))
    for op in (change.before, change.after):
        if op not in OPS:
            raise DataError(f"{where}: '{op}' is no operation; use one of {', '.join(OPS)}")
    return change


def _unknown(record: Any, where: str) -> Unknown:
    toml.table(record, where)
    toml.only(record, {"text", "settle"}, where)
    return Unknown(toml.text(record, "text", where), toml.text(record, "settle", where))


def _lines(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(size in (32, 64, 128, 256) for size in value):
        raise DataError(f"{where}: line_bytes must be a list of 32, 64, 128 or 256")
    return tuple(value)


def _near(text: str, path: Path) -> str:
    """A source as written; a file beside the case file is found there."""
    beside = path.parent / text
    return str(beside) if beside.is_file() else text


def _file(text: Any, path: Path) -> Path:
    if not isinstance(text, str):
        raise DataError(f"{path}: a file name must be text, not {text!r}")
    found = path.parent / text
    if not found.is_file():
        raise DataError(f"{path}: no file '{text}' beside it; paths are relative to the case file")
    return found
