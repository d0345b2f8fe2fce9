"""BTF: every kind of type, byte orders, split BTF, and the same layouts as an independent reader gives."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kitlib.btf import RUNNING, BtfSource, btf_from_bytes, open_btf
from kitlib.btftypes import BtfTypes
from kitlib.errors import NotFound, SourceError
from kitlib.model import X86_64
from kitlib.pahole import open_pahole

FIXTURES = Path(__file__).parent / "fixtures"

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNC_PROTO, FLOAT, TYPE_TAG = 13, 16, 18


class Writer:
    """BTF made by hand: `add` returns the new type's id."""

    def __init__(self, first_id: int = 1, text_at: int = 0) -> None:
        self.body, self.text, self.next_id, self.text_at = b"", b"" if text_at else b"\0", first_id, text_at

    def name(self, text: str) -> int:
        if not text:
            return 0
        offset = self.text_at + len(self.text)
        self.text += text.encode() + b"\0"
        return offset

    def add(
        self, kind: int, name: str = "", size: int = 0, rows: Any = (), flag: int = 0, vlen: int | None = None
    ) -> int:
        rows = list(rows)
        count = len(rows) if vlen is None else vlen
        words = [self.name(name), flag << 31 | kind << 24 | count, size & 0xFFFFFFFF]
        self.body += struct.pack(f"<{3}I", *words)
        for row in rows:
            row = (self.name(row[0]), *row[1:]) if isinstance(row[0], str) else row
            self.body += struct.pack(f"<{len(row)}I", *row)
        self.next_id += 1
        return self.next_id - 1

    def data(self) -> bytes:
        n, m = len(self.body), len(self.text)
        return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, n, n, m) + self.body + self.text

    def open(self) -> BtfSource:
        return btf_from_bytes(self.data(), "hand.btf")


def with_int() -> tuple[Writer, int]:
    writer = Writer()
    return writer, writer.add(INT, "int", 4, [(32,)], vlen=0)


def big_endian(data: bytes) -> bytes:
    """The same BTF as a big-endian target has it (all fields but version, flags and strings are words)."""
    types = struct.unpack_from("<I", data, 12)[0]
    head = struct.pack(">HBBIIIII", *struct.unpack_from("<HBBIIIII", data))
    words = struct.unpack_from(f"<{types // 4}I", data, 24)
    return head + struct.pack(f">{types // 4}I", *words) + data[24 + types :]


@pytest.fixture(scope="module")
def zoo() -> BtfSource:
    return open_btf(FIXTURES / "zoo.btf")


# -- the fixture that gcc and pahole made -----------------------------------------------------------------


def test_names_are_sorted_and_typedefs_of_unnamed_structs_count(zoo: BtfSource) -> None:
    assert " ".join(zoo.names()) == (
        "apart arrays atomic_t bits both_t closed empty holder kinds nested pointers whole"
    )
    assert zoo.struct("atomic_t").members[0].name == "counter"
    assert zoo.struct("both_t").kind == "union"
    assert [layout.name for layout in zoo.structs() if layout.name == "not_defined"] == []


def test_type_spellings(zoo: BtfSource) -> None:
    assert {m.name: m.type for m in zoo.struct("pointers")} == {
        "forward": "struct not_defined *",
        "text": "const char *",
        "fixed": "char * const",
        "chain": "const volatile u8 * const *",
        "call": "int (*)(struct pointers *, const char *, ...)",
        "get": "void * (*)(void)",
        "table": "int (*[4])(int)",
        "nested": "void (* (*)(int))(u8)",
        "rows": "int (*)[8]",
    }
    assert {m.name: (m.type, m.size, m.natural_align) for m in zoo.struct("kinds")} == {
        "color": ("enum color", 4, 4),
        "big": ("enum big", 8, 8),
        "real": ("float", 4, 4),
        "twice": ("double", 8, 8),
        "yes": ("_Bool", 1, 1),
        "busy": ("volatile long int", 8, 8),
        "both": ("both_t", 8, 8),
        "count": ("atomic_t", 4, 4),
    }


def test_arrays(zoo: BtfSource) -> None:
    rows = [(m.type, m.offset, m.size, m.count) for m in zoo.struct("arrays")]
    assert rows == [
        ("char[16]", 0, 16, 16),
        ("atomic_t[3]", 16, 12, 3),
        ("u8[6]", 28, 6, 6),  # u8[2][3]: pahole flattens it
        ("u64[]", 40, 0, 0),
    ]
    clang = open_btf(FIXTURES / "zoo-clang.btf").struct("arrays").member("grid")
    assert (clang.type, clang.size, clang.count) == ("u8[2][3]", 6, 6)


