"""Placement judged by compilers: hypothesis writes the C, one compile a batch of structs.

Every struct is placed by the kit, changed by random edits, written out as C in its new order, and then
compared with the compiler's offsetof, sizeof and _Alignof. Bit-fields are found independently of any
debug information: an object with one field set to all ones is put into the object file and its bytes read.
"""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kitlib.edit import Align, AlignStruct, Edit, Insert, Isolate, Move, Remove, Swap, apply
from kitlib.model import AARCH64, ARM, I386, RISCV64, X86_64, Abi, Layout, Member
from kitlib.place import Rules, place

# Scalars: C spelling, size on 64-bit targets, size on 32-bit targets (0: not there).
SCALARS = [
    ("char", 1, 1),
    ("unsigned char", 1, 1),
    ("_Bool", 1, 1),
    ("short", 2, 2),
    ("int", 4, 4),
    ("enum colour", 4, 4),
    ("float", 4, 4),
    ("long", 8, 4),
    ("long long", 8, 8),
    ("double", 8, 8),
    ("void *", 8, 4),
    ("__int128", 16, 0),
]
BITFIELD_TYPES = [
    ("unsigned char", 1, 1),
    ("_Bool", 1, 1),
    ("unsigned short", 2, 2),
    ("unsigned int", 4, 4),
    ("unsigned long", 8, 4),
    ("unsigned long long", 8, 8),
]
# Typedefs with an alignment of their own; one lowers it.
TYPEDEFS = [("long_at_4", 8, 4, 4), ("int_at_16", 4, 4, 16), ("char_at_8", 1, 1, 8)]
PROLOGUE = """
enum colour { RED, GREEN };
typedef long long_at_4 __attribute__((aligned(4)));
typedef int int_at_16 __attribute__((aligned(16)));
typedef char char_at_8 __attribute__((aligned(8)));
"""


@dataclass(frozen=True)
class Target:
    """A compiler with its flags, and the ABI the kit has for it."""

    compiler: str
    flags: tuple[str, ...]
    abi: Abi


TARGETS = {
    "gcc x86-64": Target("gcc", ("-m64",), X86_64),
    "gcc i386": Target("gcc", ("-m32",), I386),
    "clang x86-64": Target("clang-19", ("--target=x86_64-linux-gnu",), X86_64),
    "clang aarch64": Target("clang-19", ("--target=aarch64-linux-gnu",), AARCH64),
    "clang arm": Target("clang-19", ("--target=arm-linux-gnueabihf",), ARM),
    "clang riscv64": Target("clang-19", ("--target=riscv64-linux-gnu",), RISCV64),
}


# A failing example costs a compile a step, so it is made smaller but not explained.
THOROUGH = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


# -- structs that hypothesis writes -------------------------------------------------------------------


@st.composite
def scalars(draw: st.DrawFn, abi: Abi, name: str) -> Member:
    wide = abi.pointer_bytes == 8
    if draw(st.integers(0, 7)) == 0:
        text, size64, size32, align = draw(st.sampled_from(TYPEDEFS))
        size = size64 if wide else size32
    else:
        pool = [s for s in SCALARS if wide or s[2]]
        text, size64, size32 = draw(st.sampled_from(pool))
        size = size64 if wide else size32
        align = abi.scalar_align(size)
    return Member(name, text, 0, size * 8, align)


@st.composite
def bitfields(draw: st.DrawFn, abi: Abi, name: str) -> Member:
    text, size64, size32 = draw(st.sampled_from(BITFIELD_TYPES))
    size = size64 if abi.pointer_bytes == 8 else size32
    limit = 1 if text == "_Bool" else size * 8
    form = draw(st.integers(0, 9))
    width = draw(st.integers(1, limit))
    if form == 0 and text != "_Bool":
        return Member(None, text, 0, 0, abi.scalar_align(size), storage_bits=size * 8)
    return Member(None if form == 1 else name, text, 0, width, abi.scalar_align(size), storage_bits=size * 8)


