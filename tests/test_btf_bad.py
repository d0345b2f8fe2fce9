"""Damaged BTF: one clear line for everything, quickly, and never another exception."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.btf import RUNNING, btf_from_bytes
from kitlib.errors import KitError, SourceError

ZOO = (Path(__file__).parent / "fixtures" / "zoo.btf").read_bytes()

INT, PTR, ARRAY, STRUCT, ENUM, TYPEDEF, CONST, FUNC, FUNC_PROTO = 1, 2, 3, 4, 6, 8, 10, 12, 13


def raw(*words: int, text: bytes = b"\0s\0m\0int\0") -> bytes:
    """BTF with these type words; names: 1 is "s", 3 is "m", 5 is "int"."""
    body = struct.pack(f"<{len(words)}I", *words)
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(text)) + body + text


def head(kind: int, vlen: int = 0, name: int = 0, size: int = 0) -> tuple[int, int, int]:
    return name, kind << 24 | vlen, size


def read_all(data: bytes) -> None:
    source = btf_from_bytes(data, "bad.btf")
    for name in source.names():
        source.struct(name)
    for layout in source.structs():
        assert layout.size >= 0


def complaint(data: bytes) -> str | None:
    """The kit's message about `data`, or None if it reads all of it."""
    try:
        read_all(data)
    except KitError as error:
        return str(error)
    return None


INT_TYPE = (*head(INT, name=5, size=4), 32)

