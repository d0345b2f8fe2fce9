"""Lines of pahole's text: declarations, offset comments, notes and trailers, one line at a time.

The forms are those of dwarves 1.10 to 1.30 (``dwarves_fprintf.c``). Every function is linear in the
length of its line: nothing here backtracks over a whole line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kitlib.cdecl import canonical_type

MAX_BYTES = 1 << 37
"""Largest offset or size that is believed, in bytes."""

_NUMBER = r"(0x[0-9a-fA-F]{1,16}|\d{1,18})"
_OFFSETS = re.compile(rf"\s*{_NUMBER}(?::\s*{_NUMBER})?\s+{_NUMBER}\s*(?:\|.*)?", re.DOTALL)
_OPENING = re.compile(
    r"(?:typedef )?((?:(?:const|volatile) )*)(struct|union|class|enum)(?: ([^{};]*?))?\s*\{", re.DOTALL
)
_ALIGNED = re.compile(r"__attribute__\s*\(\(\s*__aligned__\s*\(\s*(\d{1,9})\s*\)\s*\)\)")
_PACKED = re.compile(r"__attribute__\s*\(\(\s*__packed__\s*\)\)")
_QUOTE = re.compile(r"(?:>[ ]?)+")
_HOLE = re.compile(r"XXX (\d{1,12}) (bytes?|bits) hole")
_TRAILER = re.compile(r"(?:\* |, )(size|members|padding|bit_padding): (\d{1,18})")
_ELISION = re.compile(r"[(<\[/* ]*(?:\.{3,}|…|snip(?:ped)?)[)>\]/* ]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Offsets:
    """What an offset comment says: ``/* 1192:10  4 */`` is byte 1192, bit 10, 4 bytes of storage."""

    offset: int
    bit: int | None
    size: int

    @property
    def bit_offset(self) -> int:
        return self.offset * 8 + (self.bit or 0)


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration taken apart. ``bits`` is the width of a bit-field; ``expanded`` the type behind a typedef."""

    name: str | None
    type: str
    element: str
    count: int | None
    bits: int | None
    forced_align: int
    packed: bool
    expanded: str | None = None


def unquoted(line: str) -> str:
    """`line` without a mail's quote marks, no-break spaces and blanks at the ends."""
    if line.startswith(">"):
        line = line[_match_end(_QUOTE, line) :]
    return line.replace("\xa0", " ").strip()


def _match_end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def offsets_of(comment: str) -> Offsets | None:
    """Read the inside of ``/* 8  16 */``, ``/* 4: 3  4 */``, ``/* 0x8  0x10 */`` or ``/* 0 8 | 60.0% R:50 */``."""
    found = _OFFSETS.fullmatch(comment)
    if not found:
        return None
    offset, bit, size = (int(text, 0) if text[:2] == "0x" else int(text) for text in (t or "0" for t in found.groups()))
    if max(offset, bit, size) > MAX_BYTES:
        return None
    return Offsets(offset, bit if found[2] else None, size)


def split_comment(line: str) -> tuple[str, Offsets | None]:
    """Split a line into its code and the offset comment at its end (None if it has no such comment)."""
    if line.endswith("*/"):
        code, mark, comment = line[:-2].rpartition("/*")
        if mark:
            found = offsets_of(comment)
            if found is not None:
                return code.rstrip(), found
    return line, None


def opening_of(line: str) -> tuple[str, str | None, bool, str] | None:
    """``(kind, name, is typedef, qualifiers)`` of a line such as ``struct file {``; None for any other line."""
    if not line.endswith("{") or len(line) > 4000:
        return None
    found = _OPENING.fullmatch(line)
    if not found:
        return None
    name = _PACKED.sub("", _ALIGNED.sub("", found[3] or "")).strip()
    if found[2] != "enum":
        name = re.split(r"(?<!:):(?!:)", name)[0].strip()  # C++ bases follow a single colon
    return found[2], name or None, line.startswith("typedef "), found[1]


def is_elision(line: str) -> bool:
    """Whether a reader of the mail left lines out here: ``...``, ``[snip]``, ``/* ... */``."""
    return len(line) < 40 and _ELISION.fullmatch(line) is not None


def hole_of(comment: str) -> tuple[int, bool] | None:
    """``(number, is in bits)`` of an ``XXX 4 bytes hole`` note."""
    found = _HOLE.search(comment)
    return (int(found[1]), found[2] == "bits") if found else None


def trailer_of(comment: str) -> dict[str, int]:
    """Numbers of a trailer: ``size``, ``members``, ``padding``, ``bit_padding``, where given."""
    return {key: int(number) for key, number in _TRAILER.findall(comment)} if ":" in comment else {}


def attributes_of(text: str) -> tuple[str, int, bool]:
    """Take attributes out of `text`: ``(rest, alignment in bytes or 0, packed)``."""
    if "__attribute__" not in text:
        return text, 0, False
    aligned = _ALIGNED.search(text)
    packed = _PACKED.search(text) is not None
    align = int(aligned[1]) if aligned else 0
    if align & (align - 1) or align > 1 << 28:
        align = 0
    return _PACKED.sub("", _ALIGNED.sub("", text)).strip(), align, packed