def test_bit_fields(zoo: BtfSource) -> None:
    rows = [(m.name, m.bit_offset, m.bit_size, m.storage_bits) for m in zoo.struct("bits")]
    assert rows == [
        ("a", 0, 3, 32), ("b", 3, 29, 32), ("c", 32, 4, 8), ("d", 40, 5, 8),
        ("wide", 64, 40, 64), ("tint", 104, 2, 32), ("flag", 106, 1, 8),
    ]  # fmt: skip


def test_inferred_attributes(zoo: BtfSource) -> None:
    closed, apart, whole = (zoo.struct(name) for name in ("closed", "apart", "whole"))
    assert (closed.packed, closed.align, closed.size) == (True, 1, 13)
    assert (apart.member("own").forced_align, apart.member("own").align_from, apart.align) == (64, "inferred", 64)
    assert (whole.forced_align, whole.align) == (32, 32)
    assert all(layout.replaceable for layout in zoo.structs())


def test_one_object_for_one_type(zoo: BtfSource) -> None:
    assert zoo.struct("nested").member("inside").inner is zoo.struct("bits")
    assert zoo.struct("kinds").member("count").inner is zoo.struct("arrays").member("each").inner
    assert zoo.struct("bits") is zoo.struct("struct bits")


def test_same_layouts_as_the_committed_pahole_text(zoo: BtfSource) -> None:
    text = open_pahole(FIXTURES / "zoo.pahole")
    lossy = {"pointers"}  # pahole does not print pointers to functions that return pointers as C
    for name in set(text.names()) - lossy:
        assert zoo.struct(name) == text.struct(name)
    assert text.struct("pointers").size == zoo.struct("pointers").size


def test_clang_and_gcc_place_the_zoo_alike(zoo: BtfSource) -> None:
    clang = open_btf(FIXTURES / "zoo-clang.btf")
    assert clang.names() == zoo.names()
    for ours, theirs in ((zoo.struct(n), clang.struct(n)) for n in zoo.names()):
        assert [(m.name, m.bit_offset, m.bit_size) for m in ours] == [
            (m.name, m.bit_offset, m.bit_size) for m in theirs
        ]


def test_unknown_struct_offers_near_names(zoo: BtfSource) -> None:
    with pytest.raises(NotFound, match=r"no struct or union 'pointer' in .*did you mean pointers"):
        zoo.struct("pointer")
    with pytest.raises(NotFound):
        zoo.struct("union bits")


def test_big_endian_gives_the_same_offsets(zoo: BtfSource) -> None:
    other = btf_from_bytes(big_endian((FIXTURES / "zoo.btf").read_bytes()), "big.btf")
    assert not other.abi.little_endian
    for name in zoo.names():
        assert other.struct(name) == zoo.struct(name)
    assert "big-endian" in (other.struct("bits").reason or "")


# -- made by hand ---------------------------------------------------------------------------------------


def test_bit_fields_of_the_old_encoding() -> None:
    writer = Writer()
    low = writer.add(INT, "unsigned int", 4, [(3,)], vlen=0)  # 3 bits wide, as the INT says
    high = writer.add(INT, "unsigned int", 4, [(2 << 16 | 5,)], vlen=0)  # 5 bits, 2 bits into its word
    writer.add(STRUCT, "old", 4, [("a", low, 0), ("b", high, 1)])
    rows = [(m.bit_offset, m.bit_size, m.storage_bits) for m in writer.open().struct("old")]
    assert rows == [(0, 3, 32), (3, 5, 32)]


def test_thirty_two_bit_pointers() -> None:
    writer = Writer()
    long = writer.add(INT, "long unsigned int", 4, [(32,)], vlen=0)
    pointer = writer.add(PTR, size=long)
    writer.add(STRUCT, "s", 8, [("p", pointer, 0), ("n", long, 32)])
    source = writer.open()
    assert (source.abi.pointer_bytes, source.struct("s").members[0].size) == (4, 4)


def test_type_tags_do_not_show_and_qualifiers_do() -> None:
    writer, number = with_int()
    tagged = writer.add(TYPE_TAG, "user", number)
    pointer = writer.add(PTR, size=tagged)
    held = writer.add(RESTRICT, size=pointer)
    writer.add(STRUCT, "s", 8, [("p", held, 0)])
    assert writer.open().struct("s").members[0].type == "int * restrict"


def test_struct_before_union_before_typedef() -> None:
    writer, number = with_int()
    writer.add(UNION, "x", 4, [("u", number, 0)])
    writer.add(STRUCT, "x", 4, [("s", number, 0)])
    writer.add(STRUCT, "x", 8, [("s", number, 0), ("t", number, 32)])
    source = writer.open()
    assert source.struct("x").members[0].name == "s"
    assert source.struct("union x").members[0].name == "u"
    assert source.names() == ["x"]
    info = source.struct("x").source
    assert info is not None
    assert info.detail == "first of 2 definitions of this name"


