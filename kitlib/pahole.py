"""Reading pahole's text: each struct as a `Layout`, with alignments worked out from the text.

Pahole prints offsets and sizes but no alignments (only attributes, and those partly by its own guess).
A member's natural alignment comes, in this order, from its expanded body, from a struct of that name in
the same text, from the table of well-known types, and else from all uses of the type in the text: the
largest power of two, at most 8, that divides the size and every offset (marked ``inferred``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace as _with
from math import gcd
from pathlib import Path

from kitlib.cdecl import scalar_bytes, type_align
from kitlib.errors import NotFound, SourceError, near
from kitlib.files import read_text
from kitlib.model import GENERIC_32, X86_64, Abi, AlignFrom, Kind, Layout, Member, SourceInfo
from kitlib.paholeblock import MAX_DEPTH, Block, Row, parse_text
from kitlib.place import align_up, settle

MAX_INFERRED_ALIGN = 8
_TAGS = ("struct ", "union ", "class ")


class PaholeSource:
    """The structs of a pahole text (see `kitlib.source.Source`)."""

    kind = "pahole"

    def __init__(self, text: str, label: str, abi: Abi | None = None) -> None:
        self.label = label
        parsed = parse_text(text, label)
        if not parsed.blocks:
            raise SourceError(_nothing(label, parsed.cut))
        self._cut = parsed.cut
        self._resolver = _Resolver(parsed.blocks, label, abi or _abi_of(parsed.blocks))
        self._first: dict[str, Block] = {}
        for block in parsed.blocks:
            self._first.setdefault(block.name or "", block)
            if block.typedef:
                self._first.setdefault(block.typedef, block)

    def names(self) -> list[str]:
        return sorted(self._first)

    def struct(self, name: str) -> Layout:
        plain = name
        for tag in _TAGS:
            plain = plain.removeprefix(tag)
        block = self._first.get(plain)
        if block is not None:
            return self._resolver.layout(block)
        if plain in self._cut:
            raise SourceError(f"{self.label}: '{plain}' (line {self._cut[plain]}) is cut off; give the text to its end")
        raise NotFound(f"no struct '{plain}' in {self.label}{near(plain, self._first)}")

    def structs(self) -> Iterator[Layout]:
        return iter([self._resolver.layout(block) for block in self._resolver.blocks])


def open_pahole(path: str | Path, abi: Abi | None = None) -> PaholeSource:
    """Open a file of pahole output, or a mail that quotes some. Raises `SourceError` if there is none in it.

    Without `abi` the target is x86-64, or 32-bit if the text has 4-byte pointers.
    """
    return PaholeSource(read_text(Path(path)), str(path), abi)


def read_pahole(text: str, label: str = "pahole text", abi: Abi | None = None) -> list[Layout]:
    """All structs of `text`, in its order. Raises `SourceError` with the line of what is not understood.

    >>> [s] = read_pahole("struct s {\\n\\tint a; /* 0 4 */\\n\\tchar * b; /* 8 8 */\\n\\t/* size: 16 */\\n};")
    >>> [(m.name, m.type, m.offset) for m in s], s.align
    ([('a', 'int', 0), ('b', 'char *', 8)], 8)
    """
    return list(PaholeSource(text, label, abi).structs())


def _nothing(label: str, cut: dict[str, int]) -> str:
    if cut:
        name, line = next(iter(cut.items()))
        return f"{label}, line {line}: the text breaks off inside '{name}'; give it to its closing brace"
    return f"{label}: no struct with pahole's offset comments (/* 0  8 */); print one with 'pahole -C NAME FILE'"


def _all_rows(blocks: list[Block]) -> Iterator[tuple[Block, Row]]:
    todo = list(blocks)
    while todo:
        block = todo.pop()
        for row in block.rows:
            yield block, row
            if row.body is not None:
                todo.append(row.body)


def _abi_of(blocks: list[Block]) -> Abi:
    """The target by the size of its pointers."""
    for _, row in _all_rows(blocks):
        declared = row.declared
        if declared.element.endswith("*") or "(*)(" in declared.element:
            elements = 1 if declared.count is None else declared.count
            if elements and row.offsets.size:
                return GENERIC_32 if row.offsets.size == 4 * elements else X86_64
    return X86_64


def _plain(type_text: str) -> str:
    """`type_text` without qualifiers, as structs and uses are found by it."""
    while type_text.startswith(("const ", "volatile ")):
        type_text = type_text.partition(" ")[2]
    return type_text


class _Resolver:
    """Turns blocks into layouts; each block once, what it holds by value first."""

    def __init__(self, blocks: list[Block], label: str, abi: Abi) -> None:
        self.blocks = blocks
        self.label = label
        self.abi = abi
        self._done: dict[int, Layout] = {}
        self._open: set[int] = set()
        self._defined: dict[str, list[Block]] = defaultdict(list)
        self._steps: dict[str, int] = {}
        self._union_bytes: dict[str, int] = {}
        for block in blocks:
            self._defined[f"{block.kind} {block.name}"].append(block)
            if block.typedef:
                self._defined[block.typedef].append(block)
        self._survey()

    def _survey(self) -> None:
        """Collect, for each type, what all its offsets and sizes are multiples of."""
        for block, row in _all_rows(self.blocks):
            key, size = _plain(row.declared.element), _element_bytes(row)
            if row.body is not None and row.body.name:
                self._defined.setdefault(row.declared.element, []).append(row.body)
            if row.declared.bits is not None:
                continue
            if key.startswith("union ") and size is not None:
                self._union_bytes.setdefault(key, size)
            if not block.packed and not row.declared.packed:
                step = gcd(self._steps.get(key, 0), row.offsets.offset, size or 0)
                self._steps[key] = gcd(step, block.trailer.get("size", _union_end(block)))

    def layout(self, block: Block, base: int = 0, size: int | None = None) -> Layout:
        """The layout of `block`, which starts `base` bytes into its outermost struct and has `size` bytes."""
        known = self._done.get(id(block))
        if known is not None:
            return known
        if id(block) in self._open:
            raise SourceError(f"{self.label}, line {block.line}: {block.title} holds itself by value; check the text")
        if len(self._open) > MAX_DEPTH:
            raise SourceError(f"{self.label}, line {block.line}: {block.title} is held {MAX_DEPTH} structs deep")
        self._open.add(id(block))
        try:
            layout = self._build(block, base, size)
        except ValueError as error:
            raise SourceError(f"{self.label}, line {block.line}: {block.title}: {error}; check the text") from None
        finally:
            self._open.discard(id(block))
        self._done[id(block)] = layout
        return layout

    def _build(self, block: Block, base: int, size: int | None) -> Layout:
        members = tuple(self._member(block, row, base) for row in block.rows)
        align = max((m.align for m in members), default=1)
        end = max((m.bit_end + 7 for m in members), default=0) >> 3
        reason = _disagreement(block, members, base)
        if size is None:
            size = block.trailer.get("size")
        if size is None and block.kind == "union":
            size, reason = self._union_size(block, members, end, reason)
        if size is None:
            size = align_up(end, max(align, block.forced_align))
            reason = reason or "the text does not state its size"
        if end > size:
            raise ValueError(f"its members end at byte {end}, its size is {size}")
        kind: Kind = "union" if block.kind == "union" else "class" if block.kind == "class" else "struct"
        layout = Layout(
            block.name,
            kind,
            size,
            max(align, block.forced_align),
            members,
            packed=block.packed,
            forced_align=block.forced_align,
            abi=self.abi,
            reason=reason,
            source=SourceInfo(self.label, "pahole", f"line {block.line}"),
        )
        return _settled(layout)

    def _union_size(
        self, block: Block, members: tuple[Member, ...], end: int, reason: str | None
    ) -> tuple[int, str | None]:
        """Size of a union, under which pahole writes no trailer: from a use of it, else from its members."""
        used = self._union_bytes.get(f"union {block.name}")
        if used is not None:
            return used, reason
        known = max((m.align for m in members if m.align_from != "inferred"), default=1)
        size = align_up(end, max(known, block.forced_align))
        unsure = [m.size for m in members if m.align_from == "inferred"]
        if any(size % min(bytes_ & -bytes_, MAX_INFERRED_ALIGN) for bytes_ in unsure if bytes_):
            reason = reason or "the text does not state its size, which its members leave open"
        return size, reason

    def _member(self, block: Block, row: Row, base: int) -> Member:
        declared, offsets = row.declared, row.offsets
        bit_offset = offsets.bit_offset - base * 8
        if bit_offset < 0:
            raise ValueError(f"member {declared.name} (line {row.line}) lies in front of its struct")
        inner = self._inner(row)
        align, provenance = self._natural_align(block, row, inner)
        bits = declared.bits
        storage = 0
        if bits is not None:
            storage = 8 * (scalar_bytes(declared.expanded or declared.element, self.abi) or offsets.size)
            if bits == 0 or bits > storage:
                raise ValueError(f"bit-field {declared.name} (line {row.line}) has {bits} of {storage} bits")
        elif offsets.bit is not None:
            raise ValueError(f"member {declared.name} (line {row.line}) is on a bit but no bit-field")
        return Member(
            declared.name,
            declared.type,
            bit_offset,
            offsets.size * 8 if bits is None else bits,
            align,
            forced_align=declared.forced_align,
            packed=declared.packed,
            storage_bits=storage,
            inner=inner,
            count=declared.count,
            align_from=provenance,
        )

    def _inner(self, row: Row) -> Layout | None:
        if row.body is not None:
            return self.layout(row.body, row.offsets.offset, _element_bytes(row))
        size = _element_bytes(row)
        for block in self._defined.get(_plain(row.declared.element), ()):
            if size is None or block.trailer.get("size", size) == size:
                layout = self.layout(block)
                if size is None or layout.size == size:
                    return layout
        return None

    def _natural_align(self, block: Block, row: Row, inner: Layout | None) -> tuple[int, AlignFrom]:
        """Alignment of the member's type in bytes (0: cannot be told) and where it is known from."""
        if inner is not None:
            return inner.align, "abi"
        declared = row.declared
        for spelled in (declared.expanded, declared.element):
            size = scalar_bytes(spelled, self.abi) if spelled else None
            if spelled and size is not None and _element_bytes(row) in (size, None):
                return type_align(spelled, size, self.abi), "abi"
        if declared.bits is not None or declared.element.startswith("enum "):
            return self.abi.scalar_align(row.offsets.size), "abi"
        if declared.count is None and not row.offsets.size:  # an empty struct, such as a lock without its debugging
            return 1, "inferred"
        step = self._steps.get(_plain(declared.element)) or row.offsets.offset or MAX_INFERRED_ALIGN
        align = min(step & -step, MAX_INFERRED_ALIGN)
        if not _element_bytes(row) and align > 1:
            others = [size & -size for size in map(_element_bytes, block.rows) if size]
            if align > min(max(others, default=1), MAX_INFERRED_ALIGN):
                return 0, "inferred"
        return align, "inferred"


