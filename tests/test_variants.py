"""Configurations: members that come and go, the full matrix, single flips, builds, and room for a new member."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib import datafiles
from kitlib.edit import Move, Remove
from kitlib.errors import DataError, KitError, NotFound, PlacementError
from kitlib.explore import explore
from kitlib.figures.variants import combination_map
from kitlib.model import AARCH64
from kitlib.room import best_room, hot_members, rooms
from kitlib.rulefile import parse_rules
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.variantcheck import rules_broken
from kitlib.variantfile import parse_variants, read_variants, shipped_variants
from kitlib.variantmatrix import ABSENT, builds_on_one_line, flips, influence, matrix, position
from kitlib.variants import Builds, Choice, Option, State, Variants


@pytest.fixture(scope="module")
def mm() -> Variants:
    return read_variants("mm_struct")


def mmap_lock(mm: Variants, **setting) -> int:
    return mm.layout(setting).member("mmap_lock").offset


def test_three_states_of_mm_struct(mm):
    """120 before, 128 with write_protect_seq, 120 again with it in the hole; the shipped layouts say the same."""
    for state, name, offset in (
        ("absent", "mm-5.12", 120),
        ("inserted", "mm-5.13-seq", 128),
        ("in the hole", "mm-5.13-fixed", 120),
    ):
        layout = mm.layout({"write_protect_seq": state})
        assert layout.member("mmap_lock").offset == offset
        assert layout == open_source(name).struct("mm_struct")


def test_matrix_of_mm_struct(mm):
    every = matrix(mm)
    offsets = every.offsets("mmap_lock").reshape(3, 8)
    assert offsets[0].tolist() == [88, 88, 104, 104, 104, 104, 120, 120]
    assert offsets[1].tolist() == [88, 96, 104, 112, 104, 112, 120, 128]
    assert (offsets[2] == offsets[0]).all()  # the fix restores every configuration, not x86-64's only
    together = every.on_one_line("mmap_lock.count", "mmap_lock.owner").reshape(3, 8)
    assert together[0].tolist() == together[2].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert together[1].tolist() == [1, 1, 1, 1, 1, 1, 0, 1]


def test_absent_members_are_said_to_be_absent(mm):
    every = matrix(mm)
    meets = every.on_one_line("write_protect_seq", "mm_count").reshape(3, 8)
    assert (meets[0] == ABSENT).all()
    assert (meets[1] == 1).any()
    with pytest.raises(NotFound, match="mmap_lock"):
        every.offsets("mmap_lok")


def test_which_single_option_flips_it(mm):
    answers = matrix(mm).on_one_line("mmap_lock.count", "mmap_lock.owner")
    now = {(f.name, f.now) for f in flips(mm, answers)}
    assert now == {
        ("CONFIG_MMU", False),
        ("CONFIG_HAVE_ARCH_COMPAT_MMAP_BASES", False),
        ("write_protect_seq", "inserted"),
    }
    from_bad = {(f.name, f.now) for f in flips(mm, answers, {"write_protect_seq": "inserted"})}
    assert ("CONFIG_MEMBARRIER", False) in from_bad
    assert ("write_protect_seq", "in the hole") in from_bad
    assert influence(mm, answers)["CONFIG_MEMBARRIER"] == pytest.approx(1 / 12)


def test_struct_file_options_do_not_bring_f_count_and_f_mode_together():
    variants = read_variants("struct_file")
    answers = matrix(variants).on_one_line("f_count", "f_mode")
    assert [f.name for f in flips(variants, answers)] == ["CONFIG_DEBUG_SPINLOCK"]
    shares = influence(variants, answers)
    assert shares["CONFIG_SECURITY"] == shares["CONFIG_EPOLL"] == 0
    assert (matrix(variants).on_one_line("f_count", "f_mode", line_bytes=128).reshape(2, 8)[0] == 1).all()


def test_explore_gets_every_combination_with_the_default_first(mm):
    layouts = mm.layouts()
    assert len(layouts) == mm.count == 24
    assert next(iter(layouts.values())) == mm.base
    assert all(layout.replaceable for layout in layouts.values())
    with pytest.raises(DataError, match="too many to choose"):
        mm.layouts(limit=5)


def test_explore_gets_a_toggle_for_each_option_and_choice(mm):
    subject = explore(variants=mm).session.subject
    assert [(t.name, t.option) for t in subject.toggles] == [
        ("CONFIG_MMU", True),
        ("CONFIG_HAVE_ARCH_COMPAT_MMAP_BASES", True),
        ("CONFIG_MEMBARRIER", True),
        ("write_protect_seq", False),
    ]
    for layout, states in zip(subject.variants.values(), subject.settings, strict=True):
        *on, state = states
        setting = {t.name: bool(x) for t, x in zip(subject.toggles, on, strict=False)}
        assert mm.layout({**setting, "write_protect_seq": subject.toggles[3].states[state]}) == layout
    assert subject.settings[0] == (1, 1, 1, 0)
    with pytest.raises(DataError, match="give no other one"):
        explore(mm.base, variants=mm)
    with pytest.raises(KitError, match="a setting of its own"):
        replace(subject, settings=subject.settings[1:])
    options = tuple(Option(f"CONFIG_{m.name}", (str(m.name),)) for m in mm.base if m.name)
    with pytest.raises(DataError, match="too many to choose from"):
        explore(variants=Variants(mm.base, options[:7]))


WORDS = ("{0}:1", "{0}:2", "{0}:4", "{0}:8", "{0}:40", "{0}:4@32", "{0}:4:5", "{0}:8:33")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(WORDS), min_size=3, max_size=12), st.data())
def test_matrix_is_the_layout_of_every_setting(shapes, data):
    base = make_layout(" ".join(shape.format(f"m{i}") for i, shape in enumerate(shapes)))
    names = [m.name for m in base]
    picked = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    options = [Option(f"CONFIG_{i}", members=(name,)) for i, name in enumerate(picked)]
    options.append(Option("CONFIG_OFF", absent=(names[0],)))
    options.append(Option("CONFIG_T", types=((names[1], f"unsigned long {names[1]}[3]"),)))
    other = State("moved", ())
    variants = Variants(base, tuple(options), (Choice("how", (State("as is"), other)),))
    every = matrix(variants)
    sizes = every.sizes
    columns = {name: every.offsets(name) for name in names}
    for at, setting in enumerate(variants.settings()):
        layout = variants.layout(setting)
        assert position(variants, setting) == at
        assert sizes[at] == layout.size
        there = {m.name: m.offset for m in layout}
        assert {n: int(c[at]) for n, c in columns.items() if c[at] != ABSENT} == there


def test_as_many_combinations_as_are_allowed():
    base = make_layout(" ".join(f"m{i}:{1 + i % 8}" for i in range(30)))
    options = [Option(f"CONFIG_{i}", members=(f"m{2 * i}",)) for i in range(12)]
    answers = matrix(Variants(base, tuple(options))).on_one_line("m1", "m15")
    assert len(answers) == 4096
    assert set(np.unique(answers).tolist()) == {0, 1}
    with pytest.raises(DataError, match="8,192 combinations"):
        Variants(base, (*options, Option("CONFIG_12", members=("m25",))))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "neither an option nor a choice"),
        ((Option("CONFIG_A", ("a",)), Option("CONFIG_A", ("b",))), "given twice"),
        ((Option("CONFIG_A", ("aa",)),), "no member 'aa'"),
        ((Option("A", types=(("a", "int a"),)), Option("B", types=(("a", "int a"),))), "only one option may"),
        ((Option("A", types=(("a", "int b"),)),), "declares b, not a"),
        ((Option("CONFIG_A", ("a",)), Option("A", ("b",))), "look alike"),
        ((Option("CONFIG_A", ("a",), ("a",)),), "there and that it is absent"),
        ((Option("CONFIG_A", (), ("a",), (("a", "int a"),)),), "there and that it is absent"),
        (tuple(Option(f"CONFIG_{i}", ("a",)) for i in range(20)), "1,048,576 combinations"),
        (tuple(Option(f"CONFIG_{i}", ("a",)) for i in range(20_000)), "more than 4 billion combinations"),
    ],
)
def test_contradictions_are_refused(options, says):
    with pytest.raises(DataError, match=says):
        Variants(make_layout("a:4 b:8"), options)


def test_choices_alone_have_a_matrix():
    states = (State("as is"), State("b first", (Move("b", index=0),)))
    variants = Variants(make_layout("a:60 b:8"), choices=(Choice("order", states),))
    answers = matrix(variants).on_one_line("a", "b")
    assert answers.tolist() == [0, 1]
    assert [flip.now for flip in flips(variants, answers)] == ["b first"]
    assert influence(variants, answers) == {}
    assert combination_map(matrix(variants), answers, title="t").data[0].z.tolist() == [[0], [1]]


def test_choices_that_contradict_each_other_are_named():
    gone = Choice("x", (State("kept"), State("gone", (Remove("a"),))))
    moved = Choice("y", (State("moved", (Move("a", index=1),)), State("as is")))
    with pytest.raises(NotFound, match="with x gone, y moved: no member 'a'"):
        Variants(make_layout("a:4 b:8"), choices=(gone, moved))


def test_labels_are_not_mixed_up():
    one = Choice("x", (State("1; y 2"), State("1")))
    two = Choice("y", (State("2"), State("2; y 2")))
    with pytest.raises(DataError, match="same label"):
        Variants(make_layout("a:4 b:8"), choices=(one, two)).layouts()


def test_unknown_settings_are_refused(mm):
    for setting in ({"CONFIG_MU": True}, {"CONFIG_MMU": "on"}, {"write_protect_seq": True}, {"write_protect_seq": "?"}):
        with pytest.raises(NotFound):
            mm.layout(setting)


def test_several_builds():
    small, large = make_layout("a:8 b:8"), make_layout("a:8 debug:64 b:8")
    builds = Builds((("plain", small), ("debug", large)))
    assert builds.optional() == {"debug": (False, True)}
    assert builds.changed_by() == {"debug": ("debug",)}
    assert builds_on_one_line(builds, "a", "b") == {"plain": 1, "debug": 0}
    assert builds_on_one_line(builds, "a", "debug") == {"plain": ABSENT, "debug": 1}
    with pytest.raises(NotFound):
        builds_on_one_line(builds, "a", "c")
    with pytest.raises(DataError, match="two builds"):
        Builds((("one", small),))
    with pytest.raises(DataError, match="'plain' is for x86-64 and 'arm' for aarch64"):
        Builds((("plain", small), ("arm", make_layout("a:8 b:8", abi=AARCH64))))


def test_rules_in_every_configuration(mm):
    text = datafiles.path("rules/mm_struct.toml").read_text()
    broken = rules_broken(mm, parse_rules(text).structs[0]).reshape(3, 8)
    assert broken[0].tolist() == broken[2].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert broken[1].tolist() == [1, 1, 1, 1, 1, 1, 0, 1]
    scoped = text.replace('name = "mm_struct"', 'name = "mm_struct"\nconfig = ["CONFIG_MMU", "CONFIG_MEMBARRIER"]', 1)
    answers = rules_broken(mm, parse_rules(scoped).structs[0]).reshape(3, 8)
    assert answers[0].tolist() == [ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, 1, ABSENT, 0]


# -- files ------------------------------------------------------------------------------------------------

HEAD = 'format = "kitlib-variants"\nversion = 1\nsource = "mm-5.12"\nstruct = "mm_struct"\n'


CHOICE = "[[choice]]\nname = 'x'\nstate = [{{label = 'a'}}, {{label = 'b', edits = [{}]}}]\n"


def test_shipped_files_are_read():
    assert shipped_variants() == ["mm_struct", "struct_file"]
    for name in shipped_variants():
        variants = read_variants(name)
        assert variants.count > 1
        assert variants.about


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "[[option]\n", r"line 5, column"),
        ("version = 1\n", "must begin with format"),
        (HEAD, "neither an option nor a choice"),
        (HEAD + "opton = []\n", "did you mean option"),
        (HEAD + "[[option]]\nname = 'CONFIG_A'\n", "changes nothing"),
        (HEAD + "[[option]]\nname = 'CONFIG_A'\nmembers = ['mmap_lok']\n", "mmap_lock"),
        (HEAD + "[[option]]\nname = 'CONFIG_A'\nmembers = 'mmap'\n", "must be a list of texts"),
        (HEAD + "[[option]]\nname = 'CONFIG_A'\nmembers = ['mmap']\ndefault = 'y'\n", "true or false"),
        (HEAD + "[[option]]\nname = 'CONFIG_A'\ntypes = {mmap = 3}\n", "types must be a table"),
        (HEAD + "[[choice]]\nname = 'x'\n", "two states or more"),
        (HEAD + "x = " + "[" * 100_000, "not TOML"),
        (HEAD + "about = [1]\n", "'about' must be text"),
        (HEAD + '[[option]]\nname = "a\\nb"\nmembers = ["mmap"]\n', "text of one line"),
        (HEAD + CHOICE.format("{edit = 'move', member = 3, index = 1}"), "state 2, edit 1: 'member' of 'move'"),
        (HEAD + CHOICE.format("{edit = 'move', member = 'mmap', index = 'x'}"), "whole number"),
        (HEAD + CHOICE.format("{edit = 'move', member = 'mmap', idx = 1}"), "did you mean index"),
        (HEAD + CHOICE.format("{edit = 'remove', member = 'mmap_lok'}"), "with x b: no member 'mmap_lok'"),
        (
            HEAD + "[[choice]]\nname = 'x'\nstate = [{label = 'a'}, {label = 'b', edits = [{edit = 'mv'}]}]\n",
            "one of move",
        ),
        (HEAD + "[[choice]]\nname = 'x'\nstate = [{label = 'a'}, {label = 'a'}]\n", "label of its own"),
        (HEAD.replace("mm_struct", "mm_strct") + "[[option]]\nname = 'A'\nmembers = ['mmap']\n", "mm_struct"),
    ],
)
def test_bad_files(text, says):
    with pytest.raises(KitError, match=says) as caught:
        parse_variants(text, "v.toml")
    assert "\n" not in str(caught.value)


def test_missing_file():
    for name in ("nowhere.toml", "x" * 5000):
        with pytest.raises(DataError, match="no such variant file"):
            read_variants(name)
    with pytest.raises(DataError, match="did you mean mm_struct"):
        read_variants("mm_strct")


# -- room -------------------------------------------------------------------------------------------------


def test_room_for_write_protect_seq():
    """The place the fix chose: byte 248, in front of arg_lock, which moves into the hole behind it."""
    layout = open_source("mm-5.12").struct("mm_struct")
    room = best_room(layout, "seqcount_t write_protect_seq")
    assert (room.offset, room.before, room.growth, room.relined) == (248, "arg_lock", 0, ())
    assert room.moved == (("arg_lock", 248, 252),)
    assert [(r.offset, r.before) for r in rooms(layout, "seqcount_t write_protect_seq")] == [
        (248, "arg_lock"),
        (252, "start_code"),
    ]


def test_room_protects_what_it_is_told_to():
    layout = make_layout("a:8 b:4 big:60 c:4")
    assert hot_members(layout) == ()
    assert {r.before for r in rooms(layout, "u32 x", growth=8)} >= {None}
    assert all("c" not in r.relined for r in rooms(layout, "u32 x", ["c"], growth=8))
    with pytest.raises(NotFound, match="bigg"):
        rooms(layout, "u32 x", ["bigg"])
    with pytest.raises(PlacementError, match="no place"):
        best_room(make_layout("a:8 b:8"), "u32 x")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(("{0}:1", "{0}:4", "{0}:8", "{0}:40", "{0}:8@64")), min_size=1, max_size=9))
def test_rooms_never_grow_and_never_move_the_hot(shapes):
    layout = make_layout(" ".join(shape.format(f"m{i}") for i, shape in enumerate(shapes)))
    for room in rooms(layout, "u32 x", ["m0"]):
        assert room.growth == 0
        assert "m0" not in room.relined
