"""The type table of BTF: header, type records, strings; spellings and sizes of types.

The format is that of the kernel's Documentation/bpf/btf.rst and include/uapi/linux/btf.h. A split BTF (a
module's) continues the type ids and the string offsets of its base.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Final

from kitlib.cdecl import canonical_type, qualified
from kitlib.errors import SourceError

MAGIC: Final = 0xEB9F
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST = range(1, 11)
RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(11, 20)
LAST_KIND: Final = ENUM64

MAX_DEPTH: Final = 64
"""Links followed from one type to the next before a chain counts as damaged (the kernel's limit is 32)."""
MAX_TEXT: Final = 1 << 14
"""Longest spelling of a type, in characters; nested function prototypes could double it at every level."""

# Words a record takes: 3, plus a fixed number, plus some for each of its vlen entries. 0: unknown kind.
_FIXED = [0] * 32
_EACH = [0] * 32
for _kind in range(1, LAST_KIND + 1):
    _FIXED[_kind] = 3
for _kind, _extra in ((INT, 1), (ARRAY, 3), (VAR, 1), (DECL_TAG, 1)):
    _FIXED[_kind] += _extra
for _kind, _extra in ((STRUCT, 3), (UNION, 3), (ENUM, 2), (FUNC_PROTO, 2), (DATASEC, 3), (ENUM64, 3)):
    _EACH[_kind] = _extra

_QUALIFIERS = {CONST: "const", VOLATILE: "volatile", RESTRICT: "restrict"}
_TRANSPARENT = frozenset({TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG})
_HEADER = struct.Struct("HBBIIIII")


def is_btf(head: bytes) -> bool:
    """Whether `head`, the first bytes of a file, is a BTF header of either byte order."""
    return len(head) >= 4 and head[:3] in (b"\x9f\xeb\x01", b"\xeb\x9f\x01")


class BtfTypes:
    """Type records by id, as words. ``kinds[i]`` is the kind of type ``i``, ``starts[i]`` its first word.

    Type 0 is ``void``. Raises `SourceError` for anything that is not BTF the kit knows.
    """

    def __init__(self, data: bytes, where: str, base: BtfTypes | None = None) -> None:
        self.where = where
        self.base = base
        self.little_endian, self._body, self._text = _sections(data, where)
        if base is None and self._text[:1] not in (b"\0", b""):
            raise self._needs_base()
        self.words: array[int] = array("I") if base is None else base.words[:]
        self.strings: bytes = self._text if base is None else base.strings + self._text
        self.starts: list[int] = [0] if base is None else base.starts[:]
        self.kinds: bytearray = bytearray(1) if base is None else base.kinds[:]
        self.first_own = len(self.starts)
        self._walk()
        if base is not None:
            self._check_base(len(base.strings))
        self._names: dict[int, str] = {0: ""}
        self._spellings: dict[int, tuple[str, str]] = {0: ("void", "")}
        self.pointer_bytes: int = base.pointer_bytes if base else self._find_pointer_bytes()

    def _needs_base(self) -> SourceError:
        return SourceError(
            f"{self.where}: this is a module's split BTF and says nothing without its vmlinux; "
            f"give both as {self.where}@VMLINUX (in Python: open_source(path, base=VMLINUX))"
        )

    def _walk(self) -> None:
        own = array("I")
        own.frombytes(self._body)
        if (sys.byteorder == "little") != self.little_endian:
            own.byteswap()
        words, starts, kinds = self.words, self.starts, self.kinds
        position = len(words)
        words.extend(own)
        end = len(words)
        fixed, each = _FIXED, _EACH
        try:
            while position < end:
                info = words[position + 1]
                kind = info >> 24 & 31
                if not fixed[kind]:
                    raise SourceError(
                        f"{self.where}: BTF type {len(starts)} is of kind {kind}; this kit knows kinds 1 to "
                        f"{LAST_KIND} (the file is damaged or newer than the kit)"
                    )
                starts.append(position)
                kinds.append(kind)
                position += fixed[kind] + each[kind] * (info & 0xFFFF)
        except IndexError:
            position = end + 1
        if position != end:
            raise SourceError(f"{self.where}: BTF type {len(starts) - 1} reaches beyond the type section")

    def _check_base(self, own_text_at: int) -> None:
        """A wrong base shifts every name, so that names begin in the middle of others."""
        strings, words = self.strings, self.words
        for tid in range(self.first_own, len(self.starts)):
            start = self.starts[tid]
            end = start + 3 + 3 * (words[start + 1] & 0xFFFF) if self.kinds[tid] in (STRUCT, UNION) else start + 1
            for at in range(start, end, 3):
                offset = words[at]
                if offset and (offset > len(strings) or (offset != own_text_at and strings[offset - 1])):
                    raise SourceError(
                        f"{self.where}: its names do not fit the given base ({self.base.where if self.base else ''}); "
                        "give the vmlinux it was built with"
                    )

    def _find_pointer_bytes(self) -> int:
        """BTF does not state the size of a pointer; it is that of ``long`` on every Linux target."""
        for tid in range(1, len(self.starts)):
            if self.kinds[tid] == INT and self.type_name(tid) in ("long int", "long unsigned int", "long"):
                size = self.words[self.starts[tid] + 2]
                if size in (4, 8):
                    return size
        return 8

    def __len__(self) -> int:
        return len(self.starts)

    # -- names ------------------------------------------------------------------------------------------

    def name_at(self, offset: int) -> str:
        """The string at `offset`; ``""`` for an unnamed type or member."""
        found = self._names.get(offset)
        if found is None:
            end = self.strings.find(b"\0", offset) if offset < len(self.strings) else -1
            if end < 0:
                if self.base is None and self._looks_split(offset):
                    raise self._needs_base()
                raise SourceError(
                    f"{self.where}: a name at byte {offset} of {len(self.strings)} bytes of BTF strings; damaged?"
                )
            found = self.strings[offset:end].decode("utf-8", "backslashreplace")
            if not found.isprintable():
                found = found.encode("unicode_escape").decode("ascii")
            self._names[offset] = found
        return found

    def _looks_split(self, offset: int) -> bool:
        """Offsets of a split BTF begin where its base's strings, megabytes of them, end."""
        return len(self.strings) <= offset < 1 << 28 and len(self.starts) < 1 << 16

    def type_name(self, tid: int) -> str:
        """Name of type `tid` itself; ``""`` if it has none."""
        return self.name_at(self.words[self.start(tid)])

    def start(self, tid: int) -> int:
        """Index of the first word of type `tid`."""
        if not 0 < tid < len(self.starts):
            if self.base is None and tid > len(self.starts):
                raise SourceError(
                    f"{self.where}: type id {tid} of {len(self.starts) - 1}; damaged, or a module's BTF that "
                    f"needs its vmlinux: {self.where}@VMLINUX"
                )
            raise SourceError(f"{self.where}: type id {tid} of {len(self.starts) - 1}; the BTF is damaged")
        return self.starts[tid]

    # -- following types --------------------------------------------------------------------------------

    def target(self, tid: int) -> int:
        """The type that pointer, typedef or qualifier `tid` refers to."""
        return self.words[self.start(tid) + 2]

    def bare(self, tid: int) -> int:
        """`tid` with typedefs, qualifiers and type tags taken off."""
        for _ in range(MAX_DEPTH):
            if tid == 0:
                return 0
            self.start(tid)
            if self.kinds[tid] not in _TRANSPARENT:
                return tid
            tid = self.words[self.starts[tid] + 2]
        raise SourceError(f"{self.where}: BTF type {tid} is reached through a chain of typedefs that does not end")

    def spelling(self, tid: int, depth: int = 0) -> str:
        """The type as C text, as DWARF would have it: ``struct file *``, ``int (*)(void)``, ``char[16]``."""
        prefix, suffix = self._spell(tid, depth)
        return prefix + suffix

    def _spell(self, tid: int, depth: int) -> tuple[str, str]:
        """Text in front of and behind the place where a declared name would stand."""
        known = self._spellings.get(tid)
        if known is not None:
            return known
        if depth > MAX_DEPTH:
            raise SourceError(f"{self.where}: BTF type {tid} refers to itself; the BTF is damaged")
        start = self.start(tid)
        kind = self.kinds[tid]
        if kind in (STRUCT, UNION, ENUM, ENUM64, FWD):
            pair = self._spell_tagged(tid, kind), ""
        elif kind == INT:
            pair = canonical_type(self.type_name(tid)), ""
        elif kind in (FLOAT, TYPEDEF):
            pair = self.type_name(tid), ""
        elif kind == FUNC_PROTO:
            prefix, suffix = self._spell(self.words[start + 2], depth + 1)
            pair = prefix, self._parameters(start, depth) + suffix
        elif kind == ARRAY:
            prefix, suffix = self._spell(self.words[start + 3], depth + 1)
            pair = prefix, f"[{self.words[start + 5] or ''}]{suffix}"
        elif kind == PTR:
            pair = _pointer_to(*self._spell(self.words[start + 2], depth + 1))
        elif kind in _QUALIFIERS:
            prefix, suffix = self._spell(self.words[start + 2], depth + 1)
            pair = qualified(_QUALIFIERS[kind], prefix), suffix
        elif kind == TYPE_TAG:
            pair = self._spell(self.words[start + 2], depth + 1)
        else:
            raise SourceError(f"{self.where}: BTF type {tid} of kind {kind} stands where a C type should")
        if len(pair[0]) + len(pair[1]) > MAX_TEXT:
            raise SourceError(f"{self.where}: BTF type {tid} takes more than {MAX_TEXT} characters to write")
        self._spellings[tid] = pair
        return pair

    def _spell_tagged(self, tid: int, kind: int) -> str:
        if kind == FWD:
            word = "union" if self.words[self.starts[tid] + 1] >> 31 else "struct"
        else:
            word = {STRUCT: "struct", UNION: "union"}.get(kind, "enum")
        return f"{word} {self.type_name(tid) or '{...}'}"

    def _parameters(self, start: int, depth: int) -> str:
        count = self.words[start + 1] & 0xFFFF
        texts = []
        length = 0
        for at in range(start + 3, start + 3 + 2 * count, 2):
            tid = self.words[at + 1]
            texts.append("..." if tid == 0 else self.spelling(tid, depth + 1))
            length += len(texts[-1])
            if length > MAX_TEXT:
                raise SourceError(f"{self.where}: a function type takes more than {MAX_TEXT} characters to write")
        return f"({', '.join(texts) or 'void'})"


def _pointer_to(prefix: str, suffix: str) -> tuple[str, str]:
    if suffix.startswith(("[", "(")):  # to an array or a function
        return f"{prefix} (*", f"){suffix}"
    return (f"{prefix}*" if prefix.endswith("*") else f"{prefix} *"), suffix


def _sections(data: bytes, where: str) -> tuple[bool, bytes, bytes]:
    """Byte order, type section and string section of `data`, all bounds checked."""
    if len(data) < _HEADER.size:
        raise SourceError(f"{where}: {len(data)} bytes are too few for BTF; is it truncated?")
    little = data[:2] == MAGIC.to_bytes(2, "little")
    order = "<" if little else ">"
    magic, version, _flags, header, types_at, types, text_at, text = struct.unpack_from(order + "HBBIIIII", data)
    if magic != MAGIC or version != 1:
        raise SourceError(f"{where}: no BTF of version 1 (magic {magic:#x}, version {version})")
    if header < _HEADER.size or header + max(types_at + types, text_at + text) > len(data):
        raise SourceError(f"{where}: BTF sections reach beyond the {len(data)} bytes there are; is it truncated?")
    if (header + types_at) % 4 or types % 4:
        raise SourceError(f"{where}: the BTF type section is not made of whole words; damaged?")
    strings = bytes(data[header + text_at : header + text_at + text])
    if strings and strings[-1]:
        raise SourceError(f"{where}: the BTF strings do not end in a zero byte; is it truncated?")
    return little, bytes(data[header + types_at : header + types_at + types]), strings
