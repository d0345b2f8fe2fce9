"""Every struct of a real kernel, read from its DWARF: placed anew it is the compiler's own, or it says why not."""

from __future__ import annotations

import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.dwarf import DwarfSource
from kitlib.errors import NotFound
from kitlib.model import Layout
from kitlib.pahole import read_pahole
from kitlib.place import place, rules_of
from kitlib.sources import open_source

pytestmark = pytest.mark.timeout(1200)
Need = Callable[..., str]

WELL_KNOWN = (
    "file", "mm_struct", "inode", "dentry", "rw_semaphore", "page_counter", "mem_cgroup", "sock", "tcp_sock",
    "net_device", "task_struct", "list_head", "page", "zone", "super_block", "files_struct",
)  # fmt: skip


def places(layout: Layout) -> list[tuple[str | None, int, int]]:
    return [(m.name, m.bit_offset, m.bit_size) for m in layout.members]


Say = Callable[[str], None]


def test_placing_gives_the_compilers_offsets_back(layouts: list[Layout], say: Say) -> None:
    wrong, reasons = [], Counter[str]()
    for layout in layouts:
        if layout.reason is not None:
            reasons[layout.reason] += 1
            continue
        members, size, _ = place(layout.members, layout.kind, rules_of(layout))
        if size != layout.size or [m.bit_offset for m in members] != [m.bit_offset for m in layout.members]:
            wrong.append(layout.title)
    share = 1 - reasons.total() / len(layouts)
    say(f"{len(layouts)} structs and unions, {share:.2%} re-placeable, {len(wrong)} wrong")
    for reason, count in reasons.most_common():
        say(f"  {count} not re-placeable: {reason}")
    assert len(layouts) > 5000
    assert not wrong
    assert share >= 0.995


def test_btf_of_the_same_kernel_agrees(layouts: list[Layout], vmlinux: Path, say: Say) -> None:
    """pahole made the BTF from this DWARF; it flattens arrays of several dimensions and leaves some attributes out."""
    by_name: dict[tuple[str | None, str], list[Layout]] = defaultdict(list)
    for layout in layouts:
        by_name[layout.name, layout.kind].append(layout)
    equal, same_places, differ, absent = 0, 0, [], []
    for layout in open_source(vmlinux, prefer="btf").structs():
        mine = by_name.get((layout.name, layout.kind), [])
        if not mine:
            absent.append(layout.title)
        elif layout in mine:
            equal += 1
        elif any(places(layout) == places(one) and layout.size == one.size for one in mine):
            same_places += 1
        else:
            differ.append(layout.title)
    say(f"BTF: {equal} equal, {same_places} but for a type's spelling, {len(differ)} differ, {len(absent)} absent")
    say("\n".join(f"  {title}" for title in [*differ, *absent][:20]))
    assert equal > 5000
    assert same_places < equal / 50
    assert not differ
    assert len(absent) <= 5


def test_pahole_agrees(dwarf: DwarfSource, vmlinux: Path, need_tool: Need) -> None:
    command = [need_tool("pahole"), "-F", "dwarf", "-C", ",".join(WELL_KNOWN), str(vmlinux)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    theirs = {layout.name: layout for layout in read_pahole(text, "pahole")}
    assert set(theirs) == set(WELL_KNOWN)
    for name in WELL_KNOWN:
        mine = dwarf.struct(name)
        assert (mine.size, places(mine)) == (theirs[name].size, places(theirs[name])), name


def test_names_and_structs_agree(dwarf: DwarfSource, layouts: list[Layout]) -> None:
    assert dwarf.names() == sorted({layout.name for layout in layouts if layout.name})


def test_each_struct_is_found_by_name(dwarf: DwarfSource, layouts: list[Layout]) -> None:
    """The search by name and the walk over the file give the same layouts."""
    first: dict[str, Layout] = {}
    for layout in layouts:
        first.setdefault(layout.name or "", layout)
    kinds = defaultdict(set)
    for layout in layouts:
        kinds[layout.name].add(layout.kind)
    sample = random.Random(1).sample(sorted(first), 150)
    for name in [*WELL_KNOWN, *sample]:
        if len(kinds[name]) == 1:
            assert dwarf.struct(name) == first[name], name


def test_absent_names(dwarf: DwarfSource) -> None:
    with pytest.raises(NotFound, match=r"did you mean .*task_struct"):
        dwarf.struct("tsk_struct")
    with pytest.raises(NotFound, match=r"u64.* is a typedef of"):
        dwarf.struct("u64")
    for name in ("flags", "f_count", "no_such_thing_at_all", "x"):
        with pytest.raises(NotFound):
            dwarf.struct(name)