@st.composite
def members(draw: st.DrawFn, abi: Abi, name: str, nested: list[Layout], pack: int) -> Member:
    form = draw(st.sampled_from(["scalar"] * 4 + ["bits"] * 5 + ["array", "inner", "inner array", "anonymous"]))
    if form == "bits":
        member = draw(bitfields(abi, name))
    elif form == "anonymous":
        inner = draw(layouts(abi, [], pack=pack, prefix=f"{name}_", named=False))
        return Member(None, f"{inner.kind} {{...}}", 0, inner.size * 8, inner.align, inner=inner)
    elif form.startswith("inner") and nested:
        inner = draw(st.sampled_from(nested))
        member = Member(name, inner.title, 0, inner.size * 8, inner.align, inner=inner)
    else:
        member = draw(scalars(abi, name))
    # an array's elements must have a size that is a multiple of their alignment
    if form.endswith("array") and member.bit_size % (member.natural_align * 8) == 0:
        count = draw(st.integers(1, 5))
        member = replace(member, type=f"{member.type}[{count}]", bit_size=member.bit_size * count, count=count)
    return draw(with_attributes(member))


@st.composite
def with_attributes(draw: st.DrawFn, member: Member) -> Member:
    if member.name is None:
        return member
    if draw(st.integers(0, 9)) == 0:
        member = replace(member, packed=True)
    if draw(st.integers(0, 7)) == 0:
        member = replace(member, forced_align=2 ** draw(st.integers(0, 7)))
    return member


@st.composite
def layouts(
    draw: st.DrawFn, abi: Abi, nested: list[Layout], *, pack: int | None = None, prefix: str = "m", named: bool = True
) -> Layout:
    kind = draw(st.sampled_from(["struct"] * 5 + ["union"]))
    if pack is None:
        pack = draw(st.sampled_from([0] * 8 + [1, 2, 4, 8, 16]))
    packed = draw(st.integers(0, 7)) == 0
    forced = 2 ** draw(st.integers(0, 7)) if draw(st.integers(0, 7)) == 0 else 0
    count = draw(st.integers(1, 8 if named else 3))
    chosen = [draw(members(abi, f"{prefix}{i}", nested, pack)) for i in range(count)]
    if all(m.name is None and m.inner is None for m in chosen):
        chosen.append(Member(f"{prefix}x", "char", 0, 8, 1))
    if named and kind == "struct" and draw(st.integers(0, 9)) == 0:
        element = draw(scalars(abi, f"{prefix}flex"))
        if element.bit_size % (element.natural_align * 8) == 0:
            chosen.append(replace(element, type=f"{element.type}[]", bit_size=0, count=0))
    placed, size, align = place(chosen, kind, Rules(abi, packed, pack, forced))
    return Layout(None, kind, size, align, placed, packed=packed, forced_align=forced, pack=pack, abi=abi)


@st.composite
def edits(draw: st.DrawFn, layout: Layout) -> list[Edit]:
    """Edits that keep the struct valid C: a flexible array stays at the end."""
    fixed = len(layout.members) - (layout.members[-1].count == 0)
    found: list[Edit] = []
    for _ in range(draw(st.integers(0, 4))):
        i, j = draw(st.integers(0, fixed - 1)), draw(st.integers(0, fixed - 1))
        form = draw(st.sampled_from(["move", "swap", "align", "align_struct", "isolate"]))
        aligned = layout.members[i]
        if form == "move":
            found.append(Move(f"#{i}", index=j))
        elif form == "swap":
            found.append(Swap(f"#{i}", f"#{j}"))
        elif form == "align" and aligned.name is not None:
            found.append(Align(aligned.name, draw(st.sampled_from([0, 1, 2, 4, 8, 16, 64, 128]))))
        elif form == "align_struct":
            found.append(AlignStruct(draw(st.sampled_from([0, 1, 2, 8, 32, 64]))))
        elif form == "isolate" and all(m.name is not None for m in layout.members):
            found.append(Isolate(str(aligned.name), 64))
    return found


