"""Tables for notebooks and pages: a DataFrame with a caption and the badge of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from kitlib.figures.style import FigureKind
from kitlib.page import badge_html, styles

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """``frame`` under a caption of plain text, marked as exact, model or measured; cells are escaped and whole.

    An index is shown only if it has a name.
    """

    frame: pd.DataFrame
    kind: FigureKind
    title: str = ""
    note: str = ""

    def __repr__(self) -> str:
        head = " ".join(part for part in (f"[{self.kind}]", self.title, self.note) if part)
        return f"{head}\n{self.frame.to_string()}"

    def _repr_html_(self) -> str:
        import pandas as pd

        frame = self.frame.reset_index() if self.frame.index.name is not None else self.frame
        with pd.option_context("display.max_colwidth", None):
            table = frame.to_html(index=False, border=0, escape=True, na_rep="–", justify="left", classes="kit-table")
        caption = f'<p class="kit-caption"><strong>{escape(self.title)}</strong> {badge_html(self.kind, self.note)}</p>'
        return f"<style>{badge_style()}</style>{caption}{table}"


def badge_style() -> str:
    """The rules of the style sheet that a badge needs; a notebook has no other style sheet of the kit's."""
    named = (".kit-badge", ".kit-exact", ".kit-model", ".kit-measured")
    rules = [rule for rule in styles().splitlines() if rule.startswith(named)]
    return "\n".join([*rules, ".kit-table :is(th, td) { text-align: left !important; }"])
