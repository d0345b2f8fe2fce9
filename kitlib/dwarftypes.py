"""DWARF types as the kit sees them: how a type is written in C, its size, its alignment, its elements.

Sizes and alignments are worked out from the innermost type outwards. DWARF states an alignment
(DW_AT_alignment) only where an attribute changed it; all others follow from the ABI.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from elftools.dwarf.die import DIE

from kitlib.cdecl import canonical_type, qualified
from kitlib.errors import SourceError
from kitlib.model import Abi, Layout

STRUCTS = {
    "DW_TAG_structure_type": "struct",
    "DW_TAG_union_type": "union",
    "DW_TAG_class_type": "class",
    "DW_TAG_interface_type": "struct",
}
_QUALIFIERS = {"DW_TAG_const_type": "const", "DW_TAG_volatile_type": "volatile", "DW_TAG_restrict_type": "restrict"}
_NAMES_ANOTHER = ("DW_TAG_typedef", "DW_TAG_template_alias")
_SIGNS = {"DW_TAG_pointer_type": "*", "DW_TAG_reference_type": "&", "DW_TAG_rvalue_reference_type": "&&"}
_COMPLEX = 3  # DW_ATE_complex_float

MAX_DEPTH = 100
"""Links followed from one type to the next before a chain counts as damaged."""
MAX_TEXT = 1 << 14
"""Longest spelling of a type, in characters."""
MAX_BYTES = 1 << 44
"""Largest size that is believed, in bytes; x86-64 has 2^47 bytes of user addresses."""


class Held(NamedTuple):
    """What a member needs to know of its type.

    ``bits`` is its size; ``align`` its natural alignment in bytes (0: not known); ``inner`` the definition of a
    struct held by value, ``elements`` the number of array elements over all dimensions (None: no array).
    """

    bits: int
    align: int
    stated: bool = False
    inner: Layout | None = None
    elements: int | None = None


class Site(Protocol):
    """What `Types` asks its reader for."""

    abi: Abi
    label: str

    def layout(self, die: DIE) -> Layout: ...
    def target(self, die: DIE, attribute: str = "DW_AT_type") -> DIE | None: ...
    def definition(self, die: DIE) -> DIE | None: ...
    def qualified(self, die: DIE) -> str: ...
    def children(self, die: DIE) -> list[DIE]: ...
    def is_c(self, die: DIE) -> bool: ...


def text_of(raw: Any) -> str:
    """A name from the file: bytes that are no UTF-8 and unprintable characters are written as escapes."""
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else str(raw)
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def number(die: DIE, attribute: str) -> int | None:
    """The value of an attribute that is a plain number; None if it is not there or is computed at run time."""
    found = die.attributes.get(attribute)
    if found is None or isinstance(found.value, bool) or not isinstance(found.value, int):
        return None
    return found.value if not found.form.startswith("DW_FORM_ref") else None


class Types:
    """Spellings and sizes of the types of one `Site`, each worked out once."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._spellings: dict[int, tuple[str, str]] = {}
        self._held: dict[int, Held] = {}

    def damaged(self, die: DIE, what: str) -> SourceError:
        return SourceError(f"{self.site.label}: the type at {die.offset:#x} of .debug_info {what}; damaged?")

    # -- spelling ------------------------------------------------------------------------------------------

    def spelling(self, die: DIE | None, depth: int = 0) -> str:
        """The type as C text: ``struct file *``, ``int (*)(struct inode *, int)``, ``char[16]``."""
        prefix, suffix = self._spell(die, depth)
        return prefix + suffix

    def _spell(self, die: DIE | None, depth: int) -> tuple[str, str]:
        """Text in front of and behind the place where a declared name would stand."""
        if die is None:
            return "void", ""
        known = self._spellings.get(die.offset)
        if known is not None:
            return known
        if depth > MAX_DEPTH:
            raise self.damaged(die, "refers to itself")
        pair = self._spell_new(die, depth + 1)
        if len(pair[0]) + len(pair[1]) > MAX_TEXT:
            raise self.damaged(die, f"takes more than {MAX_TEXT} characters to write")
        self._spellings[die.offset] = pair
        return pair

    def _spell_new(self, die: DIE, depth: int) -> tuple[str, str]:
        tag = die.tag
        if tag in STRUCTS or tag == "DW_TAG_enumeration_type":
            return self._spell_tagged(die, STRUCTS.get(tag, "enum")), ""
        if tag in _SIGNS:
            return _pointer_to(*self._spell(self.site.target(die), depth), _SIGNS[tag])
        if tag in _QUALIFIERS:
            prefix, suffix = self._spell(self.site.target(die), depth)
            return qualified(_QUALIFIERS[tag], prefix), suffix
        if tag == "DW_TAG_atomic_type":
            prefix, suffix = self._spell(self.site.target(die), depth)
            return (f"{prefix} _Atomic" if "*" in prefix else f"_Atomic {prefix}"), suffix
        if tag == "DW_TAG_subroutine_type":
            prefix, suffix = self._spell(self.site.target(die), depth)
            return prefix, self._parameters(die, depth) + suffix
        if tag == "DW_TAG_array_type":
            prefix, suffix = self._spell(self.site.target(die), depth)
            return prefix, "".join(f"[{bound or ''}]" for bound in self._bounds(die)) + suffix
        if tag == "DW_TAG_ptr_to_member_type":
            within = self.spelling(self.site.target(die, "DW_AT_containing_type"), depth)
            return _pointer_to(*self._spell(self.site.target(die), depth), f"{within}::*")
        name = die.attributes.get("DW_AT_name")
        if name is None:
            return f"{{{str(tag).removeprefix('DW_TAG_')}}}", ""
        if tag == "DW_TAG_base_type":
            return canonical_type(text_of(name.value)), ""
        return (text_of(name.value) if self.site.is_c(die) else self.site.qualified(die)), ""

    def _spell_tagged(self, die: DIE, word: str) -> str:
        if "DW_AT_name" not in die.attributes:
            return f"{word} {{...}}"
        if self.site.is_c(die):
            return f"{word} {text_of(die.attributes['DW_AT_name'].value)}"
        return self.site.qualified(die)

    def _parameters(self, die: DIE, depth: int) -> str:
        texts = []
        for child in self.site.children(die):
            if child.tag == "DW_TAG_formal_parameter":
                texts.append(self.spelling(self.site.target(child), depth))
            elif child.tag == "DW_TAG_unspecified_parameters":
                texts.append("...")
            if sum(map(len, texts)) > MAX_TEXT:
                raise self.damaged(die, f"takes more than {MAX_TEXT} characters to write")
        return f"({', '.join(texts) or 'void'})"

    def _bounds(self, die: DIE) -> list[int]:
        """Elements in each dimension; 0 where none are stated (``T x[]``, ``T x[0]``)."""
        bounds = []
        for child in self.site.children(die):
            if child.tag in ("DW_TAG_subrange_type", "DW_TAG_enumeration_type"):
                count = number(child, "DW_AT_count")
                upper = number(child, "DW_AT_upper_bound")
                if count is None and upper is not None and upper not in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
                    count = upper + 1 - (number(child, "DW_AT_lower_bound") or 0)
                bounds.append(max(count or 0, 0))
        return bounds or [0]

    # -- size and alignment ------------------------------------------------------------------------------------

    def held(self, die: DIE | None, depth: int = 0) -> Held:
        """Size, alignment and contents of the type; of ``void`` and what has no size, 0 bits."""
        if die is None:
            return Held(0, 1)
        known = self._held.get(die.offset)
        if known is None:
            if depth > MAX_DEPTH:
                raise self.damaged(die, "refers to itself")
            known = self._measure(die, depth + 1)
            if known.bits > MAX_BYTES * 8:
                raise self.damaged(die, "is larger than any memory")
            stated = number(die, "DW_AT_alignment")
            if stated:
                if stated & (stated - 1) or stated < 0:
                    raise self.damaged(die, f"has alignment {stated}")
                known = known._replace(align=stated, stated=True)
            self._held[die.offset] = known
        return known

    def _measure(self, die: DIE, depth: int) -> Held:
        tag, abi = die.tag, self.site.abi
        size = number(die, "DW_AT_byte_size")
        if tag in STRUCTS:
            return self._measure_struct(die)
        if tag in _NAMES_ANOTHER:
            return self.held(self.site.target(die), depth)
        if tag in _QUALIFIERS:
            return self.held(self.site.target(die), depth)
        if tag == "DW_TAG_array_type":
            return self._measure_array(die, depth)
        if tag == "DW_TAG_atomic_type":
            of = self.held(self.site.target(die), depth)
            lifted = of.bits // 8 if of.bits in (8, 16, 32, 64, 128) else 0
            return of._replace(align=max(of.align, lifted))  # C11 6.2.5: may differ from the plain type's
        if tag in _SIGNS or tag == "DW_TAG_unspecified_type":
            pointer = size or abi.pointer_bytes
            return Held(pointer * 8, abi.scalar_align(pointer))
        if tag == "DW_TAG_ptr_to_member_type":
            to = self.site.target(die)
            words = 2 if to is not None and to.tag == "DW_TAG_subroutine_type" else 1  # Itanium C++ ABI 2.3
            return Held((size or words * abi.pointer_bytes) * 8, abi.pointer_bytes)
        if tag == "DW_TAG_subroutine_type":
            return Held(0, 1)
        if size is None and "DW_AT_type" in die.attributes:  # an enum that leaves its size to its type, a subrange
            return self.held(self.site.target(die), depth)
        size = size or 0
        scalar = size // 2 if number(die, "DW_AT_encoding") == _COMPLEX else size
        return Held(size * 8, abi.scalar_align(scalar))

    def _measure_struct(self, die: DIE) -> Held:
        whole = self.site.definition(die) if "DW_AT_declaration" in die.attributes else die
        if whole is None:
            return Held(0, 0)  # declared here, defined in no unit
        inner = self.site.layout(whole)
        unknown = any(member.natural_align == 0 for member in inner.members)
        return Held(inner.size * 8, 0 if unknown else inner.align, inner.forced_align > 0, inner)

    def _measure_array(self, die: DIE, depth: int) -> Held:
        of = self.held(self.site.target(die), depth)
        count = 1
        for bound in self._bounds(die):
            count *= bound
        size = number(die, "DW_AT_byte_size")
        bits = of.bits * count if size is None else size * 8
        if "DW_AT_GNU_vector" in die.attributes:
            width = bits // 8  # its alignment; above 16 bytes gcc's depends on -mavx and the like, which is not stated
            return Held(bits, width & -width if width <= 16 else 0)
        inner_count = 1 if of.elements is None else of.elements
        return of._replace(bits=bits, elements=count * inner_count)


def _pointer_to(prefix: str, suffix: str, sign: str = "*") -> tuple[str, str]:
    if suffix.startswith(("[", "(")):  # to an array or a function
        return f"{prefix} ({sign}", f"){suffix}"
    return (f"{prefix}{sign}" if prefix.endswith("*") else f"{prefix} {sign}"), suffix
