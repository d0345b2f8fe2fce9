"""Published figures of layout changes, and which members the functions of a profile touch: ``data/benchmarks``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kitlib.datafiles import path
from kitlib.errors import DataError, NotFound, near
from kitlib.series import Delta, Table, Value


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One stated figure: means before and after, or a change stated alone (`before` and `after` None)."""

    metric: str
    unit: str
    before: float | None
    after: float | None
    machine: str
    runs: int | None
    printed_change: str | None
    parameters: str
    note: str


@dataclass(frozen=True, slots=True)
class Case:
    """A change of a struct with the figures stated for it. `layout` names shipped layouts, before then after."""

    id: str
    struct: str
    change: str
    source: str
    commit: str
    layout: tuple[str, ...]
    status: str
    figures: tuple[PublishedFigure, ...]

    def tables(self) -> tuple[Table, ...]:
        """The measured figures with both sides as tables, one for each machine.

        Changes stated alone have no sides, and layout facts (bytes, lines) are exact: neither is in a table.
        """
        groups: dict[tuple[str, str, str], list[Delta]] = {}
        for figure in self.figures:
            if figure.before is None or figure.after is None or figure.unit in ("bytes", "lines"):
                continue
            key = (figure.machine, figure.parameters, figure.note if "->" in figure.note else "")
            row = Delta(
                figure.metric,
                Value(figure.before, n=figure.runs),
                Value(figure.after, n=figure.runs),
                figure.unit.startswith("%"),
                figure.printed_change,
                figure.unit,
            )
            groups.setdefault(key, []).append(row)
        return tuple(
            Table(
                "published", tuple(rows), "before", "after", note or parameters or self.id, machine, (), None, None,
                "stated" if all(row.before.n for row in rows) else "not stated",
            )
            for (machine, parameters, note), rows in groups.items()
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Link:
    """The members of `struct` that `function` touches; `confirmed` False where that is only believed."""

    struct: str
    function: str
    members: tuple[str, ...]
    what: str
    source: str
    confirmed: bool


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """All shipped cases. Raises `DataError` if the file is malformed."""
    return tuple(_case(record) for record in _records("benchmarks/cases.toml", "case"))


def case(name: str) -> Case:
    """One case by its id. Raises `NotFound`, with near ids, if there is none."""
    for found in cases():
        if found.id == name:
            return found
    raise NotFound(f"no benchmark case '{name}'{near(name, (c.id for c in cases()))}")


@lru_cache(maxsize=1)
def links() -> tuple[Link, ...]:
    """All shipped links from functions to members. Raises `DataError` if the file is malformed."""
    return tuple(
        Link(
            str(_need(r, "struct")), str(_need(r, "function")), tuple(_need(r, "members")), str(r.get("what", "")),
            str(_need(r, "source")), bool(r.get("confirmed", True)),
        )
        for r in _records("benchmarks/links.toml", "link")
    )  # fmt: skip


def members_of(metric: str, struct: str | None, known: Iterable[Link] | None = None) -> tuple[str, ...]:
    """Members of `struct` that the functions named in `metric` touch, without repeats.

    A perf-profile metric names its function first and then the callers; only the function's own accesses count.
    """
    if not metric.startswith("perf-profile."):
        return ()
    parts = metric.split(".", 3)
    function = parts[3].split(".")[0] if len(parts) > 3 else ""
    found: dict[str, None] = {}
    for link in links() if known is None else known:
        if link.function == function and (struct is None or link.struct == struct):
            found.update(dict.fromkeys(link.members))
    return tuple(found)


def _records(name: str, key: str) -> list[dict[str, Any]]:
    file = path(name)
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise DataError(f"{file}: not valid TOML ({problem})") from None
    found = data.get(key, [])
    if data.get("format") != 1 or not isinstance(found, list):
        raise DataError(f"{file}: format = 1 and [[{key}]] entries are needed")
    return found


def _need(record: Mapping[str, Any], key: str) -> Any:
    if key not in record:
        raise DataError(f"data/benchmarks: an entry has no '{key}': {str(dict(record))[:80]}")
    return record[key]


def _case(record: Mapping[str, Any]) -> Case:
    return Case(
        str(_need(record, "id")), str(_need(record, "struct")), str(_need(record, "change")),
        str(_need(record, "source")), str(record.get("commit", "")), tuple(record.get("layout", ())),
        str(record.get("status", "")), tuple(_figure(entry) for entry in record.get("figure", ())),
    )  # fmt: skip


def _figure(entry: Mapping[str, Any]) -> PublishedFigure:
    runs = entry.get("runs")
    return PublishedFigure(
        str(_need(entry, "metric")), str(_need(entry, "unit")), _number(entry.get("before")),
        _number(entry.get("after")), str(entry.get("machine", "")), int(runs) if runs else None,
        entry.get("printed_change"), str(entry.get("parameters", "")), str(entry.get("note", "")),
    )  # fmt: skip


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
