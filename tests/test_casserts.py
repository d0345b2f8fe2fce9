"""C assertions: gcc accepts them on the layout they were written for, and refuses the changed one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kitlib.casserts import kernel_group, static_asserts
from kitlib.edit import Edit, Insert, Isolate, Move, Remove, Swap, apply
from kitlib.errors import DataError
from kitlib.guard import evaluate
from kitlib.model import Layout
from kitlib.promise import write_rules
from kitlib.rules import Rule, Scope, StructRules
from kitlib.shorthand import make_layout
from kitlib.sources import open_source

KERNEL = """
#include <stddef.h>
#include <assert.h>
typedef unsigned char __u8;
#define offsetofend(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))
#define BUILD_BUG_ON(condition) static_assert(!(condition), #condition)
#define __cacheline_group_begin(GROUP) __u8 __cacheline_group_begin__##GROUP[0]
#define __cacheline_group_end(GROUP) __u8 __cacheline_group_end__##GROUP[0]
#define CACHELINE_ASSERT_GROUP_MEMBER(TYPE, GROUP, MEMBER) \\
    BUILD_BUG_ON(!(offsetof(TYPE, MEMBER) >= offsetofend(TYPE, __cacheline_group_begin__##GROUP) && \\
                   offsetofend(TYPE, MEMBER) <= offsetof(TYPE, __cacheline_group_end__##GROUP)))
#define CACHELINE_ASSERT_GROUP_SIZE(TYPE, GROUP, SIZE) \\
    BUILD_BUG_ON(offsetof(TYPE, __cacheline_group_end__##GROUP) - \\
                 offsetofend(TYPE, __cacheline_group_begin__##GROUP) > SIZE)
"""  # what include/linux/cache.h and build_bug.h promise, as far as the assertions need it

Gcc = Callable[[str], str]


@pytest.fixture(name="gcc")
def _gcc(need_tool: Callable[[str], str], tmp_path: Path) -> Gcc:
    compiler = need_tool("gcc")

    def run(text: str) -> str:
        """Messages of the compiler; empty if it accepts `text`."""
        source = tmp_path / "unit.c"
        source.write_text(text)
        command = [compiler, "-std=gnu11", "-w", "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == (not done.stderr)
        return done.stderr

    return run


def c_struct(layout: Layout) -> str:
    """`layout`, whose members are scalars, char arrays and structs of them, as C."""
    nested = {m.inner.name: m.inner for m in layout if m.inner is not None and m.inner.name}
    return "".join(_one(inner) for inner in nested.values()) + _one(layout)


def _one(layout: Layout) -> str:
    body = []
    for m in layout:
        align = f" __attribute__((aligned({m.forced_align})))" if m.forced_align else ""
        if m.inner is not None:
            body.append(f"  struct {m.inner.name} {m.name}{align};")
        elif m.count is not None:
            body.append(f"  unsigned char {m.name}[{m.count}]{align};")
        else:
            kinds = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}
            body.append(f"  {kinds[m.size]} {m.name}{align};")
    return f"struct {layout.name} {{\n" + "\n".join(body) + "\n};\n"


def accepted(gcc: Gcc, group: StructRules, written_on: Layout, compiled: Layout) -> str:
    return gcc(c_struct(compiled) + static_asserts(group, written_on))


def made(kind: str, *members: str, allow: tuple[str, ...] = (), **numbers: int) -> StructRules:
    return StructRules("s", (Rule("r", kind, members, tuple(numbers.items()), allow=allow),))


LAYOUT = make_layout("head:8 tail:8 lock:4 flags:4 stats:64 count:4 last:4")


@pytest.mark.parametrize(
    ("group", "bad"),
    [
        (made("apart", "head", "count"), [Move("count", index=0)]),
        (made("together", "head", "flags"), [Move("flags", index=6)]),
        (made("together", "head", "count", lines=2), [Isolate("count")]),
        (made("at", "lock", offset=16), [Swap("head", "lock")]),
        (made("on_line", "count", line=1), [Move("count", index=0)]),
        (made("straddle", "stats"), [Move("stats", index=0)]),
        (made("alone", "count", "last", allow=("stats",)), [Insert("u64 stat", after="last")]),
        (made("alone", "count", "last", allow=("stats",)), [Move("flags", index=6)]),
        (made("size", bytes=96), [Insert("u64 stat", index=0)]),
        (made("size", max_bytes=96), [Insert("u64 stat", index=0)]),
        (made("lines", max_lines=2), [Insert("char pad[64]", index=0)]),
        (made("lines", "head", "tail", "lock", max_lines=1), [Move("lock", index=6)]),
        (made("lines", "head", "stats", "count", max_lines=2), [Isolate("count")]),
    ],
)
def test_each_kind_holds_and_fails_as_the_kit_says(gcc: Gcc, group: StructRules, bad: list[Edit]) -> None:
    after = apply(LAYOUT, bad)
    assert [evaluate(group, x)[0].status for x in (LAYOUT, after)] == ["pass", "fail"]
    assert accepted(gcc, group, LAYOUT, LAYOUT) == ""
    assert "static assertion failed" in accepted(gcc, group, LAYOUT, after)


def test_an_outsider_that_slides_onto_a_kept_line_is_seen(gcc: Gcc) -> None:
    """No gap between neighbours changes: only the outsider's own line does."""
    layout = make_layout("hot:8 pad:56 far:8 end:8")
    after = make_layout("hot:8 pad:24 far:8 end:8")
    group = made("alone", "hot", allow=("pad",))
    assert [evaluate(group, x)[0].status for x in (layout, after)] == ["pass", "fail"]
    assert accepted(gcc, group, layout, layout) == ""
    assert "far is on a line of hot" in accepted(gcc, group, layout, after)


words = st.lists(st.sampled_from([1, 2, 4, 8, 24, 40, 80]), min_size=3, max_size=10)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words, st.sampled_from([32, 64, 128]), st.data())
def test_gcc_and_the_kit_agree_on_any_layout(gcc: Gcc, sizes: list[int], line: int, data: st.DataObject) -> None:
    layout = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(sizes)))
    names = [m.name or "" for m in layout]
    pair = tuple(data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True)))
    rules = [
        Rule("0", "apart", pair, (), Scope((line,))),
        Rule("1", "together", pair, (("lines", data.draw(st.integers(1, 3))),), Scope((line,))),
        Rule("2", "at", pair[:1], (("offset", data.draw(st.integers(0, 32))),)),
        Rule("3", "on_line", pair[:1], (("line", data.draw(st.integers(0, 2))),), Scope((line,))),
        Rule("4", "no_straddle", pair, (), Scope((line,))),
        Rule("5", "lines", pair, (("max_lines", data.draw(st.integers(1, 4))),), Scope((line,))),
        Rule("6", "size", (), (("max_bytes", data.draw(st.integers(1, 300))),)),
    ]
    text = c_struct(layout)
    for rule in rules:
        group = StructRules("s", (rule,))
        says = evaluate(group, layout)[0].status == "pass"
        assert (gcc(text + static_asserts(group, layout)) == "") == says, rule


def test_asserts_written_for_mm_5_12_fail_on_the_state_that_regressed(gcc: Gcc) -> None:
    before, after = (open_source(name).struct("mm_struct") for name in ("mm-5.12", "mm-5.13-seq"))
    group = write_rules(before, ["mmap_lock"])
    stub = "struct rw_semaphore { long count, owner; int osq, wait_lock; void *list[2]; };\n"
    bodies = []
    for layout in (before, after):
        at = layout.member("mmap_lock").offset
        tail = layout.size - at - 40
        bodies.append(f"struct mm_struct {{ char head[{at}]; struct rw_semaphore mmap_lock; char tail[{tail}]; }};\n")
    text = static_asserts(group, before)
    assert gcc(stub + bodies[0] + text) == ""
    said = gcc(stub + bodies[1] + text)
    assert "mmap_lock.count and mmap_lock.owner share a line" in said
    assert "mmap_lock lies on one line" in said


def test_what_c_cannot_state_is_listed_and_not_dropped(gcc: Gcc) -> None:
    layout = make_layout("a:4:3 b:4:5 c:8")
    rules = (
        Rule("bits", "no_straddle", ("a",)),
        Rule("smp", "no_straddle", ("c",), (), Scope(config=("CONFIG_SMP",))),
        Rule("c", "no_straddle", ("c",), (), Scope(), "ends the comment */ here"),
    )
    text = static_asserts(StructRules("s", rules), layout)
    assert "bits: a is a bit-field" in text
    assert "smp: it is for some configurations only" in text
    assert gcc("struct s { unsigned a:3, b:5; unsigned long c; };\n" + text) == ""


def test_a_struct_without_a_c_name_is_refused() -> None:
    with pytest.raises(DataError, match="plain name"):
        static_asserts(StructRules("x", (Rule("r", "size", (), (("bytes", 8),)),)), make_layout("a:8", "weird<int>"))


# -- the kernel's groups ------------------------------------------------------------------------------


def grouped(layout: Layout, members: list[str]) -> str:
    """C of `layout` with the markers of a group around `members`."""
    out = []
    for line in c_struct(layout).splitlines():
        name = line.rstrip(";").split()[-1].split("[")[0] if line.startswith("  ") else ""
        if name == members[0]:
            out.append("  __cacheline_group_begin(hot);")
        out.append(line)
        if name == members[-1]:
            out.append("  __cacheline_group_end(hot);")
    return KERNEL + "\n".join(out) + "\n"


BASE = make_layout("a:56 b:8 hot1:8 hot2:8 hot3:4 pad:44 cold:8 x:8")


def test_the_kernels_macros_miss_a_moved_group_and_the_kit_does_not(gcc: Gcc) -> None:
    names = ["hot1", "hot2", "hot3"]
    text = kernel_group(BASE, names, "hot")
    assert gcc(grouped(BASE, names) + text) == ""
    after = apply(BASE, [Insert("char new[64]", index=0)])
    macros_only = "\n".join(line for line in text.splitlines() if line.startswith("CACHELINE_ASSERT"))
    assert gcc(grouped(after, names) + macros_only) == ""  # the same group, another line: they do not see it
    assert "hot left line 1" in gcc(grouped(after, names) + text)


def test_the_kernels_macros_miss_an_outsider_and_the_kit_does_not(gcc: Gcc) -> None:
    names = ["hot1", "hot2", "hot3"]
    text = kernel_group(BASE, names, "hot")
    after = apply(BASE, [Move("x", after="hot3")])
    macros_only = "\n".join(line for line in text.splitlines() if line.startswith("CACHELINE_ASSERT"))
    assert gcc(grouped(after, names) + macros_only) == ""
    assert "x is on a line of hot" in gcc(grouped(after, names) + text)


def test_a_newcomer_next_to_the_group_is_refused(gcc: Gcc) -> None:
    names = ["hot1", "hot2", "hot3"]
    after = apply(BASE, [Insert("u32 stat", after="hot3"), Remove("pad"), Insert("char pad[40]", after="stat")])
    said = gcc(grouped(after, names) + kernel_group(BASE, names, "hot"))
    assert "something new between hot3 and pad" in said


def test_groups_of_members_that_do_not_follow_each_other_are_refused() -> None:
    with pytest.raises(DataError, match="hot2 stand between them"):
        kernel_group(BASE, ["hot1", "hot3"], "hot")
    with pytest.raises(DataError, match="no C identifier"):
        kernel_group(BASE, ["hot1"], "1x")