def test_struct_of_65_kilobytes_and_without_members() -> None:
    writer, number = with_int()
    array = writer.add(ARRAY, rows=[(number, number, 1 << 14)], vlen=0)
    writer.add(STRUCT, "large", (1 << 16) + 4, [("all", array, 0), ("end", number, 1 << 19)])
    writer.add(STRUCT, "none", 0)
    writer.add(STRUCT, "opaque", 16)
    source = writer.open()
    assert source.struct("large").replaceable
    assert (source.struct("none").size, source.struct("none").replaceable) == (0, True)
    assert source.struct("opaque").reason == "its size is 16 bytes and its members need 0"


@pytest.mark.parametrize(("size", "align"), [(128, 64), (96, 32)])
def test_an_alignment_below_a_line_is_taken_for_a_line_where_that_fits(size: int, align: int) -> None:
    writer, number = with_int()
    ten = writer.add(ARRAY, rows=[(number, number, 10)], vlen=0)
    writer.add(STRUCT, "s", size, [("head", ten, 0), ("own", number, 512)])
    layout = writer.open().struct("s")
    assert layout.member("own").forced_align == align
    assert (layout.align, layout.replaceable) == (align, True)


def test_compat_types_are_aligned_to_four() -> None:
    writer = Writer()
    long = writer.add(INT, "long long unsigned int", 8, [(64,)], vlen=0)
    number = writer.add(INT, "int", 4, [(32,)], vlen=0)
    compat = writer.add(TYPEDEF, "compat_u64", long)
    writer.add(STRUCT, "s", 12, [("flag", number, 0), ("place", compat, 32)])
    layout = writer.open().struct("s")
    assert (layout.packed, layout.align, layout.replaceable) == (False, 4, True)


def test_split_btf_continues_its_base() -> None:
    writer, number = with_int()
    inner = writer.add(STRUCT, "inner", 4, [("n", number, 0)])
    base = BtfTypes(writer.data(), "base")
    module = Writer(first_id=len(base), text_at=len(base.strings))
    module.add(STRUCT, "outer", 8, [("a", inner, 0), ("b", number, 32)])
    source = btf_from_bytes(module.data(), "module.ko", base=base)
    assert source.names() == ["outer"]
    assert [m.type for m in source.struct("outer")] == ["struct inner", "int"]
    assert source.struct("inner").size == 4
    with pytest.raises(SourceError, match=r"split BTF .* module\.ko@VMLINUX"):
        btf_from_bytes(module.data(), "module.ko")
    writer.name("a name more")
    with pytest.raises(SourceError, match="do not fit the given base"):
        btf_from_bytes(module.data(), "module.ko", base=BtfTypes(writer.data(), "other"))


# -- an independent judge: bpftool ------------------------------------------------------------------------


def facts_of_bpftool(types: list[dict[str, Any]]) -> dict[int, tuple[str, int, list[tuple[str, int, int]]]]:
    """By id: name, size, and (name, bit offset, bit size) of each member, worked out from bpftool's JSON only."""
    by_id = {t["id"]: t for t in types}

    def bits(tid: int) -> int:
        t = by_id.get(tid, {"kind": "VOID"})
        if t["kind"] == "PTR":
            return 64
        if t["kind"] == "ARRAY":
            return int(t["nr_elems"]) * bits(t["type_id"])
        if "size" in t:
            return int(t["size"]) * 8
        return bits(t["type_id"]) if t["kind"] in ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG") else 0

    return {
        t["id"]: (
            t["name"],
            t["size"],
            [(m["name"], m["bits_offset"], m.get("bitfield_size") or bits(m["type_id"])) for m in t["members"]],
        )
        for t in types
        if t["kind"] in ("STRUCT", "UNION")
    }


def test_every_struct_of_the_running_kernel_is_as_bpftool_says(need_tool: Callable[[str], str]) -> None:
    if not RUNNING.exists():
        pytest.skip(f"this kernel has no {RUNNING}")
    bpftool = need_tool("bpftool")
    dump = subprocess.run(
        [bpftool, "btf", "dump", "file", str(RUNNING), "-j"], capture_output=True, timeout=120, check=True
    )
    expected = facts_of_bpftool(json.loads(dump.stdout)["types"])
    source = open_btf(RUNNING)
    assert len(expected) > 5000
    for tid, (name, size, members) in expected.items():
        layout = source.layout(tid)
        given = "" if layout.name is None or name == "(anon)" else layout.name
        assert (given or "(anon)", layout.size) == (name, size)
        assert [(m.name or "(anon)", m.bit_offset, m.bit_size) for m in layout] == members, layout.title


def test_running_is_read_for_this_machine() -> None:
    if not RUNNING.exists():
        pytest.skip(f"this kernel has no {RUNNING}")
    source = open_btf(RUNNING)
    assert source.struct("list_head").size == 2 * source.abi.pointer_bytes
    if source.abi is X86_64:
        assert source.struct("spinlock_t").kind == "struct"
