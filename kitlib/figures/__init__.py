"""Figures: each takes results and returns a plotly ``Figure``; nothing is shown, and plotly loads when one is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "layout": ("cacheline_map", "before_after"),
    "bench": ("delta_forest", "profile_shift", "samples"),
    "evidence": ("overlay",),
    "cost": ("cost_by_path", "scaling", "trade_off_map", "sensitivity_bars", "published_bars", "retry_lines"),
    "score": ("score_scatter",),
    "diff": ("diff_table", "diff_treemap"),
    "scan": ("scan_table", "scan_treemap"),
    "risk_random": ("probability_bars", "size_bars", "line_bars", "cost_histogram"),
    "variants": ("combination_map",),
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"kitlib.figures.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'kitlib.figures' has no attribute {name!r}")
