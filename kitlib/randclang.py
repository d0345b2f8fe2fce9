"""What clang's ``-frandomize-layout-seed=`` does to a struct (``clang/lib/AST/Randstruct.cpp``).

Members are dealt into buckets, buckets and their contents are shuffled. The order is exact for a clang that is
linked with libstdc++ (Debian's is), since ``std::shuffle`` is free to draw as it likes: with libc++ only the
distribution is right. Debug info of clang shows the new order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kitlib.model import Layout, Member
from kitlib.place import replace
from kitlib.randstruct import as_bytes, check_struct, first_dimension

BUCKET_BITS = 64
"""Meant as a line of 64 bytes but compared with widths in bits: members of 8 bytes and more stand alone."""
SHORT_ARRAY = 2
"""A last array of up to this many elements is taken for a flexible one and stays last."""
MASK = 0xFFFFFFFF

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Declared positions dealt into one bucket; those of a run of bit-fields keep their order."""

    members: tuple[int, ...]
    keeps_order: bool = False


def clang_buckets(layout: Layout) -> tuple[tuple[Bucket, ...], int]:
    """The buckets in the order they are filled, and how many members (0 or 1) stay at the end.

    Raises `PlacementError` if `layout` is no struct or cannot be re-placed.
    """
    check_struct(layout)
    pinned = int(bool(layout.members) and _is_tail(layout.members[-1]))
    waiting = list(range(len(layout.members) - pinned))
    buckets: list[Bucket] = []
    filling: list[int] | None = None
    run: list[int] = []
    filled = skipped = 0
    while waiting:
        if skipped >= len(waiting) and filling is not None:  # nothing that is left fits
            buckets.append(Bucket(tuple(filling)))
            filling, filled, skipped = None, 0, 0
        here = waiting.pop(0)
        member = layout.members[here]
        if member.is_bitfield and member.bit_size:
            run.append(here)
            continue
        if run:
            buckets.append(Bucket(tuple(run), keeps_order=True))
            run = []
        filling = [] if filling is None else filling  # also in front of a member that stands alone
        width = member.storage_bits or member.bit_size
        if width >= BUCKET_BITS:
            buckets.append(Bucket((here,)))
        elif filled + width <= BUCKET_BITS:
            filling.append(here)
            filled += width
            if filled >= BUCKET_BITS:
                buckets.append(Bucket(tuple(filling)))
                filling, filled, skipped = None, 0, 0
        else:
            skipped += 1
            waiting.append(here)
    if filling is not None:  # may be empty, and then still takes part in the shuffle
        buckets.append(Bucket(tuple(filling)))
    if run:
        buckets.append(Bucket(tuple(run), keeps_order=True))
    return tuple(buckets), pinned


def _is_tail(member: Member) -> bool:
    elements = first_dimension(member)
    return elements is not None and elements <= SHORT_ARRAY


def clang_order(layout: Layout, seed: str) -> tuple[int, ...]:
    """Declared positions in their new order for the text `seed` (as given to ``-frandomize-layout-seed=``)."""
    buckets, pinned = clang_buckets(layout)
    if not buckets:
        return tuple(range(len(layout.members)))
    draw = _mersenne_twister(seed + (layout.name or ""))
    dealt = list(buckets)
    libstdcxx_shuffle(dealt, draw)
    order: list[int] = []
    for bucket in dealt:
        members = list(bucket.members)
        if not bucket.keeps_order:
            libstdcxx_shuffle(members, draw)
        order += members
    return (*order, *range(len(layout.members) - pinned, len(layout.members)))


def randomize_clang(layout: Layout, seed: str) -> Layout:
    """`layout` as clang lays it out for `seed`. Raises `PlacementError` if it cannot be re-placed."""
    return replace(layout, [layout.members[i] for i in clang_order(layout, seed)])


def seed_sequence(words: Sequence[int], count: int) -> list[int]:
    """What ``std::seed_seq(words).generate`` puts into `count` 32-bit words (C++17, 29.6.7.1)."""
    out = [0x8B8B8B8B] * count
    given = len(words)
    lag = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    first = (count - lag) // 2
    second = first + lag
    rounds = max(given + 1, count)
    for k in range(rounds):
        mixed = _fold(out[k % count] ^ out[(k + first) % count] ^ out[(k - 1) % count])
        r1 = 1664525 * mixed & MASK
        if k == 0:
            step = given
        elif k <= given:
            step = k % count + words[k - 1]
        else:
            step = k % count
        r2 = (r1 + step) & MASK
        out[(k + first) % count] = (out[(k + first) % count] + r1) & MASK
        out[(k + second) % count] = (out[(k + second) % count] + r2) & MASK
        out[k % count] = r2
    for k in range(rounds, rounds + count):
        mixed = _fold((out[k % count] + out[(k + first) % count] + out[(k - 1) % count]) & MASK)
        r3 = 1566083941 * mixed & MASK
        r4 = (r3 - k % count) & MASK
        out[(k + first) % count] ^= r3
        out[(k + second) % count] ^= r4
        out[k % count] = r4
    return out


def _fold(value: int) -> int:
    return value ^ value >> 27


def _mersenne_twister(text: str) -> Callable[[], int]:
    """``std::mt19937`` seeded from the bytes of `text`; Python's own generator is the same machine."""
    words = [byte - 256 & MASK if byte > 127 else byte for byte in as_bytes(text)]  # char is signed on x86
    state = seed_sequence(words, 624)
    machine = random.Random()
    machine.setstate((3, (*state, 624), None))
    return lambda: machine.getrandbits(32)


def _below(bound: int, draw: Callable[[], int]) -> int:
    """A value below `bound` as libstdc++ 11 and later draw it (Lemire's multiplication, with rejection)."""
    product = draw() * bound
    low = product & MASK
    if low < bound:
        threshold = -bound % (1 << 32) % bound
        while low < threshold:
            product = draw() * bound
            low = product & MASK
    return product >> 32


def libstdcxx_shuffle(items: list[T], draw: Callable[[], int]) -> None:
    """``std::shuffle`` of libstdc++ in place: it takes two positions out of one draw of 32 bits."""
    count = len(items)
    if count < 2:
        return
    i = 1
    if count % 2 == 0:
        _swap(items, i, _below(2, draw))
        i += 1
    while i < count:
        first, second = divmod(_below((i + 1) * (i + 2), draw), i + 2)
        _swap(items, i, first)
        _swap(items, i + 1, second)
        i += 2


def _swap(items: list[T], i: int, j: int) -> None:
    items[i], items[j] = items[j], items[i]
