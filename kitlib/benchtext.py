"""Judged benchmark tables as terminal text, JSON records and CSV rows: one place for their wording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kitlib.series import Report, Series, Unread, Value, printed_range
from kitlib.text import printable, table
from kitlib.verdict import Judged, JudgedTable, one_sided

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, object]
LISTED = 20  # unread lines and flagged rows named one by one in text


def figure(value: float | None) -> str:
    """A mean in few digits: 2,297 / 171.74 / 1.366e+09."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1e8 or (0 < size < 0.005):
        return f"{value:.4g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.2f}"


def side(value: Value) -> str:
    """A mean with its spread: "2,297 ± 2 %", "3,038 ≤ 2 %" (at most), "4,102,310" (unknown)."""
    text = figure(value.mean)
    if value.events is not None:
        return f"{value.events} of {value.n}"
    if value.spread_pct is None:
        return text
    sign = "≤" if value.spread_kind == "at most" else "±"
    return (
        f"{text} {sign} {value.spread_pct:.2g} %"
        if value.spread_pct < 10
        else f"{text} {sign} {value.spread_pct:.0f} %"
    )


def change(row: Judged) -> str:
    """The change in % or as a plain difference ("+0.1" or "+13.9 points")."""
    if row.change is None:
        return "-"
    if not row.in_pct:
        return _signed(row.change)
    return f"{_signed(row.change)} %"


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.1f}"


def interval(row: Judged) -> str:
    """The 95 % interval in the unit of the change, or "none"."""
    if row.ci95 is None:
        return "none"
    low, high = (_signed(end) for end in row.ci95)
    return f"{low} … {high}"


def text_report(report: Report, judged: Iterable[JudgedTable], *, show_all: bool = False) -> str:
    """What a reviewer wants first: per table the rows that matter, how many are hidden, and why."""
    parts = [table_text(one, show_all=show_all) for one in judged if one.rows]
    if report.series:
        parts.append(series_text(report.series))
    parts += [f"note: {printable(note)}" for note in report.notes]
    parts += _unread_text(report.unread)
    return f"{printable(report.source)}\n\n" + "\n\n".join(parts)


def table_text(judged: JudgedTable, *, show_all: bool = False) -> str:
    """One table: what it is of, the rows, what is hidden."""
    rows = judged.rows if show_all else judged.shown
    lines = _heading(judged)
    cells = [
        [
            row.row.metric + (f" [{row.row.group}]" if row.row.group else ""), side(row.row.before),
            side(row.row.after), change(row), interval(row), row.verdict, _why(row, show_all),
        ]
        for row in rows
    ]  # fmt: skip
    headers = ["metric", "before", "after", "change", "95 % interval", "verdict", "why"]
    lines.append(table(headers, cells, right="lrrrrll"))
    tested = sum(row.q is not None for row in judged.rows)
    if tested > 1 and any(row.q is not None for row in rows):
        lines.append(f"q: corrected for all {tested} rows tested (Benjamini-Hochberg)")
    if not show_all and (hidden := judged.hidden_counts()):
        total = sum(hidden.values())
        lines.append(f"{total} of {len(judged.rows)} rows hidden (--all shows them):")
        lines += [f"  {number:4d}  {why}" for why, number in hidden.items()]
    wrong = [row for row in judged.rows if row.printed_check == "does not follow"]
    for row in wrong[:LISTED]:
        lines.append(
            f"line {row.row.line}: {printable(row.row.metric)} is printed as {row.row.printed_change} but its values "
            f"give {change(row)}"
        )
    if len(wrong) > LISTED:
        lines.append(f"… and {len(wrong) - LISTED} more printed changes that do not follow from their values")
    return "\n".join(lines)


def _why(row: Judged, show_all: bool) -> str:
    why = row.reason.partition(" among ")[0]
    if row.verdict == "changed":
        why += row.reason[row.reason.index("; ") :]
    if row.effect is not None and row.verdict in ("better", "worse", "changed"):
        why = f"{row.effect:.1f} × the noise, {why}"
    return f"{why} [hidden: {row.hidden}]" if show_all and row.hidden else why


