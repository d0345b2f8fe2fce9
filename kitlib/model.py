"""Layouts as values: a struct or union, its members, and what the compiler was told about them.

Positions are kept in bits, as DWARF 5 and BTF keep them, so that bit-fields need no second form.
Bit offsets count in memory order on little-endian targets: bit 0 is the lowest bit of byte 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from kitlib.errors import NotFound, near
from kitlib.tags import tags_of

Kind = Literal["struct", "union", "class"]
AlignFrom = Literal["abi", "stated", "inferred"]


@dataclass(frozen=True, slots=True)
class Abi:
    """What placement must know of a target.

    ``max_scalar_align`` caps the alignment of a scalar inside a struct, in bytes: 4 on i386
    (System V i386 psABI, table 2.1), 16 on x86-64 and AArch64 (``__int128``, ``long double``).
    ``zero_width_aligns_struct``: AAPCS64 lets an unnamed bit-field raise the alignment of its
    struct; System V x86-64 does not.
    """

    name: str
    pointer_bytes: int = 8
    little_endian: bool = True
    max_scalar_align: int = 16
    unnamed_bitfield_aligns: bool = False

    def scalar_align(self, size_bytes: int) -> int:
        """Return the alignment in bytes of a scalar of `size_bytes` (the largest power of two in it)."""
        if size_bytes <= 0:
            return 1
        return min(size_bytes & -size_bytes, self.max_scalar_align)

    def agrees(self, other: Abi) -> bool:
        """Whether layouts of both can be compared: the same target, or one is not known and pointers are alike."""
        if self == other:
            return True
        generic = "generic" in self.name or "generic" in other.name
        return generic and (self.pointer_bytes, self.little_endian) == (other.pointer_bytes, other.little_endian)


X86_64 = Abi("x86-64")
AARCH64 = Abi("aarch64", unnamed_bitfield_aligns=True)
I386 = Abi("i386", pointer_bytes=4, max_scalar_align=4)
ARM = Abi("arm", pointer_bytes=4, max_scalar_align=8, unnamed_bitfield_aligns=True)
RISCV64 = Abi("riscv64")
GENERIC_32 = Abi("generic-32", pointer_bytes=4, max_scalar_align=8)
GENERIC_64 = Abi("generic-64")
GENERIC_64_BE = Abi("generic-64-be", little_endian=False)
GENERIC_32_BE = Abi("generic-32-be", pointer_bytes=4, little_endian=False, max_scalar_align=8)
ABIS = {a.name: a for a in (X86_64, AARCH64, I386, ARM, RISCV64, GENERIC_32, GENERIC_64, GENERIC_64_BE, GENERIC_32_BE)}


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where a layout was read: a label to show, the reader (``dwarf``, ``btf``, …) and details."""

    label: str
    kind: str
    detail: str = ""


