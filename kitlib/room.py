"""Where a new member can go without growing the struct or moving what is hot to other lines. Exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kitlib.cdecl import member_from_decl
from kitlib.edit import Insert
from kitlib.errors import PlacementError
from kitlib.lines import check_line, leaves, line_span, mates
from kitlib.model import Layout
from kitlib.tags import WRITTEN_TAGS


@dataclass(frozen=True, slots=True)
class Room:
    """A place for a new member.

    ``offset`` is its byte, ``before`` the member it goes in front of (None: at the end), ``moved`` the members that
    change offset with old and new byte, ``relined`` those of them that change a line, ``hot_mates`` the hot members
    whose line it would share, ``growth`` the bytes the struct grows by.
    """

    offset: int
    before: str | None
    growth: int
    moved: tuple[tuple[str, int, int], ...]
    relined: tuple[str, ...]
    hot_mates: tuple[str, ...]


def hot_members(layout: Layout) -> tuple[str, ...]:
    """Members whose type says that using the object writes them (locks, atomics, …): the default for `rooms`."""
    named = [m for m in layout.members if m.name is not None]
    return tuple(str(m.name) for m in named if m.tags & WRITTEN_TAGS)


def rooms(
    layout: Layout,
    declaration: str,
    hot: Sequence[str] | None = None,
    *,
    line_bytes: int = 64,
    phase: int = 0,
    growth: int = 0,
) -> tuple[Room, ...]:
    """Places for a new member `declaration` (``seqcount_t seq``, ``u32 x``) that leave `hot` members on their lines.

    A place is left out if the struct would grow by more than `growth` bytes, or if any part of a member of `hot`
    (None: `hot_members`) would touch other lines than it does. The rest comes in this order: those where no
    member changes its line first, then by growth and offset. Raises `NotFound` for an unknown hot member,
    `PlacementError` for a declaration that is none or a layout that cannot be re-placed.
    """
    check_line(line_bytes, phase)
    guarded = (
        hot_members(layout) if hot is None else tuple(layout.members[layout.index(name)].name or name for name in hot)
    )
    new = member_from_decl(declaration, layout).name
    was = _lines(layout, line_bytes, phase)
    found: dict[tuple[int, str | None], Room] = {}
    for index in range(len(layout.members) + 1):
        after = Insert(declaration, index=index).apply(layout)
        if after.size - layout.size > growth:
            continue
        relined = _relined(was, _lines(after, line_bytes, phase))
        if set(guarded) & {path.partition(".")[0] for path in relined}:
            continue
        before = layout.members[index].name if index < len(layout.members) else None
        offset = after.member(str(new)).offset
        near_by = {leaf.path.partition(".")[0] for leaf in mates(after, str(new), line_bytes, phase)}
        found[offset, before] = Room(
            offset,
            before,
            after.size - layout.size,
            _moved(layout, after),
            relined,
            tuple(name for name in guarded if name in near_by),
        )
    return tuple(sorted(found.values(), key=lambda room: (len(room.relined) > 0, room.growth, room.offset)))


def best_room(layout: Layout, declaration: str, hot: Sequence[str] | None = None, *, line_bytes: int = 64) -> Room:
    """The first of `rooms`. Raises `PlacementError` if there is none."""
    every = rooms(layout, declaration, hot, line_bytes=line_bytes)
    if not every:
        raise PlacementError(
            f"no place in {layout.title} for '{declaration}' that neither grows it nor moves a hot member to another "
            "line; allow growth, or name fewer hot members"
        )
    return every[0]


def _lines(layout: Layout, line_bytes: int, phase: int) -> dict[str, tuple[int, int]]:
    return {
        leaf.path: line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase) for leaf in leaves(layout) if leaf.path
    }


def _relined(was: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    return tuple(path for path, span in was.items() if now[path] != span)


def _moved(before: Layout, after: Layout) -> tuple[tuple[str, int, int], ...]:
    now = {member.name: member.offset for member in after.members if member.name is not None}
    return tuple(
        (member.name, member.offset, now[member.name])
        for member in before.members
        if member.name is not None and now[member.name] != member.offset
    )
