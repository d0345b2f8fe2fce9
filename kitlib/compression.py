"""Decompression of everything a kernel, its modules or its debug sections come in; kinds told by magic.

All limits are on the output: a file that inflates beyond `MAX_BYTES` is taken for damage.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Final

from kitlib.errors import SourceError, ToolError

MAX_BYTES: Final = 2 << 30
_LZ4_MAX_BLOCK: Final = (8 << 20) + (8 << 20) // 255 + 16
"""What 8 MiB take at most (lz4.h, LZ4_COMPRESSBOUND)."""

# First bytes of each format: gzip RFC 1952; xz file format 1.2.0; zstd RFC 8878; bzip2; LZMA "alone" with
# the usual properties byte; the legacy lz4 frame, which the kernel uses, and the current one; lzop.
MAGICS: Final[tuple[tuple[str, bytes], ...]] = (
    ("gzip", b"\x1f\x8b\x08"),
    ("xz", b"\xfd7zXZ\x00"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("lz4", b"\x02\x21\x4c\x18"),
    ("bzip2", b"BZh"),
    ("lzma", b"\x5d\x00\x00"),
    ("lzo", b"\x89LZO\x00\r\n\x1a\n"),
    ("lz4-frame", b"\x04\x22\x4d\x18"),
)


def compression_of(head: bytes) -> str | None:
    """Name of the compression that begins with `head`, or None."""
    for name, magic in MAGICS:
        if head.startswith(magic):
            return name
    return None


def decompress(data: bytes, where: str) -> bytes:
    """Decompress the stream at the start of `data`; what follows it is ignored.

    Raises `SourceError` if it is damaged, truncated or of a kind that is not known, `ToolError` if a
    Python package is missing for it.
    """
    name = compression_of(data[:16])
    how = _METHODS.get(name or "")
    if how is None:
        raise SourceError(f"{where}: {name or 'unknown'} compression is not read by the kit; decompress it first")
    return how(data, where)


def unzlib(data: bytes, size: int, where: str) -> bytes:
    """Inflate a zlib stream of `size` bytes. Raises `SourceError` if it is damaged or of another size."""
    _check_size(size, where)
    try:
        out = zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise SourceError(f"{where}: does not inflate ({error})") from None
    if len(out) != size:
        raise SourceError(f"{where}: inflates to {len(out)} bytes instead of {size}")
    return out


def unzstd(data: bytes, where: str, size: int | None = None) -> bytes:
    """Decompress the first zstd frame of `data`; its size is checked if given.

    Raises `SourceError` if it is damaged, `ToolError` if the ``zstandard`` package is not installed.
    """
    try:
        import zstandard
    except ImportError:
        raise ToolError(f"{where}: is zstd-compressed; install the Python package 'zstandard' for it") from None
    limit = MAX_BYTES if size is None else size
    _check_size(limit, where)
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            out = reader.read(limit + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise SourceError(f"{where}: does not decompress ({error})") from None
    if len(out) > limit or (size is not None and len(out) != size):
        raise SourceError(f"{where}: decompresses to {len(out)} bytes or more instead of {limit}")
    return bytes(out)


def _check_size(size: int, where: str) -> None:
    if size > MAX_BYTES:
        raise SourceError(f"{where}: claims to decompress to {size} bytes; the file is damaged")


def _gzip(data: bytes, where: str) -> bytes:
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        out = stream.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise SourceError(f"{where}: does not decompress ({error})") from None
    return _whole(out, stream.eof, where)


def _bzip2(data: bytes, where: str) -> bytes:
    stream = bz2.BZ2Decompressor()
    try:
        out = stream.decompress(data, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise SourceError(f"{where}: does not decompress ({error})") from None
    return _whole(out, stream.eof, where)


def _lzma(data: bytes, where: str) -> bytes:
    stream = lzma.LZMADecompressor()
    try:
        out = stream.decompress(data, MAX_BYTES)
    except (lzma.LZMAError, MemoryError) as error:
        raise SourceError(f"{where}: does not decompress ({error})") from None
    return _whole(out, stream.eof, where)


def _whole(out: bytes, complete: bool, where: str) -> bytes:
    if not complete:
        raise SourceError(f"{where}: the compressed data end after {len(out)} bytes of output; is it truncated?")
    return out


def _lz4_legacy(data: bytes, where: str) -> bytes:
    """The legacy lz4 frame: blocks of up to 8 MiB, each with its compressed size in front.

    The frame has no end mark; the kernel appends the size of the whole as a last word, which reads as the
    size of a block that is too large or does not fit.
    """
    out = bytearray()
    position = 4
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "little")
        block = data[position + 4 : position + 4 + size]
        if size == 0 or size > _LZ4_MAX_BLOCK or len(data) - position <= 12:
            break
        if len(block) != size:
            raise SourceError(f"{where}: the lz4 data end within a block of {size} bytes; is it truncated?")
        out += _lz4_block(block, where)
        position += 4 + size
    if not out:
        raise SourceError(f"{where}: no lz4 block after the magic; damaged?")
    return bytes(out)


def _lz4_block(block: bytes, where: str) -> bytearray:
    """Decode one block as described in lz4's doc/lz4_Block_format.md."""
    out = bytearray()
    position, end = 0, len(block)
    try:
        while True:
            token = block[position]
            position += 1
            literals = token >> 4
            if literals == 15:
                literals, position = _lz4_length(block, position)
            out += block[position : position + literals]
            position += literals
            if position >= end:
                return out
            distance = block[position] | block[position + 1] << 8
            position += 2
            length = token & 15
            if length == 15:
                length, position = _lz4_length(block, position)
            length += 4
            start = len(out) - distance
            if start < 0 or distance == 0:
                raise SourceError(f"{where}: damaged lz4 data (a match before the start)")
            if distance >= length:
                out += out[start : start + length]
            else:
                out += (out[start:] * (length // distance + 1))[:length]
    except IndexError:
        raise SourceError(f"{where}: truncated lz4 block") from None


def _lz4_length(block: bytes, position: int) -> tuple[int, int]:
    """A length of 15 or more: bytes are added up to and including the first that is not 255."""
    length = 15
    while True:
        more = block[position]
        position += 1
        length += more
        if more != 255:
            return length, position


_METHODS: dict[str, Callable[[bytes, str], bytes]] = {
    "gzip": _gzip,
    "xz": _lzma,
    "lzma": _lzma,
    "bzip2": _bzip2,
    "zstd": unzstd,
    "lz4": _lz4_legacy,
}
