"""Placing the members of every struct of a real kernel gives the compiler's own offsets back."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace as _with

import pytest

from kitlib.btf import RUNNING, BtfSource
from kitlib.model import Layout
from kitlib.place import place, replace, rules_of
from kitlib.sources import open_source

WANTED_SHARE = 0.995

KERNELS = ["running", *filter(None, os.environ.get("KITLIB_KERNELS", "").split(os.pathsep))]
"""More kernels (a vmlinux with .BTF, a vmlinuz) can be named in KITLIB_KERNELS, as ``make test-kernel`` does."""


@pytest.fixture(scope="module", params=KERNELS)
def layouts(request: pytest.FixtureRequest) -> list[Layout]:
    """Every struct and union of a kernel's BTF, the unnamed ones inside others included."""
    if request.param == "running" and not RUNNING.exists():
        pytest.skip(f"this kernel has no {RUNNING}")
    source = open_source(request.param, prefer="btf")
    assert isinstance(source, BtfSource)
    found = list(source.structs())
    seen = {id(layout) for layout in found}
    for layout in found:  # grows while it is walked
        for member in layout.members:
            if member.inner is not None and id(member.inner) not in seen:
                seen.add(id(member.inner))
                found.append(member.inner)
    return found


def test_no_struct_is_placed_wrongly(layouts: list[Layout]) -> None:
    wrong = []
    for layout in layouts:
        if layout.replaceable:
            blank = [_with(member, bit_offset=0) for member in layout.members]
            placed, size, align = place(blank, layout.kind, rules_of(layout))
            same = [a.bit_offset for a in placed] == [b.bit_offset for b in layout.members]
            if not same or (size, align) != (layout.size, layout.align) or replace(layout, placed) != layout:
                wrong.append(layout.title)
    assert wrong == []


def test_nearly_every_struct_can_be_replaced(
    layouts: list[Layout], record_property: Callable[[str, object], None]
) -> None:
    reasons = Counter(layout.reason for layout in layouts if not layout.replaceable)
    share = 1 - reasons.total() / len(layouts)
    record_property("structs", len(layouts))
    record_property("replaceable", share)
    print(f"{len(layouts)} structs, {share:.2%} re-placeable; the others: {dict(reasons)}")
    assert len(layouts) > 5000
    assert share >= WANTED_SHARE


def test_an_unreplaceable_struct_says_why(layouts: list[Layout]) -> None:
    assert all(len(layout.reason or "") > 10 for layout in layouts if not layout.replaceable)
