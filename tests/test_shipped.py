"""The shipped layouts: golden offsets of the case studies, judged by gcc once more where it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib import datafiles
from kitlib.errors import NotFound, SourceError
from kitlib.lines import holes, share_line
from kitlib.model import Layout
from kitlib.place import replace
from kitlib.shipped import SHIPPED, open_shipped
from kitlib.source import pick
from kitlib.sources import open_source

KERNEL_STRUCTS = [
    "dentry", "file", "inode", "mem_cgroup", "mm_struct", "net_device", "page_counter", "rw_semaphore", "sock",
    "task_struct", "tcp_sock",
]  # fmt: skip

# member, offset before, offset with the patch of June 2020 (f_count moved to the end); a case of gcc on x86-64
FILE_5_8 = """
f_u 0 0
f_path 16 16
f_inode 32 32
f_op 40 40
f_lock 48 48
f_write_hint 52 52
f_count 56 248
f_flags 64 56
f_mode 68 60
f_pos_lock 72 64
f_pos 104 96
f_owner 112 104
f_cred 144 136
f_ra 152 144
f_version 184 176
f_security 192 184
private_data 200 192
f_ep_links 208 200
f_tfile_llink 224 216
f_mapping 240 232
f_wb_err 248 240
f_sb_err 252 244
"""
MM = {  # write_protect_seq, pgtables_bytes, map_count, page_table_lock, mmap_lock, arg_lock
    "mm-5.12": (None, 104, 112, 116, 120, 248),
    "mm-5.13-seq": (104, 112, 120, 124, 128, 256),
    "mm-5.13-fixed": (248, 104, 112, 116, 120, 252),
}
LATER = {  # size and some offsets of later layouts, by gcc on x86-64; those of 6.5 are the commit's own
    "file-6.5": (232, {"f_lock": 16, "f_mode": 20, "f_count": 24, "f_path": 152, "f_inode": 168, "f_op": 176}),
    "file-6.14": (184, {"f_ref": 0, "f_lock": 8, "f_mode": 12, "f_op": 16, "f_inode": 40, "f_owner": 128}),
    "file-6.15": (184, {"f_lock": 0, "f_mode": 4, "f_op": 8, "f_inode": 32, "f_owner": 56, "f_ref": 176}),
    "page_counter-6.0": (112, {"usage": 0, "high": 24, "max": 32, "watermark": 88, "parent": 104}),
}  # fmt: skip
MM_MEMBERS = ("write_protect_seq", "pgtables_bytes", "map_count", "page_table_lock", "mmap_lock", "arg_lock")


def only(name: str) -> Layout:
    return pick(open_source(name), None)


@pytest.mark.parametrize(("name", "column"), [("file-5.8", 1), ("file-5.8-patch", 2)])
def test_struct_file(name: str, column: int) -> None:
    file = only(name)
    expected = {words[0]: int(words[column]) for words in map(str.split, FILE_5_8.strip().splitlines())}
    assert {m.name: m.offset for m in file} == expected
    assert (file.name, file.size, file.align, holes(file)) == ("file", 256, 8, ())
    assert file.replaceable


@pytest.mark.parametrize("name", LATER)
def test_later_layouts(name: str) -> None:
    size, offsets = LATER[name]
    layout = only(name)
    assert (layout.size, {member: layout.member(member).offset for member in offsets}) == (size, offsets)
    assert layout.replaceable


def test_struct_file_of_6_14_is_that_of_6_12_with_the_count_renamed() -> None:
    old, new = open_source("linux-6.12").struct("file"), only("file-6.14")
    places = [[(m.name, m.bit_offset, m.bit_size) for m in layout][1:] for layout in (old, new)]
    assert places[0] == places[1]
    assert (old.members[0].name, new.members[0].name) == ("f_count", "f_ref")


def test_who_shares_a_line_with_f_count() -> None:
    before, patched = only("file-5.8"), only("file-5.8-patch")
    assert not share_line(before, "f_count", "f_mode", 64)
    assert share_line(before, "f_count", "f_mode", 128)
    for member in ("f_path", "f_inode", "f_op", "f_lock"):
        assert share_line(before, "f_count", member, 64)
        assert not share_line(patched, "f_count", member, 64)


def test_moving_f_count_gives_the_patched_layout() -> None:
    before, patched = only("file-5.8"), only("file-5.8-patch")
    order = {m.name: i for i, m in enumerate(patched)}
    assert replace(before, sorted(before.members, key=lambda m: order[m.name])) == patched


@pytest.mark.parametrize("name", MM)
def test_mm_struct(name: str) -> None:
    mm = only(name)
    at = {m.name: m.offset for m in mm}
    assert tuple(at.get(member) for member in MM_MEMBERS) == MM[name]
    start = {"mmap": 0, "mm_rb": 8, "vmacache_seqnum": 16, "get_unmapped_area": 24, "mmap_base": 32, "pgd": 80}
    assert {key: at[key] for key in start} == start
    assert (at["membarrier_state"], at["mm_users"], at["mm_count"], at["has_pinned"]) == (88, 92, 96, 100)
    semaphore = mm.member("mmap_lock").inner
    assert semaphore is not None
    rows = [(m.name, m.offset, m.size) for m in semaphore]
    assert rows == [("count", 0, 8), ("owner", 8, 8), ("osq", 16, 4), ("wait_lock", 20, 4), ("wait_list", 24, 16)]
    assert mm.source is not None
    assert mm.source.detail.startswith("partial")


def test_the_semaphore_was_on_two_lines_and_then_on_one() -> None:
    assert not share_line(only("mm-5.12"), "mmap_lock.count", "mmap_lock.owner")
    assert share_line(only("mm-5.13-seq"), "mmap_lock.count", "mmap_lock.owner")
    assert (holes(only("mm-5.13-seq"))[0].offset, holes(only("mm-5.13-seq"))[0].size) == (108, 4)


def test_inode_is_partial_and_says_so() -> None:
    inode = only("inode-4.16")
    rows = {m.name: (m.offset, m.size) for m in inode}
    assert rows == {
        "not_known": (0, 0x140),
        "i_rcu": (0x140, 16),
        "i_version": (0x150, 8),
        "i_count": (0x158, 4),
        "i_dio_count": (0x15C, 4),
        "i_writecount": (0x160, 4),
        "i_readcount": (0x164, 4),
        "i_fop": (0x168, 8),
    }
    assert not inode.replaceable
    assert "neighbourhood of i_version" in (inode.reason or "")


@pytest.mark.parametrize(("name", "file_size"), [("linux-6.1", 232), ("linux-6.12", 184)])
def test_kernels(name: str, file_size: int) -> None:
    source = open_source(name)
    assert source.names() == KERNEL_STRUCTS
    assert source.struct("file").size == file_size
    assert source.struct("mutex").member("owner").size == 8  # held by value in others: found, not listed
    assert source.struct("task_struct").member("se").inner is source.struct("sched_entity")
    for layout in source.structs():
        assert layout.replaceable
        assert replace(layout, layout.members) == layout
    assert datafiles.path(f"layouts/{name}.json").stat().st_size < 1_000_000


@pytest.mark.parametrize("name", ["linux-6.1", "linux-6.12"])
def test_kernels_agree_with_pahole(name: str) -> None:
    """The text is ``pahole -F btf -C STRUCT vmlinux`` (1.24) of the same Debian kernels; the layouts are from DWARF."""
    text = open_source(Path(__file__).parent / "fixtures" / f"{name}.pahole")
    assert len(text.names()) >= 4
    for struct in text.names():
        assert open_source(name).struct(struct) == text.struct(struct)


def test_every_name_opens_and_no_path_of_the_maker_is_kept() -> None:
    for name in SHIPPED:
        source = open_shipped(name)
        for layout in source.structs():
            assert layout.source is not None
            assert (layout.source.label, layout.source.kind) == (name, "shipped")
        text = datafiles.path(f"layouts/{name}.json").read_text()
        assert "/tmp" not in text
        assert "/home" not in text


def test_an_unknown_name_offers_near_ones() -> None:
    with pytest.raises(NotFound, match=r"no shipped layout 'file-5\.9'; did you mean file-5\.8"):
        open_shipped("file-5.9")
    with pytest.raises(SourceError, match=r"did you mean .*linux-6\.1"):
        open_source("linux-6.11")


def test_gcc_places_the_stubs_as_shipped(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    need_tool("gcc")
    folder = datafiles.path("layouts")
    script = f"import sys; sys.path.insert(0, {str(folder)!r}); import make_layouts as m\n"
    script += f"m.write_stubs(m.Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-B", "-c", script], check=True)
    for name in LATER | dict.fromkeys(("file-5.8", "file-5.8-patch", *MM, "inode-4.16")):
        assert pick(open_source(tmp_path / f"{name}.json"), None) == only(name)