def _heading(judged: JudgedTable) -> list[str]:
    t = judged.table
    what = " on ".join(part for part in (t.testcase or t.kind, t.machine) if part)
    lines = [printable(f"{what} (line {t.line}, {t.kind}, measured)")]
    if t.parameters:
        skipped = ("testcase", "tbox_group", "rootfs", "ucode")
        lines.append("  with    " + ", ".join(printable(f"{k} {v}") for k, v in t.parameters if k not in skipped))
    lines.append(printable(f"  before  {t.before_label or 'not named'}"))
    lines.append(printable(f"  after   {t.after_label or 'not named'}"))
    lines.append(printable(f"  runs    {t.n_source}"))
    if t.claim:
        lines.append(printable(f"  claim   {t.claim} of {t.headline}{_against(judged)}"))
    if t.also_at:
        shown = ", ".join(map(str, t.also_at[:5])) + (", …" if len(t.also_at) > 5 else "")
        lines.append(f"  again   the same rows at line {shown}; counted once")
    lines += [f"  note    {printable(note)}" for note in t.notes]
    return lines


def _against(judged: JudgedTable) -> str:
    """Whether the headline's figure is the one its own row gives."""
    row = next((row for row in judged.rows if row.row.metric == judged.table.headline), None)
    if row is None or row.change is None:
        return " (that metric is not in the table)"
    claimed, half = printed_range((judged.table.claim or "").partition("%")[0])
    if abs(abs(claimed) - abs(row.change)) <= half * 1.001 or row.printed_check == "within rounding":
        return ""
    return f" (these figures give {change(row)})"


def answer(judged: Iterable[JudgedTable]) -> str:
    """What changed, by how much, and is it real: a sentence a table, about its headline or largest shown change."""
    return "\n".join(_sentence(one) for one in judged if one.rows)


def _sentence(judged: JudgedTable) -> str:
    t, row = judged.table, judged.lead
    if row is None or row.change is None:
        return f"{row.row.metric}: {row.reason}." if row else "no rows."
    moved = "rose" if row.change > 0 else "fell"
    unit = " %" if row.in_pct else ""
    between = f" (95 % interval {interval(row)}{unit})" if row.ci95 else ""
    real = {
        "undecided": "undecided",
        "no difference": "no difference shown",
        "changed": "real",
    }.get(row.verdict, f"real, and {row.verdict}")
    where = f" ({t.kind})" if t.kind != "lkp" else ""
    aside = sum(judged.hidden_counts().values())
    rest = f" {len(judged.rows)} rows: {len(judged.shown)} matter, {aside} are put aside." if aside else ""
    size = f"{_signed(abs(row.change)).lstrip('+')}{unit}"
    return f"{row.row.metric}{where} {moved} by {size}{between}: {real}; {_why(row, False)}.{rest}"


def frame(judged: JudgedTable, *, show_all: bool = False) -> pd.DataFrame:
    """The rows that matter (or all) as a DataFrame of text, as `table_text` has them (figures with no-break spaces)."""
    import pandas as pd

    rows = judged.rows if show_all else judged.shown
    return pd.DataFrame(
        {
            "metric": [row.row.metric for row in rows],
            "what it is": [row.meaning.what for row in rows],
            "before": [_unbroken(side(row.row.before)) for row in rows],
            "after": [_unbroken(side(row.row.after)) for row in rows],
            "change": [_unbroken(change(row)) for row in rows],
            "95 % interval": [_unbroken(interval(row)) for row in rows],
            "verdict": [row.verdict for row in rows],
            "why": [row.hidden or _why(row, False) for row in rows],
        }
    )


def _unbroken(text: str) -> str:
    """`text` that a narrow table wraps before a spread and after "…" only, not between a figure and its unit."""
    for pair in ("± ", "≤ ", " %", " …"):
        text = text.replace(pair, pair.replace(" ", "\u00a0"))
    return text


def series_text(series: Iterable[Series]) -> str:
    """Figures without a partner."""
    cells = [
        [s.metric, s.group or s.label, side(s.value), s.unit, "" if s.value.n is None else s.value.n, s.note]
        for s in series
    ]
    return "figures with nothing to compare with (measured)\n" + table(
        ["metric", "under", "value", "unit", "runs", "note"], cells, right="llrlrl"
    )


