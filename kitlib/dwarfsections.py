"""The DWARF sections of an ELF file, ready to be read: mapped, inflated, and relocated where needed.

A linked file is read straight from its mapping, whatever relocation sections it kept (Debian's 6.1 vmlinux
has 16 million entries in ``.rela.debug_info`` that were applied long ago). Object files and kernel modules
(ET_REL) need theirs: the string offsets of ``.debug_info`` are zero before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitlib.elf import SHF_COMPRESSED, Elf, Section, open_elf
from kitlib.errors import SourceError
from kitlib.model import Abi

SHT_SYMTAB, SHT_RELA, SHT_REL = 2, 4, 9

# (word32, word64) absolute relocations by e_machine, from each psABI; others do not occur in the sections
# read here, where every relocated word is an offset into another debug section or an address.
_ABSOLUTE: dict[int, tuple[frozenset[int], frozenset[int]]] = {
    3: (frozenset({1}), frozenset()),  # R_386_32
    8: (frozenset({2}), frozenset({18})),  # R_MIPS_32, R_MIPS_64
    20: (frozenset({1}), frozenset()),  # R_PPC_ADDR32
    21: (frozenset({1}), frozenset({38})),  # R_PPC64_ADDR32, R_PPC64_ADDR64
    22: (frozenset({4}), frozenset({22})),  # R_390_32, R_390_64
    40: (frozenset({2}), frozenset()),  # R_ARM_ABS32
    62: (frozenset({10, 11}), frozenset({1})),  # R_X86_64_32, R_X86_64_32S, R_X86_64_64
    183: (frozenset({258}), frozenset({257})),  # R_AARCH64_ABS32, R_AARCH64_ABS64
    243: (frozenset({1}), frozenset({2})),  # R_RISCV_32, R_RISCV_64
    258: (frozenset({1}), frozenset({2})),  # R_LARCH_32, R_LARCH_64
}


@dataclass(frozen=True, slots=True)
class DwarfSections:
    """Contents of the debug sections; empty where a file has none. ``label`` names the file in messages."""

    label: str
    abi: Abi
    little_endian: bool
    info: memoryview
    abbrev: bytes
    strings: bytes
    line_strings: bytes
    str_offsets: bytes


def read_sections(path: Path) -> DwarfSections:
    """The DWARF sections of the ELF file at `path`.

    Raises `SourceError` if it is no ELF file, has no DWARF, or keeps its types where the kit does not look.
    """
    if path.is_dir():
        raise SourceError(f"{path}: a folder; give an ELF file with debug information")
    elf = open_elf(path)
    _refuse(elf)
    info = _contents(elf, "info")
    if not info:
        raise SourceError(f"{path}: no DWARF (.debug_info is missing or empty); compile with -g")
    return DwarfSections(
        label=str(path),
        abi=elf.abi,
        little_endian=elf.little_endian,
        info=info,
        abbrev=bytes(_contents(elf, "abbrev")),
        strings=bytes(_contents(elf, "str")),
        line_strings=bytes(_contents(elf, "line_str")),
        str_offsets=bytes(_contents(elf, "str_offsets")),
    )


def _refuse(elf: Elf) -> None:
    if ".debug_info.dwo" in elf and ".debug_info" not in elf:
        raise SourceError(f"{elf.where}: split DWARF (.dwo); compile without -gsplit-dwarf")
    for name in (".debug_types", ".zdebug_types"):
        if name in elf:
            raise SourceError(f"{elf.where}: DWARF type units are not read; compile with -fno-debug-types-section")


def _contents(elf: Elf, short: str) -> memoryview:
    """The section ``.debug_<short>``; empty if the file has none."""
    name = f".debug_{short}"
    section = elf.section(name)
    if section is None:
        name = f".zdebug_{short}"
        section = elf.section(name)
    if section is None:
        return memoryview(b"")
    if elf.relocatable:
        data = elf.contents(name) or b""
        return memoryview(_relocated(elf, section, data))
    if section.flags & SHF_COMPRESSED or name.startswith(".z"):
        return memoryview(elf.contents(name) or b"")
    view = memoryview(elf.data)[section.offset : section.offset + section.size]
    if len(view) != section.size or section.type == 8:
        raise SourceError(f"{elf.where}: section {name} reaches beyond the end of the file; is it truncated?")
    return view


# -- relocation of object files ------------------------------------------------------------------------


def _relocated(elf: Elf, section: Section, data: bytes) -> bytes:
    """`data` with the relocation sections of `section` applied."""
    own = elf.sections.index(section)
    for candidate in elf.sections:
        if candidate.type in (SHT_RELA, SHT_REL) and candidate.info == own:
            data = _apply(elf, candidate, data)
    return data


def _apply(elf: Elf, table: Section, data: bytes) -> bytes:
    known = _ABSOLUTE.get(elf.machine)
    if known is None:
        raise SourceError(
            f"{elf.where}: object files of ELF machine {elf.machine} cannot be relocated; give a linked program"
        )
    rows = _records(elf, table, _relocation_type(elf, table.type == SHT_RELA))
    if not len(rows):
        return data
    kinds, symbols = _split_info(elf, rows["info"])
    values = _symbol_values(elf, table.link)
    if int(symbols.max()) >= len(values):
        raise SourceError(f"{elf.where}: section {table.name} names a symbol that is not there; damaged?")
    words = np.frombuffer(data, np.uint8).copy()
    order = "<" if elf.little_endian else ">"
    for width, wanted in ((4, known[0]), (8, known[1])):
        chosen = np.isin(kinds, list(wanted))
        offsets = rows["offset"][chosen].astype(np.int64)
        if not len(offsets):
            continue
        if int(offsets.min()) < 0 or int(offsets.max()) + width > len(words):
            raise SourceError(f"{elf.where}: section {table.name} relocates bytes that are not there; damaged?")
        places = offsets[:, None] + np.arange(width)
        if table.type == SHT_RELA:
            addends = rows["addend"][chosen].astype(np.uint64)
        else:
            addends = words[places].copy().view(f"{order}u{width}").ravel().astype(np.uint64)
        sums = (values[symbols[chosen]] + addends).astype(f"{order}u{width}")
        words[places] = sums.view(np.uint8).reshape(-1, width)
    return words.tobytes()


def _relocation_type(elf: Elf, with_addend: bool) -> np.dtype[Any]:
    order = "<" if elf.little_endian else ">"
    wide = 8 if elf.is_64 else 4
    fields = [("offset", f"{order}u{wide}"), ("info", f"{order}u{wide}")]
    if with_addend:
        fields.append(("addend", f"{order}i{wide}"))
    return np.dtype(fields)


def _split_info(elf: Elf, info: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Relocation types and symbol numbers (gABI, "Relocation"; MIPS 64 packs its own way)."""
    wide = info.astype(np.uint64)
    if not elf.is_64:
        return (wide & np.uint64(0xFF)).astype(np.int64), (wide >> np.uint64(8)).astype(np.int64)
    if elf.machine == 8 and elf.little_endian:
        return (wide >> np.uint64(56)).astype(np.int64), (wide & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return (wide & np.uint64(0xFFFFFFFF)).astype(np.int64), (wide >> np.uint64(32)).astype(np.int64)


def _symbol_values(elf: Elf, index: int) -> npt.NDArray[np.uint64]:
    if not 0 < index < len(elf.sections) or elf.sections[index].type != SHT_SYMTAB:
        raise SourceError(f"{elf.where}: a relocation section without its symbol table; damaged?")
    order = "<" if elf.little_endian else ">"
    if elf.is_64:
        layout = [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
    else:
        layout = [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2")]
    rows = _records(elf, elf.sections[index], np.dtype([(name, order + form) for name, form in layout]))
    return rows["value"].astype(np.uint64)


def _records(elf: Elf, section: Section, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    raw = bytes(elf.data[section.offset : section.offset + section.size])
    if len(raw) != section.size:
        raise SourceError(f"{elf.where}: section {section.name} reaches beyond the end of the file; is it truncated?")
    return np.frombuffer(raw[: len(raw) // kind.itemsize * kind.itemsize], kind)
