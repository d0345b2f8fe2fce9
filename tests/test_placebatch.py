"""Batch placement against `kitlib.place`, member by member, for every kind of member and attribute."""

from __future__ import annotations

from dataclasses import replace as with_

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.model import AARCH64, I386, X86_64, Abi, Layout, Member
from kitlib.place import Rules, place
from kitlib.placebatch import as_batch, place_orders, place_present, table_of

SCALARS = (1, 2, 4, 8)


@st.composite
def _members(draw: st.DrawFn, abi: Abi) -> Member:
    """A scalar, an array, a bit-field of any width, or ``int : 0``; with and without attributes."""
    size = draw(st.sampled_from(SCALARS))
    kind = draw(st.sampled_from(("scalar", "array", "bits", "bits", "zero")))
    forced = draw(st.sampled_from((0, 0, 0, 1, 2, 8, 16, 64)))
    packed = draw(st.sampled_from((False, False, False, True)))
    width, storage, count = size * 8, 0, None
    if kind == "array":
        count = draw(st.integers(0, 9))
        width = size * 8 * count
    elif kind == "bits":
        storage, width = size * 8, draw(st.integers(1, size * 8))
    elif kind == "zero":
        storage, width, forced, packed = size * 8, 0, 0, False
    name = None if kind == "zero" or (kind == "bits" and draw(st.integers(0, 4)) == 0) else "m"
    return Member(name, "t", 0, width, abi.scalar_align(size), forced, packed, storage, count=count)


@st.composite
def structs(draw: st.DrawFn) -> Layout:
    """A struct as the compiler places it, under any mixture of ``packed``, ``aligned`` and ``#pragma pack``."""
    abi = draw(st.sampled_from((X86_64, AARCH64, I386)))
    drawn = draw(st.lists(_members(abi), max_size=12))
    named = [with_(m, name=f"m{i}") if m.name else m for i, m in enumerate(drawn)]
    rules = Rules(
        abi, draw(st.booleans()), draw(st.sampled_from((0, 0, 1, 2, 4, 8, 16))), draw(st.sampled_from((0, 0, 1, 4, 64)))
    )
    placed, size, align = place(named, "struct", rules)
    return Layout("s", "struct", size, align, placed, rules.packed, rules.forced_align, rules.pack, abi)


def _placed(layout: Layout, members: list[Member]) -> tuple[list[int], int]:
    rules = Rules(layout.abi, layout.packed, layout.pack, layout.forced_align)
    placed, size, _ = place(members, "struct", rules)
    return [m.bit_offset for m in placed], size


@settings(deadline=None, max_examples=400)
@given(structs(), st.integers(0, 1 << 32))
def test_orders_are_placed_as_one_by_one(layout: Layout, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = len(layout.members)
    orders = np.stack([np.arange(count), *(rng.permutation(count) for _ in range(4))], axis=1).astype(np.int64)
    batch = place_orders(table_of(layout), orders)
    for column, order in enumerate(orders.T.tolist()):
        offsets, size = _placed(layout, [layout.members[i] for i in order])
        assert [int(batch.bit_offsets[i, column]) for i in order] == offsets
        assert batch.sizes[column] == size


@settings(deadline=None, max_examples=400)
@given(structs(), st.integers(0, 1 << 32))
def test_members_that_are_there_are_placed_as_without_the_others(layout: Layout, seed: int) -> None:
    present = np.random.default_rng(seed).random((len(layout.members), 5)) < 0.6
    present[:, 0] = True
    batch = place_present(table_of(layout), present)
    for column in range(5):
        there = np.flatnonzero(present[:, column]).tolist()
        offsets, size = _placed(layout, [layout.members[i] for i in there])
        assert [int(batch.bit_offsets[i, column]) for i in there] == offsets
        assert batch.sizes[column] == size


@given(structs())
def test_declared_order_gives_the_layout_back(layout: Layout) -> None:
    table = table_of(layout)
    order = np.arange(len(layout.members), dtype=np.int64).reshape(-1, 1)
    batch, as_is = place_orders(table, order), as_batch(layout)
    assert batch.bit_offsets.tolist() == as_is.bit_offsets.tolist()
    assert batch.sizes.tolist() == as_is.sizes.tolist() == [layout.size]
    assert table.align == layout.align
