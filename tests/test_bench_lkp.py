"""0-day/LKP tables: every row, in every disguise mail puts on them."""

from __future__ import annotations

import binascii
import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitlib import benchfiles
from kitlib.benchfiles.lkprow import Broken, Row, parse_row
from kitlib.benchfiles.mailtext import dequote
from kitlib.datafiles import path
from kitlib.errors import SourceError
from kitlib.series import Delta, Report, Table, Value, runs_from_fractions

ROBOT = path("benchmarks/struct-file-5.8-robot.txt").read_text("utf-8")
ROWS_COUNTED_BY_HAND = 172  # lines between the header and the first plot, counted with an editor

HEAD = """\
=========================================================================================
compiler/tbox_group/test/testcase:
  gcc-13/box/one/will-it-scale

commit:
  1111111111 ("base")
  2222222222 ("new")

1111111111111111 222222222222222222222222222
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
"""


def rows_of(table: Table) -> list[Delta]:
    """Rows without what depends on where they stand in the text."""
    return [replace(row, line=0) for row in table.rows]


def lkp(text: str) -> Table:
    tables = [t for t in benchfiles.read_text(text).tables if t.kind == "lkp"]
    assert len(tables) == 1
    return tables[0]


def small(*rows: str) -> Report:
    return benchfiles.read_text(HEAD + "\n".join(rows) + "\n")


def test_every_row_is_there() -> None:
    report = benchfiles.read_text(ROBOT)
    assert len(lkp(ROBOT).rows) == ROWS_COUNTED_BY_HAND
    assert report.unread == ()


@pytest.mark.parametrize(
    ("metric", "before", "spread", "change", "after", "spread_after"),
    [
        ("unixbench.score", 2297, 2, "+32.3%", 3038, None),
        ("unixbench.workload", 1.366e9, None, "+32.6%", 1.812e9, None),
        ("cpuidle.C1.usage", 26472, 6, "+1270.0%", 362665, 158),
        ("mpstat.cpu.all.usr%", 0.25, 2, "+0.1", 0.33, None),
        ("perf-profile.self.cycles-pp.dnotify_flush", 13.91, 6, "-13.9", 0.0, None),
        ("perf-stat.i.node-load-misses", 4460149, 2, "-45.1%", 2447884, 14),
        ("interrupts.34:PCI-MSI.524292-edge.eth0-TxRx-3", 288, 13, "+8910.9%", 25951, 168),
        ("numa-meminfo.node0.Inactive(anon)", 10962, 12, "-72.3%", 3032, 105),
    ],
)
def test_rows_read_by_eye(
    metric: str, before: float, spread: float | None, change: str, after: float, spread_after: float | None
) -> None:
    row = next(row for row in lkp(ROBOT).rows if row.metric == metric)
    assert (row.before.mean, row.after.mean, row.printed_change) == (before, after, change)
    assert row.before.spread_pct == (spread if spread is not None else 2.0)
    assert row.before.spread_kind == ("printed" if spread is not None else "at most")
    if after:
        assert row.after.spread_pct == (spread_after if spread_after is not None else 2.0)
    assert row.absolute == (not change.endswith("%"))


def test_all_printed_changes_follow_from_their_values() -> None:
    checks = [row.printed_check for row in lkp(ROBOT).rows]
    assert checks.count("same") == 138
    assert checks.count("within rounding") == 34  # 0.04 -> 0.05 as +21.3 %, and the like


def test_a_wrong_printed_change_is_flagged_and_not_corrected() -> None:
    report = small("   100.00 ±  3%     +25.0%     110.00 ±  3%  a.b", "   100.00            +10.0%     110.00   a.c")
    first, second = report.tables[0].rows
    assert first.printed_check == "does not follow"
    assert (first.printed_change, first.change_pct) == ("+25.0%", pytest.approx(10))
    assert second.printed_check == "same"


