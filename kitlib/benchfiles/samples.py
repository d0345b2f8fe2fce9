"""Lists of samples in text: ``"aim7.jobs-per-min": [`` numbers ``]``, on one line or many."""

from __future__ import annotations

import re

from kitlib.benchfiles.context import Condition, Context
from kitlib.benchfiles.lkprow import is_number
from kitlib.benchfiles.mailtext import Line
from kitlib.benchfiles.runs import Run
from kitlib.series import Series, Unread, Value, usable

_OPENING = re.compile(r"\s*[\"']?([A-Za-z_][\w.\-/%@: ()+]{0,200}?)[\"']?\s{0,8}[:=]\s{0,8}\[(?P<rest>[^\[]*)\Z")


class SampleReader:
    """Collects sample lists; the last short line ending in ':' before one is its label."""

    def __init__(self, context: Context) -> None:
        self.runs: list[Run] = []
        self.unread: list[Unread] = []
        self.cut_at: int | None = None
        self._context = context
        self._label, self._label_line = "", 0
        self._metric: str | None = None
        self._start = 0
        self._numbers: list[float] = []

    def feed(self, line: Line) -> bool:
        """Take in a line; True if it was part of a list."""
        text = line.text.strip()
        if self._metric is not None:
            return self._take(line, text)
        if "[" in text and (found := _OPENING.match(text)):
            self._metric, self._start, self._numbers = found[1].strip(), line.number, []
            rest = found["rest"].strip()
            return self._take(line, rest) if rest else True
        if text.endswith(":") and 1 < len(text) < 120:
            self._label, self._label_line = text[:-1].strip(), line.number
        return False

    def finish(self) -> list[Run]:
        """Close what is open and return all runs."""
        if self._metric is not None:
            self.cut_at = self._start if self._numbers else None
            self._broken(self._start, "the list has no end")
        return self.runs

    def _take(self, line: Line, text: str) -> bool:
        body, bracket, _ = text.partition("]")
        for word in body.replace(",", " ").split():
            if word in ("null", "None"):
                word = "nan"
            if not is_number(word):
                self._broken(line.number, f"'{word[:30]}' is not a number")
                return False
            self._numbers.append(float(word))
        if bracket:
            self._close(line)
        return True

    def _close(self, line: Line) -> None:
        metric, self._metric = self._metric or "", None
        kept = [number for number in self._numbers if usable(number)]
        if not kept:
            if self._numbers:
                self.unread.append(Unread(self._start, f"{metric}: [", "no usable number in the list"))
            return
        dropped = len(self._numbers) - len(kept)
        note = f"{dropped} of {len(self._numbers)} samples are not numbers" if dropped else ""
        label = self._label if self._start - self._label_line <= 3 else ""
        series = Series(metric, Value.of(kept), "", label, "", self._start, note)
        previous = self.runs[-1] if self.runs else None
        if previous and previous.condition.label == label and previous.condition.line == self._label_line:
            self.runs[-1] = Run("samples", previous.condition, (*previous.series, series), previous.line)
            return
        found = self._context.condition
        factors = found.factors if found.label == label and label else ()
        condition = Condition(label, factors, "", None, self._label_line)
        self.runs.append(Run("samples", condition, (series,), self._start))

    def _broken(self, line: int, reason: str) -> None:
        # Ordinary prose and code have brackets too: only a list that began with numbers is reported.
        if self._numbers:
            self.unread.append(Unread(line, f"{self._metric}: [", reason))
        self._metric = None
