"""``kitlib list``, ``show`` and ``edit`` as a user runs them: output, exit status, one line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kitlib.cli.layout import parse_edit
from kitlib.edit import Align, AlignStruct, Insert, Isolate, Move, Pad, Remove, Swap
from kitlib.errors import DataError
from kitlib.scenario import read_scenario
from kitlib.sources import open_source


def kitlib(*args: str, status: int = 0) -> str:
    """Run the command line in a process of its own; return stdout, or stderr if it is meant to fail."""
    run = subprocess.run([sys.executable, "-m", "kitlib", *args], capture_output=True, text=True, timeout=60)
    assert run.returncode == status, (run.returncode, run.stdout, run.stderr)
    assert "Traceback" not in run.stderr
    return run.stderr if status == 2 else run.stdout


def test_list() -> None:
    assert "file" in kitlib("list", "file-5.8").split()
    record = json.loads(kitlib("list", "linux-6.1", "mem_*", "--format", "json"))
    assert "mem_cgroup" in record["structs"]
    assert set(record["source"]) == {"label", "kind"}


def test_show_json_has_the_promised_keys() -> None:
    record = json.loads(kitlib("show", "file-5.8", "file", "--format", "json"))
    assert {"name", "kind", "size", "align", "line_bytes", "phase", "members", "holes", "padding"} <= set(record)
    assert {"replaceable", "reason", "source"} <= set(record)
    rows = {m["name"]: m for m in record["members"]}
    assert {"name", "path", "type", "offset", "size", "bit_offset", "bit_size", "align", "lines"} <= set(rows["f_mode"])
    assert (rows["f_count"]["offset"], rows["f_count"]["lines"]) == (56, [0, 0])
    assert (rows["f_mode"]["offset"], rows["f_mode"]["lines"]) == (68, [1, 1])
    wide = json.loads(kitlib("show", "file-5.8", "file", "--line-bytes", "128", "--format", "json"))
    assert all(m["lines"] == [0, 0] for m in wide["members"] if m["name"] in ("f_count", "f_mode"))


def test_show_expands_and_shifts() -> None:
    record = json.loads(kitlib("show", "file-5.8", "file", "--expand", "--phase", "8", "--format", "json"))
    rows = {m["path"]: m for m in record["members"]}
    assert rows["f_path.dentry"]["offset"] == 24
    assert rows["f_count"]["lines"] == [1, 1]
    assert "f_path.dentry" not in kitlib("show", "file-5.8", "file")


def test_edits_apply_in_the_order_written() -> None:
    last = ["--move", "f_count:after=f_sb_err"]
    pad = ["--pad", "f_count=8"]
    first = json.loads(kitlib("edit", "file-5.8", "file", *last, *pad, "--format", "json"))
    second = json.loads(kitlib("edit", "file-5.8", "file", *pad, *last, "--format", "json"))
    where = [[m["name"] for m in r["after"]["members"]].index("pad1") for r in (first, second)]
    assert where[0] > where[1]
    assert first["edits"][0].startswith("move f_count")


def test_the_patch_is_the_move(tmp_path: Path) -> None:
    saved = tmp_path / "moved.json"
    kitlib("edit", "file-5.8", "file", "--move=f_count:after=f_sb_err", "--save", str(saved))
    assert read_scenario(saved).layout == open_source("file-5.8-patch").struct("file")
    assert [p.name for p in tmp_path.iterdir()] == ["moved.json"]
    assert open_source(saved).struct("file") == read_scenario(saved).layout
    more = json.loads(kitlib("edit", str(saved), "file", "--move", "f_count:before=f_u", "--format", "json"))
    assert more["after"]["members"][0]["name"] == "f_count"
    assert "move f_count after f_sb_err" in kitlib("show", str(saved))


@pytest.mark.parametrize(
    ("option", "text", "edit"),
    [
        ("--move", "a:after=b", Move("a", after="b")),
        ("--move", "a:index=3", Move("a", index=3)),
        ("--insert", "u32 seq:before=b", Insert("u32 seq", before="b")),
        ("--insert", "unsigned f:3:before=b", Insert("unsigned f:3", before="b")),
        ("--insert", "unsigned f:3", Insert("unsigned f:3")),
        ("--align", "a=64", Align("a", 64)),
        ("--align-struct", "64", AlignStruct(64)),
        ("--isolate", "a", Isolate("a")),
        ("--isolate", "a=128", Isolate("a", 128)),
        ("--pad", "a=8", Pad("a", 8)),
        ("--remove", "a", Remove("a")),
        ("--swap", "a,b", Swap("a", "b")),
    ],
)
def test_edit_options(option: str, text: str, edit: object) -> None:
    assert parse_edit(option, text) == edit


@pytest.mark.parametrize(
    ("option", "text"), [("--move", "a"), ("--move", "a:index=x"), ("--align", "a"), ("--swap", "a"), ("--pad", "a=-1")]
)
def test_edit_options_that_say_nothing(option: str, text: str) -> None:
    with pytest.raises(DataError, match=option):
        parse_edit(option, text)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("show", "file-5.8", "fiel"), "file"),
        (("show", "no-such-file", "x"), "no-such-file"),
        (("show", "/", "x"), "directory"),
        (("show", "file-5.8", "file", "--line-bytes", "48"), "32, 64, 128, 256"),
        (("show", "file-5.8", "file", "--phase", "-1"), "phase"),
        (("show", "file-5.8", "file", "--phase", "x"), "phase"),
        (("edit", "file-5.8", "file", "--move", "f_cuont:after=f_mode"), "did you mean f_count"),
        (("edit", "file-5.8", "file", "--align", "f_mode=3"), "power of two"),
        (("edit", "file-5.8", "file", "--save", "/nowhere/x.json"), "/nowhere"),
        (("edit", "inode-4.16", "inode", "--align-struct", "64"), "cannot be re-placed"),
        (("list", "file-5.8", "zzz"), "zzz"),
        (("flie",), "No such command"),
    ],
)
def test_bad_input_is_one_line_and_status_2(args: tuple[str, ...], says: str) -> None:
    error = kitlib(*args, status=2)
    assert error.count("\n") == 1
    assert says in error
