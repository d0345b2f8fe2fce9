"""Access profiles: reading, refusing, placing, and the shipped ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kitlib.access import Access, Profile, Workload, load_profile, locate, profile_for, profile_from, shipped, spacing
from kitlib.access import Path as CodePath
from kitlib.errors import DataError, NotFound
from kitlib.schedule import schedule
from kitlib.shorthand import make_layout
from kitlib.sources import open_source

GOOD = """
format = "kitlib-profile"
version = 1
name = "ring"
struct = "ring"
[workload]
cpus = 4
[[path]]
name = "push"
rate = 3
[[path.access]]
member = "head"
op = "add"
[[path]]
name = "peek"
rate = 1
[[path.access]]
member = "tail"
op = "read"
times = 0.5
"""


def read(text: str) -> Profile:
    return profile_from(tomllib.loads(text), "ring", "ring.toml")


def test_a_profile_is_read_with_its_rates_and_workload() -> None:
    profile = read(GOOD)
    assert [(p.name, share) for p, share in profile.mix] == [("push", 0.75), ("peek", 0.25)]
    assert profile.workload.cpus == 4
    assert profile.paths[0].accesses == (Access("head", "add"),)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rate = 3", "rate = -1", "rate = -1 must be 0 or more"),
        ("times = 0.5", "times = -2", "times = -2 must be above 0"),
        ("times = 0.5", "times = nan", "must be above 0"),
        ('op = "add"', 'op = "sub"', "op 'sub' must be one of read, write, add, cmpxchg"),
        ("cpus = 4", "cpus = 0", "cpus and objects of 1 or more"),
        ("cpus = 4", "cpuz = 4", "unknown key 'cpuz'; did you mean cpus?"),
        ("cpus = 4", "cpus = true", "cpus = True is no int"),
        ("cpus = 4", "shared = 1.5", "share from 0 to 1"),
        ("version = 1", "version = 2", "version = 1"),
        ('member = "head"', "member = 3", "is no text"),
        ('member = "head"', "", "give member"),
        ('struct = "ring"', "", "struct"),
    ],
)
def test_a_wrong_profile_is_refused_with_the_place(old: str, new: str, says: str) -> None:
    with pytest.raises(DataError, match=r"ring.toml") as caught:
        read(GOOD.replace(old, new, 1))
    assert says in str(caught.value)


def test_a_member_that_is_not_there_is_named_with_near_ones() -> None:
    layout = make_layout("heads:8 tail:8", "ring")
    with pytest.raises(NotFound, match=r"profile ring, path push: no member 'head'.*did you mean heads"):
        locate(read(GOOD), layout)


def test_an_access_outside_its_member_is_refused() -> None:
    profile = Profile("p", "s", (CodePath("x", 1, (Access("a", "read", at=4, size=8),)),), Workload())
    with pytest.raises(DataError, match="8 bytes at 4 lie outside a, which has 8 bytes"):
        locate(profile, make_layout("a:8"))


def test_places_follow_the_layout() -> None:
    places = locate(read(GOOD), make_layout("tail:4 pad:60 head:8", "ring"))
    assert [(p.offset, p.size) for p in places["push"]] == [(64, 8)]
    assert [(p.offset, p.size) for p in places["peek"]] == [(0, 4)]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_profiles_fit_their_shipped_layouts(name: str) -> None:
    profile = load_profile(name)
    sources = {
        "struct_file_2025": ("file-6.15",),
        "file": ("file-5.8", "file-5.8-patch"),
        "mm_struct": ("mm-5.12", "mm-5.13-seq", "mm-5.13-fixed"),
        "inode": ("inode-4.16",),
        "dentry": ("linux-6.1",),
        "page_counter": ("page_counter-6.0",),
    }
    for source in sources.get(name) or sources[profile.struct]:
        places = locate(profile, open_source(source).struct(profile.struct))
        assert set(places) == {p.name for p in profile.paths}
    assert all(a.evidence for p in profile.paths for a in p.accesses)


def test_struct_file_has_the_paths_of_the_thread_and_says_what_is_not_confirmed() -> None:
    profile = profile_for(open_source("file-5.8").struct("file"))
    assert profile.name == "struct_file"
    assert {"fget", "fget_light", "close", "read", "write"} <= {p.name for p in profile.paths}
    assert "fput: f_count" in profile.unconfirmed


def test_the_schedule_has_the_profile_shares() -> None:
    turns = schedule(read(GOOD))
    assert [t.path.name for t in turns].count("push") == 3 * [t.path.name for t in turns].count("peek")
    # half of the peeks read tail: the cycle has at least one that does not
    peeks = [t.steps for t in turns if t.path.name == "peek"]
    assert len(turns) <= 32
    assert peeks[0] == ()


def test_objects_are_spaced_as_the_slab_does() -> None:
    layout = make_layout("a:8 b:64 c:8")
    assert spacing(read(GOOD), layout) == 80
    aligned = Profile("p", "s", (CodePath("x", 1, (Access("a", "read"),)),), Workload(), slab_align=64)
    assert spacing(aligned, layout) == 128


def test_an_unknown_profile_names_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="did you mean struct_file"):
        load_profile("struct_fil")
    broken = tmp_path / "x.toml"
    broken.write_text("a = [")
    with pytest.raises(DataError, match=r"x\.toml"):
        load_profile(str(broken))
