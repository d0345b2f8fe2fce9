"""UnixBench result text: result rows, index tables, scores, in versions 4.1 and 5."""

from __future__ import annotations

import re
from dataclasses import replace

from kitlib.benchfiles.context import Condition, Context
from kitlib.benchfiles.mailtext import Line
from kitlib.benchfiles.runs import Run
from kitlib.series import Series, Unread, Value, printed_range, usable

_ONE_DECIMAL = re.compile(r"-{2,9}|\d{1,15}\.\d")  # columns are printed with one decimal and can touch
INDEX_PER_BASELINE = 10.0  # UnixBench: index = result / baseline · 10
SCORE = "System Benchmarks Index Score"


class UnixBenchReader:
    """Collects runs from cleaned lines; checks each printed index against its own row."""

    def __init__(self, context: Context) -> None:
        self.runs: list[Run] = []
        self.unread: list[Unread] = []
        self.notes: list[str] = []
        self._context = context
        self._series: dict[str, Series] = {}
        self._condition = Condition()
        self._line = 0
        self._indices: list[float] = []
        self._in_index = False
        self._score_seen = False

    def feed(self, line: Line) -> bool:
        """Take in a line; True if it was a UnixBench row."""
        text = line.text.strip()
        if text.endswith("samples)") and " s, " in text:
            return self._result(line, text)
        if "INDEX" in text and ("BASELINE" in text or "VALUES" in text):
            self._in_index = True
            return True
        if text.startswith((SCORE, "FINAL SCORE")):
            return self._score(line, text)
        if self._in_index:
            if text.startswith("=") or not text:
                return False
            return self._index(line, text)
        return False

    def finish(self) -> list[Run]:
        """Close what is open and return all runs."""
        self._close()
        return self.runs

    def _result(self, line: Line, text: str) -> bool:
        left, _, inside = text.rpartition("(")
        words = left.split()
        if len(words) < 3:
            return False
        printed, unit = words[-2], words[-1]
        value, half = printed_range(printed)
        count = inside.partition(" s, ")[2].split(" ")[0]
        if not usable(value) or not count.isdecimal() or len(count) > 6 or int(count) < 1:
            self.unread.append(Unread(line.number, text[:200], "no number before the unit, or no number of samples"))
            return True
        name = " ".join(words[:-2])
        self._begin(line, name)
        known = Value(value, value - half, value + half, None, "unknown", int(count))
        self._series[name] = Series(name, known, unit, "", "", line.number)
        return True

    def _begin(self, line: Line, name: str) -> None:
        condition = self._context.condition
        if self._series and (name in self._series or self._score_seen or condition != self._condition):
            self._close()
        if not self._series:
            self._condition, self._line = condition, line.number

    def _index(self, line: Line, text: str) -> bool:
        found = list(_ONE_DECIMAL.finditer(text))
        if len(found) < 3:
            # Version 4.1 wraps nothing either: anything else ends the table.
            self._in_index = False
            return False
        cells = found[-3:]
        name = text[: cells[0].start()].strip()
        baseline, result, index = (_decimal(cell[0]) for cell in cells)
        if result is not None and name not in self._series and self._score_seen:
            self._begin(line, name)
        if result is not None and name not in self._series:
            if not self._series:
                self._condition, self._line = self._context.condition, line.number
            value = Value(result, result - 0.05, result + 0.05)
            self._series[name] = Series(name, value, "", "", "", line.number, "from the index table")
        if baseline and result is not None and index is not None:
            expected = result / baseline * INDEX_PER_BASELINE
            self._indices.append(index)
            if abs(expected - index) > 0.05 + 0.05 / baseline * INDEX_PER_BASELINE + 1e-9:
                self._flag(line.number, f"the index of {name}", index, expected)
        return True

    def _score(self, line: Line, text: str) -> bool:
        self._in_index = False
        found = _ONE_DECIMAL.findall(text)
        if not found or _decimal(found[-1]) is None:
            return True
        score = float(found[-1])
        if self._indices:
            expected = _geometric_mean(self._indices)
            if abs(expected - score) > 0.1:
                self._flag(line.number, "the index score", score, expected)
        if self._series:
            runs = [s.value.n for s in self._series.values() if s.value.n is not None]
            value = Value(score, score - 0.05, score + 0.05, n=min(runs, default=None))
            note = "derived from the rows above"
            self._series[SCORE] = Series(SCORE, value, "index", "", "", line.number, note)
        self._score_seen, self._indices = True, []
        return True

    def _flag(self, line: int, what: str, printed: float, expected: float) -> None:
        self.notes.append(
            f"line {line}: {what} is printed as {printed:,.1f} but follows from its row as {expected:,.1f}"
        )

    def _close(self) -> None:
        if self._series:
            series = tuple(replace(s, label=self._condition.label) for s in self._series.values())
            self.runs.append(Run("unixbench", self._condition, series, self._line))
            # A label holds for one block; the platform goes on until another is named.
            if self._context.condition is self._condition:
                self._context.condition = Condition(place=self._condition.place)
        self._series, self._indices = {}, []
        self._score_seen = False


def _decimal(text: str) -> float | None:
    return None if text.startswith("--") else float(text)


def _geometric_mean(values: list[float]) -> float:
    import math

    if min(values) <= 0:
        return 0.0
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))