def bytes_touched(bit_offset: int, bit_size: int) -> int:
    """Bytes that hold any of `bit_size` bits from `bit_offset` on."""
    return ((bit_offset + bit_size + 7) >> 3) - (bit_offset >> 3)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a struct or union.

    ``bit_offset`` counts from the start of the enclosing `Layout`. ``bit_size`` is the size in bits,
    for a bit-field its width. ``natural_align`` is the alignment in bytes of the type (0: unknown);
    ``forced_align`` an alignment attribute on the member (0: none). ``storage_bits`` is above 0 for a
    bit-field only: the size in bits of its declared type. ``inner`` is the definition of a struct or
    union held by value (of one element, for an array). ``count`` is the number of array elements over
    all dimensions, None for what is no array, 0 for a flexible or zero-length one.

    Equality is about where things are: alignment, attributes and ``inner`` do not take part, since
    BTF and pahole text do not carry them; nor does ``count``, which ``type`` states where a text can know it
    (not behind a typedef of an array).
    """

    name: str | None
    type: str
    bit_offset: int
    bit_size: int
    natural_align: int = field(default=1, compare=False)
    forced_align: int = field(default=0, compare=False)
    packed: bool = field(default=False, compare=False)
    storage_bits: int = field(default=0, compare=False)
    inner: Layout | None = field(default=None, compare=False, repr=False)
    count: int | None = field(default=None, compare=False)
    align_from: AlignFrom = field(default="abi", compare=False)

    def __post_init__(self) -> None:
        if self.bit_offset < 0 or self.bit_size < 0:
            raise ValueError(f"member {self.name}: negative offset or size")
        if self.storage_bits == 0 and (self.bit_offset | self.bit_size) & 7:
            raise ValueError(f"member {self.name}: not on a byte and no bit-field")

    @property
    def offset(self) -> int:
        """Byte in which the member starts."""
        return self.bit_offset >> 3

    @property
    def size(self) -> int:
        """Bytes the member touches (for a bit-field those that hold any of its bits)."""
        return bytes_touched(self.bit_offset, self.bit_size)

    @property
    def bit_end(self) -> int:
        return self.bit_offset + self.bit_size

    @property
    def is_bitfield(self) -> bool:
        return self.storage_bits > 0

    @property
    def is_flexible(self) -> bool:
        """An array without elements: ``T x[]`` or ``T x[0]``."""
        return self.count == 0

    @property
    def is_marker(self) -> bool:
        """A zero-size member that only names a place, such as ``__cacheline_group_begin__X``."""
        return self.bit_size == 0 and not self.is_bitfield

    @property
    def align(self) -> int:
        """Alignment in bytes the member asks for here, attributes included."""
        own = 1 if self.packed else self.natural_align
        return max(own, self.forced_align, 1)

    @property
    def tags(self) -> frozenset[str]:
        """What the type says of the member: ``atomic``, ``lock``, ``pointer``, … (see `kitlib.tags`)."""
        return tags_of(self.type)


@dataclass(frozen=True, slots=True)
class Layout:
    """A struct or union with every member at its place.

    ``size`` and ``align`` are in bytes. ``packed``, ``pack`` (``#pragma pack(n)``; 0: none) and
    ``forced_align`` (bytes; 0: none) are the attributes that re-placing needs. ``reason`` says why the
    layout cannot be re-placed; None if it can. ``source`` takes no part in equality.
    """

    name: str | None
    kind: Kind
    size: int
    align: int = field(compare=False)
    members: tuple[Member, ...]
    packed: bool = field(default=False, compare=False)
    forced_align: int = field(default=0, compare=False)
    pack: int = field(default=0, compare=False)
    abi: Abi = field(default=X86_64, compare=False, repr=False)
    reason: str | None = field(default=None, compare=False)
    source: SourceInfo | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.size < 0 or self.align < 1 or self.align & (self.align - 1):
            raise ValueError(f"{self.title}: size {self.size}, align {self.align} make no layout")

    @property
    def title(self) -> str:
        """``struct file``; an unnamed one is ``struct {...}``."""
        return f"{self.kind} {self.name}" if self.name else f"{self.kind} {{...}}"

    @property
    def replaceable(self) -> bool:
        """Whether placing the members anew is known to give the compiler's own offsets."""
        return self.reason is None

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def index(self, name: str) -> int:
        """Position of the member called `name`, of ``#3``, or of the anonymous member that holds `name`.

        Raises `NotFound`, with near names, if there is none.
        """
        for i, member in enumerate(self.members):
            if member.name == name:
                return i
        if name.startswith("#") and name[1:].isdigit() and int(name[1:]) < len(self.members):
            return int(name[1:])
        for i, member in enumerate(self.members):
            if member.name is None and member.inner is not None and _holds(member.inner, name):
                return i
        raise NotFound(f"no member '{name}' in {self.title}{near(name, self.member_names())}")

    def member(self, name: str) -> Member:
        """The member found by `index`."""
        return self.members[self.index(name)]

    def member_names(self) -> list[str]:
        """Names that can be used as in C: own members and those of anonymous members; each once."""
        names: dict[str, None] = {}
        waiting, opened = list(reversed(self.members)), set[int]()
        while waiting:
            member = waiting.pop()
            if member.name is not None:
                names[member.name] = None
            elif member.inner is not None and id(member.inner) not in opened:
                opened.add(id(member.inner))  # a damaged file can hold one struct in another very often
                waiting.extend(reversed(member.inner.members))
        return list(names)


def _holds(layout: Layout, name: str) -> bool:
    return name in layout.member_names()
