"""What every reader gives: a source of layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from kitlib.errors import NotFound, near
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


@runtime_checkable
class Finds(Protocol):
    """A source that finds all layouts of one name without reading every struct."""

    def definitions(self, name: str) -> list[Layout]:
        """Layouts that differ, the one that ``struct`` gives first; raises as ``struct`` does."""
        ...


def definitions(source: Source, name: str) -> list[Layout]:
    """All different layouts in `source` that go by `name`: two files of a program may each have a ``struct node``.

    The one that ``source.struct`` gives is first. Raises `NotFound` if there is none.
    """
    if isinstance(source, Finds):
        return source.definitions(name)
    first = source.struct(name)
    return distinct([first, *(x for x in source.structs() if (x.name, x.kind) == (first.name, first.kind))])


def distinct(layouts: Iterable[Layout]) -> list[Layout]:
    """`layouts` without those equal to an earlier one."""
    found: list[Layout] = []
    for layout in layouts:
        if layout not in found:
            found.append(layout)
    return found


class LayoutList:
    """A `Source` over layouts that are at hand (a layout file, a shipped name, a test's own).

    Structs held by value inside the listed ones are found by name too, but not listed.
    """

    def __init__(self, layouts: Sequence[Layout], label: str, kind: str) -> None:
        self.label = label
        self.kind = kind
        self._layouts = tuple(layouts)
        self._first: dict[str, Layout] = {}
        for layout in self._layouts:
            self._first.setdefault(layout.name or "", layout)

    def names(self) -> list[str]:
        return sorted(name for name in self._first if name)

    def struct(self, name: str) -> Layout:
        plain = name.strip()
        for word in ("struct ", "union ", "class "):
            plain = plain.removeprefix(word)
        found = self._first.get(plain) or next((x for x in self._inside() if x.name == plain), None)
        if found is None:
            names = self.names()
            known = near(plain, names) or f"; it has {', '.join(names[:12])}" + (", …" if len(names) > 12 else "")
            raise NotFound(f"no struct '{plain}' in {self.label}{known}")
        return found

    def structs(self) -> Iterator[Layout]:
        return iter(self._layouts)

    def _inside(self) -> Iterator[Layout]:
        waiting = list(self._layouts)
        seen: set[int] = set()
        while waiting:
            for member in waiting.pop().members:
                inner = member.inner
                if inner is not None and id(inner) not in seen:
                    seen.add(id(inner))
                    waiting.append(inner)
                    yield inner


def pick(source: Source, name: str | None) -> Layout:
    """The struct called `name`; without a name the only one there is.

    Raises `NotFound` if there is no such struct, or several and no name.
    """
    if name is not None:
        return source.struct(name)
    names = source.names()
    if len(names) == 1:
        return source.struct(names[0])
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    raise NotFound(f"{source.label} has {len(names)} structs; name one of them: {shown or 'none'}")