def _union_end(block: Block) -> int:
    """Where a union's longest member ends: most have no tail padding, and their text states no size."""
    return max((row.offsets.size for row in block.rows), default=0) if block.kind == "union" else 0


def _element_bytes(row: Row) -> int | None:
    """Size of one element; None for an array of none."""
    count = row.declared.count
    if count is None:
        return row.offsets.size
    return row.offsets.size // count if count else None


def _settled(layout: Layout) -> Layout:
    """Settle with the attributes the text shows; pahole guesses some, so also without them."""
    settled = settle(layout)
    if settled.reason is not None and layout.reason is None:
        bare = [_with(m, forced_align=0, packed=False) for m in layout.members]
        again = settle(_with(layout, members=tuple(bare), packed=False, forced_align=0))
        if again.reason is None:
            return again
    return settled


def _disagreement(block: Block, members: tuple[Member, ...], base: int) -> str | None:
    """What in the text keeps the layout from being re-placed: left-out lines, C++ bases, notes that do not fit."""
    if block.elided:
        return f"lines were left out of the text at line {block.elided}"
    if any(row.is_base or (row.declared.name or "").startswith("_vptr") for row in block.rows):
        return "C++ bases and vtable pointers are shown but not re-placed"
    stated = block.trailer.get("members", len(members))
    if stated != len(members):
        return f"the text lists {len(members)} members and states {stated}"
    for index, stated_bytes, line in block.holes:
        if not 0 < index < len(members) or block.kind == "union":
            continue
        before, after = members[index - 1], members[index]
        if before.is_bitfield or after.is_bitfield:
            continue
        actual = (after.bit_offset - before.bit_end) >> 3
        if actual != stated_bytes:
            return f"line {line} states a hole of {stated_bytes} bytes and the offsets give {actual}"
    return None