CASES = {
    "an unknown kind": (raw(*head(20)), "type 1 is of kind 20; this kit knows kinds 1 to 19"),
    "kind 0": (raw(*head(0)), "type 1 is of kind 0"),
    "a record cut off": (raw(*head(STRUCT, 3, 1, 4)), "type 1 reaches beyond the type section"),
    "half a header": (raw(*INT_TYPE)[:20], "too few for BTF"),
    "version 2": (b"\x9f\xeb\x02" + raw(*INT_TYPE)[3:], "no BTF of version 1"),
    "strings cut off": (raw(*INT_TYPE)[:-2], "is it truncated"),
    "strings without an end": (raw(*INT_TYPE, text=b"\0s\0m\0int"), "do not end in a zero byte"),
    "a name out of range": (raw(*head(STRUCT, 0, 1 << 30, 0)), "a name at byte 1073741824"),
    "a negative name": (raw(*head(STRUCT, 0, 0xFFFFFFFF, 0)), "a name at byte 4294967295"),
    "a type out of range": (raw(*head(STRUCT, 1, 1, 4), 3, 99, 0), "type id 99 of 1"),
    "a struct that contains itself": (raw(*head(STRUCT, 1, 1, 4), 3, 1, 0), "type 1 contains itself by value"),
    "an array of itself": (
        raw(*head(STRUCT, 1, 1, 4), 3, 2, 0, *head(ARRAY), 2, 2, 4),
        "refers to itself",
    ),
    "a typedef of itself": (raw(*head(STRUCT, 1, 1, 4), 3, 2, 0, *head(TYPEDEF, 0, 3, 2)), "chain of typedefs"),
    "const of itself": (raw(*head(STRUCT, 1, 1, 4), 3, 2, 0, *head(CONST, 0, 0, 2)), "chain of typedefs"),
    "a pointer to itself": (raw(*head(STRUCT, 1, 1, 8), 3, 2, 0, *head(PTR, 0, 0, 2)), "refers to itself"),
    "a function that takes itself": (
        raw(*head(STRUCT, 1, 1, 8), 3, 2, 0, *head(PTR, 0, 0, 3), *head(FUNC_PROTO, 2), 0, 3, 0, 3),
        "refers to itself",
    ),
    "a member that is a function": (
        raw(*head(STRUCT, 1, 1, 8), 3, 2, 0, *head(FUNC, 0, 3, 3), *head(FUNC_PROTO)),
        "of kind 12 stands where a C type should",
    ),
    "an array larger than memory": (
        raw(*head(STRUCT, 1, 1, 4), 3, 2, 0, *head(ARRAY), 3, 3, 0xFFFFFFFF, *head(ARRAY), 4, 4, 0xFFFFFFFF, *INT_TYPE),
        "larger than any memory",
    ),
    "a member between bytes": (
        raw(*head(STRUCT, 1, 1, 8), 3, 2, 3, *INT_TYPE),
        "member m: not on a byte and no bit-field",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_one_clear_line(what: str) -> None:
    data, expected = CASES[what]
    with pytest.raises(SourceError) as caught:
        read_all(data)
    message = str(caught.value)
    assert expected in message
    assert message.startswith("bad.btf: ")
    assert "\n" not in message


def test_prototypes_that_double_at_every_level_are_refused() -> None:
    words = [*head(STRUCT, 1, 1, 8), 3, 42, 0, *INT_TYPE]  # type 2 is int; each later one takes the one before twice
    for earlier in range(2, 42):
        words += [*head(FUNC_PROTO, 2), 0, earlier, 0, earlier]
    with pytest.raises(SourceError, match="characters to write"):
        read_all(raw(*words))


def test_deep_but_sound_nesting_is_read_or_refused_in_one_line() -> None:
    for depth in (10, 60, 500, 5000):
        words = [*INT_TYPE]
        for inner in range(1, depth + 1):
            words += [*head(STRUCT, 1, 1, 4), 3, inner, 0]
        message = complaint(raw(*words))
        assert (depth <= 60) == (message is None)
        assert message is None or "nested more than 64 deep" in message


def test_members_that_overlap_or_run_backwards_are_shown_but_not_replaced() -> None:
    source = btf_from_bytes(raw(*head(STRUCT, 2, 1, 8), 3, 2, 32, 3, 2, 0, *INT_TYPE), "odd.btf")
    layout = source.struct("s")
    assert [m.offset for m in layout] == [4, 0]
    assert layout.reason is not None


def test_names_that_a_terminal_would_obey_are_written_out() -> None:
    text = b"\0\x1b[2J\0m\0" + "é".encode() + b"\xff\0"
    source = btf_from_bytes(raw(*head(STRUCT, 1, 1, 4), 8, 2, 0, 6, *INT_TYPE[1:], text=text), "odd.btf")
    assert source.names() == ["\\x1b[2J"]
    assert source.struct(source.names()[0]).members[0].name == "é\\xff"


def mutations(data: bytes, seed: int) -> Callable[[], bytes]:
    """A function that gives another damaged copy of `data` at each call, always the same ones for a seed."""
    chance = random.Random(seed)
    types = struct.unpack_from("<I", data, 12)[0]

    def word_at() -> int:
        return 24 + 4 * chance.randrange(types // 4)

    def damaged() -> bytes:
        copy = bytearray(data)
        how = chance.randrange(4)
        if how == 0:
            return bytes(copy[: chance.randrange(len(copy))])
        for _ in range(chance.randrange(1, 8)):
            if how == 1:
                copy[chance.randrange(len(copy))] = chance.randrange(256)
            elif how == 2:
                value = chance.choice([0, 1, 1 << 31, 0xFFFFFFFF, chance.randrange(300), chance.getrandbits(32)])
                struct.pack_into("<I", copy, word_at(), value)
            else:
                a, b = word_at(), word_at()
                copy[a : a + 4], copy[b : b + 4] = copy[b : b + 4], copy[a : a + 4]
        return bytes(copy)

    return damaged


@pytest.mark.parametrize("seed", range(4))
def test_mutated_btf_gives_layouts_or_one_line(seed: int) -> None:
    damaged = mutations(ZOO, seed)
    refused = 0
    for _ in range(500):
        message = complaint(damaged())
        refused += message is not None
        assert message is None or "\n" not in message
    assert 100 < refused < 500  # both ways are taken


@pytest.mark.timeout(60)
def test_mutated_kernel_btf_gives_layouts_or_one_line() -> None:
    if not RUNNING.exists():
        pytest.skip(f"this kernel has no {RUNNING}")
    damaged = mutations(RUNNING.read_bytes(), 7)
    for _ in range(6):
        message = complaint(damaged())
        assert message is None or "\n" not in message