def declaration_of(code: str, *, columns: bool) -> Declared | None:
    """Take ``struct file *  f[4] __attribute__((__aligned__(64)))`` apart; None if it is no declaration.

    `columns` says that the line still has pahole's own blanks, in which ``const T  *`` is a pointer to
    const and ``const T *`` a constant pointer.
    """
    text, align, packed = attributes_of(code.rstrip().rstrip(";").rstrip())
    text, expanded_from = _behind_typedef(text)
    pointer = text.find("(*")
    if pointer >= 0:
        parts = _function_pointer(text, pointer, columns)
    else:
        parts = _plain(text, columns)
    if parts is None:
        return None
    name, element, dims, bits = parts
    if not element:
        return None
    expanded = None
    if expanded_from:
        expanded, element = element, expanded_from
    count = None if dims is None else _product(dims)
    return Declared(name, _with_bounds(element, dims), element, count, bits, align, packed, expanded)


def _behind_typedef(text: str) -> tuple[str, str | None]:
    """``/* typedef u32 -> __u32 */ unsigned int x`` gives ``unsigned int x`` and ``u32``."""
    if not text.startswith("/* typedef "):
        return text, None
    comment, _, rest = text[len("/* typedef ") :].partition("*/")
    return rest.strip(), comment.split("->")[0].strip() or None


def typedef_in_front(line: str) -> tuple[str, str | None]:
    """The same for a line that opens a struct: ``/* typedef atomic_t */ struct {``."""
    return _behind_typedef(line)


Parts = tuple[str | None, str, list[int] | None, int | None]


def _plain(text: str, columns: bool) -> Parts | None:
    bits = None
    head, colon, tail = text.rpartition(":")
    if colon and tail.strip().isdigit() and not head.endswith(":"):
        text, bits = head.rstrip(), int(tail[:9])
    text, dims = _bounds(text)
    cut = max(text.rfind(" "), text.rfind("\t"), text.rfind("*"), text.rfind("}")) + 1
    type_text, name = text[:cut].rstrip(), text[cut:]
    if not type_text:
        return None
    if "()(" in type_text:
        return name or None, "".join(_to_function(type_text)), dims, bits
    return name or None, canonical_type(_const_pointer(type_text, columns)), dims, bits


def _to_function(type_text: str) -> tuple[str, str]:
    """pahole's ``int ()(void) * *`` in C's order, as what stands around a name: ``int (**`` and ``)(void)``."""
    result, _, rest = type_text.partition("()(")
    args, _, pointers = rest.rpartition(")")
    return f"{canonical_type(result.strip())} ({''.join(pointers.split())}", f")({_arguments(args, False)})"


def _const_pointer(type_text: str, columns: bool) -> str:
    """Undo pahole's spelling of constant pointers: it writes their ``const`` in front of the whole type."""
    if not columns or not type_text.startswith("const ") or type_text.count("*") != 1 or type_text[-1] != "*":
        return type_text
    base = type_text[len("const ") : -1]
    if base.startswith("const ") or (base.endswith(" ") and not base.endswith("  ")):
        return f"{base}* const"
    return type_text


def _function_pointer(text: str, at: int, columns: bool) -> Parts | None:
    end = text.find(")", at)
    if end < 0:
        return None
    result, inside, args = text[:at].strip(), text[at + 1 : end].strip(), text[end + 1 :].strip()
    stars = len(inside) - len(inside.lstrip("*"))
    name, dims = _bounds(inside[stars:].strip())
    pointer = "*" * stars
    if name.startswith("const "):
        pointer, name = f"{pointer} const", name[len("const ") :].lstrip()
    if dims is None:
        args, dims = _bounds(args)  # pahole writes an array of function pointers as (*f)(void)[3]
    if not args and dims is not None:  # a pointer to an array
        bounds = "".join(f"[{bound or ''}]" for bound in dims)
        return name or None, f"{canonical_type(result)} ({pointer}){bounds}", None, None
    if not args.startswith("("):
        return None
    if columns and result.startswith("const ") and ("*" not in result or result.startswith("const const ")):
        # No compiler keeps `const` on a value that is returned: it is the pointer's, name stands behind it
        result, pointer = result[len("const ") :], f"{pointer} const"
    around = _to_function(result) if "()(" in result else (canonical_type(result), "")
    return name or None, f"{around[0]} ({pointer})({_arguments(args[1:-1], columns)}){around[1]}", dims, None


def _arguments(text: str, columns: bool) -> str:
    if "(" in text:
        return " ".join(text.split()).replace("* *", "**").replace("* *", "**")
    parts = (part.strip() for part in text.split(","))
    return ", ".join(canonical_type(_const_pointer(part, columns)) for part in parts)


def _bounds(text: str) -> tuple[str, list[int] | None]:
    """Take ``[2][3]`` off the end of `text`."""
    dims: list[int] = []
    while text.endswith("]"):
        head, _, bound = text[:-1].rpartition("[")
        bound = bound.strip()
        if bound and not bound.isdigit() and bound[:2] != "0x":
            return text, dims or None
        dims.insert(0, int(bound[:18] or "0", 0) if bound[:2] == "0x" else int(bound[:18] or "0"))
        text = head.rstrip()
    return text, dims or None


def _product(dims: list[int]) -> int:
    count = 1
    for bound in dims:
        count = min(count * bound, MAX_BYTES)
    return count


def _with_bounds(element: str, dims: list[int] | None) -> str:
    """The type of an array: bounds stand at the end, or inside ``(*)`` for function pointers."""
    if dims is None:
        return element
    bounds = "".join(f"[{bound or ''}]" for bound in dims)
    at = element.find("(*")
    if at < 0:
        return element + bounds
    at = element.index(")", at)
    return element[:at] + bounds + element[at:]
