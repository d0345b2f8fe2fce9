"""Hand-labelled scan rows, and the precision they give: a judgement, not a measurement."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from kitlib import datafiles
from kitlib.errors import DataError
from kitlib.files import read_text

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = "labels/scan-6.12.csv"
"""A seeded random sample of 60 rows with a score of 50 or more, from Debian's 6.12 kernel."""
_COLUMNS = ("struct", "member", "line", "kind", "score", "label", "why")
_Z = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Label:
    """One judged row: ``true`` if several CPUs can be expected to write the member while others use its mates."""

    struct: str
    member: str
    line: int
    kind: str
    score: float
    true: bool
    why: str


@dataclass(frozen=True, slots=True)
class Precision:
    """`true` of `n` rows were judged true; ``estimate`` with its 95 % Wilson interval from ``low`` to ``high``."""

    true: int
    n: int
    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.true} of {self.n}: {self.estimate:.0%} (95 % interval {self.low:.0%} to {self.high:.0%})"


def read_labels(path: Path | None = None) -> tuple[Label, ...]:
    """The labelled rows in `path` (the shipped sample, if not given). Raises `DataError` for a malformed file."""
    where = path if path is not None else datafiles.path(SAMPLE)
    reader = csv.DictReader(io.StringIO(read_text(where)))
    if tuple(reader.fieldnames or ()) != _COLUMNS:
        raise DataError(f"{where}: line 1: the columns must be {', '.join(_COLUMNS)}")
    labels = []
    for number, row in enumerate(reader, 2):
        if row["label"] not in ("true", "false") or not row["why"]:
            raise DataError(f"{where}: line {number}: a row needs the label true or false, and why")
        try:
            line, score = int(row["line"]), float(row["score"])
        except ValueError:
            raise DataError(f"{where}: line {number}: line and score must be numbers") from None
        labels.append(Label(row["struct"], row["member"], line, row["kind"], score, row["label"] == "true", row["why"]))
    return tuple(labels)


def precision_table(
    labels: Sequence[Label], bands: Sequence[tuple[float, float]] = ((70, 100), (60, 70), (50, 60))
) -> pd.DataFrame:
    """Precision by band of score, and over all: ``score``, ``judged true``, ``rows``, ``precision``, interval."""
    import pandas as pd

    rows = []
    for low, high in [*bands, (min(b[0] for b in bands), 100)]:
        inside = [x for x in labels if low <= x.score < high or x.score == high == 100]
        if inside:
            found = precision(inside)
            interval = f"{found.low:.0%} to {found.high:.0%}"
            rows.append((f"{low:.0f} to {high:.0f}", found.true, found.n, f"{found.estimate:.0%}", interval))
    return pd.DataFrame(rows, columns=["score", "judged true", "rows", "precision", "95 % interval"])


def labels_table(labels: Sequence[Label]) -> pd.DataFrame:
    """The labelled rows with what was judged and why, the highest score first."""
    import pandas as pd

    rows = [(x.score, f"{x.struct}.{x.member}", x.kind, "true" if x.true else "false", x.why) for x in labels]
    return pd.DataFrame(rows, columns=["score", "member", "kind", "judged", "why"]).sort_values(
        "score", ascending=False
    )


def precision(labels: Sequence[Label]) -> Precision:
    """Share of rows judged true, with Wilson's interval (Wilson 1927). Raises `DataError` if there are none."""
    n = len(labels)
    if n == 0:
        raise DataError("no labelled rows: no precision can be given")
    true = sum(label.true for label in labels)
    share = true / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Precision(true, n, share, max(middle - half, 0.0), min(middle + half, 1.0))
