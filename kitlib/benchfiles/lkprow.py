"""The grammar of one LKP row: tokens told apart by kind, and what a printed figure can stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kitlib.series import LARGEST_SPREAD_PCT, Value, usable

TOTALS = ("TOTAL", "GEO-MEAN")
_RUNS = re.compile(r"(\d{0,9}):(\d{1,9})\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """One side as printed: the number, its spread token (None if blank), or failures of runs."""

    text: str
    spread: str | None = None
    events: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row's tokens told apart; `changes[i]` belongs to `cells[i + 1]`."""

    cells: tuple[Cell, ...]
    changes: tuple[str, ...]
    name: str
    extra: str = ""
    total: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """Why tokens are not a row. `open` rows could go on in the next line; others cannot."""

    reason: str
    open: bool = False


def is_number(token: str) -> bool:
    """Whether a token is a printed number (also Inf and NaN, which LKP prints), sign allowed."""
    if token[:1] not in "0123456789+-.IiNn" or "_" in token:
        return False
    try:
        float(token)
    except ValueError:
        return False
    return True


def is_change(token: str) -> bool:
    body = token[:-1] if token.endswith("%") else token
    return body[:1] in ("+", "-") and is_number(body)


def parse_row(tokens: list[str]) -> Row | Broken:
    """Tell the tokens of one line apart (see the module's text for the grammar)."""
    if not tokens:
        return Broken("empty")
    if _RUNS.match(tokens[0]):
        return _parse_runs_row(tokens)
    if not is_number(tokens[0]):
        return Broken("does not begin with a value")
    cell, at = _cell(tokens, 0)
    cells, changes = [cell], []
    while at < len(tokens) and is_change(tokens[at]):
        changes.append(tokens[at])
        if at + 1 >= len(tokens):
            return Broken("cut off after the change", open=True)
        if not is_number(tokens[at + 1]):
            return Broken(f"'{_short(tokens[at + 1])}' stands where the second value should be")
        cell, at = _cell(tokens, at + 1)
        cells.append(cell)
    if not changes:
        if at >= len(tokens):
            return Broken("cut off before the change", open=True)
        return Broken(f"'{_short(tokens[at])}' stands where the change should be")
    return _named(cells, changes, tokens[at:])


def _cell(tokens: list[str], at: int) -> tuple[Cell, int]:
    text = tokens[at]
    at += 1
    if at < len(tokens) and tokens[at] == "±":
        if at + 1 < len(tokens) and tokens[at + 1].endswith("%") and is_number(tokens[at + 1][:-1]):
            return Cell(text, tokens[at + 1][:-1]), at + 2
        return Cell(text), at
    # The sign may be lost altogether; a change always carries one, so a bare percentage is a spread.
    if at < len(tokens) and tokens[at].endswith("%") and tokens[at][:-1].isdecimal():
        return Cell(text, tokens[at][:-1]), at + 1
    return Cell(text), at


def _parse_runs_row(tokens: list[str]) -> Row | Broken:
    cells: list[Cell] = []
    changes: list[str] = []
    at = 0
    while at < len(tokens) and (found := _RUNS.match(tokens[at])):
        cells.append(Cell(tokens[at], None, (int(found[1] or 0), int(found[2]))))
        at += 1
        if at < len(tokens) and tokens[at].endswith("%") and is_number(tokens[at][:-1]):
            changes.append(tokens[at])
            at += 1
            if at >= len(tokens):
                return Broken("cut off after the change", open=True)
        else:
            break
    if len(cells) < 2 or len(changes) != len(cells) - 1:
        return Broken("a failures:runs row without a second side", open=at >= len(tokens))
    return _named(cells, changes, tokens[at:])


def _named(cells: list[Cell], changes: list[str], rest: list[str]) -> Row | Broken:
    if not rest:
        return Broken("cut off before the metric's name", open=True)
    total = rest.pop(0) if rest[0] in TOTALS and len(rest) > 1 else ""
    name = rest[0]
    if not any(c.isalpha() for c in name):
        return Broken(f"'{_short(name)}' stands where the metric's name should be")
    if len(rest) > 1 and not ("." in name or "/" in name):
        return Broken("text follows what should be the metric's name")
    return Row(tuple(cells), tuple(changes), name, " ".join(rest[1:]), total)


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


def printed_bounds(text: str) -> tuple[float, float, float]:
    """(value, lowest, highest) a printed LKP mean can stand for.

    `.2f` below 1000 rounds; `.4g` above 1e8 keeps four digits (and drops zeros at the end); whole
    numbers are cut, not rounded (a report's 496.00 → 2311 as +366.1 % needs more than 2311.5).
    """
    value = float(text)
    mantissa, exponent_sign, _ = text.lower().partition("e")
    if exponent_sign:
        half = 0.5 * 10.0 ** (int(f"{value:e}".partition("e")[2]) - 3) if value and usable(value) else 0.0
    elif "." in mantissa:
        half = 0.5 * 10.0 ** -len(mantissa.partition(".")[2])
    else:
        return (value, value, value + 1) if value >= 0 else (value, value - 1, value)
    return value, value - half, value + half


def value_of(cell: Cell, blank_pct: float) -> Value:
    if cell.events is not None:
        failed, runs = cell.events
        if runs < 1:
            return Value(None)
        share = 100 * failed / runs
        return Value(share, share, share, None, "unknown", runs, (), failed)
    mean, low, high = printed_bounds(cell.text)
    if not usable(mean):  # LKP prints Inf and NaN too
        return Value(None)
    if cell.spread is None:
        # A mean of zero has no spread in percent at all.
        return Value(mean, low, high, blank_pct if mean else None, "at most" if mean else "unknown")
    spread = float(cell.spread)
    if not 0 <= spread <= LARGEST_SPREAD_PCT:
        return Value(mean, low, high)
    return Value(mean, low, high, spread, "printed")


def row_like(tokens: list[str]) -> bool:
    """Whether a line inside a table looks like a row that went wrong, rather than prose."""
    if len(tokens) == 1:
        return False
    return any(t == "±" or is_change(t) for t in tokens[1:4]) or bool(_RUNS.match(tokens[0]))


def is_name(name: str) -> bool:
    return "." in name or "/" in name or ":" in name


def damaged_row(tokens: list[str]) -> bool:
    """Whether a line that does not begin with a value still looks like a row: a change, and a metric at the end."""
    if len(tokens) < 4 or "." not in tokens[-1][1:-1]:
        return False
    return any(is_change(token) for token in tokens[1:6]) and any(is_number(token) for token in tokens[2:8])
