"""Two readers, one contract: the same struct from DWARF, BTF, pahole text and C gives equal layouts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace as with_
from pathlib import Path

import pytest

from kitlib.csource import open_c
from kitlib.layoutjson import layout_from_dict, layout_to_dict
from kitlib.model import Layout
from kitlib.pahole import read_pahole
from kitlib.paholetext import pahole_text
from kitlib.place import replace
from kitlib.source import Source
from kitlib.sources import open_source

SAMPLES = Path(__file__).parent / "pahole_samples"
C_FILE = SAMPLES / "forms.c"
NAMES = (
    "inner", "bits", "packed_whole", "packed_member", "aligned", "nested", "empty", "holds_empty", "either",
    "packed_bits", "crossing", "padded", "numbers", "holder",
)  # fmt: skip

Need = Callable[..., str]


def run(*command: str | Path) -> str:
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("same")


@pytest.fixture(scope="module")
def reference(folder: Path, need_tool: Need) -> Source:
    """gcc's DWARF 5."""
    return dwarf(folder, need_tool("gcc"), "-gdwarf-5")


def dwarf(folder: Path, compiler: str, *flags: str) -> Source:
    target = folder / f"{Path(compiler).name}{''.join(flags)}.o"
    run(compiler, "-w", "-c", *flags, "-fno-eliminate-unused-debug-types", "-o", target, C_FILE)
    return open_source(target, prefer="dwarf")


def from_dwarf4(folder: Path, need: Need) -> Source:
    return dwarf(folder, need("gcc"), "-gdwarf-4")


def from_clang(folder: Path, need: Need) -> Source:
    return dwarf(folder, need("clang-19", required=False), "-g")


def from_compressed_dwarf(folder: Path, need: Need) -> Source:
    return dwarf(folder, need("gcc"), "-g", "-gz")


def from_c(folder: Path, need: Need) -> Source:
    need("gcc")
    return open_c(C_FILE)


def from_btf(folder: Path, need: Need) -> Source:
    """BTF that pahole made of gcc's DWARF."""
    target = folder / "btf.o"
    run(need("gcc"), "-w", "-c", "-g", "-fno-eliminate-unused-debug-types", "-o", target, C_FILE)
    run(need("pahole"), "-J", target)
    return open_source(target, prefer="btf")


def from_bpf(folder: Path, need: Need) -> Source:
    """BTF that clang wrote itself; it keeps used types only."""
    text = C_FILE.read_text()
    words = [("union " if name == "either" else "struct ") + name for name in NAMES if name != "numbers"]
    text = text.replace("struct numbers", "struct not_for_bpf; //", 1)
    file, target = folder / "bpf.c", folder / "bpf.o"
    file.write_text(text + "".join(f"{word} *use{i};\n" for i, word in enumerate(words)))
    run(need("clang-19", required=False), "-w", "-c", "-g", "-O1", "--target=bpf", "-o", target, file)
    return open_source(target, prefer="btf")


def from_pahole(*options: str) -> Callable[[Path, Need], Source]:
    def opened(folder: Path, need: Need) -> Source:
        target, file = folder / "pahole.o", folder / f"pahole{''.join(options)}.txt"
        run(need("gcc"), "-w", "-c", "-g", "-fno-eliminate-unused-debug-types", "-o", target, C_FILE)
        file.write_text(run(need("pahole"), "-F", "dwarf", *options, target))
        return open_source(file)

    return opened


SOURCES = {
    "dwarf 4": from_dwarf4,
    "dwarf of clang": from_clang,
    "compressed dwarf": from_compressed_dwarf,
    "c": from_c,
    "btf": from_btf,
    "btf of clang": from_bpf,
    "pahole": from_pahole(),
    "pahole -E": from_pahole("-E"),
    "pahole --hex": from_pahole("--hex"),
}
# What a format cannot say: pahole's BTF has one dimension for int[2][3]; BPF has no 16-byte scalars.
BTF_TYPES = {"int[2][3]": "int[6]"}


def in_btf(layout: Layout) -> Layout:
    members = tuple(with_(m, type=BTF_TYPES.get(m.type, m.type)) for m in layout.members)
    return with_(layout, members=members)


@pytest.mark.parametrize("kind", SOURCES)
def test_equal_to_dwarf(kind: str, reference: Source, folder: Path, need_tool: Need) -> None:
    source = SOURCES[kind](folder, need_tool)
    for name in NAMES:
        if kind == "btf of clang" and name == "numbers":
            continue
        wanted, found = reference.struct(name), source.struct(name)
        if kind == "btf":
            wanted = in_btf(wanted)
        assert found == wanted, name
        assert found.reason is None, name
        assert replace(found, found.members) == wanted, name


@pytest.mark.parametrize("kind", ["dwarf 4", "dwarf of clang", "compressed dwarf", "c", "pahole", "pahole -E"])
def test_alignments_too_where_the_source_states_them(
    kind: str, reference: Source, folder: Path, need_tool: Need
) -> None:
    source = SOURCES[kind](folder, need_tool)
    for name in NAMES:
        assert source.struct(name).align == reference.struct(name).align, name


def test_own_formats_keep_the_layout(reference: Source) -> None:
    for name in NAMES:
        layout = reference.struct(name)
        assert layout_from_dict(layout_to_dict(layout), "test") == layout
        assert read_pahole(pahole_text(layout)) == [layout]


def test_placing_members_back_is_exact_in_the_reference(reference: Source) -> None:
    for layout in reference.structs():
        assert layout.reason is None, layout.title
        assert replace(layout, layout.members) == layout