def compilers_differ(layout: Layout) -> bool:
    """Under ``#pragma pack(n)`` clang ignores a bit-field's larger ``aligned(m)`` where gcc caps it at n; the kit
    follows gcc."""
    inside = [m.inner for m in layout.members if m.name is None and m.inner is not None]
    return any(m.is_bitfield and 0 < layout.pack < m.forced_align for m in layout.members) or any(
        map(compilers_differ, inside)
    )


@st.composite
def batches(draw: st.DrawFn, target: Target) -> list[Layout]:
    """Structs, some of which hold earlier ones by value; each was edited after it was made."""
    abi = target.abi
    done: list[Layout] = []
    for i in range(draw(st.integers(1, 24))):
        holdable = [x for x in done if not (x.kind == "struct" and x.members[-1].count == 0)]
        layout = replace(draw(layouts(abi, holdable)), name=f"s{i}")
        layout = apply(layout, draw(edits(layout)))
        if target.compiler == "gcc" or not compilers_differ(layout):
            done.append(layout)
    return done


# -- C text -------------------------------------------------------------------------------------------


def attributes(packed: bool, align: int) -> str:
    texts = (["packed"] if packed else []) + ([f"aligned({align})"] if align else [])
    return f" __attribute__(({', '.join(texts)}))" if texts else ""


def member_text(member: Member) -> str:
    tail = attributes(member.packed, member.forced_align)
    if member.name is None and member.inner is not None:
        return f"{body_text(member.inner)}{tail};"
    element, bracket, bounds = member.type.partition("[")
    width = f" : {member.bit_size}" if member.is_bitfield else ""
    return f"{element} {member.name or ''}{bracket}{bounds}{width}{tail};"


def body_text(layout: Layout) -> str:
    inside = " ".join(member_text(m) for m in layout.members)
    return f"{layout.kind} {layout.name or ''} {{ {inside} }}{attributes(layout.packed, layout.forced_align)}"


def definition(layout: Layout) -> str:
    pack = (f"#pragma pack(push, {layout.pack})\n", "\n#pragma pack(pop)") if layout.pack else ("", "")
    return f"{pack[0]}{body_text(layout)};{pack[1]}"


def named_members(layout: Layout) -> list[tuple[str, Member, int]]:
    """``(C name, member, bit offset in layout)`` of all that a program can name, anonymous members opened."""
    found = []
    for member in layout.members:
        if member.name is not None:
            found.append((member.name, member, member.bit_offset))
        elif member.inner is not None:
            found += [(name, m, at + member.bit_offset) for name, m, at in named_members(member.inner)]
    return found


def unit_text(batch: list[Layout]) -> str:
    lines = [PROLOGUE]
    for layout in batch:
        lines.append(definition(layout))
    for layout in batch:
        facts = [f"sizeof({layout.title})", f"_Alignof({layout.title})"]
        for name, member, _ in named_members(layout):
            if member.is_bitfield:
                lines.append(f"{layout.title} probe_{layout.name}_{name} = {{ .{name} = -1 }};")
            else:
                facts.append(f"__builtin_offsetof({layout.title}, {name})")
        lines.append(f"unsigned long long facts_{layout.name}[] = {{ {', '.join(facts)} }};")
    return "\n".join(lines) + "\n"


# -- the judge ----------------------------------------------------------------------------------------


def symbols_of(image: bytes) -> dict[str, bytes]:
    """Initial value of every object in an object file."""
    elf = ELFFile(io.BytesIO(image))
    contents = [s.data() if s["sh_type"] != "SHT_NOBITS" else b"" for s in elf.iter_sections()]
    found = {}
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_OBJECT":
            data = contents[symbol["st_shndx"]]
            found[symbol.name] = data[symbol["st_value"] : symbol["st_value"] + symbol["st_size"]]
    return found


