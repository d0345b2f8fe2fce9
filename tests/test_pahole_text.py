"""Writing pahole text: its own output word for word where nothing is guessed, and read back as equal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.edit import Align, Insert, Move
from kitlib.model import Layout, Member
from kitlib.pahole import open_pahole, read_pahole
from kitlib.paholetext import pahole_text
from kitlib.shorthand import make_layout

SAMPLES = Path(__file__).parent / "pahole_samples"


def test_golden_struct_with_a_hole_and_padding() -> None:
    layout = make_layout("a:4 b:8 c:2", name="ring")
    assert pahole_text(layout) == (
        "struct ring {\n"
        "\tunsigned int               a;                    /*     0     4 */\n"
        "\n"
        "\t/* XXX 4 bytes hole, try to pack */\n"
        "\n"
        "\tlong unsigned int          b;                    /*     8     8 */\n"
        "\tshort unsigned int         c;                    /*    16     2 */\n"
        "\n"
        "\t/* size: 24, cachelines: 1, members: 3 */\n"
        "\t/* sum members: 14, holes: 1, sum holes: 4 */\n"
        "\t/* padding: 6 */\n"
        "\t/* last cacheline: 24 bytes */\n"
        "};\n"
    )


def test_line_boundaries_follow_the_line_size() -> None:
    layout = make_layout("a:64 b:8 c:64 d:8")
    assert re.findall(r"--- (.*) ---", pahole_text(layout)) == [
        "cacheline 1 boundary (64 bytes)",
        "cacheline 2 boundary (128 bytes) was 8 bytes ago",
    ]
    assert re.findall(r"--- (.*) ---", pahole_text(layout, line_bytes=128)) == [
        "cacheline 1 boundary (128 bytes) was 8 bytes ago"
    ]


# `nested` has what pahole prints and a layout does not hold (enumerators) or pahole spells at a loss (char *const)
SAME = ["inner", "packed_whole", "packed_member", "aligned", "empty", "holds_empty", "either", "padded", "numbers"]


@pytest.mark.parametrize("name", [*SAME, "holder"])
def test_pahole_s_own_text_comes_back(name: str) -> None:
    whole = (SAMPLES / "forms.txt").read_text()
    found = re.search(rf"^(?:struct|union) {name} {{\n.*?^}}[^\n]*\n", whole, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert pahole_text(open_pahole(SAMPLES / "forms.txt").struct(name)) == found[0]


@pytest.mark.parametrize("file", ["forms.txt", "forms_expanded.txt"])
@pytest.mark.parametrize("expand", [False, True])
def test_every_sample_reads_back_as_equal(file: str, expand: bool) -> None:
    for layout in open_pahole(SAMPLES / file).structs():
        [again] = read_pahole(pahole_text(layout, expand=expand))
        assert again == layout


def test_an_edited_layout_reads_back_with_its_attributes() -> None:
    base = make_layout("a:4 flags:4:3 more:4:9 b:8 c:2", name="ring")
    edited = Move("c", before="a").apply(Align("b", 64).apply(Insert("int (*fn)(const char *, long int)").apply(base)))
    [again] = read_pahole(pahole_text(edited))
    assert again == edited
    assert again.member("b").forced_align == 64


TYPES = ["int (*)(void)", "int (* (*)(int))(char)", "int (* (*[2])(void))(long int, char *)", "int (*)[5]"]
TYPES += ["char * const", "const char **", "void (* const)(const char *, void (*)(int, int))", "int (*[3])(void)"]


@pytest.mark.parametrize("text", TYPES)
def test_types_that_wind_around_their_name(text: str) -> None:
    count = 2 if "[2]" in text else 3 if "[3]" in text else None
    members = (
        Member("m", text, 0, 64 * (count or 1), 8, count=count),
        Member("next", "int *", 64 * (count or 1), 64, 8),
    )
    layout = Layout("s", "struct", 8 * (count or 1) + 8, 8, members)
    assert read_pahole(pahole_text(layout)) == [layout]


@st.composite
def plain_layouts(draw: st.DrawFn) -> Layout:
    words = []
    for i in range(draw(st.integers(1, 12))):
        size = draw(st.sampled_from([1, 2, 4, 8]))
        form = draw(st.sampled_from(["plain", "bits", "aligned", "array"]))
        if form == "bits":
            words.append(f"m{i}:{size}:{draw(st.integers(1, size * 8))}")
        elif form == "aligned":
            words.append(f"m{i}:{size}@{draw(st.sampled_from([8, 16, 64]))}")
        else:
            words.append(f"m{i}:{size if form == 'plain' else draw(st.integers(3, 40))}")
    return make_layout(" ".join(words), packed=draw(st.booleans()))


@settings(deadline=None)
@given(plain_layouts())
def test_round_trip(layout: Layout) -> None:
    [again] = read_pahole(pahole_text(layout))
    assert again == layout
    assert again.reason is None
