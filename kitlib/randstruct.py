"""What the kernel's GCC plugin does to a struct: the order for a given seed, draw for draw.

Facts are those of ``scripts/gcc-plugins/randomize_layout_plugin.c``; ``data/randstruct/gcc-plugin.json`` holds
orders that the plugin itself gave, and a test holds this module to them.

Note: gcc writes a struct's debug info before the plugin has its turn, so DWARF (and BTF made from it) of
such a kernel shows the declared order, not the real one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import TypeVar

from kitlib.errors import DataError, PlacementError, near
from kitlib.model import Layout, Member
from kitlib.place import replace

GCC_MODES = ("gcc-full", "gcc-performance", "gcc-performance-prefix")
MODES = (*GCC_MODES, "clang")
MODE_TITLES = {
    "gcc-full": "GCC plugin, full",
    "gcc-performance": "GCC plugin, performance (after 381fdb73d1e2, Nov 2023)",
    "gcc-performance-prefix": "GCC plugin, performance (before 381fdb73d1e2)",
    "clang": "clang -frandomize-layout-seed",
}

GROUP_BYTES = 64
"""A group of performance mode is closed once its members' sizes add up to this, whatever the real line is."""
WARM_UP = 30
"""Values of the generator that are thrown away (``raninit``)."""
ROTATIONS = (7, 13, 37)
"""Rotations of Bob Jenkins' small 64-bit generator, as the plugin has them."""
WORD = (1 << 64) - 1

Seed = tuple[int, int, int, int]
T = TypeVar("T")


def check_mode(mode: str) -> None:
    """Raise `DataError` unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise DataError(f"mode '{mode}': use one of {', '.join(MODES)}{near(mode, MODES)}")


def parse_seed(text: str) -> Seed:
    """Four 64-bit words from the 64 hex digits of ``randstruct.seed``.

    Raises `DataError` for anything else.
    """
    digits = text.strip()
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
        raise DataError(
            f"seed of {len(digits)} characters: the plugin's seed is 64 hex digits, 0 to 9 and a to f (randstruct.seed)"
        )
    a, b, c, d = (int(digits[i : i + 16], 16) for i in range(0, 64, 16))
    return a, b, c, d


def as_bytes(text: str) -> bytes:
    """`text` as the compiler gets it: bytes of a command line that are no UTF-8 come back as they were.

    Raises `DataError` if it is no text (half a surrogate pair, from a JSON file).
    """
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise DataError(f"{text!a} is no text that a compiler could be given; use another name or seed") from None


def name_hash(name: str | None) -> int:
    """32-bit hash of a struct's name; one without a name counts as ``anonymous``.

    >>> hex(name_hash("a"))
    '0x42f2'
    """
    value = 0
    for byte in as_bytes(name or "anonymous"):
        value = (value + (byte << 4) + (byte >> 4)) * 11 & WORD
    return value & 0xFFFFFFFF


def seeded(seed: Seed, name: str | None) -> Seed:
    """The generator's start for the struct called `name`: every word XORed with the name's hash."""
    mark = name_hash(name)
    a, b, c, d = (word ^ mark for word in seed)
    return a, b, c, d


class Jenkins:
    """The plugin's generator (Jenkins' small generator, 64-bit), warmed up."""

    __slots__ = ("_state",)

    def __init__(self, words: Seed) -> None:
        self._state = words
        for _ in range(WARM_UP):
            self.draw()

    def draw(self) -> int:
        """The next 64-bit value."""
        a, b, c, d = self._state
        first, second, third = ROTATIONS
        e = (a - _rotate(b, first)) & WORD
        a = b ^ _rotate(c, second)
        b = (c + _rotate(d, third)) & WORD
        c = (d + e) & WORD
        d = (e + a) & WORD
        self._state = (a, b, c, d)
        return d


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & WORD


@dataclass(frozen=True, slots=True)
class Plan:
    """What a shuffle must know of a struct, by declared position.

    ``sizes`` are bytes as the plugin adds them up, ``bitfields`` marks those it will not swap in performance
    mode, ``pinned`` is the number of members at the end (0 or 1) that stay there.
    """

    name: str | None
    sizes: tuple[int, ...]
    bitfields: tuple[bool, ...]
    pinned: int = 0
    groups: tuple[tuple[int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", _partition(self.sizes[: self.shuffled]))

    @property
    def shuffled(self) -> int:
        """Number of members that can move."""
        return len(self.sizes) - self.pinned


def _partition(sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(start, length) of each group: closed when the sizes of its members reach `GROUP_BYTES`."""
    groups: list[tuple[int, int]] = []
    start = total = 0
    for i, size in enumerate(sizes):
        total += size
        if total >= GROUP_BYTES:
            groups.append((start, i + 1 - start))
            start, total = i + 1, 0
    if start < len(sizes):
        groups.append((start, len(sizes) - start))
    return tuple(groups)


def plan_of(layout: Layout, mode: str, *, pins_short_arrays: bool | None = None) -> Plan:
    """What the plugin sees of `layout`.

    `pins_short_arrays`: whether a last member of 0 or 1 elements is taken for a flexible array. It was until
    1ee60356c2dc (v6.7), so by default in ``gcc-performance-prefix`` only; stable kernels may have the one fix
    without the other. Raises `PlacementError` if `layout` is no struct or cannot be re-placed.
    """
    check_struct(layout)
    if pins_short_arrays is None:
        pins_short_arrays = mode == "gcc-performance-prefix"
    pinned = bool(layout.members) and _is_tail(layout.members[-1], pins_short_arrays)
    sizes = tuple(_counted_bytes(member) for member in layout.members)
    return Plan(layout.name, sizes, tuple(m.is_bitfield for m in layout.members), int(pinned))