def compiled(text: str, target: Target, compiler: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        source, image = Path(folder, "batch.c"), Path(folder, "batch.o")
        source.write_text(text)
        command = [compiler, "-w", "-c", "-fno-common", *target.flags, "-o", str(image), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        return symbols_of(image.read_bytes())


def bits_set(data: bytes) -> tuple[int, int]:
    """``(first, number)`` of the bits that are set."""
    value = int.from_bytes(data, "little")
    return (value & -value).bit_length() - 1, value.bit_count()


def judge(batch: list[Layout], values: dict[str, bytes]) -> None:
    for layout in batch:
        raw = values[f"facts_{layout.name}"]
        facts = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]
        wanted = [layout.size, layout.align]
        for name, member, at in named_members(layout):
            if member.is_bitfield:
                found = bits_set(values[f"probe_{layout.name}_{name}"])
                assert found == (at, member.bit_size), f"bits of {name} in {definition(layout)}"
            else:
                wanted.append(at >> 3)
        assert facts == wanted, definition(layout)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_edited_structs_agree_with_the_compiler(target: Target, need_tool: Callable[..., str]) -> None:
    compiler = need_tool(target.compiler, required=target.compiler == "gcc")

    @settings(THOROUGH, max_examples=30)
    @given(batches(target))
    def check(batch: list[Layout]) -> None:
        judge(batch, compiled(unit_text(batch), target, compiler))

    check()


def test_edits_inside_anonymous_members_agree_with_gcc(need_tool: Callable[..., str]) -> None:
    compiler, target = need_tool("gcc"), TARGETS["gcc x86-64"]
    seen = 0

    @settings(THOROUGH, max_examples=15)
    @given(batches(target), st.integers(0, 7), st.integers(0, 7))
    def check(batch: list[Layout], which: int, power: int) -> None:
        nonlocal seen
        edited = []
        for layout in batch:
            opened = [m.inner for m in layout.members if m.name is None and m.inner is not None and m.inner.members]
            names = [inner.members[which % len(inner.members)].name for inner in opened]
            for name in (n for n in names if n is not None):
                edits = [Align(name, 1 << power), Move(name, index=0), Insert("short added", before=name)]
                edited.append(replace(apply(layout, edits), name=f"{layout.name}_{name}"))
        if edited:
            seen += len(edited)
            judge([*batch, *edited], compiled(unit_text([*batch, *edited]), target, compiler))

    check()
    assert seen


def test_removing_members_agrees_with_gcc(need_tool: Callable[..., str]) -> None:
    compiler, target = need_tool("gcc"), TARGETS["gcc x86-64"]

    @settings(THOROUGH, max_examples=15)
    @given(batches(target), st.integers(0, 7))
    def check(batch: list[Layout], which: int) -> None:
        kept = [x for x in batch if len(named_members(x)) > 2 and x.members[-1].count != 0]
        shorter = [apply(x, [Remove(f"#{which % len(x.members)}")]) for x in kept]
        flat = [x for x in shorter if all(m.inner is None or m.name is None for m in x.members)]
        flat = [x for x in flat if named_members(x)]
        if flat:
            judge(flat, compiled(unit_text(flat), target, compiler))

    check()


def test_bit_fields_of_types_with_their_own_alignment(need_tool: Callable[..., str]) -> None:
    """gcc gives each bit-field of an over-aligned typedef a unit of its own (clang does not)."""
    rows = [("char", 8, 1, 0), ("int_at_16", 5, 16, 32), ("int_at_16", 30, 16, 32), ("char", 8, 1, 0)]
    rows += [("long_at_4", 40, 4, 64), ("long_at_4", 30, 4, 64), ("long_at_4", 60, 4, 64)]
    chosen = [Member(f"m{i}", text, 0, bits, align, storage_bits=of) for i, (text, bits, align, of) in enumerate(rows)]
    placed, size, align = place(chosen, "struct", Rules(X86_64))
    layout = Layout("s0", "struct", size, align, placed)
    judge([layout], compiled(unit_text([layout]), TARGETS["gcc x86-64"], need_tool("gcc")))
    assert [m.bit_offset for m in placed] == [0, 128, 256, 288, 296, 336, 384]
