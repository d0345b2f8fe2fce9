"""Bad and odd input to diff, check, guard and scan: one line and status 2, and nothing unevaluated passes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import xml.dom.minidom
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kitlib.casserts import kernel_group, static_asserts
from kitlib.datafiles import path as path_of
from kitlib.diff import SourceDiff, diff_layouts, diff_sources
from kitlib.difftext import diff_record
from kitlib.errors import DataError, NotFound, PlacementError, SourceError
from kitlib.figures.diff import diff_table
from kitlib.files import write_whole
from kitlib.guard import Report, evaluate, outsiders
from kitlib.kernels import open_kernel
from kitlib.model import Layout
from kitlib.promise import write_rules
from kitlib.rulefile import parse_rules
from kitlib.rules import Rule, Scope, StructRules
from kitlib.sarif import to_junit
from kitlib.scan import ScanFilter, scan_source
from kitlib.shorthand import make_layout
from kitlib.source import LayoutList, definitions
from kitlib.sources import open_source
from kitlib.straddle import halves

HEAD = 'format = "kitlib-rules"\nversion = 1\n[[struct]]\nname = "file"\n'
RULE = HEAD + "[[struct.rule]]\n"
HOLDS = '\n[[struct.rule]]\nkind = "size"\nmax_bytes = 9999\n'


def kitlib(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kitlib.cli import main; main()", *words]
    given: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, text=True, timeout=120, check=False, **given)  # type: ignore[call-overload,no-any-return]


def refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert (done.returncode, done.stdout or "") == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RULE + 'kind = "size"\nmax_bytes = ' + "9" * 5000, "a number in it is too large"),
        (RULE + 'kind = "at"\nmembers = ["f_op"]\noffset = 0x' + "f" * 5000, "line 5: rule '1': offset is too large"),
        (RULE + 'kind = "size"\nmax_bytes = 1\nconfig = ["MEMCG"]' + HOLDS, "config 'MEMCG': write CONFIG_NAME"),
        (
            RULE + 'kind = "size"\nmax_bytes = 1\nconfig = ["CONFIG_A", "!CONFIG_A"]' + HOLDS,
            "CONFIG_A cannot be on and off, so the rule would never apply",
        ),
        (
            RULE + 'kind = "size"\nmax_bytes = 1\nwith_members = ["f_op.x"]\nwithout_members = ["f_op"]' + HOLDS,
            "no struct is with 'f_op.x' and without 'f_op'",
        ),
        (
            RULE
            + 'id = "a"\nkind = "apart"\nmembers = ["f_op", "f_count"]\n'
            + '[[struct]]\nname = "struct file"\n[[struct.rule]]\nid = "b"\nkind = "together"\n'
            + 'members = ["f_op", "f_count"]',
            "rules 'b' and 'a' (lines 11 and 5) are contradictory",
        ),
        (
            RULE
            + 'id = "a"\nkind = "size"\nbytes = 8\n'
            + '[[struct]]\nname = "file"\n[[struct.rule]]\nid = "a"\nkind = "size"\nbytes = 8',
            "rule id 'a' is used twice; give each rule one of its own",
        ),
        (
            RULE
            + 'kind = "lines"\nmembers = ["f_op", "f_count"]\nmax_lines = 1\n'
            + '[[struct.rule]]\nkind = "apart"\nmembers = ["f_op", "f_count"]',
            "cannot be both on one 64-byte line and apart",
        ),
        (
            RULE + 'kind = "size"\nbytes = 8\n[struct.baseline]\nsize = -1\nalign = 8\nmembers = []',
            "size must be from 0",
        ),
        (
            RULE + 'kind = "size"\nbytes = 8\n[struct.baseline]\nsize = 1\nalign = 8\nmembers = [["a", true, 8, "x"]]',
            "baseline row",
        ),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_rules(text, "x.toml")
    assert str(caught.value).startswith("x.toml: ")
    assert message in str(caught.value)


def test_contradictions_at_a_phase_count_it_in() -> None:
    at = Rule("at", "at", ("a",), (("offset", 56),), Scope(phases=(0, 16)))
    line = Rule("line", "on_line", ("a",), (("line", 0),), Scope(phases=(16,)))
    with pytest.raises(DataError, match="'a' would have to be on 64-byte lines 1 and 0"):
        StructRules("s", (at, line))
    StructRules("s", (at, replace(line, scope=Scope(phases=(0,)))))


def test_two_groups_for_one_struct_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    second = (
        '[[struct]]\nname = "file"\nline_bytes = [128]\n[[struct.rule]]\nid = "b"\nkind = "size"\nmax_bytes = 512\n'
    )
    path.write_bytes(b"\xef\xbb\xbf" + (RULE + 'id = "a"\nkind = "size"\nbytes = 256\n' + second).encode())
    done = kitlib("check", str(path), "file-5.8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 hold" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["guard", "file-5.8", "file", "--hot", " , "], "names no member"),
        (["guard", "file-5.8", "file", "--line-bytes", "٦٤"], "give whole numbers"),
        (["guard", "file-5.8", "file", "--as", "groups", "--hot", "f_op", "--line-bytes", "0"], "line size 0"),
        (["guard", "file-5.8", "file", "-o", os.devnull], "is no regular file"),
        (["guard", "file-5.8", "file", "-o", ""], "is no regular file"),
        (["scan", "linux-6.1", "--kind", "lok"], "kind 'lok' is not known; did you mean lock?"),
        (["scan", "linux-6.1", "--kind", "lock+readers"], "kind 'lock+readers' is not known"),
        (["scan", "linux-6.1", "--min-score", "nan"], "smallest score nan"),
        (["diff", "file-5.8", "file-5.8", "fi\x1b[2Jle"], "no struct 'fi\\x1b[2Jle'"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: list[str], message: str) -> None:
    refused(kitlib(*words), message)


def test_a_check_that_finds_nothing_to_check_does_not_pass() -> None:
    empty = LayoutList((), "empty.o", "test")
    with pytest.raises(NotFound, match=r"no struct in empty\.o: there is nothing to scan"):
        scan_source(empty)
    with pytest.raises(NotFound, match="nothing to compare"):
        diff_sources(empty, empty)
    with pytest.raises(DataError):
        ScanFilter(min_score=101)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_a_full_disk_is_one_line(tmp_path: Path, form: str) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text(HEAD + HOLDS)
    with open("/dev/full", "w") as full:
        refused(kitlib("check", str(rules), "file-5.8", "--format", form, stdout=full), "No space left on device")


def test_a_reader_that_went_away_is_no_pass(tmp_path: Path) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text(HEAD + HOLDS)
    read, write = os.pipe()
    os.close(read)
    done = kitlib("check", str(rules), "file-5.8", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_locale_without_the_letters_is_told() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    refused(kitlib("diff", "file-5.8", "file-5.8-patch", env=environment), "set PYTHONIOENCODING=utf-8")


def test_writing_leaves_devices_links_and_folders_as_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SourceError, match="is no regular file"):
        write_whole(pipe, "x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    with pytest.raises(SourceError, match="no Unicode text; nothing was written"):
        write_whole(target, "\ud800")
    assert target.read_text() == "new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe", "target"]


# -- layouts that are odd, not wrong ------------------------------------------------------------------

TIB = 1 << 40


def huge() -> Layout:
    return make_layout(f"users=atomic_t:4 n:4 huge:{TIB} refs=atomic_t:4 end:4", "big")


def test_a_member_of_a_tebibyte_takes_no_time_and_no_memory() -> None:
    before = huge()
    after = make_layout(f"x:8 users=atomic_t:4 n:4 huge:{TIB} refs=atomic_t:4 end:4", "big")
    change = {m.path: m for m in diff_layouts(before, after).members}
    assert change["huge"].gained == ("x",)
    assert change["users"].gained == ("x",)
    assert change["huge"].lines_after == (0, (TIB + 15) // 64)
    assert {leaf.path for leaf in outsiders(before, ("huge",), 64, 0)} == {"users", "n", "refs", "end"}
    budget = StructRules("big", (Rule("r", "lines", ("huge", "users"), (("max_lines", TIB // 64),)),))
    (found,) = evaluate(budget, before)
    assert (found.status, f"on {TIB // 64 + 1} lines" in found.message) == ("fail", True)
    made = StructRules("big", (Rule("r", "alone", ("huge",), allow=("users", "n", "refs", "end")),))
    assert "something new behind end" in static_asserts(made, before)


def test_lines_of_members_that_overlap_or_touch_are_counted_once() -> None:
    layout = make_layout("a:8 b:120 c:8 d:200 e:8", "s")
    for members, lines in ((["a", "b"], 2), (["a", "c"], 2), (["b", "c", "d"], 6), (["a", "e"], 2), (["d", "a"], 5)):
        rule = StructRules("s", (Rule("r", "lines", tuple(members), (("max_lines", lines),)),))
        tight = StructRules("s", (Rule("r", "lines", tuple(members), (("max_lines", lines - 1),)),))
        assert [o.status for o in evaluate(rule, layout)] == ["pass"]
        assert [o.status for o in evaluate(tight, layout)] == ["fail"]


def test_long_members_have_the_same_mates_as_short_ones() -> None:
    before = make_layout("a:8 b:8192 c:8 d:8", "s")
    after = make_layout("a:8 c:8 b:8192 d:8", "s")
    change = {m.path: m for m in diff_layouts(before, after).members}
    assert (change["b"].gained, change["b"].lost) == ((), ())
    assert (change["a"].gained, change["a"].lost) == (("c",), ())
    assert (change["c"].gained, change["c"].lost) == (("a",), ("d",))
    apart, close = make_layout("a:8 c:56 b:8192", "s"), make_layout("a:8 b:8192 c:56", "s")
    change = {m.path: m for m in diff_layouts(apart, close).members}
    assert (change["a"].gained, change["a"].lost) == (("b",), ("c",))
    assert (change["b"].gained, change["c"].gained) == (("a", "c"), ("b",))


def test_what_has_no_size_or_no_name_in_c_is_left_to_the_check() -> None:
    layout = make_layout("users=atomic_t:4 len:4 data=char:0", "s")
    base = replace(layout.members[1], name="ns::Base")
    layout = replace(layout, members=(layout.members[0], base, layout.members[2]))
    rules = tuple(Rule(f"on-{m}", "on_line", (m,), (("line", 0),)) for m in ("users", "ns::Base", "data"))
    text = static_asserts(StructRules("s", (*rules, Rule("kept", "alone", ("users",)))), layout)
    assert "on-data: data has no size" in text
    assert "on-ns::Base: ns::Base cannot be named in C" in text
    assert "Base" not in text.partition("Not expressible")[0]
    with pytest.raises(DataError, match="'data' cannot be in a cache-line group"):
        kernel_group(layout, ["data"], "hot")
    with pytest.raises(PlacementError, match="line size 48"):
        kernel_group(layout, ["users"], "hot", 48)


def test_a_rule_whose_member_vanished_is_not_written_as_a_comment() -> None:
    layout = make_layout("a:8 c:8")
    gone = Rule("gone", "no_straddle", ("b",))
    with pytest.raises(NotFound, match="rule 'gone': no member 'b'"):
        static_asserts(StructRules("s", (gone,)), layout)
    other_build = replace(gone, scope=Scope(config=("CONFIG_X",)))
    assert "gone: it is for some configurations only" in static_asserts(StructRules("s", (other_build,)), layout)


@pytest.mark.parametrize(
    "letter", ["\x00", "\x1b", "\uffff", "\ufffe", "\ud800", "\x7f", "\U0001f600", "<", '"', "]]>"]
)
def test_junit_is_xml_whatever_the_names_are(letter: str) -> None:
    layout = make_layout("a:8 b:8", f"s{letter}")
    group = StructRules(f"s{letter}", (Rule(f"r{letter}", "size", (), (("bytes", 1),), why=letter),))
    report = Report("r.toml", f"x{letter}", tuple(evaluate(group, layout)))
    xml.dom.minidom.parseString(to_junit(report).encode("utf-8"))


def test_cpp_objects_go_through_all_four(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    source = """
    namespace ns { struct Base { virtual ~Base() {} int refs; };
    template <class T> struct Box : Base { T value; struct { int in; }; union { long l; char c; }; int bits : 3; }; }
    ns::Box<int> one; ns::Box<ns::Box<char>> two;
    """
    path = str(compile_c(source, "-g", "-xc++"))
    rules = str(tmp_path / "r.toml")
    assert kitlib("guard", path, "ns::Box<int>", "--hot", "value", "--exclusive", "-o", rules).returncode == 0
    assert kitlib("check", rules, path).returncode == 0
    assert kitlib("diff", path, path).returncode == 0
    assert kitlib("scan", path).returncode in (0, 1)
    refused(kitlib("guard", path, "ns::Box<int>", "--hot", "value", "--as", "asserts"), "plain name")


def test_struct_names_of_the_shipped_sources_are_taken_with_the_keyword() -> None:
    rules = parse_rules(HEAD.replace('"file"', '"struct file"') + HOLDS)
    assert rules.structs[0].struct == "struct file"
    assert open_source("file-5.8").struct("struct file").name == "file"


def test_every_definition_of_a_name_is_checked(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    one = compile_c("struct node { int a; long b; } x;", "-g", name="one")
    two = compile_c("struct node { int a, c; long b, e; } y;", "-g", name="two")
    both = str(tmp_path / "both.o")
    subprocess.run(["ld", "-r", "-o", both, str(one), str(two)], check=True, timeout=60)
    rules = tmp_path / "r.toml"
    rules.write_text(HEAD.replace('"file"', '"node"') + '[[struct.rule]]\nkind = "size"\nmax_bytes = 16\n')
    assert kitlib("check", str(rules), str(one)).returncode == 0
    done = kitlib("check", str(rules), both)
    assert done.returncode == 1
    assert "definition 2 of 2 (24 bytes): struct node has 24 bytes, at most 16 allowed" in done.stdout
    named, whole = (diff_sources(open_source(both), open_source(str(one)), names) for names in (("node",), ()))
    assert [s.change for s in named.structs] == [s.change for s in whole.structs] == ["removed"]


def test_two_structs_of_one_name_in_a_list_and_in_btf() -> None:
    small, large = make_layout("a:8", "s"), make_layout("a:8 b:8", "s")
    union = replace(small, kind="union")
    listed = LayoutList((small, small, union, large), "two", "test")
    assert definitions(listed, "s") == [small, large]
    kernel = open_kernel("6.1")
    found = definitions(kernel, "irq_info")
    assert kernel.struct("irq_info") == found[0]
    assert found == [x for x in kernel.structs() if x.name == "irq_info"]
    assert len(found) == 3
    assert len(definitions(kernel, "struct file")) == 1


# -- what nothing else would notice -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_a_rule_that_cannot_be_evaluated_fails_the_check_on_the_command_line(tmp_path: Path, form: str) -> None:
    rules = tmp_path / "r.toml"
    gone = '[[struct.rule]]\nid = "gone"\nkind = "no_straddle"\nmembers = ["f_cont"]\n'
    rules.write_text(HEAD + gone + HOLDS)
    done = kitlib("check", str(rules), "file-5.8", "--format", form)
    assert (done.returncode, done.stderr) == (1, "")
    assert "did you mean f_count" in done.stdout
    rules.write_text(HEAD + HOLDS.replace("max_bytes", 'config = ["CONFIG_SMP"]\nmax_bytes'))
    assert kitlib("check", str(rules), "file-5.8", "--format", form).returncode == 1
    config = tmp_path / "config"
    config.write_text("CONFIG_OTHER=y\n")  # then no rule of the file applies: nothing was checked
    assert kitlib("check", str(rules), "file-5.8", "--format", form, "--config", str(config)).returncode == 1
    config.write_text("CONFIG_SMP=y\n")
    assert kitlib("check", str(rules), "file-5.8", "--format", form, "--config", str(config)).returncode == 0


def test_exclusive_rules_keep_newcomers_out() -> None:
    layout = make_layout("hot:8 warm:8 pad:48 far:8", "s")
    newcomer = make_layout("hot:8 warm:8 stat:8 pad:40 far:8", "s")
    for exclusive, expected in ((True, {"fail", "pass"}), (False, {"pass"})):
        group = write_rules(layout, ["hot"], exclusive=exclusive)
        assert {o.status for o in evaluate(group, layout)} == {"pass"}
        assert {o.status for o in evaluate(group, newcomer)} == expected


def test_lines_of_rules_are_left_out_where_they_cannot_be_told() -> None:
    quoted = '[["struct"]]\nname = "file"\n[[struct.rule]]\nkind = "size"\nbytes = 8\n'
    (group,) = parse_rules('format = "kitlib-rules"\nversion = 1\n' + quoted).structs
    assert (group.file_line, group.rules[0].file_line) == (0, 0)
    with pytest.raises(DataError, match=r"^x: rule '1': bytes must be"):
        parse_rules('format = "kitlib-rules"\nversion = 1\n' + quoted.replace("8", "true"), "x")


def test_the_boundary_parts_the_last_member_in_front_from_the_first_behind() -> None:
    inner = make_layout("a:8 b:8 c:8 d:8", "lock")
    holder = make_layout("x:48 lock:32", "s")
    holder = replace(holder, members=(holder.members[0], replace(holder.members[1], count=None, inner=inner)))
    assert halves(holder, "lock", 64) == ("lock.b", "lock.c")
    assert halves(holder, "lock", 64, 8) == ("lock.a", "lock.b")
    assert halves(holder, "lock", 128) is None
    assert halves(holder, "lock", 64, 4) is None  # the boundary cuts a member


def test_the_record_of_a_difference_by_hand() -> None:
    before, after = make_layout("a:8 b:40 d:16 c:8 e:8", "s"), make_layout("a:8 c:8 b:40 d:16 e:8", "s")
    record = diff_record(diff_layouts(before, after))
    rows = {m["path"]: m for m in record["members"]}
    assert rows["c"] == {
        "path": "c",
        "change": "moved",
        "offset": [64, 8],
        "size": [8, 8],
        "type": [before.member("c").type] * 2,
        "lines": [[1, 1], [0, 0]],
        "changed_line": True,
        "gained_mates": ["a", "b", "d"],
        "lost_mates": ["e"],
        "note": "",
        "heat": rows["c"]["heat"],
    }
    assert (rows["a"]["gained_mates"], rows["a"]["lost_mates"]) == (["c"], [])
    assert record["causes"] == ["c moved from behind d to behind a: -56 (offset 64 → 8)"]
    back = {m["path"]: m for m in diff_record(diff_layouts(after, before))["members"]}
    assert (back["a"]["gained_mates"], back["a"]["lost_mates"]) == ([], ["c"])


def test_the_table_of_differences_counts_members_by_hand() -> None:
    before, after = make_layout("a:8 b:64 c:8 d:4", "s"), make_layout("a:8 c:8 b:64 e:4", "s")
    result = diff_sources(LayoutList((before,), "a", "test"), LayoutList((after,), "b", "test"))
    cells = dict(zip(("score", "struct", "change", "before", "after", "line", "mates"), _cells(result), strict=False))
    # on another line: c only (b spans lines 0 and 1 on both sides); with new mates: all but d, which is gone
    assert {k: list(v) for k, v in cells.items() if k != "score"} == {
        "struct": ["s"],
        "change": ["changed"],
        "before": ["88"],
        "after": ["88"],
        "line": ["1"],
        "mates": ["4"],
    }


def _cells(result: SourceDiff) -> list[list[str]]:
    values: list[list[str]] = diff_table(result).data[0].cells["values"]
    return values


@pytest.mark.parametrize(("program", "status"), [("mm-5.12", 0), ("mm-5.13-seq", 1)])
def test_the_commands_of_the_workflow_example_run(tmp_path: Path, program: str, status: int) -> None:
    text = path_of("examples/layout-check.yml").read_text()
    lines = [line.strip().removeprefix("run: ") for line in text.splitlines() if "kitlib check" in line]
    assert len(lines) == 3
    rules = str(path_of("rules/mm_struct.toml"))
    shell = f'kitlib() {{ {sys.executable} -c "from kitlib.cli import main; main()" "$@"; }}\n'
    results = []
    for line in lines:
        command = line.replace("layout-rules.toml", rules).replace("build/program", program)
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        done = subprocess.run(
            ["bash", "-c", shell + command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        results.append(done.returncode)
    assert results == [status, 0, 0]  # the reports are written whatever the rules say
    assert json.loads((tmp_path / "layout.sarif").read_text())["version"] == "2.1.0"
    xml.dom.minidom.parse(str(tmp_path / "layout-junit.xml"))
