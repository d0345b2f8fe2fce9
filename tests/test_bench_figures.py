"""Figures of benchmark evidence: the rows behind the picture, escaping, and the overlay's links."""

from __future__ import annotations

import pytest

from kitlib import benchfiles
from kitlib.datafiles import path
from kitlib.errors import DataError
from kitlib.figures.bench import delta_forest, profile_shift, samples
from kitlib.figures.evidence import evidence_links, overlay
from kitlib.figures.style import meta
from kitlib.series import Delta, Table, Value
from kitlib.sources import open_source
from kitlib.verdict import judge, judge_report

ROBOT = benchfiles.read(path("benchmarks/struct-file-5.8-robot.txt"))
JUDGED = judge_report(ROBOT)
BEFORE, AFTER = (open_source(name).struct("file") for name in ("file-5.8", "file-5.8-patch"))


def points(fig: object) -> list[object]:
    return [trace for trace in fig.data if trace.type == "scatter" and trace.visible is not False]  # type: ignore[attr-defined]


def test_forest_draws_every_shown_row_with_its_interval() -> None:
    fig = delta_forest(JUDGED)
    drawn = sum(len(trace.x) for trace in points(fig))  # type: ignore[attr-defined]
    assert drawn == sum(len(table.shown) for table in JUDGED)
    score = next(t for t in points(fig) if any("unixbench.score" in h for h in t.hovertext))  # type: ignore[attr-defined]
    assert score.x[0] == pytest.approx(32.26, abs=0.01)  # type: ignore[attr-defined]
    row = JUDGED[0].shown[0]
    assert row.ci95 is not None
    assert score.error_x.array[0] == pytest.approx(row.ci95[1] - 32.2595, abs=0.01)  # type: ignore[attr-defined]
    assert meta(fig)["kind"] == "measured"


def test_menu_shows_the_hidden_rows_by_reason() -> None:
    fig = delta_forest(JUDGED)
    labels = [button.label for button in fig.layout.updatemenus[0].buttons]
    assert labels[0] == "11 rows that matter"
    assert "105 hidden: one CPU or node of many" in labels
    for button in fig.layout.updatemenus[0].buttons:
        visible = button.args[0]["visible"]
        assert len(visible) == len(fig.data)
        assert any(visible)


def test_noise_band_is_one_sd_each_way() -> None:
    fig = delta_forest(JUDGED[0])
    band = fig.data[0]
    assert band.x[0] == pytest.approx(2 * (JUDGED[0].shown[0].noise or 0))
    assert band.base[0] == pytest.approx(-band.x[0] / 2)


def test_names_are_escaped() -> None:
    row = Delta("<script>alert(1)</script>.x", Value.of([1.0, 2, 3, 4]), Value.of([5.0, 6, 7, 8]))
    table = judge(Table("samples", (row,), machine="<b>m</b>"))
    for fig in (delta_forest(table), samples(table)):
        assert "<script" in meta(fig)["alt"]  # plain text by contract: the page escapes it
        fig.layout.meta = None
        assert "<script" not in str(fig.to_dict())


def test_profile_shift_shows_where_the_time_went() -> None:
    fig = profile_shift(JUDGED[0])
    before, after = fig.data[0], fig.data[1]
    shares = dict(zip(before.y, zip(before.x, after.x, strict=True), strict=True))
    assert shares["dnotify_flush"] == (13.91, 0.0)
    assert shares["__fget_files"] == (31.61, 35.00)
    assert before.y[0] == "dnotify_flush"  # the largest shift comes first
    with pytest.raises(DataError, match=r"no rows perf-profile\.other"):
        profile_shift(JUDGED[0], kind="other")


def test_samples_draw_every_run() -> None:
    fig = samples(ROBOT.plots[0])
    assert [len(trace.x) for trace in fig.data] == [31, 17]
    assert fig.data[0].error_y.value == pytest.approx(ROBOT.plots[0].row_step / 2)
    aim7 = benchfiles.read(path("benchmarks/inode-4.16-aim7.csv"))
    assert [len(trace.y) for trace in samples(aim7.tables[0].rows[0]).data] == [8, 8]
    with pytest.raises(DataError, match="no single runs are known"):
        samples(JUDGED[0])


def test_overlay_lights_the_members_that_the_evidence_names() -> None:
    links = evidence_links(JUDGED[:1], AFTER)
    assert links["perf-profile.self.cycles-pp.dnotify_flush"] == ("f_inode",)
    fig = overlay(BEFORE, AFTER, JUDGED[0])
    names = [name for axis in (fig.layout.yaxis3, fig.layout.yaxis4) for name in axis.ticktext]
    assert "self: dnotify_flush → f_inode" in names
    lit = [s for s in fig.layout.shapes if s.line.color == "#b3006b"]
    spans = {(s.yref, s.x0, s.y0) for s in lit}
    assert len(lit) == 4  # f_inode and f_count, in both maps
    assert {x0 for _, x0, _ in spans} == {32, 56}  # f_inode at 32; f_count at 56 of line 0, then of line 3
    assert "dnotify_flush -13.9 concerns f_inode" in meta(fig)["alt"]


def test_overlay_menu_touches_only_the_deltas() -> None:
    fig = overlay(BEFORE, AFTER, JUDGED[0])
    for button in fig.layout.updatemenus[0].buttons:
        indices = button.args[2]
        assert all(fig.data[i].xaxis in ("x3", "x4") for i in indices)
        assert all(key.split(".")[0] in ("xaxis3", "yaxis3", "xaxis4", "yaxis4") for key in button.args[1])


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(DataError, match="no row to draw"):
        delta_forest([])
    with pytest.raises(DataError, match="no row that matters"):
        overlay(BEFORE, AFTER, [])
