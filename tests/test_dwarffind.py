"""The search for names: numbers in a section, strings that share their tails, and how entries are stepped over."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib import dwarfsearch
from kitlib.dwarf import open_dwarf
from kitlib.dwarfabbrev import attributes, read_abbrev, skip, sleb, uleb
from kitlib.dwarfsearch import find_numbers, find_text, occurrences, string_offsets
from kitlib.dwarfstream import SectionStream

Need = Callable[..., str]


def encoded(number: int, signed: bool = False) -> bytes:
    """`number` as LEB128, by the algorithms of DWARF 5, appendix C."""
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        done = (number == 0 and not (signed and byte & 0x40)) or (signed and number == -1 and byte & 0x40)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_unsigned_leb128(number: int, before: bytes) -> None:
    data = before + encoded(number) + b"\xff"
    assert uleb(data, len(before)) == (number, len(data) - 1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_leb128(number: int) -> None:
    data = encoded(number, signed=True) + b"\0"
    assert sleb(data, 0) == (number, len(data) - 1)


def test_a_leb128_number_without_an_end() -> None:
    with pytest.raises(ValueError, match="longer than 64 bits"):
        uleb(b"\xff" * 40, 0)
    with pytest.raises(IndexError):
        uleb(b"\xff\xff", 0)


def test_an_entry_with_every_kind_of_form() -> None:
    """Names, numbers and blocks behind each other: the sizes of DWARF 5, 7.5.6."""
    forms = [(0x03, 0x08), (0x0B, 0x0B), (0x49, 0x13), (0x38, 0x18), (0x3B, 0x0F), (0x1C, 0x0D), (0x3A, 0x21),
             (0x3C, 0x19), (0x02, 0x0A), (0x6E, 0x0E)]  # fmt: skip
    declaration = bytearray(b"\x05\x0d\x00")
    for attribute, form in forms:
        declaration += encoded(attribute) + encoded(form) + (encoded(-7, signed=True) if form == 0x21 else b"")
    abbrev, end = read_abbrev(bytes(declaration + b"\0\0\x99"), 0, 8, 5)
    assert abbrev is not None
    assert (abbrev.code, abbrev.tag, end) == (5, 0x0D, len(declaration) + 2)
    data = (
        b"sk\0"
        + b"\x10"
        + b"\x34\x12\0\0"
        + b"\x02\x23\x08"
        + encoded(300)
        + encoded(-2, True)
        + b"\x01\xaa"
        + b"\1\0\0\0"
    )
    assert skip(data + b"rest", 0, abbrev, "little") == len(data)
    assert attributes(data, 0, abbrev, "little") == {
        0x03: b"sk", 0x0B: 16, 0x49: 0x1234, 0x38: b"\x02\x23\x08", 0x3B: 300, 0x1C: -2, 0x3A: -7, 0x3C: 1,
        0x02: b"\x01\xaa", 0x6E: 1,
    }  # fmt: skip


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="form 0x7e is not known"):
        read_abbrev(b"\x01\x13\x00\x03\x7e\0\0", 0, 8, 5)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dwarfsearch, "CHUNK_BYTES", 16)


numbers = st.integers(0, 3) | st.integers(0, 2**32 - 1)


@settings(max_examples=200)
@given(st.lists(numbers, min_size=1, max_size=40), st.binary(max_size=5), st.lists(numbers, max_size=4), st.booleans())
def test_numbers_are_found_at_any_place(held: list[int], before: bytes, others: list[int], big: bool) -> None:
    order: Literal["big", "little"] = "big" if big else "little"
    data = before + b"".join(number.to_bytes(4, order) for number in held)
    wanted = {held[0], *others}
    expected = [at for at in range(len(data) - 3) if int.from_bytes(data[at : at + 4], order) in wanted]
    assert [int(at) for part in find_numbers(memoryview(data), wanted, order) for at in part] == expected


@given(st.lists(st.integers(0, 500), min_size=30, max_size=60, unique=True))
def test_many_numbers_are_looked_up_in_a_table(wanted: list[int]) -> None:
    data = bytes(range(256)) + b"".join(n.to_bytes(4, "little") for n in wanted[::3]) + b"\xff" * 9
    expected = [at for at in range(len(data) - 3) if int.from_bytes(data[at : at + 4], "little") in wanted]
    assert [int(at) for part in find_numbers(memoryview(data), wanted, "little") for at in part] == expected


def test_a_search_ends_when_nothing_is_wanted_any_more() -> None:
    wanted = {7: "seven"}
    parts = find_numbers(memoryview(b"\7\0\0\0" * 50), wanted, "little")
    assert len(next(parts)) == 4
    wanted.clear()
    assert list(parts) == []


@given(st.text("ab\0", max_size=60), st.text("ab", min_size=1, max_size=6))
def test_text_is_found(text: str, wanted: str) -> None:
    data, needle = text.encode(), wanted.encode() + b"\0"
    expected = [at for at in range(len(data)) if data.startswith(needle, at)]
    assert [int(at) for part in find_text(memoryview(data), needle) for at in part] == expected
    assert list(occurrences(data, needle)) == expected


def test_likely_places_of_a_name() -> None:
    strings = b"\0mapped_file\0profile\0file_x\0zfile\0afile\0"
    likely, others = string_offsets(strings, b"file")
    assert [strings[at - 1 : at + 4] for at in likely] == [b"_file"]  # '_' sorts before the letters
    assert len(others) == 3
    assert string_offsets(strings + b"file\0", b"file")[0] == [len(strings)]
    assert string_offsets(strings, b"nowhere") == ([], [])


def test_the_linker_takes_the_likely_place(tmp_path: Path, need_tool: Need) -> None:
    """What is assumed of GNU ld, with the one that is installed."""
    names = ["mapped_file", "a_file", "zz_file", "profile", "Afile", "xfile", "file"]
    text = "".join(f"struct {name} {{ char in[{i + 1}]; }} v_{i};" for i, name in enumerate(names))
    (tmp_path / "t.c").write_text(text + "int main(void) { return 0; }")
    subprocess.run([need_tool("gcc"), "-g", "-Wl,-O2", "-o", "t", "t.c"], check=True, cwd=tmp_path, timeout=60)
    source = open_dwarf(tmp_path / "t")
    likely, others = string_offsets(source.info.sections.strings, b"file")
    assert (len(likely), len(others)) == (1, 5)
    info = memoryview(bytes(source.info.sections.info))
    assert sum(len(part) for part in find_numbers(info, likely, "little")) >= 1


def test_a_stream_over_a_view() -> None:
    stream = SectionStream(memoryview(b"abcdef"))
    assert (stream.read(2), stream.tell(), stream.read(), stream.read(5)) == (b"ab", 2, b"cdef", b"")
    assert (stream.seek(-1, 2), stream.read(9), stream.seek(1), stream.seek(2, 1), stream.read(1)) == (
        5,
        b"f",
        1,
        3,
        b"d",
    )
    assert (stream.seek(99), stream.read(1), stream.seek(-5)) == (99, b"", 0)


@pytest.mark.parametrize("compiler", ["gcc", "clang-16"])
def test_a_hundred_units(compiler: str, tmp_path: Path, need_tool: Need) -> None:
    """Each struct is found in its own unit, behind declarations of it in others."""
    program = need_tool(compiler, required=compiler == "gcc")
    for i in range(12):
        text, after = "", (i + 1) % 12
        for j in range(8):
            text += f"struct s{i}_{j} {{ char in[{i * 10 + j + 1}]; struct s{after}_{j} *next; }} v{i}_{j};"
        (tmp_path / f"u{i}.c").write_text(text + ("int main(void) { return 0; }" if i == 0 else ""))
    units = [f"u{i}.c" for i in range(12)]
    subprocess.run([program, "-g", "-o", "all", *units], check=True, cwd=tmp_path, timeout=120)
    source = open_dwarf(tmp_path / "all")
    for i in range(12):
        for j in range(8):
            layout = source.struct(f"s{i}_{j}")
            assert layout.members[0].size == i * 10 + j + 1
            assert layout.source is not None
            assert layout.source.detail == f"u{i}.c"
    assert len(list(source.structs())) == len(source.names()) == 96
