"""Layouts from a short text, for examples and tests."""

from __future__ import annotations

from kitlib.errors import PlacementError
from kitlib.model import X86_64, Abi, Layout, Member
from kitlib.place import Rules, place


def make_layout(
    text: str, name: str = "s", *, abi: Abi = X86_64, packed: bool = False, forced_align: int = 0
) -> Layout:
    """Build a struct from ``name:bytes`` words, placed as the compiler would.

    A word is ``name:bytes``, ``name:bytes@align`` or, for a bit-field, ``name:bytes:bits``; a type may
    follow the name: ``name=type:bytes``, for a type without blanks.

    >>> ring = make_layout("head:8 tail:8 lock=spinlock_t:4")
    >>> [(m.name, m.offset) for m in ring], ring.size
    ([('head', 0), ('tail', 8), ('lock', 16)], 24)
    """
    members = [_member(word, abi) for word in text.split()]
    placed, size, align = place(members, "struct", Rules(abi, packed, 0, forced_align))
    return Layout(name, "struct", size, align, placed, packed=packed, forced_align=forced_align, abi=abi)


_TYPES = {1: "unsigned char", 2: "short unsigned int", 4: "unsigned int", 8: "long unsigned int"}


def _member(word: str, abi: Abi) -> Member:
    label, *numbers = word.split(":")
    label, _, type_text = label.partition("=")
    try:
        size_text, _, align_text = numbers[0].partition("@")
        size, forced = int(size_text), int(align_text or 0)
        bits = int(numbers[1]) if len(numbers) > 1 else 0
    except (IndexError, ValueError):
        raise PlacementError(f"'{word}': write name:bytes, name:bytes@align or name:bytes:bits") from None
    count = None
    if not type_text:
        type_text = _TYPES.get(size) or f"unsigned char[{size}]"
        count = None if size in _TYPES else size
    align = 1 if count is not None else abi.scalar_align(size)
    return Member(
        label or None,
        type_text,
        0,
        bits or size * 8,
        align,
        forced_align=forced,
        storage_bits=size * 8 if bits else 0,
        count=count,
        align_from="stated" if forced else "abi",
    )
