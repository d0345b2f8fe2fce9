"""What a later innocent edit can do: try every small edit of a layout and see which break a promise. Exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kitlib.edit import Edit, Insert, Move, Remove
from kitlib.errors import KitError
from kitlib.model import Layout

INSERTED = ("u8", "u32", "u64", "struct list_head")
"""Types tried for a new member: 1, 4, 8 and 16 bytes."""


@dataclass(frozen=True, slots=True)
class Fragility:
    """Edits of one kind that were tried, and those after which the promise no longer holds."""

    kind: str
    tried: int
    broken: tuple[Edit, ...]

    @property
    def share(self) -> float:
        """Part of the edits tried that break the promise, 0 to 1; 0 if none was tried."""
        return len(self.broken) / self.tried if self.tried else 0.0


def fragility(layout: Layout, holds: Callable[[Layout], bool], keep: frozenset[str]) -> tuple[Fragility, ...]:
    """Try every single insertion, removal and move; count those after which `holds` is false.

    `keep` are the members the promise is about: they are never removed, and moving one of them is counted
    apart from moving another ("move a member of the promise"). Raises `KitError` if the promise does not
    hold on `layout` itself or the layout cannot be re-placed.
    """
    if not holds(layout):
        raise KitError(f"the promise does not hold on {layout.title} as it is; there is nothing to undo")
    named = [m.name for m in layout.members if m.name is not None]
    kinds: dict[str, Iterator[Edit]] = {
        "insert a member": _insertions(layout),
        "remove a member": (Remove(name) for name in named if name not in keep),
        "move another member": _moves(layout, [name for name in named if name not in keep]),
        "move a member of the promise": _moves(layout, [name for name in named if name in keep]),
    }
    return tuple(_try(kind, edits, layout, holds) for kind, edits in kinds.items())


def _insertions(layout: Layout) -> Iterator[Edit]:
    name = "new_member"
    while name in layout.member_names():
        name += "_"
    for index in range(len(layout.members) + 1):
        for type_text in INSERTED:
            yield Insert(f"{type_text} {name}", index=index)


def _moves(layout: Layout, names: list[str]) -> Iterator[Edit]:
    for name in names:
        at = layout.index(name)
        for index in range(len(layout.members)):
            if index != at:
                yield Move(name, index=index)


def _try(kind: str, edits: Iterator[Edit], layout: Layout, holds: Callable[[Layout], bool]) -> Fragility:
    tried, broken = 0, []
    for edit in edits:
        tried += 1
        if not holds(edit.apply(layout)):
            broken.append(edit)
    return Fragility(kind, tried, tuple(broken))
