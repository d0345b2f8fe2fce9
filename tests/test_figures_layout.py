"""Cache-line maps: the rows first, then the picture made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitlib.blocks import FOLD_FROM, Block, blocks, fold, map_rows, moved, pieces, tag_of
from kitlib.edit import Align, Move, apply
from kitlib.errors import NotFound, PlacementError
from kitlib.figures.layout import before_after, cacheline_map, wrap
from kitlib.figures.style import KINDS, TAGS, badge, figure, meta, safe
from kitlib.model import Layout, Member
from kitlib.shorthand import make_layout

RING = "lock=spinlock_t:4 head:8 name:56 refs=atomic_t:4"


def rows(layout: Layout, **how: int) -> list[tuple[str, int, float, float]]:
    """(name, line, first byte in the line, bytes) of every piece."""
    return [(p.block.name, p.line, p.start_bit / 8, p.bits / 8) for p in pieces(blocks(layout), **how)]


def test_golden_rows_of_a_small_struct() -> None:
    assert rows(make_layout(RING)) == [
        ("lock", 0, 0, 4),
        ("4-byte hole", 0, 4, 4),
        ("head", 0, 8, 8),
        ("name", 0, 16, 48),
        ("name", 1, 0, 8),
        ("refs", 1, 8, 4),
        ("4-byte padding", 1, 12, 4),
    ]


def test_phase_moves_the_object_within_its_lines() -> None:
    assert rows(make_layout("a:8 b:8"), line_bytes=32, phase=24) == [("a", 0, 24, 8), ("b", 1, 0, 8)]


def test_bit_fields_and_their_hole_keep_their_bits() -> None:
    got = [(b.name, b.bit_offset, b.bit_size) for b in blocks(make_layout("a=u32:4:3 b=u32:4:7 c:4"))]
    assert got == [("a", 0, 3), ("b", 3, 7), ("22-bit hole", 10, 22), ("c", 32, 32)]


def test_union_arms_get_lanes_of_their_own() -> None:
    arms = (Member("a", "long int", 0, 64, 8), Member("b", "int", 0, 32, 4), Member("c", "int", 0, 32, 4))
    union = Layout("u", "union", 8, 8, arms)
    assert [(b.name, b.lane, b.lanes) for b in blocks(union)] == [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)]


def test_expand_opens_nested_structs_and_shows_their_holes() -> None:
    inner = make_layout("state:1 owner:8", "box")
    outer = Layout("o", "struct", 16, 8, (Member("m", "struct box", 0, 128, 8, inner=inner),))
    assert [b.path for b in blocks(outer)] == ["m"]
    assert [b.path for b in blocks(outer, expand=True)] == ["m.state", "7-byte hole", "m.owner"]
    assert [b.path for b in blocks(outer, expand=["m"])] == [b.path for b in blocks(outer, expand=True)]
    assert [b.path for b in blocks(outer, expand=["x"])] == ["m"]


def test_a_member_is_tagged_by_what_is_written_inside_it() -> None:
    inner = Layout("fown", "struct", 8, 4, (Member("lock", "rwlock_t", 0, 64, 4),))
    assert tag_of(Member("owner", "struct fown", 0, 64, 4, inner=inner)) == ("lock", True)
    assert tag_of(Member("p", "struct fown *", 0, 64, 8)) == ("pointer", False)


def test_zero_size_markers_are_drawn_as_markers() -> None:
    fig = cacheline_map(make_layout("a:4 group=u8[]:0 b:4"))
    marks = [t for t in fig.data if t.type == "scatter"]
    assert [list(t.x) for t in marks] == [[4.0]]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Move("refs", index=0), {"refs"}),
        (Move("lock", after="refs"), {"lock"}),
        (Align("head", 64), set()),
    ],
)
def test_moved_is_what_changed_places_not_what_was_pushed(edit: Move | Align, expected: set[str]) -> None:
    ring = make_layout(RING)
    assert moved(ring, apply(ring, [edit])) == expected


@given(st.lists(st.integers(1, 80), min_size=1, max_size=12), st.sampled_from([32, 64, 128, 256]), st.data())
def test_pieces_cover_every_byte_of_a_struct_once(sizes: list[int], line_bytes: int, data: st.DataObject) -> None:
    layout = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(sizes)))
    phase = data.draw(st.integers(0, line_bytes - 1))
    covered = sorted(
        bit
        for p in pieces(blocks(layout), line_bytes, phase)
        for bit in range(p.line * line_bytes * 8 + p.start_bit, p.line * line_bytes * 8 + p.start_bit + p.bits)
    )
    assert covered == list(range(phase * 8, (phase + layout.size) * 8))


def test_every_block_is_drawn_where_its_rows_say() -> None:
    layout = make_layout(RING)
    fig = cacheline_map(layout)
    drawn = sorted(
        (y, base, x) for t in fig.data if t.type == "bar" for y, base, x in zip(t.y, t.base, t.x, strict=True)
    )
    assert drawn == sorted((line, start, size) for _, line, start, size in rows(layout))


def test_tags_differ_in_colour_or_hatch_and_always_in_mark() -> None:
    assert len({(s.color, s.pattern) for s in TAGS.values()}) == len(TAGS)
    marks = [s.mark for s in TAGS.values() if s.mark]
    assert len(set(marks)) == len(marks) == len(TAGS) - 3  # plain data, holes and padding carry none
    assert cacheline_map(make_layout("n=atomic_t:4")).data[0].text[0] == f"{TAGS['atomic'].mark} n"


def test_hover_names_path_type_offset_size_alignment_and_old_place() -> None:
    before = make_layout("a:8 n=atomic_t:4 b:4")
    fig = cacheline_map(apply(before, [Move("n", index=0)]), before=before)
    hover = next(t for t in fig.data if "atomic" in t.name).hovertext[0]
    assert hover == "<b>n</b><br>atomic_t<br>offset 0, was 8<br>size 4 bytes, alignment 4<br>● atomic"


def test_a_moved_member_is_framed_and_its_old_place_dashed() -> None:
    before = make_layout("a:8 n=atomic_t:4 b:4")
    shapes = cacheline_map(apply(before, [Move("n", index=0)]), before=before).layout.shapes
    assert [(s.x0, s.x1, s.line.dash) for s in shapes] == [(8, 12, "dash"), (0, 4, "solid")]


def test_names_from_a_file_are_escaped() -> None:
    bad = '</script><img src=x onerror="alert(1)">'
    layout = Layout(bad, "struct", 8, 8, (Member(bad, bad, 0, 64, 8),))
    fig = cacheline_map(layout)
    shown = [fig.layout.title.text, *fig.data[0].text, *fig.data[0].hovertext]
    assert all(safe("<img") in text or "<" not in text.replace("<br>", "") for text in shown)
    assert not [text for text in shown if "<img" in text or "<scr" in text.replace("<br>", "")]


def test_1300_bytes_are_20_rows_tall_enough_to_read() -> None:
    big = make_layout(" ".join(f"m{i}:8" for i in range(160)))
    fig = cacheline_map(big)
    assert (len(fig.layout.yaxis.tickvals), fig.layout.height) == (20, 20 * 42 + 176)


def test_before_after_shares_one_legend() -> None:
    before = make_layout(RING)
    fig = before_after(before, apply(before, [Move("refs", index=0)]))
    names = [t.name for t in fig.data if t.showlegend]
    assert len(names) == len(set(names))


def test_bad_questions_are_refused() -> None:
    with pytest.raises(PlacementError, match="line size 48"):
        cacheline_map(make_layout(RING), line_bytes=48)
    with pytest.raises(NotFound, match="did you mean refs"):
        cacheline_map(make_layout(RING), highlight=["ref"])


def test_a_badge_says_what_kind_of_figure_it_is() -> None:
    fig = figure("t", "model", "words")
    badge(fig, "measured", "n = 8")
    assert [a.text for a in fig.layout.annotations] == ["<b>± measured</b> · n = 8"]
    assert meta(fig) == {"kind": "measured", "note": "n = 8", "alt": "words", "min_width": 0}
    assert len({s.mark for s in KINDS.values()}) == 3


@pytest.mark.parametrize(
    ("name", "chars", "expected"),
    [
        ("f_count", 11, "f_count"),
        ("f_write_hint", 6, "f_<br>write_<br>hint"),
        ("x_y", 2, ""),
        ("abcdefghijkl", 4, "abcd<br>efgh<br>ijkl"),
    ],
)
def test_labels_wrap_at_underscores(name: str, chars: int, expected: str) -> None:
    assert wrap(name, chars) == expected


def test_blocks_name_an_unnamed_member_by_its_type() -> None:
    assert Block("", "union {...}", 0, 8, 1, "plain").name == "union {...}"


def test_what_has_a_tag_of_its_own_is_opened_only_when_asked() -> None:
    counter = Layout("", "struct", 4, 4, (Member("counter", "int", 0, 32, 4),))
    layout = Layout("s", "struct", 4, 4, (Member("n", "atomic_t", 0, 32, 4, inner=counter),))
    assert [b.path for b in blocks(layout, expand=True)] == ["n"]
    assert [b.path for b in blocks(layout, expand=["n"])] == ["n.counter"]


def test_an_unnamed_member_is_called_by_what_it_holds_and_seen_to_move() -> None:
    arms = tuple(Member(name, "int", 0, 32, 4) for name in "abcd")
    union = Member(None, "union {...}", 0, 32, 4, inner=Layout(None, "union", 4, 4, arms))
    before = Layout(
        "s", "struct", 24, 8, (union, Member("x", "long int", 64, 64, 8), Member("y", "long int", 128, 64, 8))
    )
    after = apply(before, [Move("#0", index=2)])
    assert blocks(before)[0].name == "union {a, b, c, …}"
    assert moved(before, after) == {"union {a, b, c, …}"}
    assert "offset 16, was 0" in cacheline_map(after, before=before).data[0].hovertext[-1]


def test_a_flexible_array_at_the_end_needs_no_row_of_its_own() -> None:
    fig = cacheline_map(make_layout("a:64 data=u8[]:0"))
    assert len(fig.layout.yaxis.tickvals) == 1
    assert [(list(t.x), t.y[0] < 0) for t in fig.data if t.type == "scatter"] == [([64.0], True)]


def test_words_keep_their_blank() -> None:
    assert wrap("4-byte hole", 8) == "4-byte<br>hole"
    assert wrap("■ addr_list_lock", 11) == "■ addr_<br>list_lock"


PAGE = "head:8 buf:832 tail:8 last:320"


def test_lines_that_one_member_fills_are_one_row() -> None:
    every = pieces(blocks(make_layout(PAGE)))
    rows = map_rows(every, 19)
    assert rows == ((0, 0), (1, 12), (13, 13), (14, 17), (18, 18))
    assert [(p.block.name, p.line, p.lines) for p in fold(every, rows)] == [
        ("head", 0, 1),
        ("buf", 0, 1),
        ("buf", 1, 12),
        ("buf", 2, 1),
        ("tail", 2, 1),
        ("last", 2, 1),
        ("last", 3, 4),
        ("last", 4, 1),
    ]
    assert map_rows(every, 19, apart=[5])[1:4] == ((1, 4), (5, 5), (6, 12))


def test_a_folded_row_says_which_lines_it_stands_for() -> None:
    fig = cacheline_map(make_layout(PAGE))
    assert list(fig.layout.yaxis.ticktext)[:3] == ["line 0 · byte 0", "lines 1–12 · byte 64", "line 13 · byte 832"]
    assert "buf · 12 lines" in [text for trace in fig.data for text in trace.text or ()]
    assert "lines 1–12: buf" in meta(fig)["alt"]


def test_an_old_place_is_not_folded_away() -> None:
    fig = cacheline_map(make_layout("a:320 buf:832 tail:8"), before=make_layout("a:320 tail:8 buf:832"))
    assert "line 5 · byte 320" in fig.layout.yaxis.ticktext
    assert "lines 6–17 · byte 384" in fig.layout.yaxis.ticktext
    assert [s.x0 for s in fig.layout.shapes if s.line.dash == "dash"] == [0]


@given(st.lists(st.integers(1, 700), min_size=1, max_size=6), st.sampled_from([32, 64, 128, 256]), st.data())
def test_folding_keeps_every_byte(sizes: list[int], line_bytes: int, data: st.DataObject) -> None:
    layout = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(sizes)))
    phase = data.draw(st.integers(0, line_bytes - 1))
    every = pieces(blocks(layout), line_bytes, phase)
    lines = max(p.line for p in every) + 1
    rows = map_rows(every, lines, line_bytes)
    assert [n for first, last in rows for n in range(first, last + 1)] == list(range(lines))
    assert all(first == last or last - first + 1 >= FOLD_FROM for first, last in rows)
    folded = fold(every, rows)
    assert sum(p.bits * p.lines for p in folded) == layout.size * 8
    assert all(p.bits == line_bytes * 8 for p in folded if p.lines > 1)
