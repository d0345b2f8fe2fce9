"""Writing a layout as pahole prints it, to be pasted into a mail or a commit message.

The form is that of pahole 1.24 (``dwarves_fprintf.c``): columns, hole notes, cache-line notes and
trailers. What pahole guesses (``Bitfield combined with``, ``Force alignment``) is left out; `kitlib.pahole`
reads the result back as an equal layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kitlib.lines import padding_bits
from kitlib.model import Layout, Member

_TYPE, _NAME, _TAB = 26, 21, 8


@dataclass(slots=True)
class _Sums:
    """What the trailers of the outermost struct add up."""

    members: int = 0
    bits: int = 0
    holes: int = 0
    hole_bytes: int = 0
    bit_holes: int = 0
    hole_bits: int = 0
    paddings: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Writer:
    """Lines so far; ``next_line`` is the cache line whose beginning was not noted yet."""

    line_bytes: int
    expand: bool
    name_width: int
    lines: list[str] = field(default_factory=list)
    next_line: int = 1

    def body(self, layout: Layout, base: int, depth: int, sums: _Sums) -> None:
        """The members of `layout`, which starts at bit `base`; in a struct with notes on holes and lines."""
        before: Member | None = None
        for member in layout.members:
            if layout.kind != "union":
                if before is not None:
                    self.notes(_hole_notes(before, member.bit_offset, sums), depth)
                self.boundary(base + member.bit_offset, depth)
            self.member(member, base, depth)
            if layout.kind != "union":
                self.notes(_last_padding(member, sums), depth)
            sums.bits += member.bit_size if member.is_bitfield else 0
            sums.members += 0 if member.is_bitfield else member.bit_size >> 3
            before = member
        while self.lines and not self.lines[-1] and depth > 1:
            self.lines.pop()

    def notes(self, notes: list[str], depth: int) -> None:
        """Add `notes` with an empty line on either side."""
        if notes:
            if self.lines[-1]:
                self.lines.append("")
            elif "/* XXX" in self.lines[-2] and "/* XXX" in notes[0]:  # notes on one place stand together
                self.lines.pop()
            self.lines += ["\t" * depth + note for note in notes] + [""]

    def boundary(self, position: int, depth: int) -> None:
        """Note that a cache line began at or before bit `position`."""
        offset = position >> 3
        line = offset // self.line_bytes
        if line < self.next_line:
            return
        self.next_line = line + 1
        past = offset - line * self.line_bytes
        ago = f" was {past} bytes ago" if past else ""
        text = f"/* --- cacheline {line} boundary ({line * self.line_bytes} bytes){ago} --- */"
        self.lines.append("\t" * depth + text)

    def member(self, member: Member, base: int, depth: int) -> None:
        """One member, opened if its type has no name (or all are to be opened)."""
        inner, tabs = member.inner, "\t" * depth
        type_width = max(_TYPE - _TAB * (depth - 1), 0)
        comment = f"{_comment(member, base)}"
        width = type_width + 1 + self.name_width
        if inner is None or member.is_bitfield or ("{...}" not in member.type and not self.expand):
            code = f"{_code(member, type_width)};"
            if member.name is None and member.is_bitfield:
                self.lines.append(tabs + code)
            else:
                self.lines.append(f"{tabs}{code:<{width}} {comment}")
            return
        element, bracket, bounds = member.type.partition("[")
        if "{...}" in element or element.startswith(("struct ", "union ", "class ", "const ", "volatile ")):
            head = element.replace(" {...}", "")
        else:  # a typedef, perhaps of a struct that has no name but this one
            tag = f"{inner.kind} {inner.name}" if inner.name not in (None, element) else inner.kind
            head = f"/* typedef {element} */ {tag}"
        self.lines.append(f"{tabs}{head} {{")
        self.body(inner, base + member.bit_offset, depth + 1, _Sums())
        name = f" {member.name}{bracket}{bounds}" if member.name else ""
        code = f"}}{_attributes(inner.packed, inner.forced_align)}{name};"
        self.lines.append(f"{tabs}{code:<{width}} {comment}")


def pahole_text(layout: Layout, *, line_bytes: int = 64, expand: bool = False) -> str:
    """`layout` as pahole text, ending in a newline.

    `line_bytes` is the cache line of the notes (pahole's ``-c``); with `expand` named structs that are held
    by value are opened too (``-E``).
    """
    is_union = layout.kind == "union"
    writer = _Writer(line_bytes, expand, _NAME - 2 if is_union else _NAME)
    writer.lines.append(" ".join([layout.kind, *([layout.name] if layout.name else []), "{"]))
    sums = _Sums()
    writer.body(layout, 0, 1, sums)
    if not is_union:  # pahole writes no trailer under a union
        if not layout.members:
            writer.lines.append("")
        writer.notes(_trailers(layout, sums, line_bytes), 1)
        writer.lines.pop()
    writer.lines.append(f"}}{_attributes(layout.packed, layout.forced_align)};")
    return "\n".join(writer.lines) + "\n"


def _hole_notes(before: Member, start: int, sums: _Sums) -> list[str]:
    """Notes on the unused bits between `before` and bit `start`: first those of a bit-field's unit, then bytes."""
    gap = start - before.bit_end
    notes = []
    if before.is_bitfield and gap > 0:
        unit_end = before.bit_end + -before.bit_end % before.storage_bits
        bits = min(start, unit_end) - before.bit_end
        if bits:
            notes.append(f"/* XXX {bits} bit{'s' * (bits != 1)} hole, try to pack */")
            sums.bit_holes += 1
            sums.hole_bits += bits
        gap -= bits
    if gap >= 8:
        size = gap >> 3
        notes.append(f"/* XXX {size} byte{'s' * (size != 1)} hole, try to pack */")
        sums.holes += 1
        sums.hole_bytes += size
    return notes


def _last_padding(member: Member, sums: _Sums) -> list[str]:
    """The note on tail padding inside a struct held by value."""
    inner = member.inner
    if inner is None or inner.kind == "union" or member.count is not None or not inner.members:
        return []
    size = padding_bits(inner) >> 3
    if not size:
        return []
    sums.paddings.append(size)
    return [f"/* XXX last struct has {size} byte{'s' * (size != 1)} of padding */"]


def _comment(member: Member, base: int) -> str:
    at = base + member.bit_offset
    if member.is_bitfield:
        unit = at // member.storage_bits
        offset, bit = unit * (member.storage_bits >> 3), at % member.storage_bits
        return f"/* {offset:5}:{bit:2} {member.storage_bits >> 3:2} */"
    return f"/* {at >> 3:5} {member.bit_size >> 3:5} */"


def _code(member: Member, type_width: int) -> str:
    """The declaration in pahole's columns, without semicolon."""
    text, name = member.type, member.name or ""
    at = text.find("(*")
    if at >= 0:
        head, inside, args = _around_name(text, at)
        stars, bracket, bounds = inside.partition("[")
        tail = args if args.startswith("[") else f"{_spaced(args)}{bracket}{bounds}"
        name = f"({stars}{' ' * stars.endswith('const')}{name}){tail}"
    else:
        head, bracket, bounds = text.partition("[")
        head, name = _spaced(head), f"{name}{bracket}{bounds}"
    if member.is_bitfield:
        name += f":{member.bit_size}"
    if _states_attributes(member):
        name += _attributes(member.packed, member.forced_align)
    return f"{head:<{type_width}} {name}"


def _around_name(text: str, at: int) -> tuple[str, str, str]:
    """Take ``int (*[2])(void)`` apart: what stands before, inside and behind the parentheses at `at`.

    A function that returns a function, ``int (* (*)(int))(char)``, begins with ``int ()(char) *`` in pahole.
    """
    head = _spaced(text[:at].rstrip())
    while True:
        end = _closing(text, at)
        inside, args = text[at + 1 : end], text[end + 1 :]
        if "(*" not in inside:
            return head, inside, args
        stars, _, rest = inside.partition(" ")
        head, text, at = f"{head} (){args} {' '.join(stars)}", rest, 0


def _closing(text: str, at: int) -> int:
    """Position of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def _states_attributes(member: Member) -> bool:
    """Attributes a source stated are written; of those that were inferred only alignments beyond any scalar's."""
    return member.align_from != "inferred" or (member.forced_align > 8 and member.bit_size > 0)


def _spaced(text: str) -> str:
    """Pointers as pahole spaces them: ``T * *``, and ``const T  *`` for a pointer to const."""
    if text.startswith("("):
        inside = text[1:-1]
        if "(" not in inside:
            inside = ", ".join(_spaced(part) for part in inside.split(", "))
        return f"({inside})"
    text = text.replace("**", "* *").replace("**", "* *")
    if text.startswith("const ") and not text.endswith("* const"):
        text = text.replace(" *", "  *", 1)
    return text


def _attributes(packed: bool, align: int) -> str:
    return " __attribute__((__packed__))" * packed + (f" __attribute__((__aligned__({align})))" if align else "")


def _trailers(layout: Layout, sums: _Sums, line_bytes: int) -> list[str]:
    size = layout.size
    count = -(-size // line_bytes)
    members = layout.members
    lines = [f"/* size: {size}, cachelines: {count}, members: {len(members)} */"]
    if sums.holes or (sums.bits and sums.members and sums.bit_holes):
        holes = f", holes: {sums.holes}, sum holes: {sums.hole_bytes}" if sums.holes else ""
        lines.append(f"/* sum members: {sums.members}{holes} */")
    if sums.bit_holes:
        whole = f" ({sums.bits >> 3} bytes)" if not sums.bits & 7 else ""
        lines.append(
            f"/* sum bitfield members: {sums.bits} bits{whole}, bit holes: {sums.bit_holes}, "
            f"sum bit holes: {sums.hole_bits} bits */"
        )
    lines += _tail_padding(layout)
    if sums.paddings:
        lines.append(f"/* paddings: {len(sums.paddings)}, sum paddings: {sum(sums.paddings)} */")
    forced = [i for i, m in enumerate(members) if m.forced_align and _states_attributes(m)]
    if forced:
        gaps = [members[i].bit_offset - members[i - 1].bit_end >> 3 for i in forced if i]
        gaps = [gap for gap in gaps if gap > 0]
        tail = f", forced holes: {len(gaps)}, sum forced holes: {sum(gaps)}" if gaps else ""
        lines.append(f"/* forced alignments: {len(forced)}{tail} */")
    if size % line_bytes:
        lines.append(f"/* last cacheline: {size % line_bytes} bytes */")
    return lines


def _tail_padding(layout: Layout) -> list[str]:
    unused = padding_bits(layout)
    bits = 0
    if layout.members and layout.members[-1].is_bitfield:
        end, storage = layout.members[-1].bit_end, layout.members[-1].storage_bits
        bits = min(-end % storage, unused)
    lines = [f"/* padding: {(unused - bits) >> 3} */"] if unused - bits >= 8 else []
    return [*lines, f"/* bit_padding: {bits} bits */"] if bits else lines
