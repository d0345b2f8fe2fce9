"""What every reader gives: a source of layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kitlib.model import Layout


class Source(Protocol):
    """An opened source. ``label`` is shown to people, ``kind`` names the reader (``btf``, ``dwarf``, …)."""

    label: str
    kind: str

    def names(self) -> list[str]:
        """Names of all structs, unions and classes that are defined here, and of typedefs of unnamed
        ones; sorted, each once."""
        ...

    def struct(self, name: str) -> Layout:
        """The layout called `name` (a leading ``struct `` or ``union `` is allowed, typedefs are followed).

        Raises `NotFound`, with near names, if there is none.
        """
        ...

    def structs(self) -> Iterator[Layout]:
        """Every named layout, in the source's order; one name may come more than once."""
        ...
