"""Every layout with one member elsewhere, computed ahead for pages that have no kernel.

For a member and an alignment the states go through all its positions. From one position to the next only two
members change places, so a state is kept as the offsets in which it differs from the one before: 60 members at
60 positions and 7 alignments make about 20,000 states, a few hundred kilobytes of JSON before compression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as _with
from typing import Any

from kitlib.blocks import tag_of, title_of
from kitlib.edit import tail_of
from kitlib.model import Layout, Member
from kitlib.place import align_up, member_align, next_bit, place, rules_of
from kitlib.tags import WRITTEN_TAGS

ALIGNS = (0, 8, 16, 32, 64, 128)
"""Alignments in bytes that the explorer offers for a member; 0 is none."""
STRUCT_ALIGNS = (0, 64, 128)
BUDGET = 40_000
"""States a page may hold for one layout: about 0.2 MB once compressed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One position: members (by their number in the base) whose bit offset changed, and where all end, in bits."""

    changed: tuple[tuple[int, int], ...]
    bit_end: int


def last_position(layout: Layout) -> int:
    """The last position a member can move to: a flexible array stays behind everything else, as C wants it."""
    count = len(layout.members)
    return count - 1 - (tail_of(layout) is not None)


def positions(layout: Layout, index: int) -> tuple[int, int]:
    """First and last position that member `index` can take; equal where it has no choice."""
    last = last_position(layout)
    if not layout.replaceable or layout.kind == "union" or index > last:
        return index, index
    return 0, last


def fixed_because(layout: Layout, index: int) -> str:
    """Why member `index` has but one position; empty if it has more, or if ``layout.reason`` says it already."""
    low, high = positions(layout, index)
    if low < high or not layout.replaceable:
        return ""
    if layout.kind == "union":
        return "the arms of a union all start at byte 0"
    if index > last_position(layout):
        return "a flexible array stays last"
    return "there is no other place"


def walk(layout: Layout, index: int, align: int) -> Iterator[Step]:
    """Member `index` with an alignment attribute of `align` bytes at each of its positions, first to last.

    Each step's changes are against the step before; those of the first against `layout`.
    """
    rules = rules_of(layout)
    low, high = positions(layout, index)
    moving = layout.members[index]
    if align != moving.forced_align:  # an attribute as it was read is kept as it is
        moving = _with(moving, forced_align=align)
    rest = [(i, m) for i, m in enumerate(layout.members) if i != index]
    order = [*rest[:low], (index, moving), *rest[low:]]
    offsets = [m.bit_offset for m in layout.members]
    ends = [-1] * len(order)
    union = layout.kind == "union"
    for position in range(low, high + 1):
        if position > low:
            order[position - 1], order[position] = order[position], order[position - 1]
        start_at = max(position - 1, 0) if position > low else 0
        bit = ends[start_at - 1] if start_at else 0
        changed = []
        for k in range(start_at, len(order)):
            number, member = order[k]
            start = next_bit(member, 0 if union else bit, rules)
            if start != offsets[number]:
                offsets[number] = start
                changed.append((number, start))
            bit = start + member.bit_size
            if bit == ends[k] and k >= position:
                break
            ends[k] = bit
        yield Step(tuple(changed), max(ends, default=0))


def sizes(layout: Layout, index: int, align: int, struct_aligns: Sequence[int]) -> list[int]:
    """Alignment in bytes of the struct for each of `struct_aligns`, when member `index` has `align`."""
    members = list(layout.members)
    if align != members[index].forced_align:
        members[index] = _with(members[index], forced_align=align)
    own = place(members, layout.kind, _with(rules_of(layout), forced_align=0))[2]
    return [max(own, forced) for forced in struct_aligns]


def page_tables(layout: Layout, budget: int = BUDGET, wanted: str | None = None) -> dict[str, Any]:
    """What a page needs to answer for `layout` without a kernel; plain values for JSON.

    ``members``: numbers of the members that can be chosen. ``aligns``: alignments in bytes for each of them.
    ``tables[t]``: ``align`` (of the struct, for each of ``struct_aligns``) and ``steps``, a flat list that holds
    for each position: twice the number of offsets that changed, plus 1 if a size did; for each change a member and
    the difference of its bit offset; and the sizes in bytes for each of ``struct_aligns`` if they changed. A member
    is -1 for the one that moves, otherwise its number less the position plus the number of members: written like
    this, one step looks like the next and compresses well. ``table_of[m][a]`` is the table of member
    ``members[m]`` at ``aligns[m][a]``.
    ``unmoved`` has alignment and size of the unedited struct for each of ``struct_aligns``. ``left_out`` says in
    words what did not fit into `budget` states; moves of the member with the title `wanted` always do.
    """
    struct_aligns = sorted({*STRUCT_ALIGNS, layout.forced_align})
    chosen, aligns, left_out = _choices(layout, budget, wanted)
    tables: list[dict[str, Any]] = []
    table_of: list[list[int]] = []
    for index in chosen:
        known: dict[tuple[int, int], int] = {}
        row = []
        for align in aligns[index]:
            key = _effect(layout, index, align)
            if key not in known:
                known[key] = len(tables)
                tables.append(_table(layout, index, align, struct_aligns))
            row.append(known[key])
        table_of.append(row)
    return {
        "members": chosen,
        "aligns": [aligns[i] for i in chosen],
        "struct_aligns": struct_aligns,
        "tables": tables,
        "table_of": table_of,
        "unmoved": _unmoved(layout, struct_aligns),
        "left_out": left_out,
    }


def _unmoved(layout: Layout, struct_aligns: Sequence[int]) -> dict[str, list[int]]:
    if not layout.replaceable:
        return {"align": [layout.align] * len(struct_aligns), "size": [layout.size] * len(struct_aligns)}
    rules = rules_of(layout)
    placed = [place(layout.members, layout.kind, _with(rules, forced_align=forced)) for forced in struct_aligns]
    return {"align": [align for _, _, align in placed], "size": [size for _, size, _ in placed]}


def _table(layout: Layout, index: int, align: int, struct_aligns: Sequence[int]) -> dict[str, Any]:
    struct_align = sizes(layout, index, align, struct_aligns)
    offsets = [m.bit_offset for m in layout.members]
    flat: list[int] = []
    held: list[int] = []
    for position, step in enumerate(walk(layout, index, align), positions(layout, index)[0]):
        now = [align_up((step.bit_end + 7) >> 3, unit) for unit in struct_align]
        flat.append(2 * len(step.changed) + (now != held))
        for number, bit in step.changed:
            flat += (-1 if number == index else number - position + len(offsets), bit - offsets[number])
            offsets[number] = bit
        if now != held:
            flat += now
            held = now
    return {"align": struct_align, "steps": flat}


def _effect(layout: Layout, index: int, align: int) -> tuple[int, int]:
    """Equal for alignments that place the member alike."""
    member = layout.members[index]
    if member.is_bitfield:
        return (align, 0)
    return (member_align(_with(member, forced_align=align), rules_of(layout)), 0)


def member_aligns(member: Member) -> list[int]:
    """Alignments to offer for `member`: the usual ones and its own."""
    return sorted({*ALIGNS, member.forced_align})


def _choices(layout: Layout, budget: int, asked: str | None) -> tuple[list[int], dict[int, list[int]], str]:
    count = len(layout.members)
    if not layout.replaceable:
        return list(range(count)), {i: [m.forced_align] for i, m in enumerate(layout.members)}, ""
    every = {i: member_aligns(m) for i, m in enumerate(layout.members)}
    few = {i: sorted({m.forced_align, 64}) for i, m in enumerate(layout.members)}
    own = {i: [m.forced_align] for i, m in enumerate(layout.members)}
    for wanted, note in ((every, ""), (few, "alignments other than 64"), (own, "other alignments")):
        if sum(len(a) for a in wanted.values()) * count <= budget:
            return list(range(count)), wanted, note
    titles = [title_of(m) for m in layout.members]
    hot = sorted(range(count), key=lambda i: (titles[i] != asked, tag_of(layout.members[i])[0] not in WRITTEN_TAGS))
    keep = sorted(hot[: max(budget // count, 1)])
    return keep, own, f"other alignments, and moves of {count - len(keep)} members (kept: what is written to first)"
