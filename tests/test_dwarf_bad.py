"""Files that are no good: one clear line, soon, and never a traceback or a wrong layout by chance."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.dwarf import open_dwarf
from kitlib.elf import open_elf
from kitlib.errors import KitError, SourceError

Need = Callable[..., str]
FORMS = Path(__file__).parent / "dwarf_samples" / "forms.c"
SECONDS = 3.0
"""What a bad file may take at most, in CPU time, so that a busy machine does not count."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("bad")

    def run(*flags: str, compiler: str = "gcc") -> Path:
        target = folder / f"{compiler}{''.join(flags)}.o"
        if not target.exists():
            program = need_tool(compiler, required=compiler == "gcc")
            subprocess.run([program, "-w", "-c", *flags, "-o", str(target), str(FORMS)], check=True, timeout=60)
        return target

    return run


def read_all(path: Path) -> None:
    source = open_dwarf(path)
    source.names()
    list(source.structs())


def refusal(path: Path) -> str:
    """The one line a file is refused with."""
    began = time.process_time()
    with pytest.raises(SourceError) as caught:
        read_all(path)
    assert time.process_time() - began < SECONDS
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["-g", "-fdebug-types-section"], "type units .* compile with -fno-debug-types-section"),
        (["-gdwarf-4", "-fdebug-types-section"], "type units .* compile with -fno-debug-types-section"),
        (["-g", "-gsplit-dwarf"], "split DWARF.* compile without -gsplit-dwarf"),
        (["-gdwarf-4", "-gsplit-dwarf"], "split DWARF.* compile without -gsplit-dwarf"),
        (["-g", "-gdwarf64"], "64-bit DWARF is not read"),
        ([], "no DWARF .* compile with -g"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) else "",
)
def test_kinds_that_are_not_read(build: Callable[..., Path], flags: list[str], says: str) -> None:
    assert re.search(says, refusal(build(*flags)))


def test_the_types_of_split_dwarf_themselves(build: Callable[..., Path]) -> None:
    assert "split DWARF" in refusal(build("-g", "-gsplit-dwarf").with_suffix(".dwo"))


def test_no_elf_at_all(tmp_path: Path) -> None:
    assert "folder" in refusal(tmp_path)
    assert "cannot be read" in refusal(tmp_path / "not-there")
    for name, data in (("empty", b""), ("text", b"struct x { int a; };"), ("zeros", bytes(5000)), ("head", b"\x7fELF")):
        (tmp_path / name).write_bytes(data)
        refusal(tmp_path / name)


def test_every_truncation(build: Callable[..., Path], tmp_path: Path) -> None:
    whole = build("-g").read_bytes()
    target = tmp_path / "cut.o"
    for length in range(1, len(whole), 97):
        target.write_bytes(whole[:length])
        refusal(target)


def test_a_chain_of_sections_that_was_cut(build: Callable[..., Path], tmp_path: Path) -> None:
    """`.debug_info` itself cut short, the section table intact."""
    target = tmp_path / "short.o"
    for keep in (1, 10, 200, 1000):
        (tmp_path / "info").write_bytes(section(build("-g", "-gz=none"), ".debug_info")[:keep])
        command = [
            "objcopy",
            "--update-section",
            f".debug_info={tmp_path / 'info'}",
            str(build("-g", "-gz=none")),
            str(target),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        refusal(target)


def section(path: Path, name: str) -> bytes:
    return open_elf(path).contents(name) or b""


def complaint(act: Callable[[], object]) -> str:
    """The message of the `KitError` that `act` raises, or ``""``; anything else fails the test."""
    try:
        act()
    except KitError as error:
        return str(error)
    return ""


def survives(path: Path) -> bool:
    """Read a damaged file in every way; whether it was read as if nothing was wrong."""
    began = time.process_time()
    complaints = [complaint(lambda: read_all(path))]
    if not complaint(lambda: open_dwarf(path)):
        source = open_dwarf(path)
        complaints += [complaint(lambda: source.struct("dev")), complaint(source.names)]
        assert complaint(lambda: source.struct("nope"))
    assert time.process_time() - began < SECONDS
    assert not any("\n" in line for line in complaints)
    return not any(complaints)


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", "-g"), ("gcc", "-gdwarf-4"), ("clang-19", "-g"), ("gcc", "-gz")],
    ids=["gcc5", "gcc4", "clang5", "compressed"],
)
def test_mutated_files(build: Callable[..., Path], tmp_path: Path, compiler: str, flags: str) -> None:
    whole = build(
        "-g" if flags == "-gz" else flags, *(["-gz"] if flags == "-gz" else []), compiler=compiler
    ).read_bytes()
    chance = random.Random(f"{compiler}{flags}")
    target = tmp_path / "mutated.o"
    outcomes = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 8, 40])):
            at = chance.randrange(len(data))
            data[at] = chance.choice([0, 0xFF, 0x7F, 0x80, chance.randrange(256), data[at] ^ 1 << chance.randrange(8)])
        target.write_bytes(data)
        outcomes.add(survives(target))
    assert outcomes == {True, False}