def check_struct(layout: Layout) -> None:
    """Raise `PlacementError` unless `layout` is a struct that can be re-placed."""
    if layout.kind == "union":
        raise PlacementError(f"{layout.title}: only structs are randomised; name a struct")
    if layout.reason is not None:
        raise PlacementError(f"{layout.title} cannot be re-placed: {layout.reason}")


def randomised_part(layout: Layout) -> Layout:
    """What can be shuffled: `layout`, or the one anonymous struct that it wraps.

    ``mm_struct`` holds nothing but an anonymous ``struct {…} __randomize_layout`` and a flexible tail; the kernel
    marks the inner one. Its name counts as ``anonymous``, and paths from outside are paths inside.
    """
    solid = [m for m in layout.members if m.bit_size or m.is_bitfield]
    if layout.kind != "union" and len(solid) == 1 and solid[0].name is None and solid[0].bit_offset == 0:
        inner = solid[0].inner
        if inner is not None and inner.kind == "struct" and inner.members:
            return randomised_part(with_(inner, name=None))
    return layout


def opened(layout: Layout) -> Layout:
    """`layout` as people think of it: the anonymous struct inside under the outer name, if it holds nothing else."""
    inner = randomised_part(layout)
    return layout if inner is layout else with_(inner, name=layout.name, source=layout.source)


def first_dimension(member: Member) -> int | None:
    """Elements in the outermost dimension of an array; 0 for a flexible one, None for no array."""
    if member.count is None:
        return None
    bound = re.search(r"\[(\d*)\]", member.type)
    return int(bound[1] or 0) if bound else member.count


def _is_tail(member: Member, pins_short_arrays: bool) -> bool:
    elements = first_dimension(member)
    if elements is None:
        return False
    zero_length = "[0]" in member.type
    return (elements == 0 and not zero_length) or (pins_short_arrays and elements <= 1)


def _counted_bytes(member: Member) -> int:
    """Size the plugin adds up: gcc has by then given a bit-field the smallest type that holds its width."""
    if not member.is_bitfield:
        return member.size
    size = 1
    while size * 8 < member.bit_size:
        size *= 2
    return size


def gcc_order(plan: Plan, seed: Seed, mode: str) -> tuple[int, ...]:
    """Declared positions in their new order, bit-exact for `seed` (see `parse_seed`) and the struct's name."""
    order = list(range(len(plan.sizes)))
    if plan.shuffled == 0 or len(order) < 2:
        return tuple(order)
    generator = Jenkins(seeded(seed, plan.name))
    if mode == "gcc-full":
        for i in range(plan.shuffled - 1, 0, -1):
            _swap(order, i, generator.draw() % (i + 1))
    elif mode in GCC_MODES:
        _performance(order, plan, generator, within_group=mode == "gcc-performance")
    else:
        raise DataError(f"mode '{mode}' has no 64-digit seed; use one of {', '.join(GCC_MODES)}")
    return tuple(order)


def _performance(order: list[int], plan: Plan, generator: Jenkins, *, within_group: bool) -> None:
    """Shuffle each group; the shuffle of the groups only changes in which order they take their draws."""
    groups = list(plan.groups)
    for i in range(len(groups) - 1, 0, -1):
        _swap(groups, i, generator.draw() % (i + 1))
    for start, length in groups:
        for i in range(start + length - 1, start, -1):
            if plan.bitfields[order[i]]:
                continue
            base = start if within_group else 0
            j = base + generator.draw() % (i - base + 1)
            if not plan.bitfields[order[j]]:
                _swap(order, i, j)


def _swap(items: list[T], i: int, j: int) -> None:
    items[i], items[j] = items[j], items[i]


def randomize_gcc(layout: Layout, seed: Seed | str, mode: str, *, pins_short_arrays: bool | None = None) -> Layout:
    """`layout` as the plugin would lay it out with `seed` (words or the text of ``randstruct.seed``).

    Nested structs that are randomised themselves keep the size they have. Raises `DataError` for a bad seed or
    mode, `PlacementError` if `layout` cannot be re-placed.
    """
    words = parse_seed(seed) if isinstance(seed, str) else seed
    order = gcc_order(plan_of(layout, mode, pins_short_arrays=pins_short_arrays), words, mode)
    seen = as_plugin_sees(layout)
    return replace(seen, [seen.members[i] for i in order])


def as_plugin_sees(layout: Layout) -> Layout:
    """`layout` as gcc lays it out for the second time: bit-fields have narrowed types by then.

    ``unsigned long x : 10`` is placed as if it were ``unsigned short x : 10``; the struct keeps the alignment
    that its first layout gave it. Found by experiment with gcc 12; offsets in the declared order stay as read.
    """
    if not any(member.is_bitfield for member in layout.members):
        return layout
    members = tuple(_narrowed(member) for member in layout.members)
    return with_(layout, members=members, forced_align=max(layout.forced_align, layout.align))


def _narrowed(member: Member) -> Member:
    if not member.is_bitfield or member.bit_size == 0:
        return member
    size = _counted_bytes(member)
    return with_(member, storage_bits=size * 8, natural_align=min(size, member.natural_align))


def is_ops_struct(layout: Layout) -> bool:
    """Whether all members are function pointers: those structs are randomised without being marked."""
    return bool(layout.members) and all(_is_ops(member) for member in layout.members)


def _is_ops(member: Member) -> bool:
    if member.inner is not None:
        return is_ops_struct(member.inner)
    return "(*)" in member.type or re.search(r"\(\*\[\d*\]\)\(", member.type) is not None
