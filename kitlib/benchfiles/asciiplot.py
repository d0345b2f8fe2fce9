"""LKP's ASCII plots turned back into samples.

``O`` marks a run of the bad (patched) kernels, ``*`` or ``+`` one of the good; dots and colons only
join the good marks. A mark's height is its row, so each value is known to half a row of the axis.
Runs drawn on the same spot are seen once.
"""

from __future__ import annotations

from dataclasses import replace

from kitlib.benchfiles.lkprow import is_number
from kitlib.benchfiles.mailtext import Line
from kitlib.series import Mark, Plot, usable

TALLEST_ROWS = 200


class PlotReader:
    """Collects plots from cleaned lines; also collapsed ones, whose columns are lost."""

    def __init__(self) -> None:
        self.plots: list[Plot] = []
        self._title = ""
        self._rows: list[tuple[float | None, str]] = []
        self._line = 0

    def feed(self, line: Line) -> bool:
        """Take in a line; True if it belongs to a plot."""
        text = line.text.rstrip()
        stripped = text.strip()
        if not stripped:
            return False
        if (frame := _frame(stripped)) is not None:
            self._frame(frame, text, line.number)
            return True
        if not self._rows:
            self._title = stripped if len(stripped.split()) == 1 else ""
            return False
        if "|" not in stripped or len(self._rows) >= TALLEST_ROWS:
            self._rows = []
            return False
        label, _, body = text.partition("|")
        number = label.strip()
        self._rows.append((float(number) if is_number(number) else None, body))
        return True

    def _frame(self, label: float, text: str, number: int) -> None:
        self._rows.append((label, text.partition("+")[2]))
        if len(self._rows) == 1:
            self._line = number
            return
        plot = _plot(self._title, self._rows, self._line)
        self._rows = []
        if plot is None:
            return
        for index, other in enumerate(self.plots):
            if other.metric == plot.metric and _heights(other) == _heights(plot):
                self.plots[index] = replace(other, also_at=(*other.also_at, plot.line))
                return
        self.plots.append(plot)


def _frame(stripped: str) -> float | None:
    """The axis label of a plot's top or bottom line ("3200 +-----+"), or None."""
    label, space, rest = stripped.partition(" ")
    if not space or not is_number(label):
        return None
    rest = rest.strip()
    if len(rest) < 10 or rest[0] != "+" or rest.strip("+-O*"):
        return None
    return float(label) if usable(float(label)) else None


def _plot(title: str, rows: list[tuple[float | None, str]], line: int) -> Plot | None:
    top, bottom = rows[0][0], rows[-1][0]
    if top is None or bottom is None or top == bottom or len(rows) < 3:
        return None
    step = (top - bottom) / (len(rows) - 1)
    good: list[Mark] = []
    bad: list[Mark] = []
    for index, (_, body) in enumerate(rows):
        value = top - index * step
        on_frame = index in (0, len(rows) - 1)
        for column, char in enumerate(_inside(body, on_frame)):
            mark = Mark(value, abs(step) / 2, column)
            if char == "O":
                bad.append(mark)
            elif char == "*" or (char == "+" and not on_frame):
                good.append(mark)
    good.sort(key=lambda mark: mark.column)
    bad.sort(key=lambda mark: mark.column)
    return Plot(title, tuple(good), tuple(bad), abs(step), line)


def _inside(body: str, on_frame: bool) -> str:
    """A row without its frame and the axis ticks ("-+" after the left bar, "+-" before the right)."""
    if on_frame:
        return body
    if body.startswith("-+"):
        body = "  " + body[2:]
    inside = body.rpartition("|")[0] if "|" in body else body
    return inside[:-2] + "  " if inside.endswith("+-") else inside


def _heights(plot: Plot) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (
        tuple(sorted(mark.value for mark in plot.good)),
        tuple(sorted(mark.value for mark in plot.bad)),
    )
