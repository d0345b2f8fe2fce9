"""kitlib: struct layouts on their cache lines: move a member, see what it costs and what was measured.

Names are loaded when first used, so that ``import kitlib`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "KitError": "kitlib.errors",
    "Layout": "kitlib.model",
    "Member": "kitlib.model",
    "Move": "kitlib.edit",
    "Swap": "kitlib.edit",
    "Align": "kitlib.edit",
    "AlignStruct": "kitlib.edit",
    "Isolate": "kitlib.edit",
    "Insert": "kitlib.edit",
    "Pad": "kitlib.edit",
    "Remove": "kitlib.edit",
    "Scenario": "kitlib.scenario",
    "make_layout": "kitlib.shorthand",
    "open_source": "kitlib.sources",
    "explore": "kitlib.explore",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
        globals()[name] = value  # else `kitlib.explore` would from now on be the module of that name
        return value
    raise AttributeError(f"module 'kitlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
