"""What holds for every layout: properties of placement, edits, line arithmetic and inference."""

from __future__ import annotations

import re
from dataclasses import replace as with_

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kitlib.edit import Align, AlignStruct, Edit, Insert, Isolate, Move, Pad, Remove, Swap
from kitlib.errors import PlacementError
from kitlib.lines import LINE_SIZES, holes, leaves, line_span, mates, n_lines, padding_bits, share_line
from kitlib.model import AARCH64, I386, X86_64, Abi, Layout, Member
from kitlib.place import Rules, member_align, place, replace, settle
from kitlib.scenario import Scenario

ABIS = st.sampled_from([X86_64, AARCH64, I386])
ALIGNS = st.sampled_from([0, 0, 0, 0, 0, 2, 8, 16, 64, 128])


@st.composite
def members(draw: st.DrawFn, abi: Abi, name: str, deep: bool) -> Member:
    form = draw(st.sampled_from(["scalar", "scalar", "scalar", "bits", "bits", "array", "inner"]))
    size = draw(st.sampled_from([1, 2, 4, 8]))
    align = abi.scalar_align(size)
    text = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[size]
    packed, forced = draw(st.integers(0, 9)) == 0, draw(ALIGNS)
    if form == "bits":
        width = draw(st.integers(1, size * 8))
        return Member(name, text, 0, width, align, forced, packed, storage_bits=size * 8)
    if form == "inner" and deep:
        inner = draw(layouts(abi=abi, deep=False, prefix=f"{name}_"))
        named = draw(st.booleans())
        text = f"{inner.kind} {{...}}" if not named else f"{inner.kind} {name}_t"
        inner = with_(inner, name=f"{name}_t" if named else None)
        return Member(name if named else None, text, 0, inner.size * 8, inner.align, forced, packed, inner=inner)
    if form == "array":
        count = draw(st.integers(1, 20))
        return Member(name, f"{text}[{count}]", 0, size * 8 * count, align, forced, packed, count=count)
    return Member(name, text, 0, size * 8, align, forced, packed)


@st.composite
def layouts(draw: st.DrawFn, abi: Abi | None = None, deep: bool = True, prefix: str = "m") -> Layout:
    abi = abi or draw(ABIS)
    kind = draw(st.sampled_from(["struct", "struct", "struct", "union"]))
    chosen = [draw(members(abi, f"{prefix}{i}", deep)) for i in range(draw(st.integers(1, 9)))]
    rules = Rules(abi, draw(st.integers(0, 9)) == 0, 0, draw(ALIGNS))
    placed, size, align = place(chosen, kind, rules)
    return Layout("s", kind, size, align, placed, rules.packed, rules.forced_align, abi=abi)


structs = layouts().filter(lambda x: x.kind == "struct")
line_sizes = st.sampled_from(LINE_SIZES)


@st.composite
def edits(draw: st.DrawFn, layout: Layout) -> Edit:
    count = len(layout.members)
    i, j = (f"#{draw(st.integers(0, count - 1))}" for _ in range(2))
    name = draw(st.sampled_from([m.name or f"#{k}" for k, m in enumerate(layout.members)]))
    align = draw(ALIGNS)
    return draw(
        st.sampled_from(
            [
                Move(i, index=draw(st.integers(0, count - 1))),
                Swap(i, j),
                Align(name, align),
                AlignStruct(align),
                Isolate(name, 64),
                Insert(f"u32 extra{draw(st.integers(0, 999))}", before=i),
                Pad(i, draw(st.integers(1, 70))),
            ]
            + ([Remove(i)] if count > 1 else [])
        )
    )


# -- placement ----------------------------------------------------------------------------------------


@given(layouts())
def test_members_do_not_overlap_and_lie_inside(layout: Layout) -> None:
    assert layout.size % layout.align == 0
    end = 0
    for member in layout.members:
        assert member.bit_end <= layout.size * 8
        if layout.kind == "struct":
            assert member.bit_offset >= end
            end = member.bit_end
        else:
            assert member.bit_offset == 0


@given(layouts())
def test_every_member_is_aligned(layout: Layout) -> None:
    rules = Rules(layout.abi, layout.packed, layout.pack, layout.forced_align)
    for member in layout.members:
        align = member_align(member, rules)
        assert layout.align % align == 0
        if not member.is_bitfield:
            assert member.bit_offset % (align * 8) == 0
        elif align > 1 and not (member.packed or layout.packed):
            # in a packed struct it may straddle: gcc places an aligned(2) u32:17 at bit 16
            unit = member.storage_bits
            assert member.bit_offset // unit == (member.bit_end - 1) // unit or member.natural_align * 8 < unit


@given(layouts())
def test_placing_again_changes_nothing(layout: Layout) -> None:
    assert replace(layout, layout.members) == layout


@given(structs, st.data())
def test_reorder_and_its_inverse_are_identity(layout: Layout, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(layout.members))))
    there = replace(layout, [layout.members[i] for i in order])
    back = replace(there, [there.members[order.index(i)] for i in range(len(order))])
    assert back == layout
    assert back.align == layout.align


@given(structs, st.data())
def test_move_and_its_inverse_are_identity(layout: Layout, data: st.DataObject) -> None:
    count = len(layout.members)
    here, there = (data.draw(st.integers(0, count - 1)) for _ in range(2))
    moved = Move(f"#{here}", index=there).apply(layout)
    assert moved.members[there].type == layout.members[here].type
    assert Move(f"#{there}", index=here).apply(moved) == layout
    swapped = Swap(f"#{here}", f"#{there}").apply(layout)
    assert Swap(f"#{here}", f"#{there}").apply(swapped) == layout


