"""0-day / LKP comparison tables, read by their grammar rather than by columns.

A row is ``value [± N%] change value [± N%] … name``; with more commits, further ``change value``
groups follow and each compares with the first. The kinds of token tell the cells apart, so
collapsed, re-wrapped and quoted tables read the same as the tool's own output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kitlib.benchfiles.context import Context
from kitlib.benchfiles.lkprow import Broken, Row, damaged_row, is_name, parse_row, row_like, value_of
from kitlib.benchfiles.mailtext import Line
from kitlib.errors import SourceError
from kitlib.series import Delta, Table, Unread, runs_from_fractions

BLANK_SPREAD_PCT = 2.0  # LKP prints a spread only above this; its first versions (header "change") 3
OLD_BLANK_SPREAD_PCT = 3.0
MOST_COMPARED = 20  # tables in which every row of another one is looked for
MOST_ROWS = 400_000  # keeps memory bounded, whatever the input

_DASHES = re.compile(r"-{5,}(?:\s+-{5,})+\s*\Z")
_COMMIT = re.compile(r"[0-9a-f]{7,40}\b")


@dataclass(slots=True)
class _Open:
    """A table being read: columns named by the header, rows per column after the first."""

    labels: tuple[str, ...]
    line: int
    columns: int | None
    testcase: str
    machine: str
    parameters: tuple[tuple[str, str], ...]
    headline: str | None
    claim: str | None
    blank_pct: float = BLANK_SPREAD_PCT
    rows: dict[int, list[Delta]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)  # hashes of its rows
    again: list[int] = field(default_factory=list)  # lines where quoted copies of its rows begin
    in_copy: bool = False
    notes: list[str] = field(default_factory=list)


class LkpReader:
    """Reads tables from cleaned lines; `tables()` and `unread` hold what came out."""

    def __init__(self, context: Context) -> None:
        self.unread: list[Unread] = []
        self.row_count = 0
        self.cut_at: int | None = None
        self._context = context
        self._done: list[Table] = []
        self._holding: dict[int, list[int]] = {}  # hash of a row → indices of tables that have it
        self._copies: dict[int, list[int]] = {}  # index of a table → lines of its copies
        self._open: _Open | None = None
        self._pending: tuple[Line, list[str], Broken] | None = None
        self._previous = ""
        self._commits: list[str] = []
        self._in_commits = False
        self._keys: tuple[str, ...] | None = None
        self._parameters: tuple[tuple[str, str], ...] = ()

    def feed(self, line: Line) -> bool:
        """Take in a line; True if it was (part of) a row."""
        text = line.text
        if "|" in text and ("%change" not in text):
            return False  # plots, and the rule under a table's header
        tokens = text.split()
        if not tokens:
            self._in_commits = False
            return False
        first = tokens[0]
        if first[0] in "0123456789.:+-IN" and self._row(line, tokens):
            return True
        if self._pending and self._continue(line, tokens):
            return True
        if self._open and damaged_row(tokens):
            self.unread.append(Unread(line.number, text.strip()[:200], f"'{first[:30]}' is no value"))
            return True
        self._header(line, tokens)
        self._previous = text
        return False

    def finish(self) -> list[Table]:
        """Close what is open and return all tables."""
        self.cut_at = self._pending[0].number if self._pending else None
        self._flush()
        self._close()
        return [replace(table, also_at=tuple(self._copies.get(index, ()))) for index, table in enumerate(self._done)]

    def _row(self, line: Line, tokens: list[str]) -> bool:
        if _DASHES.match(line.text.strip()):
            return False
        parsed = parse_row(tokens)
        if isinstance(parsed, Row):
            self._flush()
            if self._open is None and "." not in parsed.name:
                return False
            self._add(line, parsed)
            return True
        if self._open is None or not row_like(tokens):
            return False
        if self._pending and self._continue(line, tokens):
            return True
        self._flush()
        if parsed.open:
            self._pending = (line, tokens, parsed)
        else:
            self.unread.append(Unread(line.number, line.text.strip()[:200], parsed.reason))
        return True

    def _continue(self, line: Line, tokens: list[str]) -> bool:
        """Try the line as the rest of a row that the one before it began."""
        if self._pending is None:
            return False
        start, before, _ = self._pending
        joined = parse_row([*before, *tokens])
        if isinstance(joined, Row) and not joined.extra and is_name(joined.name):
            self._pending = None
            self._add(start, joined)
            return True
        if isinstance(joined, Broken) and joined.open and len(before) + len(tokens) < 40:
            self._pending = (start, [*before, *tokens], joined)
            return True
        self._flush()
        return False

    def _flush(self) -> None:
        if self._pending:
            line, tokens, broken = self._pending
            self.unread.append(Unread(line.number, " ".join(tokens)[:200], broken.reason))
            self._pending = None

    def _header(self, line: Line, tokens: list[str]) -> None:
        text = line.text.strip()
        first = tokens[0]
        if first[0] == "=" and len(first) >= 20 and not first.strip("="):
            self._flush()
            self._close()
            self._keys, self._parameters, self._commits = (), (), []
        elif self._keys == () and text.endswith(":") and "/" in text:
            self._keys = tuple(text[:-1].split("/"))
        elif self._keys and not self._parameters and "/" in text:
            values = tuple(text.split("/"))
            if len(values) == len(self._keys):
                self._parameters = tuple(zip(self._keys, values, strict=True))
            self._keys = None
        elif text == "commit:":
            self._in_commits, self._commits = True, []
        elif self._in_commits and (len(tokens) == 1 or tokens[1][0] == "("):
            self._commits.append(text)
        elif _DASHES.match(text):
            self._flush()
            self._start(line, len(tokens))
        elif "change" in text and ("%stddev" in text or "%change" in text or self._open):
            self._change_header(line, tokens)

    def _start(self, line: Line, columns: int) -> None:
        self._close()
        ids = self._previous.split()
        labels = tuple(ids[:columns]) if len(ids) == columns else ()
        if len(self._commits) == columns:
            labels = tuple(self._commits)
        self._new(labels, line.number, columns)

    def _change_header(self, line: Line, tokens: list[str]) -> None:
        changes = sum(token in ("%change", "change") for token in tokens)
        if self._open is None and "%change" in tokens:
            self._new((), line.number, changes + 1)
        if self._open is not None and "change" in tokens and "%change" not in tokens:
            self._open.blank_pct = OLD_BLANK_SPREAD_PCT

    def _new(self, labels: tuple[str, ...], number: int, columns: int | None) -> None:
        context = self._context
        parameters = self._parameters or tuple(context.parameters)
        named = dict(parameters)
        self._open = _Open(
            labels, number, columns, named.get("testcase", "") or context.testcase,
            context.machine or named.get("tbox_group", ""), parameters, context.headline, context.claim,
        )  # fmt: skip

    def _add(self, line: Line, row: Row) -> None:
        if self._open is None:
            self._new((), line.number, None)
        table = self._open
        assert table is not None
        if table.columns is not None and len(row.cells) != table.columns:
            reason = f"{len(row.cells)} of {table.columns} columns"
            self.unread.append(Unread(line.number, line.text.strip()[:200], reason))
            return
        known = hash(row)
        if known in table.seen:  # a metric stands once in a table: this is a row quoted again below it
            if not table.in_copy:
                table.again.append(line.number)
            table.in_copy = True
            return
        table.seen.add(known)
        table.in_copy = False
        self.row_count += len(row.changes)
        if self.row_count > MOST_ROWS:
            raise SourceError(f"more than {MOST_ROWS:,} different rows by line {line.number}; split the file by report")
        if row.extra:
            table.notes.append(f"line {line.number}: words after the metric's name: {row.extra[:80]}")
        for column, delta in enumerate(_deltas(line.number, row, table.blank_pct), start=1):
            rows = table.rows.setdefault(column, [])
            if row.total == "TOTAL":
                _name_old_rows(rows, row.name)
            rows.append(delta)

    def _close(self) -> None:
        if self._open is None:
            return
        table, self._open = self._open, None
        for column, rows in sorted(table.rows.items()):
            self._emit(_finish(table, column, rows))

    def _emit(self, table: Table) -> None:
        """Keep a table, unless it is a quoted copy (or part) of one that is there already."""
        mine = {_identity(row) for row in table.rows}
        # Test cases share rows (a warning in every one), so look where the rarest row of this one is.
        holders = min((self._holding.get(hash(identity), []) for identity in mine), key=len)
        for index in holders[:MOST_COMPARED]:
            other = self._done[index]
            if _sides(table) in (_sides(other), _NO_SIDES) and mine <= set(map(_identity, other.rows)):
                self._copies.setdefault(index, []).append(table.line)
                self.row_count -= len(table.rows)
                return
        for identity in mine:
            self._holding.setdefault(hash(identity), []).append(len(self._done))
        self._done.append(table)


_NO_SIDES = ("first colu", "column 2")


def _sides(table: Table) -> tuple[str, str]:
    return table.before_label[:10], table.after_label[:10]


def _identity(row: Delta) -> tuple[object, ...]:
    a, b = row.before, row.after
    return (row.metric, a.mean, a.spread_pct, row.printed_change, b.mean, b.spread_pct, a.n, b.n)


def _deltas(number: int, row: Row, blank_pct: float) -> Iterator[Delta]:
    first = value_of(row.cells[0], blank_pct)
    for change, cell in zip(row.changes, row.cells[1:], strict=True):
        runs_row = cell.events is not None
        yield Delta(
            row.name, first, value_of(cell, blank_pct), runs_row or not change.endswith("%"), change,
            "% of runs" if runs_row else "", number, "", bool(row.total),
        )  # fmt: skip


def _name_old_rows(rows: list[Delta], metric: str) -> None:
    """The tool's first versions name the test in each row and the metric in the TOTAL below them."""
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        if row.total or row.group or "/" not in row.metric:
            break
        rows[index] = replace(row, metric=metric, group=row.metric)


def _finish(table: _Open, column: int, rows: list[Delta]) -> Table:
    metrics = [row.metric for row in rows]
    before = runs_from_fractions(metrics, [row.before for row in rows])
    after = runs_from_fractions(metrics, [row.after for row in rows])
    source = "not stated"
    if before and after:
        rows = [_with_runs(row, before[0], after[0]) for row in rows]
        source = (
            f"inferred: {before[0]} before and {after[0]} after, as the means of whole-number counts are "
            f"multiples of 1/{before[0]} ({before[1]} rows) and 1/{after[0]} ({after[1]} rows)"
        )
    labels = table.labels or ("first column", *(f"column {i + 2}" for i in range(max(table.rows))))
    return Table(
        "lkp", tuple(rows), labels[0], labels[column], table.testcase, table.machine, table.parameters,
        table.headline, table.claim, source, table.line, tuple(table.again), tuple(table.notes),
    )  # fmt: skip


def _with_runs(row: Delta, before: int, after: int) -> Delta:
    if row.before.n is not None:
        return row
    return replace(row, before=replace(row.before, n=before), after=replace(row.after, n=after))
