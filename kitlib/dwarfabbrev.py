"""Abbreviations and attribute forms: how many bytes an entry of ``.debug_info`` takes, and what they say.

Forms are those of DWARF 5, section 7.5.6, with GNU's; attribute, tag and language codes those of sections 7.5.3,
7.5.4 and 7.12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ByteOrder = Literal["little", "big"]

TAG_CLASS, TAG_ENUM, TAG_STRUCT, TAG_TYPEDEF, TAG_UNION = 0x02, 0x04, 0x13, 0x16, 0x17
TAG_NAMESPACE = 0x39
STRUCT_TAGS: Final = frozenset({TAG_CLASS, TAG_STRUCT, TAG_UNION})
AT_SIBLING, AT_NAME, AT_BYTE_SIZE, AT_LANGUAGE, AT_DECLARATION, AT_TYPE = 0x01, 0x03, 0x0B, 0x13, 0x3C, 0x49
AT_STR_OFFSETS_BASE, AT_GNU_DWO_NAME = 0x72, 0x2130

FORM_ADDRESS, FORM_STRING, FORM_SDATA, FORM_STRP, FORM_REF_ADDRESS, FORM_REF4 = 0x01, 0x08, 0x0D, 0x0E, 0x10, 0x13
LOCAL_REFERENCES: Final = frozenset({0x11, 0x12, FORM_REF4, 0x14, 0x15})  # ref1, 2, 4, 8, udata: from the unit
FORM_FLAG_PRESENT, FORM_LINE_STRP, FORM_IMPLICIT = 0x19, 0x1F, 0x21
STRX_BYTES: Final = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
FORM_STRX, FORM_GNU_STR_INDEX = 0x1A, 0x1F02
STRX_FORMS: Final = frozenset({*STRX_BYTES, FORM_STRX, FORM_GNU_STR_INDEX})

C_LANGUAGES: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E, 0x10})
"""DW_LANG_C89, C, C99, C11, C17, C23 and ObjC."""
CPP_LANGUAGES: Final = frozenset({0x04, 0x11, 0x19, 0x1A, 0x21, 0x2A, 0x2B, 0x3A})
"""DW_LANG_C_plus_plus and its 03, 11, 14, 17, 20 and 23, and ObjC_plus_plus."""
LANG_RUST = 0x1C

_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x0C: 1, 0x19: 0, 0x21: 0, 0x0E: 4, 0x1F: 4, 0x17: 4,
          0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x20: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2,
          0x2B: 3, 0x2C: 4, 0x1C: 4, 0x24: 8, 0x1D: 4, 0x1F20: 4, 0x1F21: 4, 0x10: 4}  # fmt: skip
_LEB, _STRING, _BLOCK, _BLOCK1, _BLOCK2, _BLOCK4 = range(-1, -7, -1)
_VARIABLE = {0x0D: _LEB, 0x0F: _LEB, 0x15: _LEB, 0x1A: _LEB, 0x1B: _LEB, 0x22: _LEB, 0x23: _LEB, 0x1F01: _LEB,
             0x1F02: _LEB, 0x08: _STRING, 0x18: _BLOCK, 0x09: _BLOCK, 0x0A: _BLOCK1, 0x03: _BLOCK2,
             0x04: _BLOCK4}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Abbrev:
    """How entries of one code are laid out.

    ``attrs`` holds (attribute, form, constant of DW_FORM_implicit_const, bytes or, below 0, kind of variable form).
    ``fixed`` is the number of bytes behind the last of ``steps``, each of which is (bytes before it, kind);
    ``sibling`` is the byte at which a 4-byte DW_AT_sibling stands, -1 without one.
    """

    code: int
    tag: int
    children: bool
    attrs: tuple[tuple[int, int, int, int], ...]
    fixed: int
    steps: tuple[tuple[int, int], ...]
    sibling: int

    def has(self, attribute: int) -> bool:
        """Whether entries of this code have `attribute`."""
        return any(at == attribute for at, *_ in self.attrs)


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned LEB128 number at `at` and the place behind it (DWARF 5, 7.6)."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > 70:
            raise ValueError("a LEB128 number longer than 64 bits")


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """The signed LEB128 number at `at` and the place behind it."""
    value, end = uleb(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if data[end - 1] & 0x40 else value), end


def read_abbrev(data: bytes, at: int, address_bytes: int, version: int) -> tuple[Abbrev | None, int]:
    """The abbreviation at `at` and the place behind it; None at the end of a table."""
    code, at = uleb(data, at)
    if code == 0:
        return None, at
    tag, at = uleb(data, at)
    children = data[at] != 0
    at += 1
    attrs: list[tuple[int, int, int, int]] = []
    steps: list[tuple[int, int]] = []
    fixed, sibling = 0, -1
    while True:
        attribute, at = uleb(data, at)
        form, at = uleb(data, at)
        constant = 0
        if form == FORM_IMPLICIT:
            constant, at = sleb(data, at)
        if not attribute and not form:
            break
        if attribute == AT_SIBLING and form == FORM_REF4 and not steps:
            sibling = fixed
        width = _width(form, address_bytes, version)
        attrs.append((attribute, form, constant, width))
        if width >= 0:
            fixed += width
        else:
            steps.append((fixed, width))
            fixed = 0
    return Abbrev(code, tag, children, tuple(attrs), fixed, tuple(steps), sibling), at


def _width(form: int, address_bytes: int, version: int) -> int:
    """Bytes a form takes, or the (negative) kind of a form that takes as many as it says."""
    if form == FORM_ADDRESS or (form == FORM_REF_ADDRESS and version <= 2):
        return address_bytes
    size = _FIXED.get(form, _VARIABLE.get(form))
    if size is None:
        raise ValueError(f"attribute form {form:#x} is not known")
    return size


def _behind(data: bytes, at: int, kind: int, order: ByteOrder) -> int:
    """The place behind the value of a variable form that begins at `at`."""
    if kind == _LEB:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == _BLOCK:
        length, at = uleb(data, at)
        return at + length
    if kind == _STRING:
        return data.index(0, at) + 1
    width = {_BLOCK1: 1, _BLOCK2: 2, _BLOCK4: 4}[kind]
    return at + width + int.from_bytes(data[at : at + width], order)


def skip(data: bytes, at: int, abbrev: Abbrev, order: ByteOrder) -> int:
    """The place behind the attributes that begin at `at`."""
    for before, kind in abbrev.steps:
        at = _behind(data, at + before, kind, order)
    return at + abbrev.fixed


def attributes(data: bytes, at: int, abbrev: Abbrev, order: ByteOrder) -> dict[int, int | bytes]:
    """Raw values of the attributes that begin at `at`: numbers, or bytes for strings and blocks."""
    values: dict[int, int | bytes] = {}
    for attribute, form, constant, width in abbrev.attrs:
        if form == FORM_IMPLICIT:
            values[attribute] = constant
        elif form == FORM_FLAG_PRESENT:
            values[attribute] = 1
        elif form == FORM_SDATA:
            values[attribute], at = sleb(data, at)
        elif width == _LEB:
            values[attribute], at = uleb(data, at)
        elif width >= 0:
            values[attribute] = int.from_bytes(data[at : at + width], order)
            at += width
        else:
            end = _behind(data, at, width, order)
            values[attribute] = data[at : end - 1] if width == _STRING else data[at:end]
            at = end
    return values
