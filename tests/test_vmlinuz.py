"""Compressed kernels: each compression, each boot header, damage; and ELF sections they are made of."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kitlib.btf import BtfSource
from kitlib.compression import compression_of, decompress
from kitlib.elf import Elf, open_elf
from kitlib.errors import KitError, SourceError
from kitlib.model import AARCH64, I386, X86_64
from kitlib.source import Source
from kitlib.sources import open_source
from kitlib.vmlinuz import btf_of_vmlinuz, unpack

ZOO = (Path(__file__).parent / "fixtures" / "zoo.btf").read_bytes()


def elf_file(
    sections: dict[str, bytes], *, machine: int = 62, wide: bool = True, order: str = "<", flags: int = 0
) -> bytes:
    """A small ELF file with these sections."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    contents = {**sections, ".shstrtab": names}
    start = 64 if wide else 52
    body = b"".join(contents.values())
    rows = [(0,) * 6]
    at = start
    for name, data in contents.items():
        flag = flags if name != ".shstrtab" else 0
        rows.append((names.index(name.encode() + b"\0"), 1, flag, 0, at, len(data)))
        at += len(data)
    form = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    table = b"".join(struct.pack(form, *row, 0, 0, 0, 0) for row in rows)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    middle = struct.pack(order + ("HHIQQQI" if wide else "HHIIIII"), 2, machine, 1, 0, 0, at, 0)
    counts = struct.pack(order + "HHHHHH", start, 0, 0, struct.calcsize(form), len(rows), len(rows) - 1)
    return ident + middle + counts + body + table


def lz4_legacy(data: bytes) -> bytes:
    """The legacy lz4 frame with literals only, in blocks of 8 MiB, and the size behind it as the kernel has it."""
    out = b"\x02\x21\x4c\x18"
    for at in range(0, len(data), 8 << 20):
        block = data[at : at + (8 << 20)]
        extra, rest = divmod(len(block) - 15, 255)
        token = bytes([0xF0]) + b"\xff" * extra + bytes([rest]) if len(block) >= 15 else bytes([len(block) << 4])
        out += struct.pack("<I", len(token + block)) + token + block
    return out + struct.pack("<I", len(data))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lambda d: lzma.compress(d, filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2}]),
    "lzma": lambda d: lzma.compress(d, format=lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4_legacy,
}
VMLINUX = elf_file({".text": bytes(range(256)) * 8, ".BTF": ZOO})


def complaint(opening: Callable[[], Source]) -> str | None:
    """What the kit says against opening and listing a source, or None."""
    try:
        opening().names()
    except KitError as error:
        return str(error)
    return None


def bzimage(payload: bytes, setup_sectors: int = 3) -> bytes:
    """An x86 boot image around `payload`."""
    head = bytearray((setup_sectors + 1) * 512)
    head[0x1F1] = setup_sectors
    head[0x1FE:0x200] = b"\x55\xaa"
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x020F)
    stub = b"\x90" * 100
    struct.pack_into("<II", head, 0x248, len(stub), len(payload) + 4)
    return bytes(head) + stub + payload + struct.pack("<I", len(VMLINUX)) + b"\0" * 64


@pytest.mark.parametrize("kind", PACKERS)
def test_bzimage_of_every_compression(kind: str, tmp_path: Path) -> None:
    payload = PACKERS[kind](VMLINUX)
    assert compression_of(payload) == kind
    (tmp_path / "vmlinuz").write_bytes(bzimage(payload))
    source = open_source(tmp_path / "vmlinuz")
    assert source.kind == "btf"
    assert source.struct("kinds").size == 64
    assert source.struct("kinds").abi is X86_64


