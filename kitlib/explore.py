"""`explore`: a struct on its cache lines, with controls; live in a notebook, and without a kernel in a page."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import anywidget
import traitlets

from kitlib.errors import DataError
from kitlib.figures.layout import cacheline_map
from kitlib.figures.style import FigureKind, plotly_js
from kitlib.model import Layout
from kitlib.page import EXPLORER_TYPE, front_end, styles
from kitlib.randstruct import opened
from kitlib.scenario import Scenario
from kitlib.states import Extra, Session, Subject, Toggle, View, page_data, subject_data
from kitlib.variants import Variants

PAGE_VARIABLE = "KITLIB_PAGE"
"""Environment variable that says a notebook is run to become a page."""


class Explorer(anywidget.AnyWidget):  # type: ignore[misc]
    """The widget: a thin view on a `Session`, which holds the state."""

    data = traitlets.Dict().tag(sync=True)
    request = traitlets.Dict()
    value = traitlets.Dict().tag(sync=True)

    def __init__(self, subject: Subject, view: View) -> None:
        self.session = Session(subject)
        self._subject, self._first_view = subject, view
        self._esm, self._css = front_end(), styles()
        super().__init__(data=subject_data(subject, view), value=self.session.answer({"op": "show"}))
        self.observe(lambda change: setattr(self, "value", self.session.answer(change["new"])), "request")
        self.on_msg(self._hear)

    @property
    def layout_now(self) -> Layout:
        """The layout as edited on screen."""
        return self.session.layout

    @property
    def scenario(self) -> Scenario:
        """The edits made on screen, as a scenario."""
        return self.session.scenario

    def _hear(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        """Answer the front end. Requests come as messages: of values set in quick succession only the last arrives."""
        if content.get("kind") == "plotly":
            self.send({"kind": "plotly"}, [plotly_js()])
        elif content.get("kind") == "request":
            self.request = content["request"]

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        first = next(iter(self._subject.variants.values()))
        view = self._first_view
        picture = cacheline_map(
            first, line_bytes=view.line_bytes, phase=view.phase, before=self._subject.before
        ).to_plotly_json()
        still = {"application/vnd.plotly.v1+json": picture, "text/plain": f"explorer of {first.title}"}
        if os.environ.get(PAGE_VARIABLE):
            return still | {EXPLORER_TYPE: page_data(self._subject, view)}, {}
        live = super()._repr_mimebundle_(**kwargs)
        return (still | live[0], live[1]) if live else (still, {})


def explore(
    layout: Layout | None = None,
    *,
    before: Layout | None = None,
    extra: Extra | None = None,
    extra_title: str = "",
    extra_kind: FigureKind = "model",
    variants: Mapping[str, Layout] | Variants | None = None,
    member: str | None = None,
    line_bytes: int = 64,
    phase: int = 0,
) -> Explorer:
    """Show `layout` on its cache lines, with controls for member, position, alignments, line size and phase.

    `before` is what the table and the dashed outlines compare with (the unedited layout if None). `extra` is
    called with each layout shown and gives the rows of one more table (a mapping from column to value each),
    headed `extra_title`; `extra_kind` says what kind its figures are. `variants` (label to layout) are base
    layouts to switch between, for instance one for each build; edits are made again on the one chosen. Given
    `kitlib.variants.Variants`, every option has a switch of its own and every choice a list, and the first
    shown is the default setting.
    `member`, `line_bytes` and `phase` (bytes) are where the controls start.

    Raises `PlacementError` for a line size or phase that is none, `NotFound` for an unknown member, `DataError` for a
    layout beside `Variants`, or for `Variants` of more than 64 combinations.

    A struct that only wraps an anonymous one, as mm_struct does, is shown opened.

    In a page without a kernel the same controls work over layouts computed ahead: one member moved and aligned.
    """
    if isinstance(variants, Variants):
        if layout is not None:
            raise DataError("explore: the configurations hold their own layouts; give no other one beside them")
        chosen = variants.layouts()
        subject = Subject(chosen, before, extra, extra_title, extra_kind, *_toggles(variants, chosen))
        return Explorer(subject, View(member, line_bytes, phase))
    chosen = {label: opened(known) for label, known in (variants or {}).items()}
    if layout is not None and not any(layout is known for known in (variants or {}).values()):
        chosen = {"as given" if chosen else layout.title: opened(layout), **chosen}
    subject = Subject(chosen, before and opened(before), extra, extra_title, extra_kind)
    return Explorer(subject, View(member, line_bytes, phase))


def _toggles(variants: Variants, labels: Iterable[str]) -> tuple[tuple[Toggle, ...], tuple[tuple[int, ...], ...]]:
    """A control for each option and choice, and for each of `labels` (as `Variants.label` has them) their states."""
    options = [Toggle(o.name, ("n", "y"), True, o.about) for o in variants.options]
    choices = [Toggle(c.name, tuple(state.label for state in c.states), False, c.about) for c in variants.choices]
    settings = {
        variants.label(setting): tuple(
            int(bool(setting[t.name])) if t.option else t.states.index(str(setting[t.name])) for t in options + choices
        )
        for setting in variants.settings()
    }
    return (*options, *choices), tuple(settings[label] for label in labels)


class _CallableModule(ModuleType):
    """``from kitlib import explore`` gives this module, not the function, once something has imported it."""

    __call__ = staticmethod(explore)


sys.modules[__name__].__class__ = _CallableModule
