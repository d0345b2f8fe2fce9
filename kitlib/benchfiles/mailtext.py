"""Lines of figures as people really send them: quoting, quoted-printable and mojibake undone.

Works line by line on a byte stream, so a mailbox of any size needs only a line of memory, and in
time linear in its size: every rewriting is a plain scan.
"""

from __future__ import annotations

import binascii
import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_LINE = 20_000  # bytes; no table row comes near it, and a longer line is not looked into
_PEEK = 256 * 1024
_QP_SIGNS = (b"=C2=B1", b"=3D=3D", b"=c2=b1", b"=E2=80", b"=C2=A0")

# "±" (and what mail turns it into) right before a percentage. Latin-1 seen as UTF-8 and back gives
# "Â±" or "Â"; Latin-2 gives "ą"; "A+-" and "+-" are transliterations; "\261" is its octal escape;
# "~" was the sign of the tool's first years.
_PLUS_MINUS = re.compile(r"(?:Â±|Â|±|A\+-|\+/-|\+-|ą|\\261|\\xb1|\ufffd|~)[ \u00a0]{0,8}(?=-?\d{1,9}%)")


@dataclass(frozen=True, slots=True)
class Line:
    """A cleaned line: its number in the file, quote depth, and text ("" if `too_long`)."""

    number: int
    text: str
    depth: int
    too_long: bool = False


def open_lines(stream: BinaryIO) -> Iterator[Line]:
    """Cleaned lines of a byte stream (UTF-8, UTF-16 with a mark, or Latin-1), one at a time."""
    head = stream.read(_PEEK)
    rest = _Rest(head, stream)
    source: BinaryIO = rest
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        source = _utf16(rest)
    quoted_printable = any(sign in head for sign in _QP_SIGNS)
    return _joined(source, quoted_printable)


class _Rest(io.RawIOBase):
    """The bytes already looked at, then the stream they came from."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readline(self, limit: int | None = -1, /) -> bytes:
        wanted = -1 if limit is None else limit
        got = self._head.readline(wanted)
        if got.endswith(b"\n") or (got and 0 <= wanted <= len(got)):
            return got
        more = self._stream.readline(wanted - len(got) if wanted >= 0 else -1)
        return got + more

    def read(self, size: int = -1, /) -> bytes:
        got = self._head.read(size)
        return got if got else self._stream.read(size)


def _utf16(source: BinaryIO) -> BinaryIO:
    text = codecs.getreader("utf-16")(source, errors="replace")
    recoded = (line.encode("utf-8") for line in text)
    return _Lines(recoded)


class _Lines(io.RawIOBase):
    """A byte stream over an iterator of lines."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readline(self, limit: int | None = -1, /) -> bytes:
        return next(self._lines, b"")


def _raw_lines(source: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    number = 0
    while raw := source.readline(LONGEST_LINE):
        number += 1
        too_long = False
        while not raw.endswith(b"\n") and (more := source.readline(LONGEST_LINE)):
            too_long = True
            raw = more
        too_long = too_long or len(raw) > LONGEST_LINE
        yield number, (b"" if too_long else raw.rstrip(b"\r\n")), too_long


def _joined(source: BinaryIO, quoted_printable: bool) -> Iterator[Line]:
    """Cleaned lines, with soft line breaks of quoted-printable joined up."""
    held, held_number = b"", 0
    for number, raw, too_long in _raw_lines(source):
        lowered = raw[:60].lower()
        if lowered.startswith(b"content-transfer-encoding:"):
            quoted_printable = b"quoted-printable" in lowered
        elif not quoted_printable and (b"=C2=B1" in raw or b"=3D=3D" in raw):
            quoted_printable = True
        if held:
            raw = held + _without_quote(raw)
            number, held = held_number, b""
        if quoted_printable and _is_soft_break(raw) and len(raw) < LONGEST_LINE:
            held, held_number = raw[:-1], number
            continue
        if quoted_printable and b"=" in raw:
            raw = binascii.a2b_qp(raw)
        yield _clean(number, raw, too_long)
    if held:
        yield _clean(held_number, binascii.a2b_qp(held), False)


def _is_soft_break(raw: bytes) -> bool:
    return raw.endswith(b"=") and not raw.endswith(b"==")


def _without_quote(raw: bytes) -> bytes:
    """A continued line without the quote marks a reply put before it."""
    rest = raw.lstrip(b" ")
    if not rest.startswith(b">"):
        return raw
    return rest.lstrip(b"> ")


def _clean(number: int, raw: bytes, too_long: bool) -> Line:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if "\0" in text:
        text = text.replace("\0", "")
    depth, text = dequote(text)
    if "%" in text:
        text = _PLUS_MINUS.sub("± ", text)
    return Line(number, text, depth, too_long)


def dequote(text: str) -> tuple[int, str]:
    """Quote depth and the text behind the quote marks: ``"> >> a"`` → (3, "a").

    One space after the last mark belongs to the mark; the others stay (plots need their columns).
    """
    at, depth = 0, 0
    for index, char in enumerate(text):
        if char == ">":
            depth += 1
            at = index + 1
        elif char not in " \t":
            break
    if depth and at < len(text) and text[at] == " ":
        at += 1
    return depth, text[at:]
