"""Orders against the real plugin and the real clang, and the vectorised form against the scalar one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace as with_
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib import datafiles
from kitlib.cdecl import member_from_decl
from kitlib.errors import DataError, PlacementError
from kitlib.model import X86_64, Layout, Member
from kitlib.place import Rules, place, replace
from kitlib.placebatch import place_orders, table_of
from kitlib.randbatch import batches, gcc_orders, order_batches
from kitlib.randclang import clang_buckets, clang_order, randomize_clang, seed_sequence
from kitlib.randstruct import (
    GCC_MODES,
    MODES,
    as_plugin_sees,
    gcc_order,
    is_ops_struct,
    name_hash,
    parse_seed,
    plan_of,
    randomize_gcc,
)
from kitlib.shorthand import make_layout
from kitlib.sources import open_source


def struct_of(name: str, declarations: list[str]) -> Layout:
    """A layout from C declarations, with ``__attribute__((aligned(n)))`` where it is given."""
    base = Layout(name, "struct", 0, 1, ())
    members: list[Member] = []
    for text in declarations:
        aligned = re.search(r"__attribute__\(\(aligned\((\d+)\)\)\)", text)
        member = member_from_decl(text.split("__attribute__")[0], base)
        members.append(with_(member, forced_align=int(aligned[1])) if aligned else member)
    placed, size, align = place(members, "struct", Rules(X86_64))
    return Layout(name, "struct", size, align, placed)


def checked(name: str) -> list[tuple[Layout, dict]]:
    record = json.loads(datafiles.path(f"randstruct/{name}.json").read_text())
    return [(struct_of(s["name"], s["members"]), shuffle) for s in record["structs"] for shuffle in s["shuffles"]]


def where(layout: Layout, declared: Layout) -> list[int]:
    offsets = {member.name: member.bit_offset for member in layout}
    return [offsets[member.name] for member in declared]


@pytest.mark.parametrize("mode", GCC_MODES)
def test_every_layout_of_the_real_plugin(mode):
    rows = [(layout, row) for layout, row in checked("gcc-plugin") if row["mode"] == mode]
    assert len(rows) == 48
    for layout, row in rows:
        got = randomize_gcc(layout, row["seed"], mode, pins_short_arrays=True)
        assert (got.size, where(got, layout)) == (row["size"], row["bit_offsets"]), (layout.title, row["seed"])


def test_every_layout_of_the_real_clang():
    rows = checked("clang")
    assert len(rows) == 92
    for layout, row in rows:
        got = randomize_clang(layout, row["seed"])
        assert (got.size, where(got, layout)) == (row["size"], row["bit_offsets"]), (layout.title, row["seed"])


@pytest.mark.parametrize("compiler", ["clang-16", "clang-19"])
def test_order_in_the_dwarf_of_a_live_clang(compiler, need_tool, tmp_path: Path):
    need_tool(compiler, required=False)  # the committed orders of both are tested anyway
    declarations = ["long a", "int b", "int c", "char d[3]", "void *e", "short f", "long g[5]", "unsigned h : 3"]
    layout = struct_of("live", declarations)
    source, built = tmp_path / "live.c", tmp_path / "live.o"
    source.write_text(
        f"struct live {{ {'; '.join(declarations)}; }} __attribute__((randomize_layout));\nstruct live x;\n"
    )
    for seed in ("tea", "0123456789abcdef", "x"):
        command = [compiler, f"-frandomize-layout-seed={seed}", "-g", "-c", "-o", str(built), str(source)]
        subprocess.run(command, check=True, timeout=60)
        found = open_source(str(built)).struct("live")
        expected = randomize_clang(layout, seed)
        assert [m.name for m in found] == [m.name for m in expected]
        assert (found.size, where(found, layout)) == (expected.size, where(expected, layout))


def test_seed_sequence_is_that_of_libstdcxx():
    # Printed by a C++ program built with g++ 12: std::seed_seq{1, 2, 3, 4, 5}, generate into five words.
    assert seed_sequence([1, 2, 3, 4, 5], 5) == [16274316, 393758379, 4111240229, 788320370, 2944301969]


def test_name_hash_wraps_and_names_the_nameless():
    assert name_hash(None) == name_hash("anonymous")
    assert name_hash("a") == ((0x61 << 4) + (0x61 >> 4)) * 11
    assert 0 <= name_hash("x" * 200) < 1 << 32


@pytest.mark.parametrize("text", ["", "12", "g" * 64, "0" * 63, "0" * 65])
def test_bad_seed(text):
    with pytest.raises(DataError, match="64 hex digits"):
        parse_seed(text)


def test_seed_of_bytes_that_are_no_text(need_tool, tmp_path: Path):
    layout = make_layout("a:8 b:4 c:4 d:16 e:4 f:1 g:2 h:40")
    odd = os.fsdecode(b"\xff\xfe\x80")
    assert clang_order(layout, odd) != clang_order(layout, odd[:2])
    with pytest.raises(DataError, match="is no text"):
        clang_order(layout, "\ud800")
    compiler = need_tool("clang-16", required=False)
    source, built = tmp_path / "live.c", tmp_path / "live.o"
    source.write_text(
        "struct s { long a; int b; int c; long d[2]; int e; char f; short g; long h[5]; }"
        " __attribute__((randomize_layout));\nstruct s x;\n"
    )
    command = [
        compiler.encode(),
        b"-frandomize-layout-seed=\xff\xfe\x80",
        b"-g",
        b"-c",
        b"-o",
        bytes(built),
        bytes(source),
    ]
    subprocess.run(command, check=True, timeout=60)
    found = open_source(str(built)).struct("s")
    assert [m.name for m in found] == [m.name for m in randomize_clang(layout, odd)]


def test_groups_close_at_64_bytes_and_overshoot():
    plan = plan_of(make_layout("a:40 b:16 c:32 d:8 e:200 f:4 g:4"), "gcc-performance")
    assert plan.groups == ((0, 3), (3, 2), (5, 2))


def test_flexible_tail_stays():
    layout = struct_of("s", ["long a", "int b", "char c", "char tail[]"])
    for seed in range(30):
        order = gcc_order(plan_of(layout, "gcc-full"), (seed, 1, 2, 3), "gcc-full")
        assert order[-1] == 3
        assert clang_order(layout, str(seed))[-1] == 3


def test_short_array_is_pinned_only_by_the_older_plugin():
    layout = struct_of("s", ["long a", "int b", "char c", "char tail[1]"])
    assert plan_of(layout, "gcc-performance-prefix").pinned == 1
    assert plan_of(layout, "gcc-full").pinned == 0
    assert plan_of(layout, "gcc-full", pins_short_arrays=True).pinned == 1


def test_fixed_performance_mode_keeps_members_in_their_group():
    layout = make_layout(" ".join(f"m{i}:8" for i in range(24)))
    plan = plan_of(layout, "gcc-performance")
    escaped = False
    for seed in range(50):
        order = gcc_order(plan, (seed, 7, 7, 7), "gcc-performance")
        assert all(sorted(order[s : s + n]) == list(range(s, s + n)) for s, n in plan.groups)
        loose = gcc_order(plan, (seed, 7, 7, 7), "gcc-performance-prefix")
        escaped |= any(sorted(loose[s : s + n]) != list(range(s, s + n)) for s, n in plan.groups)
    assert escaped


def test_clang_compares_bits_so_eight_bytes_stand_alone():
    buckets, pinned = clang_buckets(make_layout("a:8 b:4 c:4 d:16 e:4 f:1"))
    assert [b.members for b in buckets] == [(0,), (1, 2), (3,), (4, 5)]
    assert pinned == 0


def test_function_pointers_only():
    ops = struct_of("ops", ["int (*open)(void)", "void (*close)(int)"])
    assert is_ops_struct(ops)
    assert not is_ops_struct(struct_of("s", ["int (*open)(void)", "int flags"]))
    assert not is_ops_struct(Layout("empty", "struct", 0, 1, ()))


def test_unions_and_unplaceable_structs_are_refused():
    union = Layout("u", "union", 8, 8, ())
    with pytest.raises(PlacementError, match="only structs"):
        plan_of(union, "gcc-full")
    with pytest.raises(PlacementError, match="no type known"):
        clang_buckets(with_(make_layout("a:8"), reason="no type known"))


SHAPES = ("{0}:1", "{0}:2", "{0}:4", "{0}:8", "{0}:24", "{0}:40", "{0}:4@16", "{0}:4:3", "{0}:4:17", "{0}:8:33")
words = st.sampled_from(SHAPES)
layouts = st.lists(words, min_size=1, max_size=20).map(
    lambda shapes: make_layout(" ".join(shape.format(f"m{i}") for i, shape in enumerate(shapes)))
)


@settings(deadline=None, max_examples=60)
@given(layouts, st.sampled_from(GCC_MODES), st.integers(0, 1 << 32))
def test_vectorised_orders_are_the_scalar_ones(layout, mode, seed):
    plan = plan_of(layout, mode)
    seeds = np.random.default_rng(seed).integers(0, 1 << 64, (4, 7), dtype=np.uint64)
    orders = gcc_orders(plan, mode, seeds)
    for t in range(7):
        a, b, c, d = (int(word) for word in seeds[:, t])
        assert tuple(orders[:, t]) == gcc_order(plan, (a, b, c, d), mode)


@settings(deadline=None, max_examples=60)
@given(layouts, st.sampled_from(MODES), st.integers(0, 1 << 32), st.booleans())
def test_vectorised_placement_is_place(layout, mode, seed, packed):
    layout = with_(layout, packed=packed)
    base = layout if mode == "clang" else as_plugin_sees(layout)
    for orders in order_batches(layout, mode, 5, seed):
        batch = place_orders(table_of(base), orders)
        for t in range(5):
            expected = replace(base, [base.members[i] for i in orders[:, t]])
            assert batch.sizes[t] == expected.size
            assert list(batch.bit_offsets[:, t]) == where(expected, base)


@pytest.mark.parametrize("mode", MODES)
def test_every_order_is_a_permutation_and_the_seed_decides(mode):
    layout = make_layout("a:8 b:4 c:4:3 d:4:9 e:40 f:8 g:2 h:1 i:64")
    first = np.concatenate(list(order_batches(layout, mode, 300, 5)), axis=1)
    assert (np.sort(first, axis=0) == np.arange(9)[:, None]).all()
    again = np.concatenate(list(order_batches(layout, mode, 300, 5)), axis=1)
    other = np.concatenate(list(order_batches(layout, mode, 300, 6)), axis=1)
    assert (first == again).all()
    assert (first != other).any()


def test_clang_batches_have_the_distribution_of_the_exact_orders():
    layout = make_layout("a:8 b:4 c:4 d:2 e:16 f:1")
    exact = [randomize_clang(layout, str(seed)).member("a").offset for seed in range(1500)]
    drawn = np.concatenate([b.bit_offsets[0] // 8 for b in batches(layout, "clang", 60_000, 3)])
    values, counts = np.unique(drawn, return_counts=True)
    assert set(exact) <= set(values.tolist())
    expected = dict(zip(values.tolist(), (counts / 40).tolist(), strict=True))
    chi_square = sum((exact.count(v) - e) ** 2 / e for v, e in expected.items())
    assert chi_square < 3 * len(expected) + 20  # far beyond the 0.1 % point for these few cells
