"""Pahole's text as nested blocks: what the lines say, before any alignment is worked out.

One pass over the lines. Text around the structs (a mail's prose, a patch) is skipped; a struct counts as
pahole's own once a member carries an offset comment or a trailer states its size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from dataclasses import replace as _with

from kitlib.errors import SourceError
from kitlib.paholeline import (
    Declared,
    Offsets,
    declaration_of,
    hole_of,
    is_elision,
    opening_of,
    split_comment,
    trailer_of,
    typedef_in_front,
    unquoted,
)

MAX_DEPTH = 100
MAX_LINE = 8192


@dataclass(slots=True)
class Row:
    """A member as written: its declaration, its offsets (from the outermost struct), and an expanded body."""

    line: int
    declared: Declared
    offsets: Offsets
    body: Block | None = None
    is_base: bool = False


@dataclass(slots=True)
class Block:
    """A struct or union as written. ``holes`` are ``(rows in front, bytes, line)`` of the hole notes."""

    kind: str
    name: str | None
    line: int
    typedef: str | None = None
    qualifiers: str = ""
    rows: list[Row] = field(default_factory=list)
    holes: list[tuple[int, int, int]] = field(default_factory=list)
    trailer: dict[str, int] = field(default_factory=dict)
    forced_align: int = 0
    packed: bool = False
    elided: int = 0
    has_methods: bool = False

    @property
    def spelled(self) -> str:
        """The type as a member's declaration has it: ``struct inner``, ``const union {...}``."""
        return f"{self.qualifiers}{self.kind} {self.name or '{...}'}"

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}" if self.name else f"{self.kind} {{...}}"

    @property
    def is_pahole(self) -> bool:
        return "size" in self.trailer or any(row.body is None or row.body.is_pahole for row in self.rows)


@dataclass(slots=True)
class Text:
    """All blocks of a text at its top level, and the structs it breaks off in: name and line."""

    blocks: list[Block] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)


def parse_text(text: str, label: str) -> Text:
    """Read `text`; `label` names it in messages.

    Raises `SourceError`, with the line number, for a line inside a struct that is none of pahole's.
    """
    parser = _Parser(label)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) <= MAX_LINE:
            parser.feed(number, unquoted(line))
        elif parser.stack:
            parser.refuse(number, line[:40])
    parser.end()
    return parser.text


