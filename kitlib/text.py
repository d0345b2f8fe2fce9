"""Text for terminals: tables, numbers and units, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: str = "") -> str:
    """Aligned columns. `right` holds one letter a column: ``r`` aligns it right, anything else left.

    >>> print(table(["member", "offset"], [["f_count", 56], ["f_mode", 68]], right="lr"))
    member   offset
    f_count      56
    f_mode       68
    """
    cells = [[printable(value) for value in row] for row in rows]
    widths = [max(len(header), *(len(row[i]) for row in cells), 0) for i, header in enumerate(headers)]
    lines = [_line(list(headers), widths, right)]
    lines += [_line(row, widths, right) for row in cells]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: str) -> str:
    out = [
        cell.rjust(width) if right[i : i + 1] == "r" else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(out).rstrip()


def printable(value: object) -> str:
    """`value` as text that cannot move a terminal's cursor: control characters are shown escaped."""
    if value is None:
        return ""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def count(number: int, what: str, plural: str | None = None) -> str:
    """``1 line``, ``3 lines``, ``9,700 structs``."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def pct(value: float, digits: int = 1) -> str:
    """``+32.3 %``; the sign is always shown."""
    return f"{value:+.{digits}f} %"