def _unread_text(unread: tuple[Unread, ...]) -> list[str]:
    if not unread:
        return []
    lines = [f"{len(unread)} line(s) look like figures but could not be read:"]
    lines += [f"  line {u.line}: {printable(u.reason)}: {printable(u.text[:100])}" for u in unread[:LISTED]]
    if len(unread) > LISTED:
        lines.append(f"  … and {len(unread) - LISTED} more (--format json lists them all)")
    return ["\n".join(lines)]


def records(report: Report, judged: Iterable[JudgedTable]) -> Record:
    """A report as JSON-ready data: `tables` with `rows`, `unread`, `notes`."""
    tables = [table_record(report.source, one) for one in judged]
    if report.series:
        tables.append(_series_record(report))
    return {
        "source": report.source, "kinds": list(report.kinds), "tables": tables, "notes": list(report.notes),
        "unread": [{"line": u.line, "text": u.text, "reason": u.reason} for u in report.unread],
    }  # fmt: skip


def table_record(source: str, judged: JudgedTable) -> Record:
    """One table; every row of it is there, `hidden` says which ones the text leaves out and why."""
    t = judged.table
    return {
        "source": source, "kind": t.kind, "line": t.line, "testcase": t.testcase, "machine": t.machine,
        "parameters": dict(t.parameters), "before_label": t.before_label, "after_label": t.after_label,
        "headline": t.headline, "claim": t.claim, "runs": t.n_source, "also_at": list(t.also_at),
        "notes": list(t.notes), "rows": [row_record(row) for row in judged.rows],
    }  # fmt: skip


def _series_record(report: Report) -> Record:
    rows = []
    for series in report.series:
        rows.append({**row_record(one_sided(series)), "note": series.note})
    return {"source": report.source, "kind": "one-sided", "line": report.series[0].line, "rows": rows}


def row_record(judged: Judged) -> Record:
    """A row; its change is under `change_pct`, or `change_abs` for rows compared by plain difference."""
    row = judged.row
    record: Record = {
        "metric": row.metric, "group": row.group,
        "before": row.before.mean, "before_spread_pct": _spread(row.before), "before_n": row.before.n,
        "after": row.after.mean, "after_spread_pct": _spread(row.after), "after_n": row.after.n,
        "printed_change": row.printed_change, "printed_check": judged.printed_check,
        "change_pct" if judged.in_pct else "change_abs": _plain(row.change_pct if judged.in_pct else row.change_abs),
        "ci95": list(judged.ci95) if judged.ci95 else None,
        "unit": row.unit or judged.meaning.unit, "direction": judged.meaning.direction,
        "verdict": judged.verdict, "reason": judged.reason, "more_runs": judged.more_runs, "method": judged.method,
        "p": judged.p, "q": judged.q, "noise": _plain(judged.noise), "hidden": judged.hidden, "line": row.line,
    }  # fmt: skip
    for name, value in (("before", row.before), ("after", row.after)):
        if value.spread_kind == "at most":
            record[f"{name}_spread_at_most_pct"] = value.spread_pct
        if value.events is not None:
            record[f"{name}_failed_runs"] = value.events
    return record


def _spread(value: Value) -> float | None:
    return None if value.spread_kind == "at most" else value.spread_pct


def _plain(value: float | None) -> float | None:
    """JSON has no NaN or infinity: they become null."""
    return value if value is not None and math.isfinite(value) else None


CSV_COLUMNS = (
    "source", "table_line", "testcase", "machine", "before_label", "after_label", "metric", "before",
    "before_spread_pct", "before_n", "after", "after_spread_pct", "after_n", "printed_change", "change_pct",
    "change_abs", "ci95_low", "ci95_high", "unit", "direction", "verdict", "reason", "hidden", "line",
)  # fmt: skip


def csv_rows(record: Record) -> Iterator[list[object]]:
    """Rows under `CSV_COLUMNS` of what `records` gave."""
    tables = record["tables"]
    assert isinstance(tables, list)
    for one in tables:
        about = {"table_line": one.get("line"), **{key: one.get(key, "") for key in CSV_COLUMNS[2:6]}}
        for row in one["rows"]:
            low, high = row["ci95"] or (None, None)
            full = {**about, **row, "source": one["source"], "ci95_low": low, "ci95_high": high}
            yield [_csv_cell(full.get(key)) for key in CSV_COLUMNS]


def _csv_cell(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str) and value[:1] in ("=", "@", "\t") and len(value) > 1:
        return "'" + value
    return "" if value is None else value
