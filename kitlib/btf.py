"""Layouts from BTF, the kernel's compact type format: raw, in an ELF section, or split for a module.

BTF states offsets and sizes but no alignments, no attributes and no C++: natural alignments are worked
out from the innermost types outwards, attributes are inferred by `kitlib.place.settle`. pahole, which
writes the kernel's BTF, flattens ``int a[2][3]`` into ``int a[6]``.

Layouts are built when asked for, one object a BTF type, and shared by all members that hold the type.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import replace as _with
from pathlib import Path
from typing import NamedTuple

from kitlib.btftypes import ARRAY, ENUM, ENUM64, FLOAT, INT, MAX_DEPTH, PTR, STRUCT, TYPEDEF, UNION, BtfTypes
from kitlib.errors import NotFound, SourceError, near
from kitlib.model import (
    AARCH64,
    GENERIC_32,
    GENERIC_32_BE,
    GENERIC_64,
    GENERIC_64_BE,
    X86_64,
    Abi,
    Kind,
    Layout,
    Member,
    SourceInfo,
)
from kitlib.place import settle
from kitlib.source import distinct

RUNNING = Path("/sys/kernel/btf/vmlinux")
"""The running kernel's BTF (since Linux 5.4, with CONFIG_DEBUG_INFO_BTF)."""

_HOSTS = {"x86_64": X86_64, "aarch64": AARCH64}
_MAX_BITS = 1 << 48
_FOUR_BYTE_ALIGNED = frozenset({"compat_u64", "compat_s64"})
"""Typedefs that lower the alignment of their type to 4 (Linux, include/asm-generic/compat.h); BTF drops it."""


class _Held(NamedTuple):
    """What a member needs to know of its type.

    ``int_bits`` and ``int_shift`` are those of an INT that says itself that it is a bit-field; ``level`` is
    how many structs are inside one another in it.
    """

    text: str
    bits: int
    align: int
    inner: Layout | None
    elements: int | None
    int_bits: int = 0
    int_shift: int = 0
    level: int = 0


_VOID = _Held("void", 0, 1, None, None)


