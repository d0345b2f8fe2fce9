"""The history of struct file, two changes with and without each other, causes excluded, and sentences from data."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kitlib import causes, interaction
from kitlib.cases import open_case
from kitlib.errors import DataError, NotFound, ToolError
from kitlib.history import History, Move, changes_table, measured_table, move_of, read_history, states_table
from kitlib.prose import Prose, say, show_or_why
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.verdict import judge_report

# kernel, size, lines, member, offset, and whether f_mode, f_op, f_inode and f_flags are on its 64-byte line
STATES = """
5.8         256 4 f_count  56 no  yes yes no
5.8+patch   256 4 f_count 248 no  no  no  no
6.1         232 4 f_count  56 no  yes yes no
6.5         232 4 f_count  24 yes no  no  no
6.12        184 3 f_count   0 yes yes yes yes
6.14        184 3 f_ref     0 yes yes yes yes
6.15        184 3 f_ref   176 no  no  no  no
"""


@pytest.fixture(scope="module")
def history() -> History:
    found = read_history("struct-file")
    return dataclasses.replace(found, states=tuple(s for s in found.states if s.step.label != "here"))


def test_where_the_count_was(history: History) -> None:
    columns = ["size", "64-byte lines", "member", "offset", *(f"with {w}" for w in history.watch)]
    rows = states_table(history)[columns].astype(str).reset_index().to_numpy().tolist()
    assert [[row[0].replace(" ", ""), *row[1:]] for row in rows] == [
        line.split() for line in STATES.split("\n") if line
    ]


def test_who_moved_what(history: History) -> None:
    table = changes_table(history)
    assert table.loc["5.8 + patch", "moved"] == "f_count"
    assert table.loc["6.1", "moved"] == "nothing"  # compared with 5.8, not with the patch that was only proposed
    assert table.loc["6.15", ["moved", "by", "commit"]].tolist() == ["f_owner, f_ref", "Pan Deng", "e249056c91a2"]
    assert table.loc["6.14", ["new", "gone"]].tolist() == ["f_ref", "f_count"]


def test_figures_are_those_of_the_review_cases(history: History) -> None:
    table = measured_table(history)
    assert "5,772,268" in table.loc["6.5", "figure"].iloc[0]
    assert table.loc["6.12", "verdict"] == "not measured"
    assert set(table.loc["6.15", "benchmark"]) == {"application", "micro-benchmark"}


def test_the_idea_of_2020_came_back(history: History) -> None:
    first, second = move_of(history, "5.8 + patch"), move_of(history, "6.15")
    assert (first.last, second.last) == (True, True)
    assert first.gone == ("f_op", "f_inode")
    assert second.gone == ("f_mode", "f_op", "f_inode", "f_flags")
    assert second.sentence().startswith("f_ref went from byte 0 to byte 176, the end of the struct")
    assert Move("x", "a", 8, 8, (), ("b",), last=False).sentence() == (
        "a stayed at byte 8; it left the line of none of those watched and is now beside b"
    )
    with pytest.raises(NotFound, match=r"did you mean .*6\.15"):
        move_of(history, "6.16")


def test_a_kernel_without_types_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitlib.btf.RUNNING", Path("/nonexistent/vmlinux"))
    assert "not here: here (running: this kernel does not publish its types" in read_history("struct-file").note


# -- two changes ---------------------------------------------------------------------------------------


def test_the_square_has_an_empty_cell() -> None:
    cells = interaction.square()
    assert cells.layout is None
    assert (round(cells.add_pct, 1), round(cells.both_pct, 1)) == (29.0, 132.0)
    assert interaction.square_table(cells).iloc[0, 2] == "not measured"
    assert cells.layout_if_independent == pytest.approx(cells.neither * cells.both / cells.add)


def test_joining_the_bases_would_turn_a_gain_into_a_loss() -> None:
    cells, other = interaction.square(), interaction.other_base()
    assert round(other.change_pct, 1) == 42.2
    assert other.after < cells.neither
    assert "a change of -22.9 %" in interaction.why_not_joined(cells, other)
    with pytest.raises(DataError, match="no figure"):
        interaction.other_base("Ryzen")


def test_agreement_follows_the_figures() -> None:
    cells = interaction.square()
    near = [interaction.Predicted(c, 1.0, p, 0.0) for c, p in ((interaction.ADD, 25.0), (interaction.BOTH, 40.0))]
    assert interaction.agreement(cells, near).count("near") == 1
    assert interaction.agreement(cells, near).count("far off") == 1


# -- causes --------------------------------------------------------------------------------------------


def test_causes_follow_from_runs_and_layouts() -> None:
    from kitlib.benchfiles import read

    rows = judge_report(read(open_case("iversion-2018").evidence[0].files[0]))[0].rows
    assert causes.chance(rows[0]).status == "excluded"
    one = interaction.case(interaction.CASE).tables()[0]
    from kitlib.verdict import judge

    assert causes.chance(judge(one).rows[0]).status == "open"
    inode = open_source("inode-4.16").struct("inode")
    same = causes.data_layout(inode, inode)
    moved = causes.data_layout(make_layout("a:8 b:8"), make_layout("b:8 a:8"))
    assert (same.status, moved.status) == ("excluded", "open")
    assert causes.verdict([same, moved]) == "excluded: data layout; open: data layout"


def test_two_builds_need_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError):
        causes.two_builds()
    shown = show_or_why(causes.two_builds)
    assert isinstance(shown, Prose)
    assert "a C compiler is needed" in repr(shown)


# -- sentences -----------------------------------------------------------------------------------------


def test_values_are_text_in_pages() -> None:
    html = say("`{name}` at {x}", "exact", name="<b>`", x="<img src=x>")._repr_html_()
    assert "<code>&lt;b&gt;&#x27;</code>" in html
    assert "<img" not in html
    assert "kit-exact" in html
    assert repr(say("a", "model") + say("b")) == "a [model]\n\nb"


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        show_or_why(lambda: 1 / 0)
