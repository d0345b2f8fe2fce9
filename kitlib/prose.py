"""Sentences with figures in notebooks and pages: the words are written down, the figures come from data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from kitlib.errors import KitError
from kitlib.figures.style import FigureKind
from kitlib.page import badge_html
from kitlib.tables import badge_style

Shown = TypeVar("Shown")


@dataclass(frozen=True, slots=True, repr=False)
class Prose:
    """Paragraphs of plain text (between backquotes: code), each marked as exact, model or measured, or not (None)."""

    paragraphs: tuple[tuple[str, FigureKind | None], ...]

    def __repr__(self) -> str:
        return "\n\n".join(f"{text} [{kind}]" if kind else text for text, kind in self.paragraphs)

    def _repr_html_(self) -> str:
        body = "".join(_paragraph(text, kind) for text, kind in self.paragraphs)
        return f'<style>{badge_style()} .kit-prose p {{ max-width: 78ch; }}</style><div class="kit-prose">{body}</div>'

    def __add__(self, other: Prose) -> Prose:
        return Prose(self.paragraphs + other.paragraphs)


def say(text: str, kind: FigureKind | None = None, /, **values: object) -> Prose:
    """`text` with `values` put in by name, as one paragraph; a backquote in a value is taken away.

    >>> say("`{name}` is at byte {at}.", "exact", name="f_count", at=56)
    `f_count` is at byte 56. [exact]
    """
    plain = {name: str(value).replace("`", "'") for name, value in values.items()}
    return Prose(((text.format(**plain), kind),))


def show_or_why(make: Callable[[], Shown]) -> Shown | Prose:
    """What `make` gives; or, if something it needs is missing here, a sentence that says what and why.

    For the parts of a notebook that the rest can do without: a compiler, a profile, this kernel's types.
    """
    try:
        return make()
    except KitError as error:
        return say("Not shown here: {error}. The rest of this page does not need it.", error=error)


def _paragraph(text: str, kind: FigureKind | None) -> str:
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
    return f"<p>{marked}{' ' + badge_html(kind) if kind else ''}</p>"