class BtfSource:
    """Structs and unions of one BTF (for a split BTF: those of the module; types of its base are known too).

    >>> kernel = open_btf(RUNNING)  # doctest: +SKIP
    >>> kernel.struct("list_head").size  # doctest: +SKIP
    16
    """

    kind = "btf"

    def __init__(self, types: BtfTypes, label: str, abi: Abi) -> None:
        self.label = label
        self.types = types
        self.abi = abi
        self._info = SourceInfo(label, "btf")
        self._held: dict[int, _Held] = {0: _VOID}
        self._layouts: dict[int, Layout] = {}
        self._open: set[int] = set()
        self._levels: dict[int, int] = {}
        self._depth = 0
        self._ids: dict[str, list[int]] | None = None
        self._given_names: dict[int, str] = {}

    # -- finding ----------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Names of all structs and unions, and of typedefs of unnamed ones; sorted, each once."""
        return sorted(name for name, ids in self._index().items() if self._defines(ids))

    def _defines(self, ids: list[int]) -> bool:
        kinds, first = self.types.kinds, self.types.first_own
        return any(tid >= first and (kinds[tid] != TYPEDEF or self._names_unnamed(tid)) for tid in ids)

    def _names_unnamed(self, tid: int) -> bool:
        return self._given_names.get(self.types.target(tid)) == self.types.type_name(tid)

    def struct(self, name: str) -> Layout:
        """The layout called `name`; ``struct x``, ``union x`` and typedefs are understood.

        Of several structs of one name the first is given, and ``source.detail`` says how many there are.
        Raises `NotFound`, with near names.
        """
        wanted, kinds = _split_name(name)
        ids = [tid for tid in self._index().get(wanted, ()) if self.types.kinds[tid] in kinds]
        for kind in (STRUCT, UNION):
            same = [tid for tid in ids if self.types.kinds[tid] == kind]
            if same:
                return self._of_several(same)
        for tid in ids:
            bare = self.types.bare(tid)
            if self.types.kinds[bare] in (STRUCT, UNION):
                return self.layout(bare)
        raise NotFound(f"no struct or union '{wanted}' in {self.label}{near(wanted, self.names())}")

    def definitions(self, name: str) -> list[Layout]:
        """All different layouts called `name` of the kind that `struct` gives, which is first."""
        first = self.struct(name)
        kind = STRUCT if first.kind == "struct" else UNION
        ids = (tid for tid in self._index().get(first.name or "", ()) if self.types.kinds[tid] == kind)
        return distinct([first, *(self.layout(tid) for tid in ids)])

    def structs(self) -> Iterator[Layout]:
        """Every named layout in the order of the BTF, those named by a typedef included."""
        self._index()
        kinds, starts, words = self.types.kinds, self.types.starts, self.types.words
        for tid in range(self.types.first_own, len(self.types)):
            if kinds[tid] in (STRUCT, UNION) and (words[starts[tid]] or tid in self._given_names):
                yield self.layout(tid)

    def _index(self) -> dict[str, list[int]]:
        """Ids of structs, unions and typedefs by name; the names typedefs give to unnamed structs."""
        if self._ids is None:
            types = self.types
            kinds, starts, words, name_at = types.kinds, types.starts, types.words, types.name_at
            ids: dict[str, list[int]] = {}
            for tid in range(1, len(types)):
                kind = kinds[tid]
                if kind in (STRUCT, UNION, TYPEDEF):
                    name = name_at(words[starts[tid]])
                    if name:
                        ids.setdefault(name, []).append(tid)
                        if kind == TYPEDEF:
                            self._name_target(words[starts[tid] + 2], name)
            self._ids = ids
        return self._ids

    def _name_target(self, target: int, name: str) -> None:
        types = self.types
        if 0 < target < len(types) and types.kinds[target] in (STRUCT, UNION) and not types.words[types.starts[target]]:
            self._given_names.setdefault(target, name)

    def _of_several(self, ids: list[int]) -> Layout:
        layout = self.layout(ids[0])
        if len(ids) == 1:
            return layout
        detail = f"first of {len(ids)} definitions of this name"
        return _with(layout, source=SourceInfo(self.label, "btf", detail))

    # -- building ---------------------------------------------------------------------------------------

    def layout(self, tid: int) -> Layout:
        """The struct or union with BTF id `tid`, always the same object."""
        known = self._layouts.get(tid)
        if known is None:
            if tid in self._open:
                raise SourceError(f"{self.types.where}: BTF type {tid} contains itself by value; the BTF is damaged")
            self._open.add(tid)
            try:
                known = self._layouts[tid] = self._build(tid)
            finally:
                self._open.discard(tid)
        return known

    def _build(self, tid: int) -> Layout:
        self._index()
        types = self.types
        name_offset, _, size = types.words[types.start(tid) : types.start(tid) + 3]
        members, align = self._read_members(tid)
        if size:
            align = min(align, size & -size)
        own_name = types.name_at(name_offset) or self._given_names.get(tid)
        kind: Kind = "union" if types.kinds[tid] == UNION else "struct"
        return settle(Layout(own_name, kind, size, align, members, abi=self.abi, source=self._info))

    def _read_members(self, tid: int) -> tuple[tuple[Member, ...], int]:
        """The members of struct `tid`, and the largest alignment among them in bytes."""
        types, held = self.types, self._held
        words, start = types.words, types.start(tid)
        info = words[start + 1]
        widths_stated = info >> 31  # then the upper 8 bits of a position are the width of a bit-field
        members = []
        align, level = 1, 0
        for row in range(start + 3, start + 3 + 3 * (info & 0xFFFF), 3):
            name_at, type_id, position = words[row : row + 3]
            of = held.get(type_id) or self._hold(type_id)
            width = position >> 24 if widths_stated else of.int_bits
            if widths_stated:
                position &= 0xFFFFFF
            elif width:
                position += of.int_shift
            name = types.name_at(name_at) or None
            level = max(level, of.level)
            if of.align > align and (name is not None or not width):
                align = of.align
            bits, storage = (width, of.bits) if width else (of.bits, 0)
            try:
                members.append(
                    Member(
                        name,
                        of.text,
                        position,
                        bits,
                        of.align,
                        storage_bits=storage,
                        inner=of.inner,
                        count=of.elements,
                    )
                )
            except ValueError as error:
                raise SourceError(f"{types.where}: BTF type {tid}: {error}") from None
        if level >= MAX_DEPTH:
            raise self._too_deep(tid)
        self._levels[tid] = level + 1
        return tuple(members), align

    def _too_deep(self, tid: int) -> SourceError:
        return SourceError(
            f"{self.types.where}: BTF type {tid} contains itself or is nested more than {MAX_DEPTH} deep; damaged?"
        )

    def _hold(self, tid: int) -> _Held:
        bare = self.types.bare(tid)
        of = self._held.get(bare)
        if of is None:
            if self._depth > MAX_DEPTH:
                raise self._too_deep(tid)
            self._depth += 1
            try:
                of = self._held[bare] = self._measure(bare)
            finally:
                self._depth -= 1
        if bare != tid:
            text = self.types.spelling(tid)
            align = min(of.align, 4) if text in _FOUR_BYTE_ALIGNED else of.align
            of = self._held[tid] = of._replace(text=text, align=align)
        return of

    def _measure(self, tid: int) -> _Held:
        types = self.types
        start, kind = types.start(tid), types.kinds[tid]
        text = types.spelling(tid)
        size = types.words[start + 2]
        if kind == PTR:
            pointer = self.abi.pointer_bytes
            return _Held(text, pointer * 8, pointer, None, None)
        if kind in (STRUCT, UNION):
            inner = self.layout(tid)
            return _Held(text, inner.size * 8, inner.align, inner, None, level=self._levels[tid])
        if kind == ARRAY:
            return self._measure_array(start, text)
        if kind == INT:
            detail = types.words[start + 3]
            own, shift = detail & 0xFF, detail >> 16 & 0xFF
            partial = own if own and (own < size * 8 or shift) else 0
            return _Held(text, size * 8, self.abi.scalar_align(size), None, None, partial, shift)
        if kind in (ENUM, ENUM64, FLOAT):
            return _Held(text, size * 8, self.abi.scalar_align(size), None, None)
        return _Held(text, 0, 1, None, None)  # a forward declaration or a function: no size

    def _measure_array(self, start: int, text: str) -> _Held:
        element, count = self.types.words[start + 3], self.types.words[start + 5]
        of = self._held.get(element) or self._hold(element)
        total = count * (of.elements if of.elements is not None else 1)
        if of.bits * count > _MAX_BITS:
            raise SourceError(f"{self.types.where}: an array of {count} elements is larger than any memory")
        return _Held(text, of.bits * count, of.align, of.inner, total, level=of.level)