class _Parser:
    """State of the one pass: the open blocks, and a declaration that goes on in the next line."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.text = Text()
        self.stack: list[Block] = []
        self.pending = ""
        self.in_comment = False

    def feed(self, number: int, line: str) -> None:
        if self.in_comment:
            self.in_comment = "*/" not in line
            return
        if not line:
            return
        if not self.stack:
            self._open(number, line)
        elif line.startswith("/*"):
            self._comment(number, line)
        elif line.startswith("}"):
            self._close(number, line)
        elif self.stack[-1].kind == "enum":
            pass
        elif not self._open(number, line):
            self._member(number, line)

    def end(self) -> None:
        """Note a struct in which the text breaks off, so that asking for it can say so."""
        if self.stack and (self.stack[0].is_pahole or any(block.is_pahole for block in self.stack)):
            self.text.cut[self.stack[0].name or "{...}"] = self.stack[0].line

    def refuse(self, number: int, line: str) -> None:
        """Stop at a line that does not belong in a struct; what was no pahole text so far is prose."""
        if not any(block.is_pahole for block in self.stack):
            self.stack.clear()
            self.pending = ""
            return
        raise SourceError(
            f"{self.label}, line {number}: '{_short(line)}' does not belong in {self.stack[0].title} "
            f"(begun at line {self.stack[0].line}); give pahole's text as it was printed"
        )

    def _open(self, number: int, line: str) -> bool:
        body, typedef = typedef_in_front(line)
        opening = opening_of(body)
        if opening is None:
            return False
        kind, name, is_typedef, qualifiers = opening
        if not self.stack and kind == "enum":
            return False
        if len(self.stack) >= MAX_DEPTH:
            raise SourceError(
                f"{self.label}, line {number}: structs nest deeper than {MAX_DEPTH}; this is no pahole text"
            )
        self.pending = ""
        self.stack.append(Block(kind, name, number, typedef or ("" if is_typedef else None), qualifiers))
        return True

    def _comment(self, number: int, line: str) -> None:
        block = self.stack[-1]
        if line.startswith("/* typedef "):
            if not self._open(number, line):
                self._member(number, line)
            return
        if "*/" not in line:
            self.in_comment = True
            return
        code, offsets = split_comment(line)
        if offsets is not None:
            self._placed_comment(number, code, offsets)
            return
        hole = hole_of(line)
        if hole is not None and not hole[1]:
            block.holes.append((len(block.rows), hole[0], number))
        elif is_elision(line):
            block.elided = block.elided or number
        else:
            block.trailer.update(trailer_of(line))

    def _placed_comment(self, number: int, code: str, offsets: Offsets) -> None:
        """A comment with offsets on a line of its own: a C++ base, or the end of a wrapped member."""
        if "<ancestor>" in code:
            base = code.removeprefix("/*").partition("<ancestor>")[0].strip()
            declared = Declared(None, base, base, None, None, 0, False)
            self.stack[-1].rows.append(Row(number, declared, offsets, is_base=True))
        elif self.pending and not code:
            self._add(number, self.pending, offsets, columns=False)
        else:
            self.refuse(number, code)

    def _member(self, number: int, line: str) -> None:
        block = self.stack[-1]
        code, offsets = split_comment(line)
        if offsets is not None and code.startswith(("static ", "extern ")):
            self.pending = ""  # a C++ static member is not in the object
        elif offsets is not None:
            columns = "  " in line[len(code) :]
            wrapped = self.pending and not self.pending.endswith(";")
            self._add(number, f"{self.pending} {code}" if wrapped else code, offsets, columns=columns)
        elif is_elision(line):
            block.elided = block.elided or number
            self.pending = ""
        elif line in ("public:", "protected:", "private:"):
            pass
        elif line.endswith(";"):
            # An unnamed bit-field, a method, a static member or an inner typedef takes no place of its own;
            # a member whose comment a mail wrapped into the next line looks the same until that line comes.
            block.has_methods = block.has_methods or line.endswith(");")
            self.pending = f"{self.pending} {line}".strip() if not self.pending.endswith(";") else line
        elif _may_go_on(line) and len(self.pending) < 400:
            self.pending = f"{'' if self.pending.endswith(';') else self.pending} {line}".strip()
        else:
            self.refuse(number, line)

    def _add(self, number: int, code: str, offsets: Offsets, *, columns: bool) -> None:
        self.pending = ""
        declared = declaration_of(code, columns=columns) if code.endswith(";") else None
        if declared is None:
            self.refuse(number, code)
        else:
            self.stack[-1].rows.append(Row(number, declared, offsets))

    def _close(self, number: int, line: str) -> None:
        self.pending = ""
        code, offsets = split_comment(line)
        code = code.partition("/*")[0] if offsets is None else code
        if not code.rstrip().endswith(";"):
            self.refuse(number, line)
            return
        block = self.stack.pop()
        if not self.stack:
            self._close_top(block, code)
        elif offsets is not None:
            self._close_inner(number, block, code, offsets)
        elif block.kind != "enum" and block.rows and code != "};":
            self.refuse(number, line)

    def _close_top(self, block: Block, code: str) -> None:
        declared = declaration_of(code, columns=False)  # the brace stands for the type
        if not block.is_pahole or declared is None:
            return
        block.forced_align, block.packed = declared.forced_align, declared.packed
        if block.typedef is not None and block.name is None:
            block.typedef = block.name = declared.name
        if block.name is not None:
            self.text.blocks.append(block)

    def _close_inner(self, number: int, block: Block, code: str, offsets: Offsets) -> None:
        declared = declaration_of(code, columns=False)
        if declared is None:
            self.refuse(number, code)
            return
        body: Block | None = block
        if block.kind == "enum" or "*" in declared.element or declared.bits is not None:
            body = None
        else:  # pahole writes the attributes of the nested type behind its brace, in front of the name
            block.packed, block.forced_align = declared.packed, declared.forced_align
        spelled = block.typedef or block.spelled
        declared = _with(
            declared,
            type=declared.type.replace("}", spelled, 1),
            element=declared.element.replace("}", spelled, 1),
            packed=False,
            forced_align=0,
        )
        self.stack[-1].rows.append(Row(number, declared, offsets, body))


def _may_go_on(line: str) -> bool:
    """Whether a line without a semicolon can be the first part of a declaration a mail wrapped."""
    return line[0].isalpha() or line[0] in "_*(" or line[-1] == ","


def _short(line: str) -> str:
    return line if len(line) <= 50 else line[:47] + "..."