@given(structs, st.sampled_from([16, 64, 128]), st.data())
def test_aligning_puts_a_member_on_its_boundary(layout: Layout, align: int, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(layout.members) - 1))
    aligned = Align(f"#{i}", align).apply(layout)
    assert aligned.members[i].bit_offset % (align * 8) == 0
    assert aligned.align >= align
    before = layout.members[i].forced_align
    assert Align(f"#{i}", before).apply(aligned) == layout


@given(structs, st.data())
def test_an_isolated_member_has_no_mates_behind_or_before_it(layout: Layout, data: st.DataObject) -> None:
    named = [m.name for m in layout.members if m.name is not None]
    assume(named)
    name = data.draw(st.sampled_from(named))
    isolated = Isolate(name, 64).apply(layout)
    others = [leaf.top for leaf in mates(isolated, name, 64)]
    assert [top for top in others if top != isolated.index(name)] == []


@given(structs, st.integers(1, 200))
def test_padding_a_member_moves_it_by_at_least_that_much(layout: Layout, size: int) -> None:
    i = len(layout.members) - 1
    padded = Pad(f"#{i}", size).apply(layout)
    before = layout.members[i - 1].bit_end if i else 0
    assert padded.members[i + 1].bit_offset >= before + size * 8


# -- scenarios ----------------------------------------------------------------------------------------


@given(structs, st.data())
def test_undo_and_redo_are_identity(layout: Layout, data: st.DataObject) -> None:
    scenario = Scenario(layout)
    states = [scenario.layout]
    for _ in range(data.draw(st.integers(1, 4))):
        edit = data.draw(edits(scenario.layout))
        if isinstance(edit, Insert) and edit.decl.split()[1] in scenario.layout.member_names():
            continue
        scenario = scenario.edited(edit)
        states.append(scenario.layout)
    for state in reversed(states[:-1]):
        scenario = scenario.undo()
        assert scenario.layout == state
    assert scenario.undo() == scenario
    for state in states[1:]:
        scenario = scenario.redo()
        assert scenario.layout == state
    assert Scenario.from_json(scenario.to_json()).layout == scenario.layout
    assert scenario.reset().layout == layout


# -- lines --------------------------------------------------------------------------------------------


@given(structs)
def test_members_holes_and_padding_add_up_to_the_size(layout: Layout) -> None:
    bits = sum(m.bit_size for m in layout.members)
    assert bits + sum(hole.bits for hole in holes(layout)) + padding_bits(layout) == layout.size * 8


@given(layouts(), line_sizes, st.data())
def test_mates_are_symmetric(layout: Layout, line_bytes: int, data: st.DataObject) -> None:
    phase = data.draw(st.integers(0, line_bytes - 1))
    paths = [leaf.path for leaf in leaves(layout) if leaf.bit_size]
    a, b = (data.draw(st.sampled_from(paths)) for _ in range(2))
    assume(a != b)
    mates_of_a = {leaf.path for leaf in mates(layout, a, line_bytes, phase)}
    mates_of_b = {leaf.path for leaf in mates(layout, b, line_bytes, phase)}
    assert (b in mates_of_a) == (a in mates_of_b) == share_line(layout, a, b, line_bytes, phase)


@given(layouts(), line_sizes, st.data())
def test_lines_of_members_are_lines_of_the_struct(layout: Layout, line_bytes: int, data: st.DataObject) -> None:
    phase = data.draw(st.integers(0, line_bytes - 1))
    total = n_lines(layout, line_bytes, phase)
    assert (layout.size + phase) / line_bytes <= total < (layout.size + phase) / line_bytes + 1
    for member in layout.members:
        first, last = line_span(member.bit_offset, member.bit_size, line_bytes, phase)
        assert 0 <= first <= last < total


# -- inference ----------------------------------------------------------------------------------------


def stripped(layout: Layout) -> Layout:
    """`layout` as a source without attributes (BTF) would give it."""
    bare = tuple(with_(m, forced_align=0, packed=False) for m in layout.members)
    natural = max((m.natural_align for m in bare), default=1)
    align = min(natural, layout.size & -layout.size) if layout.size else natural
    return with_(layout, members=bare, packed=False, forced_align=0, pack=0, align=align)


@settings(max_examples=300)
@given(layouts())
def test_inferred_attributes_explain_the_layout_or_a_reason_is_given(layout: Layout) -> None:
    settled = settle(stripped(layout))
    assert settled == layout  # what it says of offsets never changes
    if settled.reason is None:
        assert replace(settled, settled.members) == layout
    else:
        with pytest.raises(PlacementError, match=re.escape(settled.reason)):
            replace(settled, settled.members)


@given(layouts())
def test_a_layout_without_attributes_is_always_settled(layout: Layout) -> None:
    bare = [with_(m, forced_align=0, packed=False) for m in layout.members]
    placed, size, align = place(bare, layout.kind, Rules(layout.abi))
    plain = Layout("s", layout.kind, size, align, placed, abi=layout.abi)
    settled = settle(plain)
    assert settled.reason is None
    assert [(m.forced_align, m.packed) for m in settled.members] == [(0, False)] * len(placed)
    assert (settled.packed, settled.forced_align) == (False, 0)


@given(layouts())
def test_stated_attributes_are_kept(layout: Layout) -> None:
    settled = settle(layout)
    assert settled.reason is None
    assert [(m.forced_align, m.packed) for m in settled.members] == [(m.forced_align, m.packed) for m in layout.members]
    assert (settled.packed, settled.forced_align) == (layout.packed, layout.forced_align)
