"""Classes of C++ and structs of Rust: shown where the compiler put them, and marked where edits would lie."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.dwarf import DwarfSource, open_dwarf
from kitlib.errors import NotFound, PlacementError
from kitlib.lines import holes, leaves
from kitlib.model import Layout
from kitlib.place import replace

Need = Callable[..., str]
SAMPLES = Path(__file__).parent / "dwarf_samples"
WAYS = (("g++", "-g"), ("g++", "-gdwarf-4"), ("clang++-19", "-g"), ("clang++-16", "-gdwarf-4"))


@pytest.fixture(scope="module", params=WAYS, ids=[" ".join(way) for way in WAYS])
def classes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> DwarfSource:
    compiler, flags = request.param
    target = tmp_path_factory.mktemp("classes") / "classes.o"
    command = [
        need_tool(compiler, required=False),
        "-std=c++20",
        "-w",
        "-c",
        flags,
        "-o",
        target,
        SAMPLES / "classes.cc",
    ]
    subprocess.run([str(x) for x in command], check=True, capture_output=True, timeout=120)
    return open_dwarf(target)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> DwarfSource:
    target = tmp_path_factory.mktemp("rust") / "shapes.o"
    target.write_bytes(gzip.decompress((SAMPLES / "shapes.o.gz").read_bytes()))
    return open_dwarf(target)


def places(layout: Layout) -> list[tuple[str | None, int, int]]:
    return [(m.name, m.offset, m.size) for m in layout.members]


def assert_no_overlap(layout: Layout) -> None:
    end = 0
    for member in layout.members if layout.kind != "union" else ():
        assert member.bit_offset >= end
        end = member.bit_end
    assert end <= layout.size * 8


def test_plain_structs_are_as_in_c(classes: DwarfSource) -> None:
    pod = classes.struct("ns::Pod")
    assert places(pod) == [("a", 0, 4), ("b", 4, 1)]
    assert pod.replaceable
    assert classes.struct("Pod") is classes.struct("Alias")
    assert classes.struct("Pod").name == "ns::Pod"
    assert classes.struct("Named").size == 4
    assert [(m.name, m.offset) for m in classes.struct("Hidden")] == [("p", 0), ("q", 4), ("r", 8)]
    assert classes.struct("Hidden").replaceable


def test_bases_and_vtables_stand_where_the_compiler_says(classes: DwarfSource) -> None:
    base = classes.struct("ns::Base")
    assert [(m.offset, m.size) for m in base] == [(0, 8), (8, 8), (16, 1)]
    assert (base.members[0].name or "").startswith("_vptr")
    assert "count" not in base.member_names()  # static
    # the Itanium ABI puts d into Base's padding: the base takes 17 bytes of the object, not 24
    assert places(classes.struct("Derived")) == [("ns::Base", 0, 17), ("d", 17, 1), ("e", 20, 4)]
    assert places(classes.struct("FromNonPod")) == [("ns::NonPod", 0, 5), ("tail", 5, 1)]
    assert places(classes.struct("WithEmpty")) == [("ns::Empty", 0, 0), ("q", 0, 4)]
    assert places(classes.struct("Two")) == [("ns::Pod", 0, 8), ("ns::NonPod", 8, 5), ("last", 14, 2)]
    assert [leaf.path for leaf in leaves(classes.struct("FromNonPod"))] == ["ns::NonPod.a", "ns::NonPod.b", "tail"]


def test_edits_that_would_lie_are_refused(classes: DwarfSource) -> None:
    reasons = {name: classes.struct(f"ns::{name}").reason or "" for name in ("Base", "Derived", "Virtual", "Shares")}
    assert "vtable" in reasons["Base"]
    assert "base class" in reasons["Derived"]
    assert "virtual base" in reasons["Virtual"]
    assert "no_unique_address" in reasons["Shares"]
    assert classes.struct("Empty").reason  # one byte without a member
    with pytest.raises(PlacementError, match="vtable"):
        replace(classes.struct("Base"), classes.struct("Base").members[::-1])


def test_members_of_class_types(classes: DwarfSource) -> None:
    user = classes.struct("User")
    assert user.replaceable
    assert places(user) == [
        ("lock", 0, 40), ("hits", 40, 4), ("data", 48, 8), ("call", 56, 16), ("box", 72, 24), ("kind", 96, 1),
        ("wide", 100, 4), ("in", 104, 4), ("null", 112, 8), ("moved", 120, 8), ("ok", 128, 1), ("own", 132, 8),
    ]  # fmt: skip
    types = {m.name: m.type for m in user}
    assert types["lock"] == "std::mutex"
    assert "lock" in user.member("lock").tags
    assert types["hits"] == "std::atomic<int>"
    assert "atomic" in user.member("hits").tags
    assert types["data"] == "int ns::Pod::*"
    assert types["kind"] == "ns::User::Kind"
    assert types["moved"] == "int &&"
    assert types["in"] == "ns::User::Inner"


def test_templates_and_qualified_names(classes: DwarfSource) -> None:
    box = next(name for name in classes.names() if name.startswith("ns::Box<"))
    assert places(classes.struct(box)) == [("item", 0, 6), ("p", 8, 8), ("r", 16, 8)]
    assert classes.struct(box.removeprefix("ns::")).name == box
    assert classes.struct("ns::User::Inner").name == "ns::User::Inner"
    with pytest.raises(NotFound, match="did you mean ns::User"):
        classes.struct("ns::Usr")
    with pytest.raises(NotFound):
        classes.struct("elsewhere::Pod")


def test_nothing_overlaps(classes: DwarfSource, shapes: DwarfSource) -> None:
    count = 0
    for source in (classes, shapes):
        for layout in source.structs():
            assert_no_overlap(layout)
            holes(layout)
            count += 1
    assert count > 20


def test_rust_fields_in_memory_order(shapes: DwarfSource) -> None:
    point = shapes.struct("Point")
    assert point.name == "shapes::Point"
    assert places(point) == [("b", 0, 8), ("c", 8, 2), ("a", 10, 1)]
    assert point.reason == "Rust orders the fields of a struct itself"
    assert places(shapes.struct("shapes::Raw")) == [("x", 0, 1), ("y", 4, 4)]


def test_rust_enums_are_unions_with_a_tag(shapes: DwarfSource) -> None:
    shape = shapes.struct("Shape")
    assert (shape.size, len(shape.members), shape.replaceable) == (16, 1, False)
    inner = shape.members[0].inner
    assert inner is not None
    assert [(m.name, m.offset) for m in inner] == [("discriminant", 0), ("Circle", 0), ("Rect", 0), ("Nothing", 0)]
    rect = inner.member("Rect").inner
    assert rect is not None
    assert places(rect) == [("h", 1, 1), ("w", 8, 8)]
    option = "core::option::Option<alloc::boxed::Box<u32, alloc::alloc::Global>>"
    assert shapes.struct(option) == shapes.struct(option.removeprefix("core::option::"))
    assert shapes.struct("Holder").member("t").type == "(u8, u32)"


@pytest.mark.parametrize("defined", [True, False], ids=["elsewhere", "nowhere"])
def test_a_class_that_one_unit_only_declares(defined: bool, tmp_path: Path, need_tool: Need) -> None:
    """clang leaves a class with virtual functions to the unit that defines the first of them."""
    (tmp_path / "head.h").write_text("struct Key { virtual void go(); long state; };\n")
    (tmp_path / "use.cc").write_text(
        '#include "head.h"\nstruct Holds { int a; Key key; int b; } *h; long f() { return h->key.state; }'
    )
    (tmp_path / "def.cc").write_text('#include "head.h"\nvoid Key::go() {}')
    compiler = need_tool("clang++-19", required=False)
    units = ["use.cc", "def.cc"] if defined else ["use.cc"]
    subprocess.run([compiler, "-g", "-w", "-r", "-o", "all.o", *units], check=True, cwd=tmp_path, timeout=60)
    holds = open_dwarf(tmp_path / "all.o").struct("Holds")
    assert holds.size == 32
    assert [m.offset for m in holds] == [0, 8, 24]
    if defined:
        assert holds.member("key").size == 16
        assert holds.replaceable
    else:
        assert "type 'Key' of key is declared here and defined in no unit" in (holds.reason or "")
