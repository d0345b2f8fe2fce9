"""Structs of C out of DWARF: every member where the compiler says, however the compiler says it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.dwarf import DwarfSource, open_dwarf
from kitlib.errors import NotFound
from kitlib.model import Layout
from kitlib.place import place, rules_of

Need = Callable[..., str]
FORMS = Path(__file__).parent / "dwarf_samples" / "forms.c"

# compiler, flags; clang is not asked for by `make test`'s own packages
WAYS = (
    ("gcc", "-gdwarf-5"),
    ("gcc", "-gdwarf-4"),
    ("gcc", "-gdwarf-3 -gstrict-dwarf"),  # DW_AT_bit_offset instead of DW_AT_data_bit_offset
    ("gcc", "-gdwarf-5 -gz=zlib"),
    ("gcc", "-gdwarf-4 -gz=zlib-gnu"),
    ("gcc", "-g -O2 -flto -ffat-lto-objects"),
    ("clang-16", "-gdwarf-5"),  # DW_FORM_strx
    ("clang-19", "-gdwarf-4"),
    ("clang-19", "-g -gz=zstd"),
    ("clang-19", "-g -glldb -gpubnames"),  # .debug_names beside it
)
IDS = [f"{compiler}{flags.replace(' ', '')}" for compiler, flags in WAYS]


def compiled(folder: Path, need: Need, compiler: str, flags: str, *more: str) -> Path:
    """`forms.c` as an object file."""
    target = folder / f"{compiler}{flags.replace(' ', '')}.o"
    command = [need(compiler, required=compiler == "gcc"), "-w", "-c", *flags.split(), *more, "-o", target, FORMS]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dwarf")


@pytest.fixture(scope="module")
def forms(folder: Path, need_tool: Need) -> DwarfSource:
    return open_dwarf(compiled(folder, need_tool, "gcc", "-gdwarf-5"))


@pytest.fixture(scope="module", params=WAYS, ids=IDS)
def source(request: pytest.FixtureRequest, folder: Path, need_tool: Need) -> DwarfSource:
    return open_dwarf(compiled(folder, need_tool, *request.param))


def rows(layout: Layout) -> list[tuple[str | None, str, int, int]]:
    return [(m.name, m.type, m.bit_offset, m.bit_size) for m in layout.members]


# -- against the compiler --------------------------------------------------------------------------------------


def assertions(layouts: list[Layout]) -> str:
    """C that compiles only if every size, alignment and offset is the compiler's own."""
    lines = [f'#include "{FORMS}"']
    for layout in layouts:
        if layout.name in ("local", None):
            continue
        title = layout.name if layout.name == "atomic_t" else layout.title
        lines.append(f'_Static_assert(sizeof({title}) == {layout.size}, "size of {title}");')
        if layout.name != "wide":
            lines.append(f'_Static_assert(_Alignof({title}) == {layout.align}, "alignment of {title}");')
        for member in layout.members:
            if member.name is not None and not member.is_bitfield:
                text = f"__builtin_offsetof({title}, {member.name}) == {member.offset}"
                lines.append(f'_Static_assert({text}, "{title}.{member.name}");')
                if not member.is_flexible:
                    text = f"sizeof((({title} *)0)->{member.name}) == {member.size}"
                    lines.append(f'_Static_assert({text}, "size of {title}.{member.name}");')
    return "\n".join(lines)


