"""``kitlib cost`` and ``kitlib measure``: exit status, one line of error, JSON keys; the trade-off and its words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kitlib.access import load_profile
from kitlib.calibrate import Calibration
from kitlib.cli import cli
from kitlib.cost import cost
from kitlib.figures.cost import cost_by_path, published_bars, retry_lines, scaling, sensitivity_bars, trade_off_map
from kitlib.figures.score import heading, score_scatter
from kitlib.figures.tradeoff import trade_off_controls
from kitlib.machine import load_machine
from kitlib.manifest import problems, renew
from kitlib.measurefile import load_measurement
from kitlib.published import published_rows, published_words
from kitlib.score import DEVELOPED_ON, load_score, random_layouts
from kitlib.sources import open_source
from kitlib.tradeoff import conclusion, sensitivity, trade_off

BEFORE, AFTER = (open_source(s).struct("file") for s in ("file-5.8", "file-5.8-patch"))
PROFILE, MACHINE = load_profile("struct_file"), load_machine("cascade-lake-8269cy")


def kitlib(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kitlib", *words], capture_output=True, text=True, timeout=120)


def test_cost_as_json_has_both_sides_and_a_conclusion() -> None:
    done = kitlib("cost", "file-5.8", "file", "--after", "file-5.8-patch", "--format", "json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["kind"] == "model"
    assert {p["name"] for p in record["before"]["paths"]} >= {"fget", "fget_light", "close", "read", "write"}
    assert record["conclusion"].endswith("(model).")
    assert len(record["published"]) == 3
    assert record["trade_off"]["break_even_by_cold"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cost", "file-5.8", "file", "--machine", "kunpeng-921"), "did you mean kunpeng-920"),
        (("cost", "file-5.8", "file", "--profile", "struct_fil"), "did you mean struct_file"),
        (("cost", "file-5.8", "file", "--profile", "dentry"), "no member 'd_seq'"),
        (("cost", "file-5.8", "fil"), "did you mean file"),
        (("cost", "mm-5.12", "mm_struct", "--profile", "nowhere.toml"), "no profile 'nowhere.toml'"),
        (("measure", "file-5.8", "file", "--path", "fgett"), "did you mean fget"),
        (("measure", "file-5.8", "file", "--after", "file-5.9"), "file-5.9"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words: tuple[str, ...], says: str) -> None:
    done = kitlib(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout


def test_a_negative_rate_is_one_line_and_status_2(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    text = 'format = "kitlib-profile"\nversion = 1\nstruct = "file"\n[[path]]\nname = "x"\nrate = -1\n'
    file.write_text(text + '[[path.access]]\nmember = "f_mode"\nop = "read"\n')
    done = kitlib("cost", "file-5.8", "file", "--profile", str(file))
    assert (done.returncode, "rate = -1" in done.stderr) == (2, True)


def test_measure_quick_ends_with_verdicts(need_tool: Callable[[str], str]) -> None:
    need_tool("gcc")
    words = ("measure", "file-5.8", "file", "--after", "file-5.8-patch", "--quick", "--mode", "unshared-hot")
    done = kitlib(*words, "--format", "json")
    assert done.returncode == 0, done.stderr
    (mode,) = json.loads(done.stdout)["modes"]
    assert set(mode) >= {"mode", "threads", "unit", "before", "after", "change_pct", "ci95", "verdict"}


def test_the_trade_off_has_a_line_where_costs_cross() -> None:
    result = trade_off(BEFORE, AFTER, PROFILE, MACHINE, cpus=24)
    losing, winning = result.delta_ns[-1, 0], result.delta_ns[-1, -1]
    assert losing > 0 > winning  # cold and unshared: one more pair of lines; shared: less waiting
    assert 0 < result.break_even[-1] < 0.5
    assert np.all(np.diff(result.break_even) >= -1e-9)


def test_the_conclusion_follows_from_the_numbers() -> None:
    profile = PROFILE.with_workload(cold=1.0)
    result = trade_off(BEFORE, AFTER, profile, MACHINE)
    words = conclusion(result, sensitivity(BEFORE, AFTER, profile, MACHINE), MACHINE)
    share = float(words.split("more than ")[1].split(" %")[0])
    assert share == pytest.approx(100 * result.break_even[-1], rel=0.05)
    same = trade_off(BEFORE, BEFORE, PROFILE, MACHINE)
    assert "no difference" in conclusion(same, (), MACHINE)
    back = trade_off(AFTER, BEFORE, profile, MACHINE)
    assert "does not pay" in conclusion(back, (), MACHINE)


def test_the_named_members_alone_explain_nothing_on_64_byte_lines() -> None:
    for row in published_rows(BEFORE, AFTER):
        assert row.predicted_pct[0] == pytest.approx(0, abs=0.1)
        assert row.measured_pct > 10
        assert row.predicted_pct[3] > row.predicted_pct[0]
        assert 0.3 < row.predicted_pct[3] / row.measured_pct < 3


def test_figures_say_what_they_are_and_have_words() -> None:
    result = trade_off(BEFORE, AFTER, PROFILE, MACHINE)
    costs = [cost(x, PROFILE, MACHINE) for x in (BEFORE, AFTER)]
    figures = [
        cost_by_path(*costs),
        cost_by_path(costs[0]),
        scaling(BEFORE, AFTER, PROFILE, MACHINE),
        trade_off_map(result, machine=MACHINE.name),
        sensitivity_bars(sensitivity(BEFORE, AFTER, PROFILE, MACHINE), base_ns=result.point_ns),
        published_bars(published_rows(BEFORE, AFTER)),
        retry_lines({"loop": PROFILE, "add": PROFILE.with_op("f_count", "cmpxchg", "add")}, BEFORE, MACHINE),
    ]
    for fig in figures:
        meta = fig.layout.meta["kit"]
        assert meta["kind"] == "model"
        assert len(meta["alt"]) > 20
    bars = [t for t in figures[0].data if t.name == "before"]
    assert list(bars[2].x) == [p.shared_ns for p in costs[0].paths]


def test_the_published_score_is_read_and_drawn() -> None:
    score = load_score()
    fig = score_scatter(score)
    assert fig.layout.meta["kit"]["kind"] == "measured"
    drawn = sum(len(t.x) for t in fig.data if t.mode == "markers")
    assert drawn == sum(len(m.points) for m in score.modes)
    assert {m.struct for m in score.modes} == {"file", "dentry"}
    assert all(len(m.points) >= 60 for m in score.modes)
    assert score.held_out == (score.seed not in DEVELOPED_ON)
    assert ("held-out" in fig.layout.meta["kit"]["note"]) == score.held_out
    assert all("nothing to rank" in heading(m) for m in score.modes if m.mode == "unshared-hot")


def test_other_seeds_give_other_layouts() -> None:
    one, same, other = (random_layouts(BEFORE, 5, seed) for seed in (DEVELOPED_ON[0], DEVELOPED_ON[0], 1))
    assert one == same
    assert all(layout not in one for layout in other)


def test_a_checksum_is_renewed_in_the_manifest(tmp_path: Path) -> None:
    data, manifest = tmp_path / "a.json", tmp_path / "MANIFEST.toml"
    data.write_text("{}")
    line = renew(data)
    assert not manifest.exists()
    keys = "".join(f'{key} = "x"\n' for key in ("what", "source", "unit", "licence", "sha256"))
    manifest.write_text(f'[[file]]\nname = "a.json"\n{keys}')
    assert renew(data) == line
    assert problems(tmp_path) == []


def test_the_map_with_controls_has_a_step_for_every_number_of_cpus_and_work() -> None:
    fig = trade_off_controls(
        BEFORE, AFTER, PROFILE, machines=("rome", "kunpeng-920"), cpus=(2, 24), works=(60.0, 500.0)
    )
    cpus, work = fig.layout.sliders
    assert [s.label for s in cpus.steps] == ["2", "24"]
    assert [s.label for s in work.steps] == ["60", "500"]
    assert (cpus.active, work.active) == (1, 0)
    values, traces = cpus.steps[0].args
    assert len(values["z"]) == len(traces) == 12
    busy = PROFILE.with_workload(work_ns=500.0)
    expected = trade_off(BEFORE, AFTER, busy, load_machine("kunpeng-920"), cpus=2, points=21).delta_ns
    assert np.allclose(np.asarray(values["z"][9]), expected, rtol=6e-3, atol=1e-5)
    looks, _ = work.steps[1].args
    assert looks["opacity"] == [0, 0, 0, 1, 1, 1] * 2
    assert [b.label for b in fig.layout.updatemenus[0].buttons] == ["rome", "kunpeng-920"]


def test_measured_points_stand_on_the_map_of_their_own_machine() -> None:
    done = load_measurement("scores/file-5.8-measured.json")
    fig = trade_off_controls(BEFORE, AFTER, PROFILE, machines=("zen-5-vm", "rome"), cpus=(2, 24), measured=done)
    assert fig.layout.sliders[0].active == 0
    (points,) = (t for t in fig.data if t.name == "measured")
    assert len(points.x) == 3
    shown = [b.args[0]["visible"][-1] for b in fig.layout.updatemenus[0].buttons]
    assert shown == [True, False]


def test_what_a_calibration_notes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitlib.calibrate.calibrate", lambda tick: Calibration(MACHINE, ("moves are uncertain",)))
    done = CliRunner().invoke(cli, ["cost", "file-5.8", "file", "--machine", "this"])
    assert done.exit_code == 0
    assert "note: moves are uncertain" in done.stderr


def test_words_say_where_pairs_make_no_difference() -> None:
    rows = published_rows(BEFORE, AFTER)
    other = [replace(row, predicted_pct=(*row.predicted_pct[:2], 5.0, 40.0)) for row in rows]
    told = [published_words(found, BEFORE, AFTER) for found in (rows, other)]
    same = all(abs(r.predicted_pct[i] - r.predicted_pct[i + 2]) < 0.05 for r in rows for i in range(2))
    assert ("Pairs make no difference" in told[0]) == same
    assert "Pairs make no difference" not in told[1]
