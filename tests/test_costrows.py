"""Rows of predicted cost beside an explorer, and the button that measures."""

from __future__ import annotations

import pytest

from kitlib.access import load_profile
from kitlib.calibrate import Calibration
from kitlib.cost import cost
from kitlib.costrows import MEAN, change, cost_rows
from kitlib.edit import Remove, apply
from kitlib.errors import NotFound
from kitlib.explore_measure import MeasureButton
from kitlib.machine import load_machine
from kitlib.measurefile import load_measurement
from kitlib.published import published_rows, published_words
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.topology import Topology

BEFORE, AFTER = (open_source(s).struct("file") for s in ("file-5.8", "file-5.8-patch"))
PROFILE, MACHINE = load_profile("struct_file"), load_machine("zen-5-vm")


def test_rows_are_the_models_own_figures() -> None:
    rows = {row["path"]: row for row in cost_rows(PROFILE, MACHINE, BEFORE)(AFTER)}
    now, was = cost(AFTER, PROFILE, MACHINE), cost(BEFORE, PROFILE, MACHINE)
    assert list(rows) == [*(p.name for p in now.paths), MEAN]
    assert rows["fget"]["shared by 24, ns"] == f"{now.paths[0].shared_ns:.0f}"
    assert rows[MEAN]["change shared"] == f"{round(100 * (now.shared_ns / was.shared_ns - 1)):+d} %"
    assert rows[MEAN]["change cold"] == ""


def test_nothing_changes_against_itself() -> None:
    rows = cost_rows(PROFILE, MACHINE, BEFORE)(BEFORE)
    assert {row[key] for row in rows for key in row if key.startswith("change")} == {""}


def test_a_layout_without_a_member_says_so_and_a_base_without_one_is_refused() -> None:
    (row,) = cost_rows(PROFILE, MACHINE, BEFORE)(apply(BEFORE, [Remove("f_mode")]))
    assert "f_mode" in row["why"]
    with pytest.raises(NotFound, match="f_mode"):
        cost_rows(PROFILE, MACHINE, make_layout("a:8"))


def test_changes_are_whole_percents() -> None:
    assert [change(100, x) for x in (176, 24, 100.4, 99.6)] == ["+76 %", "-76 %", "", ""]


def test_the_words_on_published_runs_name_who_left_the_line() -> None:
    words = published_words(published_rows(BEFORE, AFTER), BEFORE, AFTER)
    assert "f_inode and f_op left the 64-byte line of f_count" in words
    assert words.startswith("Measured: +17 to +42 %. With 64-byte lines and the two members the patch names")
    assert "none left" in published_words(published_rows(BEFORE, BEFORE), BEFORE, BEFORE)


def test_without_a_compiler_the_button_is_off_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    widget = MeasureButton(BEFORE, AFTER, PROFILE)
    assert widget.button.disabled
    assert "no C compiler" in widget.says.value


def test_one_cpu_says_that_sharing_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitlib.explore_measure.find_compiler", lambda: "cc")
    monkeypatch.setattr("kitlib.explore_measure.read_topology", lambda: Topology("t", (0,), 2, ((0,),), ()))
    widget = MeasureButton(BEFORE, AFTER, PROFILE)
    assert not widget.button.disabled
    assert "needs two CPUs" in widget.says.value


def test_a_failure_while_measuring_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitlib.explore_measure.find_compiler", lambda: "cc")
    widget = MeasureButton(BEFORE, make_layout("<a>:8", "file"), PROFILE)
    widget.button.click()
    assert widget.says.value.startswith("Not measured: profile struct_file")
    assert "<" not in widget.says.value
    assert widget.measurement is None
    assert not widget.button.disabled


def test_a_result_is_shown_as_text_and_as_the_map_with_points(monkeypatch: pytest.MonkeyPatch) -> None:
    done = load_measurement("scores/file-5.8-measured.json")
    monkeypatch.setattr("kitlib.explore_measure.find_compiler", lambda: "cc")
    monkeypatch.setattr("kitlib.explore_measure.measure", lambda *_, tick, **__: tick("shared", 1, 2) or done)
    monkeypatch.setattr("kitlib.explore_measure.calibrate", lambda: Calibration(MACHINE, ()))
    widget = MeasureButton(BEFORE, AFTER, PROFILE)
    widget.button.click()
    assert widget.measurement == done
    text, picture = widget.result.outputs
    assert "unshared-cold" in text["text"]
    names = [trace.get("name") for trace in picture["data"]["application/vnd.plotly.v1+json"]["data"]]
    assert "measured" in names
    assert (widget.bar.max, widget.bar.value) == (2, 1)


def test_on_a_page_the_button_says_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KITLIB_PAGE", "1")
    assert "kitlib lab" in MeasureButton(BEFORE, AFTER, PROFILE)._repr_mimebundle_()["text/html"]