def test_the_compiler_agrees(forms: DwarfSource, folder: Path, need_tool: Need) -> None:
    layouts = list(forms.structs())
    assert len(layouts) >= 20
    judge = folder / "judge.c"
    judge.write_text(assertions(layouts))
    done = subprocess.run(
        [need_tool("gcc"), "-w", "-fsyntax-only", str(judge)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_judge_can_say_no(forms: DwarfSource, folder: Path, need_tool: Need) -> None:
    judge = folder / "no.c"
    judge.write_text(assertions([forms.struct("low")]).replace("== 12", "== 16"))
    done = subprocess.run([need_tool("gcc"), "-w", "-fsyntax-only", str(judge)], capture_output=True, check=False)
    assert b"size of struct low" in done.stderr


def test_bit_fields(source: DwarfSource) -> None:
    assert [(m.name, m.bit_offset, m.bit_size, m.storage_bits) for m in source.struct("bits")] == [
        ("a", 0, 3, 32), ("b", 3, 7, 32), ("c", 10, 40, 64), ("d", 50, 1, 8), ("e", 51, 2, 32), ("f", 53, 1, 8),
        ("g", 58, 5, 32), ("h", 64, 2, 32),
    ]  # fmt: skip
    # gcc: char c at 0, then the fields without a gap (GCC manual, "packed" also applies to bit-fields)
    assert [(m.name, m.bit_offset, m.bit_size) for m in source.struct("pbits")] == [
        ("c", 0, 8), ("a", 8, 3), ("b", 11, 40), ("d", 51, 30), ("s", 88, 16),
    ]  # fmt: skip


def test_all_ways_of_compiling_agree(source: DwarfSource, forms: DwarfSource) -> None:
    assert source.names() == forms.names()
    for name in forms.names():
        mine, gcc = source.struct(name), forms.struct(name)
        assert (mine.name, mine.kind, mine.size, mine.align) == (gcc.name, gcc.kind, gcc.size, gcc.align), name
        assert (mine.reason is None) == (gcc.reason is None), name
        if name == "wide":  # clang aligns a vector to its size, gcc without -mavx to 16
            continue
        if name not in ("vecs", "at"):  # clang calls complex types "complex"; before DWARF 5 there is no _Atomic
            assert mine == gcc
        assert [(m.name, m.bit_offset, m.bit_size) for m in mine] == [(m.name, m.bit_offset, m.bit_size) for m in gcc]


def test_placing_gives_the_offsets_back(source: DwarfSource) -> None:
    layouts = list(source.structs())
    assert {layout.name for layout in layouts if not layout.replaceable} == {"bits", "wide"}
    for layout in layouts:
        if layout.replaceable:
            members, size, _ = place(layout.members, layout.kind, rules_of(layout))
            assert size == layout.size
            assert [m.bit_offset for m in members] == [m.bit_offset for m in layout.members]


# -- what is read ------------------------------------------------------------------------------------------------


def test_types_are_spelled_as_c(forms: DwarfSource) -> None:
    assert [m.type for m in forms.struct("funcs")] == [
        "int (*)(struct dev *, int)", "void (*)(void)", "char * (*)(const char *, ...)", "handler", "int (*[4])(int)",
        "int (*)[5]", "const char * const", "char * restrict", "volatile u32 *", "void *", "const void *",
        "int (**)(void)",
    ]  # fmt: skip
    assert [m.type for m in forms.struct("at")] == ["_Atomic int", "_Atomic struct one", "atomic_t", "const atomic_t"]
    assert [m.type for m in forms.struct("dev")] == ["struct dev *", "char[16]", "int[2][3]", "row"]
    assert [m.type for m in forms.struct("anon")] == ["int", "union {...}", "struct {...}", "union {...}[2]"]
    assert forms.struct("nested").member("e").type == "enum {...}"


def test_arrays_and_nesting(forms: DwarfSource) -> None:
    flex = forms.struct("flex").member("items")
    assert (flex.type, flex.count, flex.bit_size, flex.is_flexible) == ("struct {...}[]", 0, 0, True)
    assert forms.struct("zero").member("z").count == 0
    assert forms.struct("dev").member("grid").count == 6
    devs = forms.struct("nested").member("d")
    assert devs.count == 2
    assert devs.inner is not None
    assert devs.inner.name == "dev"
    inside = forms.struct("anon").members[1].inner
    assert inside is not None
    assert rows(inside) == [("a", "int", 0, 32), (None, "struct {...}", 0, 32), ("l", "long int", 0, 64)]


def test_alignments_are_read_where_stated(forms: DwarfSource) -> None:
    member = forms.struct("al").member("x")
    assert (member.forced_align, member.align_from, member.natural_align) == (64, "stated", 4)
    assert forms.struct("al").forced_align == 0  # it follows from the member
    assert forms.struct("big").forced_align == 128
    assert forms.struct("holdbig").member("b").natural_align == 128
    assert forms.struct("low").member("q").natural_align == 4
    assert forms.struct("pk").packed
    assert [m.natural_align for m in forms.struct("vecs")] == [1, 16, 16, 8, 4, 16]


def test_an_alignment_that_depends_on_options_is_not_guessed(forms: DwarfSource) -> None:
    assert forms.struct("wide").reason == "the alignment of 'v8' (member b) is not known"  # 16, with -mavx 32


def test_names_of_every_kind(source: DwarfSource) -> None:
    names = source.names()
    assert names == sorted(set(names))
    assert {"dev", "un", "atomic_t", "local", "sk", "empty"} <= set(names)
    assert "one_t" not in names  # a second name of struct one
    assert "color" not in names


def test_struct_by_tag_typedef_and_keyword(source: DwarfSource) -> None:
    assert source.struct("struct dev") == source.struct(" dev ")
    assert source.struct("union un").kind == "union"
    assert source.struct("one_t").name == "one"
    assert source.struct("atomic_t").name == "atomic_t"
    assert source.struct("sk").size == 4  # gcc writes short names into the entry itself
    assert source.struct("local").size == 8
    for wrong in ("union dev", "struct un"):
        with pytest.raises(NotFound):
            source.struct(wrong)


def test_absent_structs(source: DwarfSource) -> None:
    with pytest.raises(NotFound, match=r"no struct or union 'neste' .*did you mean nested"):
        source.struct("neste")
    with pytest.raises(NotFound, match=r"'one_p' .* is a typedef of const one_t \*"):
        source.struct("one_p")
    with pytest.raises(NotFound, match="no struct"):
        source.struct("")
    for name in ("color", "grid", "use", "ev", "x\0y", "\udcff"):
        with pytest.raises(NotFound):
            source.struct(name)


def test_where_it_was_read(forms: DwarfSource) -> None:
    info = forms.struct("dev").source
    assert info is not None
    assert (info.kind, info.label) == ("dwarf", forms.label)
    assert info.detail.endswith("forms.c")


# -- programs: several units -----------------------------------------------------------------------------------------


def program(folder: Path, need: Need, name: str, units: dict[str, str], *flags: str) -> DwarfSource:
    paths = []
    for unit, text in units.items():
        paths.append(folder / f"{name}-{unit}.c")
        paths[-1].write_text(text)
    target = folder / name
    command = [need("gcc"), "-w", "-g", *flags, "-o", target, *paths]
    subprocess.run([str(x) for x in command], check=True, capture_output=True, timeout=60)
    return open_dwarf(target)


SHARED = "struct shared { int a; struct later *next; }; union both { int i; float f; };"


@pytest.mark.parametrize("flags", [(), ("-flto",), ("-gdwarf-4", "-no-pie")], ids=["pie", "lto", "dwarf4"])
def test_equal_structs_once_and_variants_kept(folder: Path, need_tool: Need, flags: tuple[str, ...]) -> None:
    units = {
        "one": SHARED
        + "struct twice { int a; }; struct shared s; union both b; struct twice t; int main(void) { return 0; }",
        "two": SHARED + "struct later { struct shared s; long x; } l; union both c;",
        "three": "struct twice { long a; } u; struct later; struct shared { int a; struct later *next; } v;",
    }
    source = program(folder, need_tool, f"variants{len(flags)}", units, *flags)
    found = [(layout.name, layout.size) for layout in source.structs()]
    assert sorted(found) == [("both", 4), ("later", 24), ("shared", 16), ("twice", 4), ("twice", 8)]
    assert source.names() == ["both", "later", "shared", "twice"]
    assert source.struct("later").member("s").inner == source.struct("shared")


def test_a_type_that_differs_behind_one_name_is_a_variant(folder: Path, need_tool: Need) -> None:
    text = "typedef {} word; struct holder {{ word *far; word near; }} h; {}"
    units = {
        "one": text.format("int", "int main(void) { return 0; }"),
        "two": text.format("long", "").replace("h;", "i;"),
    }
    source = program(folder, need_tool, "behind", units)
    assert [(layout.name, layout.size) for layout in source.structs()] == [("holder", 16), ("holder", 16)]


def test_a_name_that_is_the_tail_of_another(folder: Path, need_tool: Need) -> None:
    """ld merges ``file`` into ``mapped_file``, and only one of several longer strings is the right one."""
    names = ["mapped_file", "a_file", "zz_file", "profile", "file"]
    text = "".join(f"struct {name} {{ char in[{i + 1}]; }} v_{i};" for i, name in enumerate(names))
    source = program(folder, need_tool, "tails", {"one": text + "int main(void) { return 0; }"}, "-Wl,-O2")
    assert b"\0file\0" not in source.info.sections.strings
    for i, name in enumerate(names):
        assert source.struct(name).size == i + 1
    with pytest.raises(NotFound):
        source.struct("ile")