@pytest.mark.parametrize("kind", PACKERS)
def test_a_compressed_file_without_boot_header(kind: str, tmp_path: Path) -> None:
    (tmp_path / "vmlinux.z").write_bytes(PACKERS[kind](VMLINUX))
    assert "nested" in open_source(tmp_path / "vmlinux.z").names()
    (tmp_path / "image.z").write_bytes(PACKERS[kind](b"\0" * 99 + ZOO + b"\0" * 99))
    assert "nested" in open_source(tmp_path / "image.z").names()
    (tmp_path / "btf.z").write_bytes(PACKERS[kind](ZOO))
    assert "nested" in open_source(tmp_path / "btf.z").names()


def test_efi_zboot_and_the_flat_image_of_arm64(tmp_path: Path) -> None:
    flat = _flat_arm64() + ZOO + bytes(64)
    assert btf_of_vmlinuz(flat, "Image").abi is AARCH64
    payload = gzip.compress(flat)
    head = b"MZ\0\0zimg" + struct.pack("<II", 512, len(payload)) + b"\0" * 8 + b"gzip"
    (tmp_path / "vmlinuz.efi").write_bytes(head.ljust(512, b"\0") + payload)
    source = open_source(tmp_path / "vmlinuz.efi")
    assert isinstance(source, BtfSource)
    assert source.abi is AARCH64
    assert source.struct("closed").size == 13


def test_a_payload_that_no_header_points_to_is_found() -> None:
    image = bytearray(bzimage(gzip.compress(VMLINUX)))
    struct.pack_into("<II", image, 0x248, 7, 7)
    assert unpack(bytes(image), "vmlinuz") == VMLINUX


def test_lz4_matches_overlap_and_reach_back() -> None:
    # 4 literals "abcd"; a match of 8 at distance 4; a match of 15 + 4 + 3 at distance 1; 5 literals at the end
    block = b"\x44abcd\x04\x00" + b"\x0f\x01\x00\x03" + b"\x50vwxyz"
    data = b"\x02\x21\x4c\x18" + struct.pack("<I", len(block)) + block
    assert decompress(data, "x") == b"abcd" * 3 + b"d" * 22 + b"vwxyz"
    bad = b"\x02\x21\x4c\x18" + struct.pack("<I", 12) + b"\x14a\x09\x00" + b"\x70literal"
    with pytest.raises(SourceError, match="a match before the start"):
        decompress(bad, "x")


@pytest.mark.parametrize("kind", PACKERS)
def test_damage_is_one_line(kind: str) -> None:
    image = bzimage(PACKERS[kind](VMLINUX))
    chance = random.Random(len(kind))
    for _ in range(60):
        copy = bytearray(image)
        if chance.random() < 0.5:
            copy = copy[: chance.randrange(600, len(copy))]
        for _ in range(chance.randrange(1, 20)):
            copy[chance.randrange(0x1F0, len(copy))] = chance.randrange(256)
        message = complaint(lambda image=bytes(copy): btf_of_vmlinuz(image, "vmlinuz"))
        assert message is None or (message.startswith("vmlinuz") and "\n" not in message)