def test_whole_numbers_are_cut_not_rounded() -> None:
    row = small("    496.00 ± 19%    +366.1%       2311 ± 29%  numa-vmstat.node2.nr_shmem").tables[0].rows[0]
    assert row.after.high == 2312
    assert row.printed_check == "within rounding"


def collapse(text: str) -> str:
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines())


def quote(text: str, mark: str = "> ") -> str:
    return "\n".join(mark + line for line in text.splitlines())


def wrapped(text: str) -> str:
    """The metric alone on the next line, as mailers wrap."""
    return re.sub(r"(?m)^(\s*[\d.e+:]+ .*?)\s+(\S+\.\S+)$", r"\1\n\2", text)


def quoted_printable(text: str) -> str:
    lines = []
    for line in text.encode().splitlines():
        lines.append(binascii.b2a_qp(line).decode())
    return "Content-Transfer-Encoding: quoted-printable\n\n" + "\n".join(lines) + "\n"


def with_prose(text: str) -> str:
    lines = []
    for number, line in enumerate(text.splitlines()):
        lines.append("> " + line)
        if number % 17 == 13:
            lines += ["", "This row is the one that I meant, 5 of them look the same.", ""]
    return "\n".join(lines)


DISGUISES = {
    "quoted": quote(ROBOT),
    "quoted three times": quote(quote(ROBOT), ">> "),
    "collapsed": collapse(ROBOT),
    "collapsed and quoted": quote(collapse(ROBOT)),
    "mojibake": quote(ROBOT.replace("±", "Â")),
    "mojibake with its tail": ROBOT.replace("±", "Â±"),
    "Latin-2": ROBOT.replace("±", "ą"),
    "transliterated": ROBOT.replace("±", "A+-"),
    "plain ASCII": ROBOT.replace("±", "+-"),
    "octal escape": ROBOT.replace("±", "\\261"),
    "replacement character": ROBOT.replace("±", "\ufffd"),
    "sign lost": ROBOT.replace("±", " "),
    "sign lost, collapsed": collapse(ROBOT.replace("±", "  ")),
    "no-break spaces": ROBOT.replace(" ", "\u00a0"),
    "tabs": re.sub(r"(?m)(?<=\S)  +(?=\S)", "\t", ROBOT),
    "carriage returns": ROBOT.replace("\n", "\r\n"),
    "wrapped": wrapped(ROBOT),
    "quoted-printable": quoted_printable(ROBOT),
    "prose between": with_prose(ROBOT),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_same_rows_in_every_disguise(name: str) -> None:
    assert DISGUISES[name] != ROBOT
    table = lkp(DISGUISES[name])
    assert rows_of(table) == rows_of(lkp(ROBOT))
    assert benchfiles.read_text(DISGUISES[name]).unread == ()


def test_latin_1_and_utf_16_bytes(tmp_path: object) -> None:
    from io import BytesIO

    for encoding in ("latin-1", "utf-16"):
        report = benchfiles.read_stream(BytesIO(ROBOT.encode(encoding)), encoding)
        assert rows_of(report.tables[0]) == rows_of(lkp(ROBOT))


def test_soft_line_break_inside_a_name() -> None:
    text = (
        quoted_printable(HEAD)
        + "> 31.64 =C2=B1  8%  +3.4  35.08 =C2=B1  5%  perf-profile.self.cycles-pp.__fget_f=\n> iles\n"
    )
    assert lkp(text).rows[0].metric == "perf-profile.self.cycles-pp.__fget_files"


def test_a_quoted_copy_counts_once() -> None:
    report = benchfiles.read_text(ROBOT + "\nand then\n\n" + quote(collapse(ROBOT)))
    (table,) = report.tables
    assert len(table.rows) == ROWS_COUNTED_BY_HAND
    assert len(table.also_at) == 1
    assert len(report.plots) == 2


def test_a_quoted_part_counts_once() -> None:
    part = "\n".join("> " + line for line in ROBOT.splitlines()[12:18])
    (table,) = benchfiles.read_text(ROBOT + "\nOn this one:\n" + part + "\n").tables
    assert len(table.rows) == ROWS_COUNTED_BY_HAND


def test_three_commits_compare_with_the_first() -> None:
    text = HEAD.replace("2222222222222", "2222222222222 3333333333333333333333333333").replace(
        "---------------------------\n", "--------------------------- ---------------------------\n"
    )
    text = text.replace("%change         %stddev", "%change         %stddev     %change         %stddev")
    report = benchfiles.read_text(
        text + "  100.00 ±  3%  +10.0%  110.00  -20.0%  80.00 ± 4%  a.b\n  5.00  +0.0%  5.00  c.d\n"
    )
    assert [t.rows[0].change_pct for t in report.tables] == [pytest.approx(10), pytest.approx(-20)]
    assert report.tables[1].rows[0].before.mean == 100
    assert [(u.line, u.reason) for u in report.unread] == [(14, "2 of 3 columns")]


def test_several_test_cases_in_one_mail() -> None:
    second = HEAD.replace("/one/", "/two/")
    text = HEAD + "  1.00  +10.0%  1.10  a.b\n\n" + second + "  1.00  +20.0%  1.20  a.b\n"
    tables = benchfiles.read_text(text).tables
    assert [dict(t.parameters)["test"] for t in tables] == ["one", "two"]


def test_failing_runs() -> None:
    head = HEAD.replace("%stddev     %change         %stddev", "fail:runs  %reproduction    fail:runs")
    rows = (
        "           :60          50%          30:60    dmesg.BUG:at#",
        "         1:4          -25%            :4     dmesg.x",
    )
    text = head + "\n".join(rows) + "\n"
    first, second = benchfiles.read_text(text).tables[0].rows
    assert (first.before.events, first.before.n, first.after.events, first.after.n) == (0, 60, 30, 60)
    assert first.absolute
    assert first.change_abs == 50
    assert second.change_abs == -25


def test_reproduction_is_recomputed_from_the_counts() -> None:
    head = HEAD.replace("%stddev     %change         %stddev", "fail:runs  %reproduction    fail:runs")
    (row,) = benchfiles.read_text(head + "   2:4          100%          6:10    dmesg.x\n").tables[0].rows
    assert row.change_abs == pytest.approx(10)
    assert row.printed_check == "does not follow"


def test_zero_and_negative_bases() -> None:
    report = small(
        "      0.00          +5.2e+105%     5.17 ± 20%  a.zero",
        "     -5.00 ±  3%     +20.0%      -6.00        a.negative",
        "      0.00 ± -1%      +Inf%       0.10        a.inf",
        "      5.00            -0.5        4.50        a.rate%",
    )
    zero, negative, infinite, rate = report.tables[0].rows
    assert zero.change_pct is None
    assert zero.change_abs == pytest.approx(5.17)
    assert zero.printed_check == "cannot be checked"
    assert negative.change_pct == pytest.approx(-20)  # it fell; the tool prints a rise
    assert negative.printed_check == "same"
    assert infinite.before.spread_pct is None
    assert rate.absolute
    assert rate.change_abs == pytest.approx(-0.5)


def test_old_headers_and_totals() -> None:
    text = """
  1111111111111111  2222222222222222
  ----------------  ----------------
         %stddev      change         %stddev
    254610 ~ 4%     +23.5%     314467 ~ 1%  brick/aim7/2000-shared
    100000          +10.0%     110000       brick/aim7/sort
    354610          +19.7%     424467       TOTAL aim7.jobs-per-min
"""
    rows = lkp(text).rows
    assert [row.metric for row in rows] == ["aim7.jobs-per-min"] * 3
    assert [row.group for row in rows] == ["brick/aim7/2000-shared", "brick/aim7/sort", ""]
    assert [row.total for row in rows] == [False, False, True]
    assert rows[0].before.spread_pct == 4
    assert rows[1].before.spread_pct == 3  # the older tool's threshold


def test_unreadable_rows_are_listed_with_their_lines() -> None:
    report = small("  1.00 ± 2%  +10.0%  1.10  a.b", "  1.00 ± 2%  +10.0%  3O.10  a.c", "  1.00 ± 2%  wobbly  1.1  a.d")
    assert [u.line for u in report.unread] == [14, 15]
    assert "3O.10" in report.unread[0].reason
    assert len(report.tables[0].rows) == 1


@pytest.mark.parametrize("cut", range(3, 60))
def test_cut_mid_row_never_passes_unnoticed(cut: int) -> None:
    row = "    8.32 ± 43%    +129.7%      19.12 ± 63%  sched_debug.cpu.clock.stddev"
    text = HEAD + "  1.00 ± 2%  +10.0%  1.10  a.b\n" + row[:cut]
    report = benchfiles.read_text(text)
    words = row[:cut].split()
    if len(words) < 2:
        assert len(report.tables[0].rows) == 1  # a lone number could be anything
    elif row[:cut].rstrip() and re.search(r"%  s", row[:cut]):
        assert len(report.tables[0].rows) == 2  # cut inside the name: it cannot be told
    else:
        assert report.cut_at == 14 or report.unread


def test_labels_and_headline() -> None:
    claim = "FYI, we noticed a -9.2% regression of will-it-scale.per_thread_ops due to commit:\n\nin testcase: x\n"
    table = benchfiles.read_text(claim + HEAD + "  1.00  +10.0%  1.10  a.b\n").tables[0]
    assert (table.headline, table.claim) == ("will-it-scale.per_thread_ops", "-9.2% regression")
    assert (table.before_label, table.after_label) == ('1111111111 ("base")', '2222222222 ("new")')
    assert table.testcase == "will-it-scale"


def test_number_of_runs_from_fractions() -> None:
    table = lkp(ROBOT)
    assert {row.before.n for row in table.rows} == {4}
    assert table.n_source.startswith("inferred: 4 before and 4 after")
    thirds = [f"  {i + third / 3:.2f}  +10.0%  {1.1 * i:.2f}  interrupts.CPU{i}.x" for i, third in ((1, 1), (2, 2))]
    assert lkp(HEAD + "\n".join(thirds) + "\n").n_source == "not stated"  # two fractions could be chance


METRICS = st.from_regex(r"[a-z]{1,8}(\.[a-zA-Z0-9_:()]{1,9}){1,3}", fullmatch=True)


@given(
    st.lists(
        st.tuples(
            st.floats(0.01, 1e12), st.one_of(st.none(), st.integers(3, 200)), st.floats(-90, 900),
            st.one_of(st.none(), st.integers(3, 200)), METRICS,
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda row: row[4],
    ),
    st.integers(0, 3),
    st.booleans(),
)  # fmt: skip
def test_what_the_writer_prints_is_read_back(
    rows: list[tuple[float, int | None, float, int | None, str]], depth: int, collapsed: bool
) -> None:
    lines = [row_text(*row) for row in rows]
    text = HEAD + "\n".join(lines) + "\n"
    if collapsed:
        text = collapse(text) + "\n"
    for _ in range(depth):
        text = quote(text) + "\n"
    table = lkp(text)
    assert [row.metric for row in table.rows] == [row[4] for row in rows]
    for row, (before, spread, change, _, _) in zip(table.rows, rows, strict=True):
        assert row.before.low <= before * 1.0000001
        assert before <= row.before.high * 1.0000001
        assert row.before.spread_pct == (spread if spread is not None else 2.0)
        assert row.printed_change == f"{change:+.1f}%"


def row_text(before: float, spread: int | None, change: float, spread_after: int | None, name: str) -> str:
    after = before * (1 + change / 100)
    sides = [mean_text(before), mean_text(after)]
    spreads = ["" if s is None else f" ±{s:3d}%" for s in (spread, spread_after)]
    return f"{sides[0]:>10}{spreads[0]:6}{change:>+9.1f}% {sides[1]:>10}{spreads[1]:6}  {name}"


def mean_text(value: float) -> str:
    if value < 1000:
        return f"{value:.2f}"
    return f"{value:.4g}" if value > 1e8 else str(int(value))


@given(
    st.lists(
        st.sampled_from(["1.5", "±", "3%", "+2%", "-0.1", "x.y", ":4", "2:4", "TOTAL", "(", "nan", "é"]), max_size=14
    )
)
def test_any_tokens_give_a_row_or_a_reason(tokens: list[str]) -> None:
    parsed = parse_row(list(tokens))
    assert isinstance(parsed, (Row, Broken))
    if isinstance(parsed, Row):
        assert len(parsed.cells) == len(parsed.changes) + 1
    else:
        assert parsed.reason


@given(st.text(alphabet="> abc", max_size=30))
def test_dequote_takes_only_marks_and_spaces(text: str) -> None:
    depth, rest = dequote(text)
    assert text.endswith(rest)
    assert set(text[: len(text) - len(rest)]) <= {">", " "}
    assert not rest.lstrip().startswith(">")
    assert depth == text[: len(text) - len(rest)].count(">")


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_loses_no_line(seed: int) -> None:
    """Rows with a damaged character are read, listed as unread, or no longer look like a row at all."""
    draw = random.Random(seed)
    lines = ROBOT.splitlines()[12:184]
    damaged = []
    for line in lines:
        at = draw.randrange(len(line))
        damaged.append(line[:at] + draw.choice("x%+§") + line[at + 1 :])
    report = benchfiles.read_text("\n".join([*ROBOT.splitlines()[:12], *damaged]) + "\n")
    seen = sum(len(t.rows) for t in report.tables) + len(report.unread)
    assert seen >= len(lines) - 6


def test_no_table_at_all() -> None:
    with pytest.raises(SourceError, match="no benchmark figures in 2 lines"):
        benchfiles.read_text("Hello,\nnothing here\n")
    with pytest.raises(SourceError, match=r"claims '9\.2% regression' \(line 1\)"):
        benchfiles.read_text("the robot reported a 9.2% regression for mmap1\n")


@pytest.mark.parametrize("sign", ["&plusmn;", "?", "ñ", "Ã\x82Â±"])
def test_more_ways_to_lose_the_sign(sign: str) -> None:
    """A page's source, a character set without it, the DOS code page, and UTF-8 taken for Latin-1 twice."""
    report = benchfiles.read_text(ROBOT.replace("±", sign))
    assert len(report.tables[0].rows) == 172
    assert not report.unread


def test_a_row_without_its_name_before_prose_is_listed() -> None:
    text = ROBOT.replace("       3038        unixbench.score\n", "       3038\n\nWe think that this is good.\n")
    report = benchfiles.read_text(text)
    assert [(u.line, u.reason) for u in report.unread] == [(13, "cut off before the metric's name")]
    assert len(report.tables[0].rows) == 171


def test_a_quoted_copy_is_found_among_many_like_it() -> None:
    """Thirty test cases that share a row; the last one is quoted again in a reply."""
    head = ROBOT.split("      2297")[0]
    cases = [f"{head} 2.50 +1.0% 2.53 a.same\n {i}.50 +4.0% {i}.90 a.own\n" for i in range(10, 40)]
    report = benchfiles.read_text("\n".join(cases) + "\n" + cases[-1].replace("\n", "\n> "))
    assert len(report.tables) == 30
    assert [bool(table.also_at) for table in report.tables] == [False] * 29 + [True]


@pytest.mark.parametrize("telling", [3, 4])
def test_runs_are_inferred_from_four_fractions_on(telling: int) -> None:
    means = [Value(x) for x in (1.25, 2.5, 7.75, 3.25)[:telling] + (8.0,) * 5]
    names = ["interrupts.a"] * len(means)
    assert runs_from_fractions(names, means) == (None if telling < 4 else (4, 9))