def _split_name(name: str) -> tuple[str, tuple[int, ...]]:
    words = name.split()
    if len(words) == 2 and words[0] in ("struct", "union"):
        return words[1], (STRUCT,) if words[0] == "struct" else (UNION,)
    return name.strip(), (STRUCT, UNION, TYPEDEF)


def open_btf(path: str | os.PathLike[str], base: BtfTypes | None = None) -> BtfSource:
    """Open a file of raw BTF. A file of ``/sys/kernel/btf`` other than ``vmlinux`` finds its base there.

    Raises `SourceError` if it cannot be read, is damaged, or is a module's BTF and `base` is missing.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
    running = path.resolve().parent == RUNNING.parent
    if running and base is None and path.name != RUNNING.name:
        base = open_btf(RUNNING).types
    abi = _HOSTS.get(platform.machine()) if running else None
    return btf_from_bytes(data, str(path), abi=abi, base=base)


def open_running() -> BtfSource:
    """The running kernel's types. Raises `SourceError` if it does not publish them."""
    if not RUNNING.exists():
        raise SourceError(
            f"running: this kernel does not publish its types at {RUNNING} (it needs Linux 5.4 and "
            "CONFIG_DEBUG_INFO_BTF); give a vmlinux or vmlinuz file instead"
        )
    source = open_btf(RUNNING)
    return BtfSource(source.types, f"running ({platform.release()})", source.abi)


def btf_from_bytes(data: bytes, where: str, *, abi: Abi | None = None, base: BtfTypes | None = None) -> BtfSource:
    """Read BTF from `data`; `where` names it in messages. Without `abi` that of the pointer size is used."""
    types = BtfTypes(data, where, base)
    if abi is None:
        wide = types.pointer_bytes == 8
        if types.little_endian:
            abi = GENERIC_64 if wide else GENERIC_32
        else:
            abi = GENERIC_64_BE if wide else GENERIC_32_BE
    return BtfSource(types, where, abi)
