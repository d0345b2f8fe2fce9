"""Rule files: what is read, what is refused and where the message points, and which rules exclude each other."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib.baseline import snapshot
from kitlib.errors import DataError
from kitlib.promise import write_rules
from kitlib.rulefile import parse_rules, read_rules, rules_to_toml
from kitlib.rules import Rule, Scope, StructRules
from kitlib.shorthand import make_layout

HEAD = 'format = "kitlib-rules"\nversion = 1\n[[struct]]\nname = "s"\n'


def rule(kind: str, *members: str, id: str = "", **numbers: int) -> Rule:
    return Rule(id or f"{kind}-{'-'.join(members)}-{len(numbers)}", kind, members, tuple(numbers.items()))


def test_malformed_toml_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(HEAD + "[[struct.rule]]\nkind = = 1\n")
    with pytest.raises(DataError, match=r"rules\.toml: not TOML: .*line 6, column 8"):
        read_rules(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a rules file starts with format"),
        ('format = "kitlib-rules"\nversion = 2\n', "version = 1"),
        ('format = "kitlib-rules"\nversion = 1\n', "nothing would be checked"),
        (HEAD, "nothing would be checked"),
        (
            HEAD + '[[struct.rule]]\nkind = "apart"\nmembers = ["a"]\n',
            r"line 5: rule '1': .*takes at least 2 members, not 1",
        ),
        (HEAD + '[[struct.rule]]\nkind = "apert"\nmembers = ["a", "b"]\n', "line 5: .*kind 'apert' is not known"),
        (HEAD + '[[struct.rule]]\nkind = "at"\nmembers = ["a"]\n', "needs offset"),
        (HEAD + '[[struct.rule]]\nkind = "at"\nmembers = ["a"]\noffset = "8"\n', "offset must be a whole number"),
        (
            HEAD + '[[struct.rule]]\nkind = "at"\nmembers = ["a"]\noffset = 8\nmax_lines = 1\n',
            "does not take max_lines",
        ),
        (
            HEAD + '[[struct.rule]]\nkind = "no_straddle"\nmember = ["a"]\n',
            "key 'member' is not known; did you mean members",
        ),
        (HEAD + '[[struct.rule]]\nkind = "no_straddle"\nmembers = ["a"]\nline_bytes = [48]\n', r"line_bytes \[48\]"),
        (HEAD + '[[struct.rule]]\nkind = "no_straddle"\nmembers = ["a"]\nphases = [64]\n', "phase 64 is outside"),
        (HEAD + '[[struct.rule]]\nkind = "no_straddle"\nmembers = ["a"]\nabi = ["vax"]\n', "abi 'vax' is not known"),
        (HEAD + '[[struct.rule]]\nkind = "no_straddle"\nmembers = ["a"]\nallow = ["b"]\n', "does not take allow"),
        (HEAD + '[[struct.rule]]\nkind = "size"\nbytes = 8\nmax_bytes = 9\n', "needs bytes or max_bytes"),
    ],
)
def test_wrong_rules_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_rules(text)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such rules file; write one with 'kitlib guard"):
        read_rules(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([rule("apart", "a", "b"), rule("together", "a", "b")], "cannot be both on one 64-byte line and apart"),
        ([rule("together", "a", "b"), rule("together", "b", "c", id="t2"), rule("apart", "a", "c")], "apart"),
        ([rule("at", "a", offset=8), rule("at", "a", offset=16, id="x")], "'a' cannot be at 8 and 16"),
        ([rule("at", "a", offset=8), rule("on_line", "a", line=1)], "64-byte lines 0 and 1"),
        ([rule("on_line", "a", line=0), rule("on_line", "b", line=1), rule("together", "a", "b")], "lines 0 and 1"),
        ([rule("on_line", "a", line=1), rule("on_line", "b", line=1), rule("apart", "a", "b")], "both placed on"),
        ([rule("straddle", "a"), rule("no_straddle", "a")], "must and must not cross a 64-byte boundary"),
        ([rule("straddle", "a"), rule("on_line", "a", line=0)], "must and must not cross"),
        ([rule("alone", "a"), rule("together", "a", "b")], "'b' must share the line that is kept for a"),
        ([rule("size", bytes=64), rule("size", max_bytes=32, id="m")], "cannot be 64 and at most 32"),
        ([rule("size", max_bytes=32), rule("at", "a", offset=32)], "offset 32 is outside 32 bytes"),
    ],
)
def test_contradictions_are_found(rules: list[Rule], message: str) -> None:
    with pytest.raises(DataError, match=message):
        StructRules("s", tuple(rules))


def test_a_member_is_never_apart_from_what_it_holds() -> None:
    with pytest.raises(DataError, match="can never be apart"):
        rule("apart", "lock", "lock.owner")


def test_rules_for_different_lines_or_builds_do_not_contradict_each_other() -> None:
    apart, together = rule("apart", "a", "b"), rule("together", "a", "b")
    wide = Rule("w", "together", ("a", "b"), (), Scope((128,)))
    StructRules("s", (apart, wide))
    other = Rule("o", together.kind, together.members, (), Scope(config=("CONFIG_X",)))
    without = Rule("n", "apart", ("a", "b"), (), Scope(config=("!CONFIG_X",)))
    StructRules("s", (other, without))
    with pytest.raises(DataError, match="contradictory"):
        StructRules("s", (apart, other))  # both hold when CONFIG_X is on


def test_messages_of_contradictions_give_both_lines() -> None:
    text = HEAD + (
        '[[struct.rule]]\nid = "x"\nkind = "apart"\nmembers = ["a", "b"]\n'
        '[[struct.rule]]\nid = "y"\nkind = "together"\nmembers = ["a", "b"]\n'
    )
    with pytest.raises(DataError, match=r"rules 'y' and 'x' \(lines 9 and 5\) are contradictory"):
        parse_rules(text)


def test_the_line_of_each_rule_is_known() -> None:
    text = (
        HEAD
        + '[[struct.rule]]\nkind = "no_straddle"\nmembers = ["a"]\n\n[[struct.rule]]\nkind = "size"\nmax_bytes = 9\n'
    )
    (group,) = parse_rules(text).structs
    assert [r.file_line for r in group.rules] == [5, 9]


sizes = st.lists(st.sampled_from([1, 2, 4, 8, 24]), min_size=2, max_size=24)


@settings(max_examples=60, deadline=None)
@given(sizes, st.sampled_from([(64,), (32, 128)]), st.booleans(), st.data())
def test_rules_survive_being_written_and_read(
    members: list[int], lines: tuple[int, ...], exclusive: bool, data: st.DataObject
) -> None:
    layout = make_layout(" ".join(f"m{i}:{size}" for i, size in enumerate(members)))
    hot = data.draw(st.lists(st.sampled_from([m.name or "" for m in layout]), min_size=1, max_size=4, unique=True))
    group = write_rules(layout, hot, line_bytes=lines, exclusive=exclusive, source='a "quoted"\\ label\t')
    (back,) = parse_rules(rules_to_toml([group], 'why "not"')).structs
    strip = [Rule(r.id, r.kind, r.members, r.numbers, r.scope, r.why, 0, r.allow) for r in back.rules]
    assert (back.struct, tuple(strip), back.baseline) == (group.struct, group.rules, group.baseline)
    assert back.baseline == snapshot(layout, group.paths, group.baseline.source if group.baseline else "")


WHOLE = (
    rules_to_toml([write_rules(make_layout("a:8 lock=spinlock_t:4 b:60 c:8"), ["lock", "c"], exclusive=True)])
    + "inside = []\n"
)
VALUES = [
    "[]",
    "{}",
    "true",
    "-1",
    "1e9",
    '"x"',
    "[1]",
    '["a"]',
    "[[1]]",
    "10000000000000000000000",
    '[["a", 1, -2, "t"]]',
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_rules_file_does_worse_than_one_message(data: st.DataObject) -> None:
    lines = WHOLE.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        if equals and data.draw(st.booleans()):
            lines[at] = f"{key} = {data.draw(st.sampled_from(VALUES))}"
        else:
            cut = data.draw(st.integers(0, len(lines[at])))
            lines[at] = (
                lines[at][:cut] + data.draw(st.sampled_from(["", "\x00", "]", '"', "= 1", "é"])) + lines[at][cut + 1 :]
            )
    with contextlib.suppress(DataError):  # any other exception fails the test
        parse_rules("\n".join(lines))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DataError, match="nested too deep"):
        parse_rules("a = " + "[" * 100_000)
