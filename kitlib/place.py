"""Placement: where a compiler puts the members of a struct, and what it must have been told.

The rules are those of the System V x86-64 psABI (section 3.1.2) and AAPCS64 (section 5.9 and 10.1.8),
with gcc's treatment of bit-fields (``place_field`` in gcc/stor-layout.cc: a bit-field may not span more
units of its declared type than that type has).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as _with

from kitlib.errors import PlacementError
from kitlib.model import Abi, Kind, Layout, Member

MAX_ALIGN = 1 << 13
"""Largest alignment that is inferred from an offset, in bytes (``__page_aligned`` data is 4096)."""

LINE_ALIGN = 64
_BELOW_LINE = (16, 32)
"""A member on a line boundary that 16 or 32 would explain, in a struct of whole lines, is taken for one that is
``____cacheline_aligned``. In Debian's 6.12 kernel, whose DWARF states alignments, that is right for 41 of 44."""


def align_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` (a power of two) that is not below `value`."""
    return (value + unit - 1) & -unit


@dataclass(frozen=True, slots=True)
class Rules:
    """What applies to a whole struct: ``pack`` is ``#pragma pack``'s n in bytes, 0 for none."""

    abi: Abi
    packed: bool = False
    pack: int = 0
    forced_align: int = 0


def member_align(member: Member, rules: Rules) -> int:
    """Alignment in bytes that `member` gets in a struct under `rules`."""
    own = max(member.natural_align, 1)
    if member.is_bitfield and member.bit_size == 0:
        return own  # neither `packed` nor a pragma changes what `int : 0` does
    # gcc and clang alike let a pragma undo `packed` on a bit-field (update_alignment_for_field).
    if (member.packed or rules.packed) and not (member.is_bitfield and rules.pack):
        own = 1
    align = max(own, member.forced_align)
    return min(align, rules.pack) if rules.pack else align


def next_bit(member: Member, position: int, rules: Rules) -> int:
    """Bit offset at which `member` is placed when the member before it ended at bit `position`."""
    if not member.is_bitfield or member.bit_size == 0:
        return align_up(position, member_align(member, rules) * 8)
    if member.forced_align:
        forced = min(member.forced_align, rules.pack) if rules.pack else member.forced_align
        position = align_up(position, forced * 8)
    if member.packed or rules.packed or rules.pack:  # under a pragma a bit-field may straddle any unit
        return position
    type_align = max(member.natural_align, 1) * 8
    units = (position % type_align + member.bit_size + type_align - 1) // type_align
    if units > member.storage_bits // type_align:
        return align_up(position, type_align)
    return position


def place(members: Sequence[Member], kind: Kind, rules: Rules) -> tuple[tuple[Member, ...], int, int]:
    """Place `members` in their order; return them with new offsets, the size and the alignment in bytes."""
    position = end = 0
    align = max(rules.forced_align, 1)
    placed: list[Member] = []
    for member in members:
        start = next_bit(member, 0 if kind == "union" else position, rules)
        position = start + member.bit_size
        end = max(end, position)
        if member.name is not None or not member.is_bitfield or rules.abi.unnamed_bitfield_aligns:
            align = max(align, member_align(member, rules))
        placed.append(member if member.bit_offset == start else _with(member, bit_offset=start))
    return tuple(placed), align_up((end + 7) >> 3, align), align


def rules_of(layout: Layout) -> Rules:
    """The struct-wide rules a layout was read with."""
    return Rules(layout.abi, layout.packed, layout.pack, layout.forced_align)


def replace(layout: Layout, members: Sequence[Member], *, forced_align: int | None = None) -> Layout:
    """Return `layout` with `members` placed anew, in the given order.

    Raises `PlacementError` if the layout cannot be re-placed (see ``Layout.reason``).
    """
    if layout.reason is not None:
        raise PlacementError(f"{layout.title} cannot be re-placed: {layout.reason}")
    forced = layout.forced_align if forced_align is None else forced_align
    rules = Rules(layout.abi, layout.packed, layout.pack, forced)
    placed, size, align = place(members, layout.kind, rules)
    return _with(layout, members=placed, size=size, align=align, forced_align=forced)


# -- what the compiler must have been told ------------------------------------------------------------


def settle(layout: Layout) -> Layout:
    """Return `layout` with the attributes under which placing it gives back its own offsets and size.

    Readers call this once a struct. A source that states alignments (DWARF, C) usually needs nothing; for
    one that does not (BTF, pahole text) attributes are inferred as pahole does: the smallest alignment
    that explains an offset, except that 16 and 32 give way to a cache line where both fit. If no
    attributes explain the layout, ``reason`` says what does not fit.
    """
    if layout.reason is not None:
        return layout
    why = _unplaceable(layout)
    if why is None:
        for rules, members in _attempts(layout):
            placed, size, align = place(members, layout.kind, rules)
            if size == layout.size and _same_offsets(placed, layout.members):
                if members is layout.members and align == layout.align and rules == rules_of(layout):
                    return layout  # as read: by far the most common, and no copy is made
                return _with(
                    layout,
                    members=placed,
                    align=align,
                    packed=rules.packed,
                    forced_align=rules.forced_align,
                )
        why = _first_misfit(layout)
    return _with(layout, reason=why)


def _same_offsets(placed: Sequence[Member], wanted: Sequence[Member]) -> bool:
    return all(a.bit_offset == b.bit_offset for a, b in zip(placed, wanted, strict=True))


def _unplaceable(layout: Layout) -> str | None:
    """A reason that no choice of attributes can mend."""
    if not layout.abi.little_endian and any(m.is_bitfield for m in layout.members):
        return "bit-fields on a big-endian target are shown but not re-placed"
    for member in layout.members:
        if member.natural_align == 0:
            return f"the alignment of '{member.type}' (member {member.name}) is not known"
    if layout.kind == "union":
        return None
    last = -1
    for member in layout.members:
        if member.bit_offset < last:
            return f"member {member.name} lies before the end of the member in front of it"
        last = member.bit_end
    return None


def _attempts(layout: Layout) -> Iterator[tuple[Rules, tuple[Member, ...]]]:
    """Candidate attributes, the least surprising first."""
    as_read = rules_of(layout)
    yield as_read, layout.members
    plain = Rules(layout.abi, layout.packed, layout.pack, layout.forced_align)
    yield from _inferred(layout, plain, packed_members=False)
    if not layout.packed:
        packed = Rules(layout.abi, True, layout.pack, layout.forced_align)
        if _needs_packing(layout):
            yield from _inferred(layout, packed, packed_members=False)
        yield from _inferred(layout, plain, packed_members=True)
        yield from _inferred(layout, packed, packed_members=False)


def _needs_packing(layout: Layout) -> bool:
    """Whether a packed struct explains the layout without any alignment attribute on a member."""
    rules = Rules(layout.abi, True, 0, 0)
    placed, _, _ = place(layout.members, layout.kind, rules)
    return _same_offsets(placed, layout.members)


def _inferred(layout: Layout, rules: Rules, *, packed_members: bool) -> Iterator[tuple[Rules, tuple[Member, ...]]]:
    """Attributes on members, then on the struct, that explain the offsets under `rules`."""
    members: list[Member] = []
    position = 0
    prefer_line = layout.size % LINE_ALIGN == 0
    for member in layout.members:
        fitted = _explain(member, 0 if layout.kind == "union" else position, rules, packed_members, prefer_line)
        if fitted is None:
            return
        members.append(fitted)
        position = member.bit_end
    fixed = tuple(members)
    _, size, align = place(fixed, layout.kind, rules)
    if size == layout.size:
        yield rules, fixed
        return
    wanted = layout.align if layout.align > align else align * 2
    while wanted <= MAX_ALIGN:
        if prefer_line and wanted in _BELOW_LINE:
            wanted = LINE_ALIGN
        candidate = Rules(rules.abi, rules.packed, rules.pack, wanted)
        if place(fixed, layout.kind, candidate)[1] == layout.size:
            yield candidate, fixed
            return
        wanted *= 2


def _explain(
    member: Member, position: int, rules: Rules, packed_members: bool, prefer_line: bool = False
) -> Member | None:
    """`member` with the weakest attribute that puts it at its own offset after `position`, or None."""
    if next_bit(member, position, rules) == member.bit_offset:
        return member
    if packed_members and not member.packed:
        candidate = _with(member, packed=True, align_from="inferred")
        if next_bit(candidate, position, rules) == member.bit_offset:
            return candidate
    if member.bit_offset < position:
        return None
    align = max(member.forced_align, 1) * 2 if member.is_bitfield else member_align(member, rules) * 2
    while align <= MAX_ALIGN:
        if prefer_line and align in _BELOW_LINE and member.bit_offset % (LINE_ALIGN * 8) == 0:
            align = LINE_ALIGN
        candidate = _with(member, forced_align=align, align_from="inferred")
        if next_bit(candidate, position, rules) == member.bit_offset:
            return candidate
        align *= 2
    return None


def _first_misfit(layout: Layout) -> str:
    """Name the first member that its type's alignment does not put where it is."""
    rules = rules_of(layout)
    position = 0
    for member in layout.members:
        start = next_bit(member, 0 if layout.kind == "union" else position, rules)
        if start != member.bit_offset and _explain(member, position, rules, False) is None:
            name = member.name or member.type
            if member.bit_offset > start:
                bits = member.bit_offset - position
                return f"{bits} bits in front of {name} that no alignment explains (an unnamed bit-field?)"
            return f"{name} is closer to the member before it than its alignment allows"
        position = member.bit_end
    _, size, _ = place(layout.members, layout.kind, rules)
    return f"its size is {layout.size} bytes and its members need {size}"
