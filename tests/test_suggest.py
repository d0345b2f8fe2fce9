"""The search finds what it should, stops when nothing pays, and says that it is a model."""

from __future__ import annotations

import pytest

from kitlib.access import Access, Path, Profile, Workload, load_profile
from kitlib.edit import apply
from kitlib.errors import PlacementError
from kitlib.machine import load_machine
from kitlib.model import Layout
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.suggest import suggest

MACHINE = load_machine("cascade-lake-8269cy")


def profile() -> Profile:
    paths = (
        Path("count", 1.0, (Access("count", "add"),)),
        Path("look", 3.0, (Access("mode", "read"),)),
    )
    return Profile("t", "s", paths, Workload(8, 1, 50.0), slab_align=64)


def test_a_counter_is_moved_away_from_what_others_read() -> None:
    layout = make_layout("mode:8 count:8 body:240")
    found = suggest(layout, profile(), MACHINE)
    assert found.steps
    final = apply(layout, [s.edit for s in found.steps])
    assert final == found.layout
    assert final.member("count").offset // 128 != final.member("mode").offset // 128
    assert found.gain_pct < -10
    assert final.size <= layout.size


def test_nothing_is_suggested_where_nothing_helps() -> None:
    layout = make_layout("mode:8 body:240 count:8")
    assert suggest(layout, profile(), MACHINE).steps == ()


def test_struct_file_gets_no_worse() -> None:
    layout = open_source("file-5.8").struct("file")
    found = suggest(layout, load_profile("unixbench_syscall"), MACHINE, most_steps=1)
    assert found.after.total_ns < found.before.total_ns
    assert found.layout.size <= layout.size


def test_a_layout_that_cannot_be_placed_is_refused() -> None:
    layout = make_layout("a:8")
    broken = Layout("s", "struct", 8, 8, layout.members, reason="it is odd")
    with pytest.raises(PlacementError, match="it is odd"):
        suggest(broken, profile(), MACHINE)
