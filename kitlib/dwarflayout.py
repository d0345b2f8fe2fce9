"""From a DWARF struct entry to a `Layout`: members, bit-fields, base classes, variants of Rust enums.

Everything stands where the compiler says (DW_AT_data_member_location, DW_AT_data_bit_offset). What the kit
cannot place anew as the compiler would is marked with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as _with
from itertools import pairwise
from typing import Any

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

from kitlib.dwarfabbrev import C_LANGUAGES, CPP_LANGUAGES, LANG_RUST
from kitlib.dwarfindex import DebugInfo
from kitlib.dwarfstream import SectionStream, ZeroStream
from kitlib.dwarftypes import STRUCTS, Types, number, text_of
from kitlib.errors import SourceError
from kitlib.model import Abi, Kind, Layout, Member, SourceInfo
from kitlib.place import settle

_OP_PLUS_UCONST, _OP_CONSTU = 0x23, 0x10
_LOCAL_REFERENCES = frozenset({"DW_FORM_ref1", "DW_FORM_ref2", "DW_FORM_ref4", "DW_FORM_ref8", "DW_FORM_ref_udata"})
_UNREAD = ("aranges", "frame", "loc", "ranges", "line", "pubtypes", "pubnames", "sup", "types")
_ADDRESSES = ("addr", "loclists", "rnglists")
MAX_NESTING = 60
"""Structs within structs by value before a file counts as damaged."""

_BASES = "it has a base class; the compiler may put members into the base's padding"
_VIRTUAL_BASE = "it has a virtual base class, whose place depends on the complete object"
_VPTR = "it has a vtable pointer, which the compiler places itself"
_SHARED = "members of it share bytes ([[no_unique_address]]), which the compiler arranges itself"
_RUST = "Rust orders the fields of a struct itself"


def open_elftools(info: DebugInfo) -> DWARFInfo:
    """pyelftools over the same sections, without copying them."""
    sections = info.sections

    def part(name: str, data: bytes | memoryview) -> DebugSectionDescriptor | None:
        return DebugSectionDescriptor(SectionStream(data), name, 0, len(data), 0) if len(data) else None

    config = DwarfConfig(sections.little_endian, "x64", sections.abi.pointer_bytes)
    nothing = dict.fromkeys([f"debug_{name}_sec" for name in _UNREAD])
    zeros = DebugSectionDescriptor(ZeroStream(), "", 0, 0, 0)
    addresses = dict.fromkeys([f"debug_{name}_sec" for name in _ADDRESSES], zeros)
    return DWARFInfo(
        config,
        debug_info_sec=part(".debug_info", sections.info),
        debug_abbrev_sec=part(".debug_abbrev", sections.abbrev),
        debug_str_sec=part(".debug_str", sections.strings),
        debug_line_str_sec=part(".debug_line_str", sections.line_strings),
        debug_str_offsets_sec=part(".debug_str_offsets", sections.str_offsets),
        eh_frame_sec=None,
        gnu_debugaltlink_sec=None,
        **nothing,
        **addresses,
    )


class LayoutReader:
    """Layouts of the structs in one file, by the offset of their entry.

    ``complete`` finds the definition of a class that a unit only declares: from its qualified name to an
    offset, or None.
    """

    def __init__(self, info: DebugInfo, complete: Callable[[str], int | None]) -> None:
        self.info = info
        self.abi: Abi = info.sections.abi
        self.label = info.sections.label
        self._complete = complete
        self._elftools = open_elftools(info)
        self._types = Types(self)
        self._layouts: dict[int, Layout] = {}
        self._open: set[int] = set()
        self._children: dict[int, list[DIE]] = {}
        self._qualified: dict[int, dict[int, bytes]] = {}

    def at(self, offset: int) -> DIE:
        """The entry at `offset` of ``.debug_info``."""
        return self._unit_of(offset).get_DIE_from_refaddr(offset)

    def _unit_of(self, offset: int) -> CompileUnit:
        return self._elftools.get_CU_at(self.info.unit_at(offset).offset)

    # -- what Types asks for ---------------------------------------------------------------------------------

    def target(self, die: DIE, attribute: str = "DW_AT_type") -> DIE | None:
        """The entry that `attribute` refers to; None if it is not there (``void``)."""
        found = die.attributes.get(attribute)
        if found is None:
            return None
        if found.form in _LOCAL_REFERENCES:
            return die.cu.get_DIE_from_refaddr(die.cu.cu_offset + found.raw_value)
        if found.form == "DW_FORM_ref_addr":
            return self.at(found.raw_value)
        if found.form == "DW_FORM_ref_sig8":
            raise SourceError(f"{self.label}: DWARF type units are not read; compile with -fno-debug-types-section")
        raise SourceError(f"{self.label}: types kept in another file ({found.form}; made by dwz?) are not read")

    def children(self, die: DIE) -> list[DIE]:
        """Direct children. Not pyelftools' own walk, which follows damaged sibling references for ever."""
        known = self._children.get(die.offset)
        if known is None:
            known = self._children[die.offset] = list(self._walk(die))
        return known

    def _walk(self, die: DIE) -> list[DIE]:
        found: list[DIE] = []
        if not die.has_children:
            return found
        cu = die.cu
        at, depth = die.offset + die.size, 0
        while True:
            child = cu.get_DIE_from_refaddr(at)
            at += child.size
            if child.is_null():
                if depth == 0:
                    return found
                depth -= 1
                continue
            if depth == 0:
                found.append(child)
            if child.has_children:
                sibling = child.attributes.get("DW_AT_sibling")
                if sibling is not None and sibling.form in _LOCAL_REFERENCES:
                    after = cu.cu_offset + sibling.raw_value
                    if after < at:
                        raise SourceError(f"{self.label}: the entry at {child.offset:#x} leads backwards; damaged?")
                    at = after
                else:
                    depth += 1

    def is_c(self, die: DIE) -> bool:
        """Whether names stand for themselves: written in C, or in no stated language."""
        language = self._language(die)
        return language in C_LANGUAGES or language == 0

    def _language(self, die: DIE) -> int:
        return self.info.language(self.info.unit_at(die.offset))

    def qualified(self, die: DIE) -> str:
        """The name with its namespaces and classes: ``std::vector<int>``."""
        unit = self.info.unit_at(die.offset)
        names = self._qualified.get(unit.offset)
        if names is None:
            names = self._qualified[unit.offset] = self.info.qualified_names(unit)
        found = names.get(die.offset)
        if found is not None:
            return text_of(found)
        name = die.attributes.get("DW_AT_name")
        return text_of(name.value) if name is not None else ""

    def definition(self, die: DIE) -> DIE | None:
        """The definition of a class that `die` only declares; None if no unit has it."""
        found = self._complete(self.qualified(die))
        return None if found is None else self.at(found)

    def spelling(self, die: DIE | None) -> str:
        """The type at `die` as C text."""
        return self._types.spelling(die)

    # -- layouts -----------------------------------------------------------------------------------------------

    def layout(self, die: DIE) -> Layout:
        """The struct, union or class at `die`, always the same object.

        Raises `SourceError` if it contains itself or its entry makes no layout.
        """
        known = self._layouts.get(die.offset)
        if known is None:
            if die.offset in self._open or len(self._open) > MAX_NESTING:
                raise self._damaged(die, "contains itself by value or is nested too deep")
            self._open.add(die.offset)
            try:
                known = self._layouts[die.offset] = self._build(die)
            except ValueError as error:
                raise self._damaged(die, str(error)) from None
            finally:
                self._open.discard(die.offset)
        return known

    def _damaged(self, die: DIE, what: str) -> SourceError:
        return SourceError(f"{self.label}: the struct at {die.offset:#x} of .debug_info: {what}; damaged?")

    def _build(self, die: DIE) -> Layout:
        kind: Kind = STRUCTS[die.tag]  # type: ignore[assignment]
        name = None
        if "DW_AT_name" in die.attributes:
            name = text_of(die.attributes["DW_AT_name"].value) if self.is_c(die) else self.qualified(die)
        size = number(die, "DW_AT_byte_size")
        if size is None or size < 0:
            raise self._damaged(die, "no size is stated")
        members, reason = self._members(die)
        language = self._language(die)
        if language and language not in C_LANGUAGES:
            members, declared = _in_order(members, kind), members
            if language == LANG_RUST:
                reason = _RUST
            elif language not in CPP_LANGUAGES:
                reason = f"rules of DWARF language {language:#x} for placing members are not known"
            elif members != declared:
                reason = reason or _SHARED
        natural = max((m.align for m in members), default=1)
        stated = number(die, "DW_AT_alignment") or 0
        # gcc states the alignment of a struct when a member's attribute raised it, too
        forced = stated if stated > natural else 0
        align = max(min(natural, size & -size) if size and not forced else natural, stated)
        source = SourceInfo(self.label, "dwarf", self._unit_name(die))
        layout = Layout(
            name, kind, size, align, tuple(members), forced_align=forced, abi=self.abi, reason=reason, source=source
        )
        return settle(layout)

    def _unit_name(self, die: DIE) -> str:
        name = die.cu.get_top_DIE().attributes.get("DW_AT_name")
        return text_of(name.value) if name is not None else ""

    # -- members -----------------------------------------------------------------------------------------------

    def _members(self, die: DIE) -> tuple[list[Member], str | None]:
        members: list[Member] = []
        reason: str | None = None
        for child in self.children(die):
            if child.tag == "DW_TAG_member":
                if "DW_AT_external" in child.attributes or "DW_AT_declaration" in child.attributes:
                    continue  # a static member, before DWARF 5
                member = self._member(child)
                members.append(member)
                if "DW_AT_artificial" in child.attributes and (member.name or "").startswith("_vptr"):
                    reason = reason or _VPTR
                elif member.natural_align == 0 and member.bit_size == 0:
                    reason = f"type '{member.type}' of {member.name} is declared here and defined in no unit"
            elif child.tag == "DW_TAG_inheritance":
                if number(child, "DW_AT_virtuality"):
                    reason = _VIRTUAL_BASE
                else:
                    members.append(self._base(child))
                    reason = reason or _BASES
            elif child.tag == "DW_TAG_variant_part":
                members.append(self._variants(die, child))
        return members, reason

    def _member(self, die: DIE, within: DIE | None = None) -> Member:
        target = self.target(die)
        held = self._types.held(target)
        name = die.attributes.get("DW_AT_name")
        width = number(die, "DW_AT_bit_size")
        forced = number(die, "DW_AT_alignment") or 0
        return Member(
            text_of(name.value) if name is not None and name.value else None,
            self._types.spelling(target),
            self._place(die) * 8 if width is None else self._bit_place(die, width, held.bits),
            held.bits if width is None else width,
            held.align,
            forced_align=forced,
            storage_bits=0 if width is None else held.bits,
            inner=held.inner,
            count=held.elements,
            align_from="stated" if forced or held.stated else "abi",
        )

    def _base(self, die: DIE) -> Member:
        """A base class as a member that is named like its type."""
        target = self.target(die)
        held = self._types.held(target)
        text = self._types.spelling(target)
        empty = held.inner is not None and not held.inner.members
        return Member(
            text,
            text,
            self._place(die) * 8,
            0 if empty else held.bits,
            held.align,
            inner=held.inner,
            count=held.elements,
        )

    def _variants(self, whole: DIE, part: DIE) -> Member:
        """A Rust enum's variants as an anonymous union; the tag that tells them apart is its first arm."""
        arms: list[Member] = []
        tag = self.target(part, "DW_AT_discr")
        if tag is not None:
            arms.append(_with(self._member(tag), name="discriminant"))
        for variant in self.children(part):
            if variant.tag == "DW_TAG_variant":
                arms += [self._member(child) for child in self.children(variant) if child.tag == "DW_TAG_member"]
        size = number(whole, "DW_AT_byte_size") or 0
        align = max((arm.align for arm in arms), default=1)
        inner = Layout(None, "union", size, align, tuple(arms), abi=self.abi, reason=_RUST)
        return Member(None, "union {...}", 0, size * 8, align, inner=inner)

    def _place(self, die: DIE) -> int:
        """DW_AT_data_member_location in bytes; absent means 0, as in a union."""
        found = die.attributes.get("DW_AT_data_member_location")
        if found is None:
            return 0
        if isinstance(found.value, int):
            return int(found.value)
        return self._computed(die, found.value)

    def _computed(self, die: DIE, expression: Any) -> int:
        if expression and expression[0] in (_OP_PLUS_UCONST, _OP_CONSTU):
            value = shift = 0
            for count, byte in enumerate(expression[1:], 2):
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 and count == len(expression):
                    return int(value)
        raise self._damaged(die, "a member's place is computed at run time")

    def _bit_place(self, die: DIE, width: int, storage_bits: int) -> int:
        """Bit offset of a bit-field, counted in memory order (bit 0 is the lowest on little-endian)."""
        base = self._place(die) * 8
        direct = number(die, "DW_AT_data_bit_offset")
        if direct is not None:
            return base + direct
        from_top = number(die, "DW_AT_bit_offset")
        if from_top is None:
            return base
        unit = (number(die, "DW_AT_byte_size") or storage_bits // 8) * 8
        form = die.attributes["DW_AT_bit_offset"].form
        span = {"DW_FORM_data1": 8, "DW_FORM_data2": 16, "DW_FORM_data4": 32, "DW_FORM_data8": 64}.get(form, 0)
        if span and from_top >= 1 << (span - 1) and from_top > unit:  # below 0, in a form without a sign
            from_top -= 1 << span
        return base + (unit - from_top - width if self.abi.little_endian else from_top)


def _in_order(members: list[Member], kind: Kind) -> list[Member]:
    """`members` by place, classes cut where a member lies in their padding (Itanium C++ ABI 2.4)."""
    if kind == "union":
        return members
    ordered = sorted(members, key=lambda m: (m.bit_offset, m.bit_size))
    for at, (member, after) in enumerate(pairwise(ordered)):
        if member.inner is not None and member.count is None and member.bit_offset <= after.bit_offset < member.bit_end:
            used = max((inside.bit_end for inside in member.inner.members), default=0)
            ordered[at] = _with(member, bit_size=min(after.bit_offset - member.bit_offset, used))
    return ordered
