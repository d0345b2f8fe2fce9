"""Reading pahole text: every form of a member, mails, hex, expanded structs, and bad input."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.errors import KitError, NotFound, SourceError
from kitlib.model import I386, Layout
from kitlib.pahole import PaholeSource, open_pahole, read_pahole
from kitlib.place import replace

SAMPLES = Path(__file__).parent / "pahole_samples"
FORMS = (SAMPLES / "forms.txt").read_text()

LIST = """struct list_head {
	struct list_head *         next;                 /*     0     8 */
	struct list_head *         prev;                 /*     8     8 */

	/* size: 16, cachelines: 1, members: 2 */
	/* last cacheline: 16 bytes */
};
"""
TASK = """struct task {
	int                        state;                /*     0     4 */

	/* XXX 4 bytes hole, try to pack */

	struct list_head           node;                 /*     8    16 */
	cookie_t                   cookie;               /*    24     8 */

	/* size: 32, cachelines: 1, members: 3 */
	/* sum members: 28, holes: 1, sum holes: 4 */
	/* last cacheline: 32 bytes */
};
"""


def rows(layout: Layout) -> list[tuple[str | None, str, int, int]]:
    return [(m.name, m.type, m.bit_offset, m.bit_size) for m in layout]


@pytest.fixture(scope="module")
def forms() -> PaholeSource:
    return open_pahole(SAMPLES / "forms.txt")


def test_plain_members_with_their_alignments(forms: PaholeSource) -> None:
    inner = forms.struct("inner")
    assert rows(inner) == [("c", "char", 0, 8), ("i", "int", 32, 32)]
    assert (inner.size, inner.align, inner.reason) == (8, 4, None)


def test_bit_fields_are_at_their_unit_plus_bit(forms: PaholeSource) -> None:
    bits = forms.struct("bits")
    assert rows(bits) == [
        ("a", "unsigned int", 0, 3),
        ("b", "unsigned int", 3, 7),
        ("c", "char", 16, 8),
        ("d", "long unsigned int", 24, 40),
        ("e", "short int", 64, 5),
        ("f", "int", 69, 4),
        ("g", "_Bool", 73, 1),
    ]
    assert [m.storage_bits for m in bits] == [32, 32, 0, 64, 16, 32, 8]


def test_every_type_of_the_nested_struct(forms: PaholeSource) -> None:
    assert rows(forms.struct("nested")) == [
        ("x", "int", 0, 32),
        (None, "union {...}", 64, 128),
        ("named", "struct {...}", 192, 32),
        ("in", "struct inner[3]", 224, 192),
        ("an", "anon_t", 448, 128),
        ("e", "enum colour", 576, 32),
        ("f", "enum {...}", 608, 32),
        ("arr", "struct {...}[2]", 640, 64),
        ("m", "int[2][3]", 704, 192),
        ("p", "int *[4]", 896, 256),
        ("fn", "int (*)(const char *, int, ...)", 1152, 64),
        ("fns", "int (*[3])(void)", 1216, 192),
        ("cv", "const volatile int", 1408, 32),
        ("cp", "char * const", 1472, 64),
        ("pc", "const char *", 1536, 64),
        ("cpc", "const char * const *", 1600, 64),
        ("pp", "struct {...} *", 1664, 64),
        ("in2", "struct inner *", 1728, 64),
        ("at", "atomic_t", 1792, 32),
        ("w", "u32", 1824, 32),
        ("bo", "_Bool", 1856, 1),
        ("flex", "unsigned char[]", 1864, 0),
    ]


def test_inner_structs_are_relative_to_their_own_start(forms: PaholeSource) -> None:
    union = forms.struct("nested").members[1].inner
    assert union is not None
    assert union.kind == "union"
    assert rows(union) == [("a", "int", 0, 32), (None, "struct {...}", 0, 128)]
    inner = union.members[1].inner
    assert inner is not None
    assert rows(inner) == [("b", "char", 0, 8), ("c", "long int", 64, 64)]


@pytest.mark.parametrize("name", ["forms_expanded.txt", "forms_hex.txt"])
def test_expanded_and_hexadecimal_text_say_the_same(forms: PaholeSource, name: str) -> None:
    other = open_pahole(SAMPLES / name)
    assert other.names() == forms.names()
    for name in forms.names():
        assert other.struct(name) == forms.struct(name)


def test_expanded_text_carries_definitions_and_typedefs() -> None:
    nested = open_pahole(SAMPLES / "forms_expanded.txt").struct("nested")
    inner = nested.member("in").inner
    assert inner is not None
    assert (inner.name, inner.size, rows(inner)) == ("inner", 8, [("c", "char", 0, 8), ("i", "int", 32, 32)])
    assert (nested.member("w").natural_align, nested.member("w").align_from) == (4, "abi")
    assert nested.member("an").type == "anon_t"


def test_attributes_are_read(forms: PaholeSource) -> None:
    aligned = forms.struct("aligned")
    assert (aligned.member("i").forced_align, aligned.forced_align, aligned.size) == (64, 128, 128)
    assert forms.struct("packed_whole").packed
    assert [m.offset for m in forms.struct("packed_member")] == [0, 1, 8]


def test_every_sample_is_placed_back_at_its_own_offsets(forms: PaholeSource) -> None:
    for layout in forms.structs():
        assert layout.reason is None, layout.title
        assert replace(layout, layout.members) == layout


def test_union_without_a_trailer_takes_its_size_from_a_use(forms: PaholeSource) -> None:
    assert forms.struct("either").size == 8
    text = "union u {\n\tfoo_t f; /* 0 12 */\n\tbar_t b; /* 0 8 */\n};\n"
    assert "size" in str(read_pahole(text)[0].reason)
    used = text + "struct s {\n\tunion u u; /* 0 16 */\n\n\t/* size: 16 */\n};\n"
    assert read_pahole(used)[0].size == 16


def test_structs_of_one_text_know_each_other() -> None:
    source = PaholeSource(TASK + LIST, "text")
    node = source.struct("struct task").member("node")
    assert node.inner == source.struct("list_head")
    assert node.natural_align == 8


def test_unknown_types_get_an_inferred_alignment() -> None:
    task = PaholeSource(TASK, "text").struct("task")
    assert (task.member("cookie").natural_align, task.member("cookie").align_from) == (8, "inferred")
    elsewhere = "struct other {\n\tint a; /* 0 4 */\n\tcookie_t c; /* 4 8 */\n\t/* size: 12, members: 2 */\n};\n"
    task = PaholeSource(TASK + elsewhere, "text").struct("task")
    assert task.member("cookie").natural_align == 4


def test_alignment_that_cannot_be_told_is_said() -> None:
    text = "struct s {\n\tshort a[2]; /* 0 4 */\n\tfoo_t x[]; /* 4 0 */\n\t/* size: 4, members: 2 */\n};\n"
    assert read_pahole(text)[0].reason == "the alignment of 'foo_t[]' (member x) is not known"


def test_typedef_of_an_unnamed_struct() -> None:
    source = PaholeSource(
        "typedef struct {\n\tint counter; /* 0 4 */\n\n\t/* size: 4, members: 1 */\n} atomic_t;\n", "t"
    )
    assert source.names() == ["atomic_t"]
    assert source.struct("atomic_t").size == 4


def test_newer_form_with_access_figures() -> None:
    text = LIST.replace("8 */", "8 | 60.0% R:50 W:10 */")
    assert read_pahole(text) == read_pahole(LIST)


def test_cplusplus_is_shown_and_not_replaced() -> None:
    source = open_pahole(SAMPLES / "cplusplus.txt")
    assert rows(source.struct("D")) == [
        (None, "class B1", 0, 96),
        (None, "class B2", 96, 8),
        ("c", "char", 104, 8),
        ("i", "int", 128, 32),
    ]
    assert source.struct("D").kind == "class"
    assert [m.name for m in source.struct("B1")] == ["_vptr.B1", "a"]
    assert not source.struct("B1").replaceable
    assert not source.struct("D").replaceable
    assert source.struct("In<int, 3>").replaceable


def test_functions_that_return_functions() -> None:
    text = "struct s {\n\tint ()(char) * (*f)(int); /* 0 8 */\n\tint ()(void) * * v; /* 8 8 */\n\t/* size: 16 */\n};\n"
    assert [m.type for m in read_pahole(text)[0]] == ["int (* (*)(int))(char)", "int (**)(void)"]


def test_32_bit_text_is_told_by_its_pointers() -> None:
    text = "struct s {\n\tvoid * p; /* 0 4 */\n\tlong l; /* 4 4 */\n\t/* size: 8, members: 2 */\n};\n"
    assert read_pahole(text)[0].abi.pointer_bytes == 4
    assert read_pahole(text, abi=I386)[0].abi is I386


# -- mails --------------------------------------------------------------------------------------------


def test_text_quoted_in_a_mail() -> None:
    mail = "On Monday somebody wrote:\n> Look at this:\n>\n" + "".join(f"> > {x}\n" for x in (TASK + LIST).split("\n"))
    assert read_pahole(mail + "\nstruct it is, then.\n") == read_pahole(TASK + LIST)


def test_collapsed_blanks_and_crlf() -> None:
    collapsed = "\r\n".join(" ".join(line.split()) for line in TASK.split("\n"))
    assert read_pahole(collapsed) == read_pahole(TASK)


def test_wrapped_lines() -> None:
    wrapped = TASK.replace("struct list_head           node; ", "struct list_head\n node;").replace("4 */", "4 */", 1)
    assert read_pahole(wrapped) == read_pahole(TASK)
    wrapped = TASK.replace("cookie;               /*", "cookie;\n /*")
    assert read_pahole(wrapped) == read_pahole(TASK)


def test_lines_left_out_of_a_mail() -> None:
    text = TASK.replace("	struct list_head           node;                 /*     8    16 */", "	[...]")
    task = read_pahole(text)[0]
    assert [m.name for m in task] == ["state", "cookie"]
    assert "left out" in str(task.reason)


def test_c_code_and_patches_around_are_skipped() -> None:
    text = "struct foo {\n\tint x;\n};\n\n+struct bar {\n+\tint y;\n+};\nstatic void f(void)\n{\n}\n" + LIST
    assert [x.name for x in read_pahole(text)] == ["list_head"]


def test_text_that_breaks_off() -> None:
    source = PaholeSource(LIST + TASK[: TASK.index("cookie")], "mail")
    assert source.names() == ["list_head"]
    with pytest.raises(SourceError, match="'task' \\(line 8\\) is cut off"):
        source.struct("task")
    with pytest.raises(SourceError, match="line 1: the text breaks off inside 'task'"):
        read_pahole(TASK[: TASK.index("cookie")])


# -- notes that do not fit ----------------------------------------------------------------------------


def test_hole_note_that_contradicts_the_offsets() -> None:
    [task] = read_pahole(TASK.replace("4 bytes hole", "12 bytes hole"))
    assert task.reason == "line 4 states a hole of 12 bytes and the offsets give 4"


def test_member_count_that_contradicts_the_list() -> None:
    [task] = read_pahole(TASK.replace("members: 3 ", "members: 4 "))
    assert task.reason == "the text lists 3 members and states 4"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("size: 16", "size: 8"), "line 1: struct list_head: its members end at byte 16, its size is 8"),
        (
            ("	struct list_head *         prev;  ", "	what is this?! "),
            "line 3: .* does not belong in struct list_head",
        ),
        (("next; ", "next:99; "), "bit-field next .line 2. has 99 of 64 bits"),
        (("/*     0     8 */", "/*     0: 3  8 */"), "on a bit but no bit-field"),
        (("list_head *         next; ", "list_head           next; "), "list_head holds itself by value"),
    ],
)
def test_contradictions_name_their_line(change: tuple[str, str], message: str) -> None:
    text = LIST.replace(*change)
    assert text != LIST
    text = text.replace("0     8 */", "0    16 */") if "itself" in message else text
    with pytest.raises(SourceError, match=message):
        read_pahole(text)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="no struct 'list_haed' in text; did you mean list_head"):
        PaholeSource(LIST, "text").struct("list_haed")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "just prose", "struct s {", "}" * 1000, "struct s {\n" * 500, "> " * 9999]
)
def test_no_pahole_text_at_all(text: str) -> None:
    with pytest.raises(SourceError):
        read_pahole(text)


def test_deep_nesting_is_refused() -> None:
    body = "struct {\n" * 5000 + "int a; /* 0 4 */\n" + "}; /* 0 4 */\n" * 5000
    with pytest.raises(SourceError):
        read_pahole(f"struct s {{\nint z; /* 0 4 */\n{body}}};\n")


def test_long_chain_of_structs_by_value_is_refused() -> None:
    text = "".join(
        f"struct s{i} {{\n\tstruct s{i + 1} m; /* 0 8 */\n\t/* size: 8, members: 1 */\n}};\n" for i in range(3000)
    )
    with pytest.raises(SourceError):
        read_pahole(text)


def read_or_message(text: str) -> tuple[list[Layout], str]:
    try:
        return read_pahole(text), ""
    except KitError as error:
        return [], str(error)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_mutated_text_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    lines = FORMS.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        form = data.draw(st.sampled_from(["drop", "twice", "swap", "cut", "letter", "junk"]))
        if form == "drop":
            del lines[at]
        elif form == "twice":
            lines.insert(at, lines[at])
        elif form == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif form == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, 40))]
        elif form == "letter" and lines[at]:
            where = data.draw(st.integers(0, len(lines[at]) - 1))
            letter = data.draw(st.sampled_from("{}();:*/[]<>,0x9 \t\x00é"))
            lines[at] = lines[at][:where] + letter + lines[at][where + 1 :]
        else:
            lines[at] = data.draw(st.text(max_size=30).filter(lambda x: "\n" not in x))
    layouts, message = read_or_message("\n".join(lines))
    assert "\n" not in message
    assert all(replace(x, x.members) == x for x in layouts if x.replaceable)


@pytest.mark.timeout(30)
def test_hostile_text_takes_linear_time() -> None:
    """Megabytes of long lines and repetition: anything quadratic would take minutes."""
    rng = random.Random(5)
    hostile = [
        "struct s {\n" + "; " * 500_000,
        "struct s {\n\tint a; /* 0 4 */\n" + "[1]" * 700_000,
        "struct s {\n\tint a; /* 0 4 */\n" + "\tint\n" * 300_000,
        "/*" * 1_000_000,
        "struct s {\n\tint a; /* 0 4 */\n/* " + "\n" * 2_000_000,
        "".join(rng.choice("{}();:*/[]<> \n\tstruct0") for _ in range(1_000_000)),
        "struct s {\n\tint a; /* 0 4 */\n" + ("\tint " + "(*" * 1000 + "; /* 8 8 */\n") * 500,
    ]
    for text in hostile:
        with pytest.raises(SourceError):
            read_pahole(text)


# -- the running kernel -------------------------------------------------------------------------------


def test_whole_kernel_against_its_btf(need_tool: Callable[[str], str]) -> None:
    """Every struct that pahole prints of the running kernel equals the one the BTF reader gives."""
    from kitlib.btf import RUNNING, open_running

    if not RUNNING.exists():
        pytest.skip("this kernel does not publish its types")
    command = [need_tool("pahole"), "-F", "btf", str(RUNNING)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    if not text:
        pytest.skip("this pahole is too old for this kernel's BTF")
    expected: dict[tuple[str, str | None], list[Layout]] = {}
    for layout in open_running().structs():
        expected.setdefault((layout.kind, layout.name), []).append(layout)
    unequal = []
    count = 0
    for layout in read_pahole(text):
        count += 1
        if layout not in expected.get((layout.kind, layout.name), []):
            unequal.append(layout)
    assert count > 5000
    # pahole prints a pointer to an array as one to an element: nothing in the text tells the two apart
    lossy = [x for x in unequal if any("(*)[" in m.type for y in expected[x.kind, x.name] for m in y.members)]
    assert [x.title for x in unequal if x not in lossy] == []
    assert len(lossy) < count / 1000
