"""What a metric is, its unit, and which way is better: the table in ``data/metrics``."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kitlib.datafiles import path
from kitlib.errors import DataError
from kitlib.series import Direction

_START = 10  # metrics that begin alike share their candidate patterns
_DIRECTIONS = ("higher", "lower", "neither")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a metric stands for. `direction` says which way is better; `source` where that is from."""

    what: str
    unit: str
    direction: Direction
    source: str


UNKNOWN = Meaning("not in the table of metrics", "", "unknown", "")


@dataclass(frozen=True, slots=True)
class _Entry:
    first: str  # the literal text before the first wildcard, "" if none
    pattern: re.Pattern[str]
    meaning: Meaning


class Meanings:
    """The table: `of` answers for a metric's name; the first pattern that matches counts."""

    def __init__(self, entries: Iterable[dict[str, Any]], where: str) -> None:
        self._entries: list[_Entry] = []
        self._by_start: dict[str, tuple[_Entry, ...]] = {}
        for number, entry in enumerate(entries, start=1):
            self._entries.append(_entry(entry, f"{where}, metric {number}"))

    def of(self, metric: str) -> Meaning:
        """Meaning of `metric`; `UNKNOWN` when nothing matches: a direction is never guessed."""
        start = metric[:_START]
        candidates = self._by_start.get(start)
        if candidates is None:
            candidates = tuple(e for e in self._entries if start.startswith(e.first[: len(start)][:_START]))
            self._by_start[start] = candidates
        for entry in candidates:
            if metric.startswith(entry.first) and entry.pattern.match(metric):
                return entry.meaning
        return UNKNOWN

    def patterns(self) -> tuple[str, ...]:
        """Literal beginnings of the patterns, in order (for tests and for help)."""
        return tuple(entry.first for entry in self._entries)


def _entry(entry: dict[str, Any], where: str) -> _Entry:
    missing = [key for key in ("pattern", "what", "unit", "better", "source") if key not in entry]
    if missing:
        raise DataError(f"{where}: no {', '.join(missing)}; every metric needs all five keys")
    if entry["better"] not in _DIRECTIONS:
        raise DataError(f"{where}: better is '{entry['better']}'; use one of {', '.join(_DIRECTIONS)}")
    pattern = str(entry["pattern"])
    meaning = Meaning(entry["what"], entry["unit"], entry["better"], entry["source"])
    # Metrics hold [brackets] literally (perf symbols), so only * is a wildcard here.
    expression = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
    return _Entry(pattern.partition("*")[0], expression, meaning)


@lru_cache(maxsize=1)
def meanings() -> Meanings:
    """The table that comes with the kit. Raises `DataError` if it is malformed."""
    file = path("metrics/directions.toml")
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise DataError(f"{file}: not valid TOML ({problem})") from None
    return Meanings(data.get("metric", ()), str(file))
