"""``perf stat``: the plain table and the ``-x`` form. What was not counted is None, never 0."""

from __future__ import annotations

import math
import re
from collections import Counter

from kitlib.benchfiles.context import Context
from kitlib.benchfiles.mailtext import Line
from kitlib.benchfiles.runs import Run
from kitlib.series import LARGEST_SPREAD_PCT, Series, Unread, Value, usable

_RUNS = re.compile(r"\((\d{1,6}) runs\)")
_SPREAD = re.compile(r"\+-\s{0,4}(\d{1,9}(?:\.\d{1,9})?)%")
_SHARE = re.compile(r"\((\d{1,3}\.\d{1,4})%\)\s*\Z")
# What -A, --per-core, --per-socket, --per-node and -I put before a count: where (and of how many CPUs), or when.
_WHERE = re.compile(r"(CPU\d{1,6}|S\d{1,4}(?:-D\d{1,4})?(?:-C\d{1,6})?|N\d{1,4})\s+(?:\d{1,6}\s+(?=[\d<]))?(?=[\d<])")
_WHEN = re.compile(r"(\d{1,12}\.\d{9})\s+(?=[\d<])")
_UNITS = frozenset(("msec", "Joules", "MiB", "seconds", "ns", "Watts", "ms", "sec", "usec", "C", "KiB"))
_MISSING = {"<not supported>": "not supported", "<not counted>": "not counted"}


def number(text: str) -> float | None:
    """A count with thousands separators of any locale ("1,234,567", "1.234.567", "1 234"), or None."""
    text = text.replace("\u202f", "").replace("\u00a0", "").replace("'", "")
    if text.count(",") > 1 or (text.count(",") == 1 and "." in text):
        text = text.replace(",", "")
    elif text.count(".") > 1:
        text = text.replace(".", "")
    elif "," in text:
        head, _, tail = text.partition(",")
        text = head + tail if len(tail) == 3 else f"{head}.{tail}"
    try:
        value = float(text)
    except ValueError:
        return None
    return value if usable(value) else None


def measured(mean: float | None, error_pct: float | None, runs: int | None) -> Value:
    """A value as perf gives it: its "+- x%" is the standard error of the mean over the runs.

    (perf's `stddev_stats`/`rel_stddev_stats` divide the sample variance by the number of runs.) The
    population spread is x·sqrt(n - 1).
    """
    if mean is None:
        return Value(None, n=runs)
    if error_pct is None or runs is None or runs < 2 or error_pct * math.sqrt(runs - 1) > LARGEST_SPREAD_PCT:
        return Value(mean, n=runs)
    return Value(mean, mean, mean, error_pct * math.sqrt(runs - 1), "printed", runs)


