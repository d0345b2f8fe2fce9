"""Text for terminals: tables, numbers and units, in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# C0 and C1 controls but for white space; marks and overrides of writing direction (Unicode UAX #9).
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


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


def visible(text: str) -> str:
    """`text` for a page or figure: controls and marks that would turn round the text beside them are shown escaped.

    >>> visible("a\\u202eb")
    'a\\\\u202eb'
    """
    return _UNSEEN.sub(lambda match: repr(match[0])[1:-1], text)


def count(number: int, what: str, plural: str | None = None) -> str:
    """``1 line``, ``3 lines``, ``9,700 structs``."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def pct(value: float, digits: int = 1) -> str:
    """``+32.3 %``; the sign is always shown."""
    return f"{value:+.{digits}f} %"
