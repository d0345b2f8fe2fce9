"""Layout values, cache-line arithmetic and type tags on small structs with known answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kitlib.errors import NotFound, PlacementError
from kitlib.lines import find_leaf, holes, leaves, line_span, mates, n_lines, padding_bits, share_line, straddlers
from kitlib.model import Layout, Member
from kitlib.shorthand import make_layout
from kitlib.tags import tags_of


def nested() -> Layout:
    """struct outer { int a; struct { u64 x, y; } in; union { u64 l; u32 h; }; }."""
    inner = make_layout("x:8 y:8", "in")
    union = Layout(None, "union", 8, 8, (Member("l", "u64", 0, 64, 8), Member("h", "u32", 0, 32, 4)))
    members = (
        Member("a", "int", 0, 32, 4),
        Member("in", "struct in", 64, 128, 8, inner=inner),
        Member(None, "union {...}", 192, 64, 8, inner=union),
    )
    return Layout("outer", "struct", 32, 8, members)


def test_leaves_expand_nested_and_anonymous_members() -> None:
    found = [(leaf.path, leaf.offset, leaf.size, leaf.in_union) for leaf in leaves(nested())]
    assert found == [("a", 0, 4, False), ("in.x", 8, 8, False), ("in.y", 16, 8, False), ("l", 24, 8, True),
                     ("h", 24, 4, True)]  # fmt: skip


def test_members_of_an_anonymous_union_are_found_through_it() -> None:
    layout = nested()
    assert layout.index("h") == 2
    assert layout.member("#0").name == "a"
    with pytest.raises(NotFound, match="did you mean"):
        layout.member("inn")


def test_holes_padding_and_lines() -> None:
    layout = make_layout("a:4 b:8 c:1")
    assert [(h.offset, h.size, h.bits, h.after) for h in holes(layout)] == [(4, 4, 32, "a")]
    assert padding_bits(layout) == 56
    assert n_lines(layout) == 1
    assert n_lines(layout, 64, 48) == 2


def test_bit_holes_are_counted_in_bits() -> None:
    layout = make_layout("a:4:3 b:4:30 c:1")
    assert [(h.bit_offset, h.bits) for h in holes(layout)] == [(3, 29), (62, 2)]
    assert [h.size for h in holes(layout)] == [3, 0]


@pytest.mark.parametrize(
    ("line_bytes", "phase", "lines"),
    [(32, 0, (1, 2)), (64, 0, (0, 1)), (64, 8, (1, 1)), (128, 0, (0, 0)), (256, 200, (1, 1))],
)
def test_line_span(line_bytes: int, phase: int, lines: tuple[int, int]) -> None:
    assert line_span(56 * 8, 16 * 8, line_bytes, phase) == lines


def test_mates_and_straddlers() -> None:
    layout = make_layout("a:8 pad:48 lock=spinlock_t:4 late:8 b:8", packed=True)
    assert {leaf.path for leaf in mates(layout, "lock")} == {"a", "pad", "late"}
    assert [leaf.path for leaf in straddlers(layout)] == ["late"]
    assert share_line(layout, "a", "lock")
    assert not share_line(layout, "a", "b")
    with pytest.raises(NotFound, match="no member 'lokc'"):
        find_leaf(layout, "lokc")


def test_equality_is_about_places_not_provenance() -> None:
    a = make_layout("x:8 y:4")
    b = make_layout("x:8 y:4@4")
    assert a == b
    assert a != make_layout("y:4 x:8")


@pytest.mark.parametrize(
    ("type_text", "tags"),
    [
        ("atomic_long_t", {"atomic"}),
        ("refcount_t", {"refcount"}),
        ("struct lockref", {"refcount", "lock"}),
        ("struct mutex", {"lock"}),
        ("struct mutex *", {"pointer"}),
        ("struct rcu_head", {"rcu"}),
        ("const struct file_operations *", {"pointer"}),
        ("struct list_head[4]", {"list"}),
        ("unsigned int", set()),
        ("file_ref_t", {"refcount"}),
        ("struct percpu_counter", {"percpu", "counter"}),
    ],
)
def test_tags(type_text: str, tags: set[str]) -> None:
    assert tags_of(type_text) == tags


def test_a_layout_checks_itself() -> None:
    with pytest.raises(ValueError, match="align 3"):
        Layout("s", "struct", 3, 3, ())
    with pytest.raises(ValueError, match="not on a byte"):
        Member("m", "int", 3, 32)


def test_line_size_and_phase_are_checked() -> None:
    from kitlib.lines import check_line

    with pytest.raises(PlacementError, match="use one of 32, 64, 128, 256"):
        check_line(48)
    with pytest.raises(PlacementError, match="from 0 to 63"):
        check_line(64, 64)


def test_structs_that_explode_are_refused_and_named_in_no_time() -> None:
    layout = make_layout("x:1", "s0")
    for number in range(40):
        halves = tuple(Member(n, f"struct s{number}", 8 * layout.size * i, 8 * layout.size, inner=layout)
                       for i, n in enumerate((None, None)))  # fmt: skip
        layout = Layout(f"s{number + 1}", "struct", 2 * layout.size, 1, halves)
    assert layout.member_names() == ["x"]
    with pytest.raises(PlacementError, match="more than 200,000 members"):
        leaves(layout)


def test_a_member_that_ends_with_its_line_does_not_touch_the_next() -> None:
    assert line_span(56 * 8, 8 * 8) == (0, 0)
    assert line_span(0, 64 * 8) == (0, 0)
    assert line_span(0, 64 * 8, phase=1) == (0, 1)
    assert line_span(511, 1) == (0, 0)


def test_a_member_of_one_line_that_lies_on_two_straddles_and_a_longer_one_does_not() -> None:
    layout = make_layout("a:8 b:64 c:65")
    scalars = replace(layout, members=tuple(replace(m, count=None) for m in layout.members))
    assert [leaf.path for leaf in straddlers(scalars)] == ["b"]


def test_a_name_that_begins_like_another_is_not_part_of_it() -> None:
    assert [leaf.path for leaf in mates(make_layout("f:8 f_count:8 g:8"), "f")] == ["f_count", "g"]
