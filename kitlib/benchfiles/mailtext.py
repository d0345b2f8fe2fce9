"""Lines of figures as people really send them: quoting, quoted-printable and mojibake undone.

Works line by line on a byte stream, so a mailbox of any size needs only a line of memory, and in
time linear in its size: every rewriting is a plain scan.
"""

from __future__ import annotations

import binascii
import codecs
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
# "ñ" is its byte in the DOS code page, "?" a character set without it, "&plusmn;" a page's source.
_PLUS_MINUS = re.compile(
    r"(?:Ã\x82Â±|Ã‚Â±|Â±|Â|±|A\+-|\+/-|\+-|ą|ñ|\?|&plusmn;|\\261|\\xb1|\ufffd|~)[ \u00a0]{0,8}(?=-?\d{1,9}%)"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A cleaned line: its number in the file, quote depth, and text ("" if `too_long`)."""

    number: int
    text: str
    depth: int
    too_long: bool = False


def open_lines(stream: BinaryIO) -> Iterator[Line]:
    """Cleaned lines of a seekable byte stream (UTF-8, UTF-16 with a mark, or Latin-1), one at a time."""
    head = stream.read(_PEEK)
    stream.seek(0)
    quoted_printable = any(sign in head for sign in _QP_SIGNS)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = codecs.getreader("utf-16")(stream, "replace")
        return _joined((line.encode("utf-8") for line in text), quoted_printable)
    return _joined(_pieces(stream), quoted_printable)


def whole_text(data: bytes) -> str:
    """A whole document: UTF-16 where a byte order mark says so, else UTF-8."""
    utf_16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return data.decode("utf-16" if utf_16 else "utf-8-sig", "replace")


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, the longest ones in pieces."""
    while piece := stream.readline(LONGEST_LINE + 1):
        yield piece


def _raw_lines(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line without its end, whether it was too long to keep)."""
    for number, piece in enumerate(pieces, start=1):
        too_long = len(piece) > LONGEST_LINE
        while not piece.endswith(b"\n") and (more := next(pieces, None)):
            too_long, piece = True, more
        yield number, (b"" if too_long else piece.rstrip(b"\r\n")), too_long


def _joined(pieces: Iterator[bytes], quoted_printable: bool) -> Iterator[Line]:
    """Cleaned lines, with soft line breaks of quoted-printable joined up."""
    held, held_number = b"", 0
    for number, raw, too_long in _raw_lines(pieces):
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
