"""`open_source` tells kinds by contents, and says in one line what it cannot open."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kitlib.btf import RUNNING
from kitlib.errors import DataError, KitError, NotFound, SourceError
from kitlib.layoutjson import layouts_from_json, layouts_to_json, shared_json
from kitlib.shorthand import make_layout
from kitlib.source import LayoutList, Source, pick
from kitlib.sources import open_source

FIXTURES = Path(__file__).parent / "fixtures"
MEMBERS = ("pointers", "bits", "kinds", "nested", "closed", "apart", "whole", "holder", "atomic_t", "both_t")


NOT_IN_PAHOLE = ("pointers", "atomic_t", "both_t")  # functions are printed in another way, unnamed structs not at all


def compiled(folder: Path, text: str, *flags: str) -> Path:
    """The object file that gcc makes of `text`."""
    (folder / "unit.c").write_text(text)
    subprocess.run(["gcc", *flags, "-c", "unit.c"], cwd=folder, check=True)
    return folder / "unit.o"


def test_each_kind_is_told_without_its_extension(tmp_path: Path) -> None:
    ring = make_layout("head:8 tail:8", "ring")
    (tmp_path / "a.o").write_text("\n" + layouts_to_json([ring]))
    (tmp_path / "b.c").write_bytes((FIXTURES / "zoo.btf").read_bytes())
    (tmp_path / "c.json").write_text((FIXTURES / "zoo.pahole").read_text())
    (tmp_path / "d.btf").write_bytes(gzip.compress((FIXTURES / "zoo.btf").read_bytes()))
    kinds = {name: open_source(tmp_path / name).kind for name in ("a.o", "b.c", "c.json", "d.btf")}
    assert kinds == {"a.o": "json", "b.c": "btf", "c.json": "pahole", "d.btf": "btf"}
    assert pick(open_source(tmp_path / "a.o"), None) == ring
    assert open_source(str(tmp_path / "b.c")).struct("bits").size == 16


def test_dwarf_btf_pahole_and_c_agree(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    need_tool("gcc")
    sources: dict[str, Source] = {
        "dwarf": open_source(compiled(tmp_path, (FIXTURES / "zoo.c").read_text(), "-g")),
        "btf": open_source(FIXTURES / "zoo.btf"),
        "pahole": open_source(FIXTURES / "zoo.pahole"),
        "c": open_source(FIXTURES / "zoo.c"),
    }
    assert {kind: source.kind for kind, source in sources.items()} == {kind: kind for kind in sources}
    for name in MEMBERS:
        first = sources["dwarf"].struct(name)
        for kind, source in sources.items():
            if kind != "pahole" or name not in NOT_IN_PAHOLE:
                assert source.struct(name) == first, (kind, name)
                assert source.struct(name).replaceable == first.replaceable
    # pahole's BTF has one dimension only; everything but that type's text is the same
    dwarf, btf = (sources[kind].struct("arrays") for kind in ("dwarf", "btf"))
    assert [(m.name, m.bit_offset, m.bit_size) for m in dwarf] == [(m.name, m.bit_offset, m.bit_size) for m in btf]


def test_an_elf_with_both_is_read_as_preferred(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    need_tool("gcc")
    target = compiled(tmp_path, (FIXTURES / "zoo.c").read_text(), "-g")
    subprocess.run([need_tool("objcopy"), "--add-section", f".BTF={FIXTURES / 'zoo.btf'}", str(target)], check=True)
    assert open_source(target).kind == "dwarf"
    assert open_source(target, prefer="btf").kind == "btf"
    assert open_source(f"btf:{target}").kind == "btf"
    assert open_source(f"dwarf:{target}").kind == "dwarf"
    assert open_source(target, prefer="btf").struct("holder") == open_source(target).struct("holder")
    assert open_source(target, prefer="btf").struct("holder").abi is open_source(target).struct("holder").abi


def test_c_and_pahole_text_instead_of_a_path(need_tool: Callable[[str], str]) -> None:
    text = open_source((FIXTURES / "zoo.pahole").read_text())
    assert text.struct("closed").size == 13
    need_tool("gcc")
    assert open_source("struct pair { char tag; long value; };").struct("pair").size == 16


def test_running_and_its_file() -> None:
    if not RUNNING.exists():
        pytest.skip(f"this kernel has no {RUNNING}")
    running = open_source("running")
    assert running.label.startswith("running (")
    assert running.struct("list_head") == open_source(RUNNING).struct("list_head")


def test_a_file_called_like_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file-5.8").write_text(layouts_to_json([make_layout("a:4", "mine")]))
    assert open_source("file-5.8").names() == ["file"]
    assert open_source("./file-5.8").names() == ["mine"]


def test_module_on_its_vmlinux(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"holds no BTF, so it cannot be the base"):
        open_source(f"{FIXTURES / 'zoo.btf'}@file-5.8")
    with pytest.raises(SourceError, match="no such file"):
        open_source(f"{FIXTURES / 'zoo.btf'}@/not/there")
    odd = tmp_path / "a@b"
    shutil.copy(FIXTURES / "zoo.btf", odd)
    assert open_source(odd).struct("bits").size == 16


SAYS = {
    "empty": "is empty",
    "noise": "binary data of a kind that is not known",
    "zeros": "binary data of a kind that is not known",
    "prose": "neither pahole output, C nor a layout JSON",
    "json": 'its "format" must be "kitlib-layout"',
    "cut.json": "not JSON",
    "short.elf": "truncated or damaged ELF header",
    "short.gz": "is it truncated",
    "gz": "holds no BTF",
    "directory": "is a directory",
    "absent": "no such file",
    "device": "is no regular file",
    "below a file": "no such file",
    "long": "cannot be read",
    "nul": "cannot be read",
    "braces": "neither a path nor C or pahole text",
}


def bad_files(folder: Path) -> dict[str, str]:
    """The paths of what is no source, by the keys of `SAYS`."""
    files = {
        "empty": b"",
        "noise": random.Random(5).randbytes(5000),
        "zeros": bytes(4096),
        "prose": b"Dear reader, nothing here is a layout.\n",
        "json": b'{"format": "another"}',
        "cut.json": b'{"format": "kitlib-layout", "version": 1, "layouts": [',
        "short.elf": b"\x7fELF",
        "short.gz": gzip.compress(b"x" * 1000)[:20],
        "gz": gzip.compress(b"nothing of interest"),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    paths = {name: str(folder / name) for name in [*files, "absent"]}
    paths |= {"directory": str(folder), "device": "/dev/zero", "below a file": str(folder / "prose" / "x")}
    return paths | {"long": "x" * 5000, "nul": "a\0b", "braces": "{}"}


@pytest.mark.parametrize("name", SAYS)
def test_one_clear_line_for_what_is_no_source(name: str, tmp_path: Path) -> None:
    path, expected = bad_files(tmp_path)[name], SAYS[name]
    with pytest.raises(KitError) as caught:
        open_source(path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_object_without_debug_information(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    need_tool("gcc")
    with pytest.raises(SourceError, match=r"neither \.debug_info nor \.BTF\); compile with -g"):
        open_source(compiled(tmp_path, "int x;"))


def test_unreadable_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("struct s { int a; };")
    secret.chmod(0)
    if os.access(secret, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(SourceError, match="cannot be read"):
        open_source(secret)


def test_the_command_line_says_it_in_one_line_and_exits_with_2(tmp_path: Path) -> None:
    for name, path in bad_files(tmp_path).items():
        if "\0" in path:
            continue
        done = subprocess.run(
            [sys.executable, "-m", "kitlib", "list", path], capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout) == (2, ""), name
        assert done.stderr.count("\n") == 1, done.stderr
        assert SAYS[name] in done.stderr
        assert "Traceback" not in done.stderr


# -- lists of layouts and the layout file -------------------------------------------------------------------


def test_layout_list_finds_structs_inside_others() -> None:
    source = open_source("file-5.8")
    assert isinstance(source, LayoutList)
    assert source.struct("struct fown_struct").size == 32
    with pytest.raises(NotFound, match=r"no struct 'fil' in file-5\.8; did you mean file\?"):
        source.struct("fil")
    two = LayoutList([make_layout("a:4", "x"), make_layout("b:4", "y")], "two", "test")
    with pytest.raises(NotFound, match="two has 2 structs; name one of them: x, y"):
        pick(two, None)
    assert pick(two, "y").name == "y"


def test_shared_layout_file_keeps_everything_and_shares_objects() -> None:
    layouts = list(open_source("linux-6.12").structs())
    again = layouts_from_json(shared_json(layouts, about="x"), "again.json")
    assert list(again) == layouts
    assert layouts_to_json(list(again)) == layouts_to_json(layouts)  # attributes, inner structs and sources too


def test_shared_layout_file_refuses_types_that_come_later() -> None:
    text = shared_json([*open_source("file-5.8").structs()])
    first = text.index('"inner": 0')
    for number in (10_000, -1):
        bad = text[:first] + f'"inner": {number}' + text[first + len('"inner": 0') :]
        with pytest.raises(DataError, match=r"is not one of the \d+ types in front of it"):
            layouts_from_json(bad, "bad.json")