def test_mutated_references(build: Callable[..., Path], tmp_path: Path) -> None:
    """Types that refer to themselves, siblings that lead backwards, structs within themselves."""
    whole = build("-g").read_bytes()
    info = section(build("-g"), ".debug_info")
    at = whole.index(info[16:64]) - 16 if info[16:64] in whole else whole.index(b"\x05\x00\x01\x08") - 4
    length = len(info)
    chance = random.Random(5)
    target = tmp_path / "mutated.o"
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(10):
            place = at + chance.randrange(length - 4)
            data[place : place + 4] = struct.pack("<I", chance.randrange(length))
        target.write_bytes(data)
        survives(target)


def test_a_struct_that_holds_itself(tmp_path: Path, need_tool: Need) -> None:
    text = "struct a { int x; struct b { int y; } in; int z; } v;"
    (tmp_path / "v.c").write_text(text)
    subprocess.run([need_tool("gcc"), "-g", "-c", "v.c"], check=True, cwd=tmp_path, timeout=60)
    source = open_dwarf(tmp_path / "v.o")
    reader = source._reader
    offset = next(source._entries("a")).offset
    a = reader.at(offset)
    member = next(child for child in reader.children(a) if child.attributes["DW_AT_name"].value == b"in")
    reference = member.attributes["DW_AT_type"]
    data = bytearray((tmp_path / "v.o").read_bytes())
    base = data.index(bytes(source.info.sections.info[2:11]))  # the header, the same before and after relocation
    place = base - 2 + reference.offset
    assert int.from_bytes(data[place : place + 4], "little") == reference.raw_value
    data[place : place + 4] = struct.pack("<I", offset)
    (tmp_path / "v.o").write_bytes(data)
    with pytest.raises(SourceError, match="contains itself by value"):
        open_dwarf(tmp_path / "v.o").struct("a")


@pytest.mark.parametrize("members", [0, 1, 20000])
def test_sizes_at_the_edges(members: int, tmp_path: Path, need_tool: Need) -> None:
    text = "struct wide { " + " ".join(f"int member_{i};" for i in range(members)) + " } v;"
    (tmp_path / "w.c").write_text(text)
    subprocess.run([need_tool("gcc"), "-g", "-c", "w.c"], check=True, cwd=tmp_path, timeout=60)
    wide = open_dwarf(tmp_path / "w.o").struct("wide")
    assert (len(wide.members), wide.size) == (members, 4 * members)


def test_names_that_are_no_text(tmp_path: Path, need_tool: Need) -> None:
    """A name from a file is data: control characters are shown as escapes."""
    (tmp_path / "n.c").write_text("struct evilname { int esc; } v;")
    subprocess.run([need_tool("gcc"), "-g", "-c", "n.c"], check=True, cwd=tmp_path, timeout=60)
    data = (tmp_path / "n.o").read_bytes().replace(b"evilname", b"\x1b[31m\xff\n<")
    (tmp_path / "n.o").write_bytes(data)
    (name,) = open_dwarf(tmp_path / "n.o").names()
    assert name.isprintable()
    assert "\\x1b[31m" in name
