"""Reading C: files, snippets, kernel names without headers, and compilers that fail or are missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kitlib.csource
from kitlib.cprelude import _DEFINITIONS, MACROS, prelude
from kitlib.csource import open_c, open_snippet
from kitlib.errors import NotFound, SourceError, ToolError


@pytest.fixture(autouse=True)
def _compiler(need_tool: Callable[[str], str]) -> None:
    need_tool("gcc")


def test_a_snippet() -> None:
    source = open_snippet("struct ring { int head; long tail; union { int a; char b; }; unsigned n:3; };")
    ring = source.struct("struct ring")
    assert [(m.name, m.type, m.bit_offset, m.bit_size) for m in ring] == [
        ("head", "int", 0, 32),
        ("tail", "long int", 64, 64),
        (None, "union {...}", 128, 32),
        ("n", "unsigned int", 160, 3),
    ]
    assert (ring.size, ring.align, ring.reason) == (24, 8, None)
    assert (ring.source.kind, ring.source.label) == ("c", "C text")


def test_unused_structs_and_typedefs_are_kept() -> None:
    source = open_snippet("struct a { int x; }; union b { int y; }; typedef struct { char z; } c_t;")
    assert source.names() == ["a", "b", "c_t"]
    assert [x.name for x in source.structs()] == ["a", "b", "c_t"]


def test_a_file_finds_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("struct held { long x; };\n")
    file = tmp_path / "-odd name;.c"
    file.write_text('#include "own.h"\n#include <stdint.h>\nstruct s { uint8_t a; struct held h; };\n')
    source = open_c(file)
    assert source.label == str(file)
    assert source.struct("s").member("h").offset == 8
    assert open_c(file).struct("s") == open_snippet(
        "struct held { long x; }; struct s { uint8_t a; struct held h; };"
    ).struct("s")


def test_flags_reach_the_compiler(tmp_path: Path) -> None:
    file = tmp_path / "s.c"
    file.write_text("struct s {\n#ifdef WIDE\n\tlong x;\n#endif\n\tint y;\n};\n")
    assert open_c(file).struct("s").size == 4
    assert open_c(file, flags=["-DWIDE"]).struct("s").size == 16


def test_cplusplus_by_its_suffix(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    need_tool("g++")
    file = tmp_path / "s.cpp"
    file.write_text("struct base { int a; };\nclass derived : public base { char c; };\nderived d;\n")
    derived = open_c(file).struct("derived")
    assert derived.size == 8
    assert derived.member("c").offset == 4


def test_kernel_names_without_headers() -> None:
    source = open_snippet(
        "struct file { u32 flags; spinlock_t lock; struct rcu_head rcu; const char __user *path;\n"
        "atomic_long_t count ____cacheline_aligned_in_smp; __cacheline_group_begin(tx); u8 low:3; } __randomize_layout;"
    )
    assert source.names() == ["file"]
    file = source.struct("file")
    assert [(m.name, m.type, m.offset) for m in file] == [
        ("flags", "u32", 0),
        ("lock", "spinlock_t", 4),
        ("rcu", "struct callback_head", 8),
        ("path", "const char *", 24),
        ("count", "atomic_long_t", 64),
        ("__cacheline_group_begin__tx", "unsigned char[]", 72),
        ("low", "u8", 72),
    ]
    assert file.source.detail.startswith("with the kit's own definition of u32, spinlock_t")


def test_own_definitions_win() -> None:
    source = open_snippet("typedef struct { long a[4]; } spinlock_t; struct s { spinlock_t l; u8 x; };")
    assert source.struct("s").member("x").offset == 32
    assert source.names() == ["s", "spinlock_t"]


def test_every_definition_of_the_prelude_compiles() -> None:
    uses = " ".join(f"{name} m{i};" for i, name in enumerate(_DEFINITIONS))
    text = f"struct all {{ {uses} }};"
    before = prelude(list(_DEFINITIONS), text + " ".join(MACROS))
    assert len(open_snippet(before + text).struct("all").members) == len(_DEFINITIONS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct a {\n\tint x;\n\tfoo_t y;\n};", "line 3: unknown type name 'foo_t'"),
        ("struct a { u32 x; foo_t y; };", "unknown type name 'foo_t'"),
        ("struct a { int x; ", "line 1: expected"),
        ("#include <not/there.h>\n", "not/there.h: No such file"),
        ("struct a { int x[-1]; };", "negative"),
        ("#error stop\n", "#error stop"),
    ],
)
def test_the_compilers_first_error_is_passed_on(text: str, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        open_snippet(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "/tmp" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n", "int x;", "typedef int foo_t;"])
def test_c_without_a_struct(text: str) -> None:
    with pytest.raises((SourceError, NotFound)):
        open_snippet(text).struct("s")


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="no struct 'rong' in C text; did you mean ring"):
        open_snippet("struct ring { int a; };").struct("rong")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match=r"a C compiler is needed .* install gcc"):
        open_snippet("struct a { int x; };")
    with pytest.raises(ToolError, match="the compiler 'mycc' is needed"):
        open_snippet("struct a { int x; };", compiler="mycc")


def test_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kitlib.csource, "TIME_LIMIT_S", 0.5)
    with pytest.raises(ToolError, match=r"took more than|error"):
        open_snippet('#include "/dev/zero"\n')


def test_text_is_data(tmp_path: Path) -> None:
    """Neither a shell nor the compiler's options see what a name or a text says."""
    marker = tmp_path / "marker"
    with pytest.raises(ToolError):
        open_snippet(f"$(touch {marker}) `touch {marker}`; touch {marker}")
    file = tmp_path / f"$(touch marker) -o {'x' * 20}.c"
    file.write_text("struct s { int a; };\n")
    assert open_c(file).struct("s").size == 4
    assert not marker.exists()
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        open_c(tmp_path / "none.c")
