"""C declarations as text: one canonical spelling of types, and declarations turned into members.

Canonical spelling is DWARF's: ``long unsigned int``, ``struct file *``, ``char **``, ``char[16]``,
``int (*)(struct inode *, int)``, ``struct {...}``. Every reader uses it, so that layouts compare equal.
"""

from __future__ import annotations

import re
from dataclasses import replace as _with

from kitlib.errors import PlacementError, near
from kitlib.model import Abi, Layout, Member

_BASE_SPELLINGS: dict[tuple[str, ...], str] = {
    ("char",): "char",
    ("char", "signed"): "signed char",
    ("char", "unsigned"): "unsigned char",
    ("short",): "short int",
    ("short", "unsigned"): "short unsigned int",
    (): "int",
    ("unsigned",): "unsigned int",
    ("long",): "long int",
    ("long", "unsigned"): "long unsigned int",
    ("long", "long"): "long long int",
    ("long", "long", "unsigned"): "long long unsigned int",
    ("double", "long"): "long double",
    ("__int128",): "__int128",
    ("__int128", "unsigned"): "__int128 unsigned",
}
_BASE_WORDS = frozenset({"char", "short", "int", "long", "signed", "unsigned", "double", "__int128"})

# Sizes in bytes that hold on every Linux target (include/uapi/asm-generic/int-ll64.h, linux/types.h,
# stdint.h); 0 stands for the size of a pointer. Locks are those of a kernel without lock debugging.
_SIZES: dict[str, int] = {
    "char": 1, "signed char": 1, "unsigned char": 1, "_Bool": 1, "bool": 1,
    "short int": 2, "short unsigned int": 2, "int": 4, "unsigned int": 4,
    "long int": 0, "long unsigned int": 0, "long long int": 8, "long long unsigned int": 8,
    "float": 4, "double": 8, "long double": 16, "__int128": 16, "__int128 unsigned": 16,
    "u8": 1, "s8": 1, "__u8": 1, "__s8": 1, "uint8_t": 1, "int8_t": 1,
    "u16": 2, "s16": 2, "__u16": 2, "__s16": 2, "uint16_t": 2, "int16_t": 2, "__le16": 2, "__be16": 2,
    "u32": 4, "s32": 4, "__u32": 4, "__s32": 4, "uint32_t": 4, "int32_t": 4, "__le32": 4, "__be32": 4,
    "u64": 8, "s64": 8, "__u64": 8, "__s64": 8, "uint64_t": 8, "int64_t": 8, "__le64": 8, "__be64": 8,
    "size_t": 0, "ssize_t": 0, "uintptr_t": 0, "intptr_t": 0, "ptrdiff_t": 0, "loff_t": 8,
    "atomic_t": 4, "atomic64_t": 8, "atomic_long_t": 0, "refcount_t": 4, "seqcount_t": 4,
    "spinlock_t": 4, "raw_spinlock_t": 4, "rwlock_t": 8, "gfp_t": 4, "fmode_t": 4, "errseq_t": 4,
    "umode_t": 2, "dev_t": 4, "pid_t": 4, "uid_t": 4, "gid_t": 4,
}  # fmt: skip
_POINTERS: dict[str, int] = {"struct list_head": 2, "struct hlist_node": 2, "struct hlist_head": 1,
                             "struct rcu_head": 2, "struct callback_head": 2, "struct llist_node": 1}  # fmt: skip

_DECL = re.compile(
    r"(?P<type>[^\[\]:]*?)\s*(?P<name>[A-Za-z_]\w*)?\s*(?P<dims>(?:\[\s*\d*\s*\]\s*)*)(?::\s*(?P<bits>\d+))?\s*;?"
)
_FUNCTION = re.compile(r"(?P<result>[^()]+)\(\s*\*\s*(?P<name>[A-Za-z_]\w*)\s*\)\s*(?P<args>\(.*\))\s*;?")


def canonical_type(text: str) -> str:
    """`text` in the kit's spelling.

    >>> canonical_type("unsigned long")
    'long unsigned int'
    >>> canonical_type("const char * *")
    'const char **'
    """
    text = " ".join(text.replace("*", " * ").split())
    base, star, rest = text.partition(" *")
    if star and base.endswith("("):
        return text.replace(" * ", " *").replace("( *", "(*")
    words = base.split()
    quals = sorted({w for w in words if w in ("const", "volatile")})
    core = [w for w in words if w not in quals]
    if core and all(w in _BASE_WORDS for w in core):
        key = tuple(sorted(w for w in core if w not in ("int", "signed") or (w == "signed" and "char" in core)))
        core = [_BASE_SPELLINGS.get(key, " ".join(core))]
    out = " ".join([*quals, *core])
    tail = (star + rest).strip()
    if tail:
        out += " " + re.sub(r"\*\s+(?=\*)", "*", tail)
    return out


