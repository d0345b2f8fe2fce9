"""A small reader of ELF section tables: which machine a file is for, and its sections by name.

Only what the kit needs, over an mmap, so that opening a 600 MB vmlinux costs nothing. Structures and
constants are those of the System V gABI, chapters "ELF Header" and "Sections".
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kitlib.compression import unzlib, unzstd
from kitlib.errors import SourceError
from kitlib.model import (
    AARCH64,
    ARM,
    GENERIC_32,
    GENERIC_32_BE,
    GENERIC_64,
    GENERIC_64_BE,
    I386,
    RISCV64,
    X86_64,
    Abi,
)

MAGIC: Final = b"\x7fELF"
ET_REL: Final = 1
SHT_NOBITS: Final = 8
SHF_COMPRESSED: Final = 0x800
ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD = 1, 2
_SHN_XINDEX: Final = 0xFFFF

# (e_machine, 64-bit, little-endian) of <elf.h>; anything else gets the generic rules of its class.
_MACHINES: dict[tuple[int, bool, bool], Abi] = {
    (62, True, True): X86_64,
    (3, False, True): I386,
    (183, True, True): AARCH64,
    (40, False, True): ARM,
    (243, True, True): RISCV64,
}


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the section table; ``offset`` and ``size`` are bytes in the file, ``link`` and ``info``
    numbers of sections whose meaning depends on the type (gABI, "sh_link and sh_info")."""

    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int = 0
    info: int = 0


class Elf:
    """An ELF file's header and section table.

    ``data`` is the whole file (an mmap or bytes). Raises `SourceError` if the header or the section
    table do not fit the file.
    """

    def __init__(self, data: bytes | mmap.mmap, where: str) -> None:
        self.data = data
        self.where = where
        if data[:4] != MAGIC:
            raise SourceError(f"{where}: no ELF file (it does not begin with 7f 'ELF')")
        if len(data) < 52 or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise SourceError(f"{where}: truncated or damaged ELF header")
        self.is_64 = data[4] == 2
        self.little_endian = data[5] == 1
        self._order = "<" if self.little_endian else ">"
        self.type, self.machine = self._unpack("HH", 16)
        self.sections = self._read_sections()
        self._by_name: dict[str, Section] = {}
        for section in self.sections:
            self._by_name.setdefault(section.name, section)

    @property
    def abi(self) -> Abi:
        """The target's placement rules."""
        known = _MACHINES.get((self.machine, self.is_64, self.little_endian))
        if known is not None:
            return known
        if self.is_64:
            return GENERIC_64 if self.little_endian else GENERIC_64_BE
        return GENERIC_32 if self.little_endian else GENERIC_32_BE

    @property
    def relocatable(self) -> bool:
        """An object file or a kernel module, not a linked program."""
        return self.type == ET_REL

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def section(self, name: str) -> Section | None:
        """The first section called `name`, or None."""
        return self._by_name.get(name)

    def contents(self, name: str) -> bytes | None:
        """Bytes of the section called `name`, inflated if it is compressed; None if it is not there.

        Raises `SourceError` if it reaches beyond the file or does not inflate to its stated size.
        """
        section = self._by_name.get(name)
        if section is None:
            return None
        if section.type == SHT_NOBITS:
            raise SourceError(f"{self.where}: section {name} is empty here; its contents are in another file")
        raw = bytes(self.data[section.offset : section.offset + section.size])
        if len(raw) != section.size:
            raise SourceError(f"{self.where}: section {name} reaches beyond the end of the file; is it truncated?")
        if section.flags & SHF_COMPRESSED:
            return self._inflate(raw, name)
        if name.startswith(".zdebug_") and raw[:4] == b"ZLIB":  # GNU's form from before SHF_COMPRESSED
            return unzlib(raw[12:], int.from_bytes(raw[4:12], "big"), f"{self.where}: section {name}")
        return raw

    def _inflate(self, raw: bytes, name: str) -> bytes:
        where = f"{self.where}: section {name}"
        header = 24 if self.is_64 else 12
        if len(raw) < header:
            raise SourceError(f"{where}: truncated compression header")
        form = "IIQ" if self.is_64 else "II"
        fields = struct.unpack_from(self._order + form, raw)
        algorithm, size = fields[0], fields[-1]
        if algorithm == ELFCOMPRESS_ZLIB:
            return unzlib(raw[header:], size, where)
        if algorithm == ELFCOMPRESS_ZSTD:
            return unzstd(raw[header:], where, size)
        raise SourceError(f"{where}: compression type {algorithm} is not known (1 is zlib, 2 is zstd)")

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self._order + form, self.data, offset)
        except struct.error:
            raise SourceError(f"{self.where}: truncated ELF file (nothing at byte {offset})") from None

    def _read_sections(self) -> tuple[Section, ...]:
        if self.is_64:
            (table,), (entry, count, names_at) = self._unpack("Q", 40), self._unpack("HHH", 58)
            form = "IIQQQQII"
        else:
            (table,), (entry, count, names_at) = self._unpack("I", 32), self._unpack("HHH", 46)
            form = "IIIIIIII"
        if table == 0:
            return ()
        width = struct.calcsize(self._order + form)
        if entry < width:
            raise SourceError(f"{self.where}: damaged ELF header (section entries of {entry} bytes)")
        if count == 0:  # more than 65,279 sections: the count is in the size of section 0
            count = self._unpack(form, table)[5]
        if names_at == _SHN_XINDEX:
            names_at = self._unpack("I", table + (40 if self.is_64 else 24))[0]
        if table + count * entry > len(self.data):
            raise SourceError(f"{self.where}: the section table lies beyond the end of the file; is it truncated?")
        rows = [self._unpack(form, table + i * entry) for i in range(count)]
        if names_at >= count:
            raise SourceError(f"{self.where}: damaged ELF header (section names in section {names_at} of {count})")
        names = bytes(self.data[rows[names_at][4] : rows[names_at][4] + rows[names_at][5]])
        return tuple(Section(_text(names, row[0]), row[1], row[2], *row[4:8]) for row in rows)


def open_elf(path: Path) -> Elf:
    """Map the file at `path`. Raises `SourceError` if it is no readable ELF file."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read ({error})") from None
    return Elf(data, str(path))


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    return names[offset : end if end >= 0 else len(names)].decode("utf-8", "backslashreplace")
