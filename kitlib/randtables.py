"""Answers about random layouts and configurations as DataFrames, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kitlib.errors import NotFound
from kitlib.lines import find_leaf, line_span, share_line
from kitlib.model import Layout
from kitlib.randstats import Risk
from kitlib.randstruct import MODE_TITLES
from kitlib.room import Room
from kitlib.variantmatrix import ABSENT, Answers, Flip, influence
from kitlib.variants import Variants

if TYPE_CHECKING:
    import pandas as pd

_ANSWERS = {1: "yes", 0: "no", ABSENT: "not there"}


def offsets_table(layouts: Mapping[str, Layout], members: Sequence[str], line_bytes: int = 64) -> pd.DataFrame:
    """One row a layout: size and offset of each member in bytes, with its lines; ``absent`` where it is not there."""
    import pandas as pd

    rows = []
    for label, layout in layouts.items():
        row: dict[str, object] = {"layout": label, "size": layout.size}
        for name in members:
            row[name] = _place(layout, name, line_bytes)
        rows.append(row)
    return pd.DataFrame(rows)


def _place(layout: Layout, path: str, line_bytes: int) -> str:
    try:
        leaf = find_leaf(layout, path)
    except NotFound:
        return "absent"
    first, last = line_span(leaf.bit_offset, leaf.bit_size, line_bytes)
    return f"{leaf.offset} (line {first})" if first == last else f"{leaf.offset} (lines {first}–{last})"


def pair_table(layouts: Mapping[str, Layout], pairs: Iterable[tuple[str, str]], line_bytes: int = 64) -> pd.DataFrame:
    """One row a layout, one column a pair of paths: ``one line`` or ``apart``. Raises `NotFound`."""
    import pandas as pd

    asked = list(pairs)
    return pd.DataFrame(
        {"layout": label}
        | {f"{a} / {b}": "one line" if share_line(layout, a, b, line_bytes) else "apart" for a, b in asked}
        for label, layout in layouts.items()
    )


def risk_table(risks: Iterable[Risk]) -> pd.DataFrame:
    """One row an answer: probability of a shared line with its interval, and the size in bytes."""
    import pandas as pd

    rows = []
    for risk in risks:
        low, high = risk.p_same_line.ci95
        rows.append(
            {
                "mode": MODE_TITLES[risk.mode],
                "as declared": "one line" if risk.same_line_declared else "apart",
                "probability": round(risk.p_same_line.value, 4),
                "95 % interval": f"{low:.4f}–{high:.4f}",
                "mean size": round(risk.size.mean, 1),
                "sizes": f"{risk.size.min}–{risk.size.max}",
            }
        )
    return pd.DataFrame(rows)


def flips_table(flips: Iterable[Flip]) -> pd.DataFrame:
    """One row a single change that turns the answer over."""
    import pandas as pd

    columns = ["option or choice", "from", "to", "answer before", "answer after"]
    rows = [
        (f.name, _said(f.was), _said(f.now), *(_ANSWERS.get(x, str(x)) for x in (f.before, f.after))) for f in flips
    ]
    return pd.DataFrame(rows, columns=columns)


def _said(value: bool | str) -> str:
    return {True: "y", False: "n"}[value] if isinstance(value, bool) else value


def influence_table(variants: Variants, answers: Answers) -> pd.DataFrame:
    """For each option the share of combinations, in per cent, in which turning it over changes the answer."""
    import pandas as pd

    shares = influence(variants, answers)
    return pd.DataFrame({"option": list(shares), "decides in %": [round(100 * share, 1) for share in shares.values()]})


def rooms_table(rooms: Iterable[Room]) -> pd.DataFrame:
    """One row a place for a new member, offsets in bytes."""
    import pandas as pd

    columns = ["offset", "in front of", "grows by", "moves", "changes line", "hot members on its line"]
    rows = [
        (
            room.offset,
            room.before or "(the end)",
            room.growth,
            ", ".join(f"{name} {old}→{new}" for name, old, new in room.moved) or "nothing",
            ", ".join(room.relined) or "nothing",
            ", ".join(room.hot_mates) or "none",
        )
        for room in rooms
    ]
    return pd.DataFrame(rows, columns=columns)