class _Names:
    """Names of events, numbered when one is listed again (hybrid CPUs count it once per core type)."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def of(self, event: str, where: str) -> str:
        self._seen[event, where] += 1
        again = self._seen[event, where]
        return f"{event}#{again}" if again > 1 else event


class PerfStatReader:
    """Reads plain ``perf stat`` blocks from cleaned lines."""

    def __init__(self, context: Context) -> None:
        self.runs: list[Run] = []
        self.unread: list[Unread] = []
        self._context = context
        self._on = False
        self._intervals = False
        self._count: int | None = None
        self._series: list[Series] = []
        self._line = 0
        self._names = _Names()

    def feed(self, line: Line) -> bool:
        """Take in a line; True if it was part of a block."""
        text = line.text.strip()
        if "Performance counter stats for" in text:
            found = _RUNS.search(text[-40:])
            self._begin(line, max(1, int(found[1])) if found else 1)
            return True
        if text.startswith("#") and text.endswith("counts unit events"):
            if not self._intervals:  # the heading is repeated every 25 intervals
                self._begin(line, 1)
            self._intervals = True
            return True
        if not self._on or not text:
            return False
        where = (_WHEN if self._intervals else _WHERE).match(text)
        if where:
            text = text[where.end() :]
        if text[0] not in "0123456789<":
            # "TopdownL1  #  21.5 %  tma_backend_bound": figures derived from the counts, in a block that goes on.
            if "#" not in text and not text.startswith("("):
                self._close()
            return False
        self._row(line, text, where[1] if where else "")
        return True

    def _begin(self, line: Line, runs: int) -> None:
        self._close()
        self._on, self._line, self._count = True, line.number, runs

    def finish(self) -> list[Run]:
        """Close what is open and return all runs."""
        self._close()
        return self.runs

    def _row(self, line: Line, text: str, where: str) -> None:
        left = text.partition("#")[0]
        spread = _SPREAD.search(text)
        share = _SHARE.search(text)
        missing = next((m for m in _MISSING if left.startswith(m)), None)
        words = left[len(missing) :].split() if missing else left.split()[1:]
        value = None if missing else number(left.split()[0])
        unit = words.pop(0) if len(words) > 1 and words[0] in _UNITS else ""
        # Times are printed as "1.23 +- 0.01 seconds time elapsed ( +- 1.0% )".
        if words[:1] == ["+-"]:
            words = words[2:]
            unit = words.pop(0) if words else ""
        words = [w for w in words if not w.startswith("(") and w not in ("+-", ")") and "%" not in w]
        if not words or (value is None and not missing):
            self.unread.append(Unread(line.number, text[:200], "no count and event in it"))
            return
        name = " ".join(words)
        note = _MISSING[missing] if missing else ""
        if share and not missing:
            note = f"counted {share[1]} % of the time, scaled up"
        figure = measured(value, float(spread[1]) if spread else None, self._count)
        metric = f"perf-stat.{self._names.of(name, where)}"
        self._series.append(Series(metric, figure, unit, "", where, line.number, note))

    def _close(self) -> None:
        if self._series:
            condition = self._context.condition
            self.runs.append(Run("perf-stat", condition, tuple(self._series), self._line))
        self._on, self._intervals, self._series, self._names = False, False, [], _Names()


def separator(first_lines: list[str]) -> str | None:
    """The separator of ``perf stat -x`` output, or None if these lines are something else."""
    rows = [line for line in first_lines if line.strip() and not line.startswith("#")][:20]
    if not rows:
        return None
    for mark in (",", ";", "\t", ":", "|"):
        cells = [row.split(mark) for row in rows]
        counts = [_event_at(row) is not None for row in cells]
        if any(counts) and all(one or _derived(row) for one, row in zip(counts, cells, strict=True)):
            return mark
    return None


def _event_at(cells: list[str]) -> int | None:
    """Index of the value cell: value, unit, event, then run time and share, perhaps variance between.

    Intervals, CPUs and sockets put cells before it.
    """
    for at in range(min(4, len(cells) - 4)):
        value, event = cells[at].strip(), cells[at + 2].strip()
        if value not in _MISSING and number(value) is None:
            continue
        if event[:1].isalpha() and not event.endswith("%") and _share_at(cells, at + 3):
            return at
    return None


def _derived(cells: list[str]) -> tuple[float, str] | None:
    """(figure, name) of a line that goes on about the event before it (",,,,,,0.52,stalled cycles per insn")."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if len(filled) < 2 or len(cells) < 6 or "".join(cells[-6:-2]).strip():
        return None
    value, name = number(filled[-2]), filled[-1]
    return (value, name) if value is not None and any(map(str.isalpha, name)) and cells[-1].strip() == name else None


def _share_at(cells: list[str], at: int) -> int | None:
    """Index of the share-of-time cell: run time (a whole number) then a percentage up to 100.

    With several runs their variance ("1.75%") stands before the two.
    """
    last = at + 2 if cells[at].strip().endswith("%") else at + 1
    for index in range(at, min(last, len(cells) - 1)):
        share = number(cells[index + 1].strip())
        if cells[index].strip().isdigit() and share is not None and 0 <= share <= 100:
            return index + 1
    return None


def read_separated(lines: list[str], mark: str) -> tuple[list[Series], list[Unread]]:
    """Series of ``perf stat -x`` output. The run count is not in it: spreads stay standard errors."""
    series: list[Series] = []
    unread: list[Unread] = []
    names = _Names()
    for index, text in enumerate(lines, start=1):
        if not text.strip() or text.startswith("#"):
            continue
        cells = text.rstrip("\r\n").split(mark)
        at = _event_at(cells)
        if at is None and (derived := _derived(cells)):
            where = " ".join(cell.strip() for cell in cells[:-6] if cell.strip())
            metric = f"perf-stat.{names.of(derived[1], where)}"
            series.append(Series(metric, Value(derived[0]), "", "", where, index, "derived from counts"))
            continue
        if at is None:
            unread.append(Unread(index, text.strip()[:200], "no value, unit and event in it"))
            continue
        value, unit, event = (cell.strip() for cell in cells[at : at + 3])
        share_at = _share_at(cells, at + 3)
        share = float(cells[share_at]) if share_at else 100.0
        note = _MISSING.get(value, "" if share >= 100 else f"counted {share:g} % of the time, scaled up")
        error = next((c.strip()[:-1] for c in cells[at + 3 : at + 4] if c.strip().endswith("%")), None)
        if error is not None:
            note = "; ".join(part for part in (note, f"standard error of the mean {error} %") if part)
        where = " ".join(cell.strip() for cell in cells[:at])
        mean = None if value in _MISSING else number(value)
        series.append(Series(f"perf-stat.{names.of(event, where)}", Value(mean), unit, "", where, index, note))
    return series, unread