def test_a_kernel_without_types_and_no_kernel_at_all(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no \.BTF section \(it needs CONFIG_DEBUG_INFO_BTF=y\)"):
        btf_of_vmlinuz(bzimage(gzip.compress(elf_file({".text": b"x"}))), "vmlinuz")
    with pytest.raises(SourceError, match="no compressed kernel found"):
        btf_of_vmlinuz(bzimage(b"nothing that is packed"), "vmlinuz")
    with pytest.raises(SourceError, match="lzo compression is not read by the kit"):
        decompress(b"\x89LZO\x00\r\n\x1a\n" + bytes(40), "Image.lzo")
    with pytest.raises(SourceError, match="holds no BTF"):
        btf_of_vmlinuz(_flat_arm64(), "Image")


def _flat_arm64() -> bytes:
    image = bytearray(4096)
    image[0x38:0x3C] = b"ARM\x64"
    return bytes(image)


_GIVEN = [p for p in os.environ.get("KITLIB_KERNELS", "").split(os.pathsep) if "vmlinuz" in p]


@pytest.mark.parametrize("path", _GIVEN or sorted(glob.glob("/boot/vmlinuz-*")) or [None])
def test_a_distribution_kernel(path: str | None) -> None:
    if path is None:
        pytest.skip("no /boot/vmlinuz-* here; name one in KITLIB_KERNELS")
    source = open_source(path)
    assert len(source.names()) > 5000
    assert source.struct("list_head").size in (8, 16)
    assert source.struct("task_struct").member("comm").size == 16


# -- ELF ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wide", "order"), [(True, "<"), (True, ">"), (False, "<"), (False, ">")])
def test_sections_of_every_class_and_byte_order(wide: bool, order: str) -> None:
    elf = Elf(elf_file({".a": b"first", ".b": b"second"}, wide=wide, order=order, machine=3), "x")
    assert [section.name for section in elf.sections] == ["", ".a", ".b", ".shstrtab"]
    assert (elf.contents(".a"), elf.contents(".b"), elf.contents(".c")) == (b"first", b"second", None)
    assert elf.abi.pointer_bytes == (8 if wide else 4)
    assert elf.abi.little_endian == (order == "<")
    if not wide and order == "<":
        assert elf.abi is I386


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("algorithm", [1, 2, 9])
def test_compressed_sections(wide: bool, algorithm: int) -> None:
    text = b"debug" * 100
    packed = zlib.compress(text) if algorithm == 1 else zstandard.ZstdCompressor().compress(text)
    head = struct.pack("<IIQQ", algorithm, 0, len(text), 1) if wide else struct.pack("<III", algorithm, len(text), 1)
    elf = Elf(elf_file({".debug_x": head + packed}, wide=wide, flags=0x800), "x")
    if algorithm == 9:
        with pytest.raises(SourceError, match="compression type 9 is not known"):
            elf.contents(".debug_x")
    else:
        assert elf.contents(".debug_x") == text


def test_gnu_zdebug_sections_and_wrong_sizes() -> None:
    text = b"debug" * 100
    good = b"ZLIB" + struct.pack(">Q", len(text)) + zlib.compress(text)
    assert Elf(elf_file({".zdebug_x": good}), "x").contents(".zdebug_x") == text
    for size in (len(text) - 1, len(text) + 1, 1 << 60):
        bad = b"ZLIB" + struct.pack(">Q", size) + zlib.compress(text)
        with pytest.raises(SourceError, match=r"\.zdebug_x: (inflates|claims)"):
            Elf(elf_file({".zdebug_x": bad}), "x").contents(".zdebug_x")


def test_mutated_elf_is_one_line(tmp_path: Path) -> None:
    good = elf_file({".BTF": ZOO, ".text": b"x" * 50})
    chance = random.Random(3)
    target = tmp_path / "bad.o"
    for _ in range(300):
        copy = bytearray(good)
        if chance.random() < 0.3:
            copy = copy[: chance.randrange(4, len(copy))]
        for _ in range(chance.randrange(1, 10)):
            spot = chance.choice([chance.randrange(4, 64), chance.randrange(len(copy) // 2, len(copy))])
            copy[min(spot, len(copy) - 1)] = chance.choice([0, 255, chance.randrange(256)])
        target.write_bytes(copy)
        message = complaint(lambda: open_source(target, prefer="btf"))
        assert message is None or "\n" not in message


def test_open_elf_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"\x7fELF\x02\x01")
    with pytest.raises(SourceError, match="truncated or damaged ELF header"):
        open_elf(tmp_path / "short")
    with pytest.raises(SourceError, match="cannot be read"):
        open_elf(tmp_path / "absent")
    (tmp_path / "cut").write_bytes(VMLINUX[:-70])
    with pytest.raises(SourceError, match="the section table lies beyond the end of the file"):
        open_elf(tmp_path / "cut")