def qualified(word: str, type_text: str) -> str:
    """`type_text` with the qualifier `word`: behind a pointer, else in front, each once and in one order.

    >>> qualified("volatile", "const int"), qualified("const", "volatile int"), qualified("const", "char *")
    ('const volatile int', 'const volatile int', 'char * const')
    """
    if "*" in type_text:
        return f"{type_text} {word}"
    words, rest = {word}, type_text
    while rest.startswith(("const ", "volatile ")):
        first, _, rest = rest.partition(" ")
        words.add(first)
    return " ".join([*sorted(words), rest])


def declaration(type_text: str, name: str | None) -> str:
    """The C declaration of `name`, without semicolon.

    >>> declaration("char[16]", "comm")
    'char comm[16]'
    >>> declaration("int (*)(void)", "fn")
    'int (*fn)(void)'
    """
    name = name or ""
    at = type_text.find("(*")
    if at >= 0:
        at += 2
        return f"{type_text[:at]}{name}{type_text[at:]}"
    at = type_text.find("[")
    bounds = ""
    if at >= 0:
        type_text, bounds = type_text[:at], type_text[at:]
    glue = "" if type_text.endswith("*") or not name else " "
    return f"{type_text}{glue}{name}{bounds}"


def scalar_bytes(type_text: str, abi: Abi) -> int | None:
    """Size in bytes of a well-known scalar type or pointer; None if it is not known."""
    if "*" in type_text:
        return abi.pointer_bytes
    if type_text.startswith("enum "):
        return 4
    plain = " ".join(w for w in type_text.split() if w not in ("const", "volatile"))
    if plain in _POINTERS:
        return _POINTERS[plain] * abi.pointer_bytes
    size = _SIZES.get(plain)
    return abi.pointer_bytes if size == 0 else size


def type_align(type_text: str, size_bytes: int, abi: Abi) -> int:
    """Alignment in bytes of a well-known type of `size_bytes`."""
    plain = " ".join(w for w in type_text.split() if w not in ("const", "volatile"))
    if plain in _POINTERS:
        return abi.pointer_bytes
    if plain == "rwlock_t":  # two 32-bit words
        return 4
    return abi.scalar_align(size_bytes)


def member_from_decl(decl: str, layout: Layout) -> Member:
    """Turn ``u32 seq``, ``char pad[16]`` or ``unsigned flag:3`` into a member of `layout` (at bit 0).

    A type is one of the well-known scalars, a pointer, or any type a member of `layout` has. Raises
    `PlacementError` if the text is no declaration or the type's size is not known.
    """
    text = " ".join(decl.split())
    found = _FUNCTION.fullmatch(text)
    if found:
        type_text = f"{canonical_type(found['result'])} (*){found['args']}"
        return _scalar(type_text, found["name"], layout.abi.pointer_bytes, layout.abi)
    match = _DECL.fullmatch(text)
    if not match or not match["name"] or not match["type"].strip():
        raise PlacementError(f'\'{decl}\' is no member declaration; write e.g. "u32 seq" or "char pad[16]"')
    type_text = canonical_type(match["type"])
    element = _element(type_text, match["name"], layout)
    if match["bits"] is not None:
        return _bitfield(element, int(match["bits"]), decl)
    if match["dims"]:
        return _array(element, match["dims"], decl)
    return element


def _scalar(type_text: str, name: str | None, size: int, abi: Abi) -> Member:
    return Member(name, type_text, 0, size * 8, type_align(type_text, size, abi))


def _element(type_text: str, name: str, layout: Layout) -> Member:
    for member in layout.members:
        if member.type == type_text and not member.is_bitfield:
            return _with(member, name=name, bit_offset=0, forced_align=0, packed=False)
    size = scalar_bytes(type_text, layout.abi)
    if size is None:
        known = [*_SIZES, *(m.type for m in layout.members)]
        raise PlacementError(
            f"the size of type '{type_text}' is not known{near(type_text, known)}; "
            "use a scalar, a type the struct has already, or char name[SIZE]"
        )
    return _scalar(type_text, name, size, layout.abi)


def _bitfield(element: Member, bits: int, decl: str) -> Member:
    if element.bit_size not in (8, 16, 32, 64) or not 1 <= bits <= element.bit_size:
        raise PlacementError(f"'{decl}': a bit-field of {element.type} has 1 to {element.bit_size} bits")
    return _with(element, bit_size=bits, storage_bits=element.bit_size)


def _array(element: Member, dims: str, decl: str) -> Member:
    bounds = [int(text or 0) for text in re.findall(r"\[\s*(\d*)\s*\]", dims)]
    count = 1
    for bound in bounds:
        count *= bound
    bits = element.bit_size * count
    if bits > 1 << 40:
        raise PlacementError(f"'{decl}' is too large; a member has at most 2^37 bytes")
    text = element.type + "".join(f"[{bound or ''}]" for bound in bounds)
    return _with(element, type=text, bit_size=bits, count=count)
