"""The compressed kernel that machines boot: find its payload, unpack it, and read the BTF inside.

Headers: the x86 boot protocol (Documentation/arch/x86/boot.rst), arm64's Image (Documentation/arch/arm64/
booting.rst) and EFI zboot (drivers/firmware/efi/libstub/zboot-header.S). Without a header that is known
the file is searched for compressed streams.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kitlib.btf import BtfSource, btf_from_bytes
from kitlib.btftypes import MAGIC as BTF_MAGIC
from kitlib.compression import MAGICS, compression_of, decompress
from kitlib.elf import MAGIC as ELF_MAGIC
from kitlib.elf import Elf
from kitlib.errors import SourceError
from kitlib.model import AARCH64, Abi

_ARM64_AT, _ARM64_MAGIC = 0x38, b"ARM\x64"
_MAX_TRIES: Final = 24
"""Places that look like a compressed stream which are tried before giving up."""
_BTF_HEADER: Final = struct.pack("<HBBI", BTF_MAGIC, 1, 0, 24)


def is_vmlinuz(head: bytes) -> bool:
    """Whether `head`, the first KiB of a file, is a bootable kernel's (x86, EFI zboot, arm64)."""
    return _is_bzimage(head) or _is_zboot(head) or head[_ARM64_AT : _ARM64_AT + 4] == _ARM64_MAGIC


def _is_bzimage(head: bytes) -> bool:
    return head[0x202:0x206] == b"HdrS" and head[0x1FE:0x200] == b"\x55\xaa"


def _is_zboot(head: bytes) -> bool:
    return head[:2] == b"MZ" and head[4:8] == b"zimg"


def btf_of_vmlinuz(data: bytes, where: str) -> BtfSource:
    """Read the types of the kernel in `data`. Raises `SourceError` if there is no payload or no BTF in it."""
    image = unpack(data, where)
    if image[:4] == ELF_MAGIC:
        elf = Elf(image, f"{where} (unpacked)")
        found = elf.contents(".BTF")
        if found is not None:
            return btf_from_bytes(found, where, abi=elf.abi)
        raise SourceError(f"{where}: the kernel inside has no .BTF section (it needs CONFIG_DEBUG_INFO_BTF=y)")
    return btf_in_image(image, where)


def unpack(data: bytes, where: str) -> bytes:
    """The uncompressed kernel in `data`: an ELF file on x86, a flat image elsewhere.

    Raises `SourceError` if no payload is found or it is damaged.
    """
    if data[_ARM64_AT : _ARM64_AT + 4] == _ARM64_MAGIC and not _is_zboot(data[:16]):
        return data
    stated = _stated_payload(data)
    if stated is not None and compression_of(stated[:16]):
        return decompress(stated, where)
    first_error: SourceError | None = None
    for offset in _streams(data):
        try:
            image = decompress(data[offset:], where)
        except SourceError as error:
            first_error = first_error or error
            continue
        if image[:4] == ELF_MAGIC or _BTF_HEADER in image:
            return image
    if first_error is not None:
        raise first_error
    raise SourceError(f"{where}: no compressed kernel found in it; is it truncated?")


def _stated_payload(data: bytes) -> bytes | None:
    """The bytes that the boot header points to, or None without such a header."""
    if _is_bzimage(data[:1024]) and len(data) >= 0x250:
        (version,) = struct.unpack_from("<H", data, 0x206)
        offset, length = struct.unpack_from("<II", data, 0x248)
        if version >= 0x0208:  # payload_offset came with protocol 2.08
            start = ((data[0x1F1] or 4) + 1) * 512 + offset
            return data[start : start + length]
    if _is_zboot(data[:16]):
        offset, length = struct.unpack_from("<II", data, 8)
        return data[offset : offset + length]
    return None


def _streams(data: bytes) -> Iterator[int]:
    """Offsets at which a compressed stream may begin, in the order of how sure their magic is."""
    tries = 0
    for _, magic in MAGICS:
        at = data.find(magic)
        while at >= 0 and tries < _MAX_TRIES:
            yield at
            tries += 1
            at = data.find(magic, at + 1)


def btf_in_image(image: bytes, where: str) -> BtfSource:
    """Find BTF by its header in a flat kernel image (arm64's Image has no section table)."""
    abi: Abi | None = AARCH64 if image[_ARM64_AT : _ARM64_AT + 4] == _ARM64_MAGIC else None
    at = image.find(_BTF_HEADER)
    while at >= 0:
        types_at, types, text_at, text = struct.unpack_from("<IIII", image.ljust(at + 24, b"\0"), at + 8)
        end = at + 24 + max(types_at + types, text_at + text)
        if types_at == 0 and text_at == types and types and end <= len(image):
            return btf_from_bytes(image[at:end], where, abi=abi)
        at = image.find(_BTF_HEADER, at + 1)
    raise SourceError(f"{where}: the kernel inside holds no BTF (it needs CONFIG_DEBUG_INFO_BTF=y)")
