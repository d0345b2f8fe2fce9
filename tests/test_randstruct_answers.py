"""Probabilities, sizes and lines under randomisation, and the command that prints them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kitlib.cli.randomize import randomize
from kitlib.edit import Insert, Move, apply
from kitlib.errors import DataError, KitError, NotFound, PlacementError
from kitlib.layoutjson import layouts_to_json
from kitlib.model import Layout, Member
from kitlib.place import settle
from kitlib.randstats import Estimate, ask, default_trials, sample_costs, sample_layouts
from kitlib.randstruct import MODES, randomised_part
from kitlib.scenario import Scenario
from kitlib.shorthand import make_layout

MEMBERS = (
    "long f_u[2]", "long f_path[2]", "void *f_inode", "void *f_op", "int f_lock", "int f_write_hint", "long f_count",
    "int f_flags", "int f_mode", "long f_pos_lock[4]", "long f_pos", "long f_owner[4]", "void *f_cred", "long f_ra[4]",
    "long f_version", "void *f_security", "void *private_data", "long f_ep_links[2]", "long f_tfile_llink[2]",
    "void *f_mapping", "int f_wb_err", "int f_sb_err",
)  # fmt: skip
FILE = apply(Layout("file", "struct", 0, 1, ()), [Insert(declaration) for declaration in MEMBERS])
PATCHED = apply(FILE, [Move("f_count", after="f_sb_err")])
PAIR = ("f_count", "f_mode", "f_inode", "f_op")

# Computed apart from the kit, with 200,000 uniform draws each: see the randstruct notes of the case studies.
PUBLISHED = [
    ("gcc-full", 0.53, 0.53),
    ("gcc-performance-prefix", 0.54, 0.53),
    ("gcc-performance", 0.97, 0.00),
]


@pytest.mark.parametrize(("mode", "before", "after"), PUBLISHED)
def test_published_probabilities_of_struct_file(mode, before, after):
    assert ask(FILE, mode, PAIR, trials=100_000).p_same_line.value == pytest.approx(before, abs=0.01)
    assert ask(PATCHED, mode, PAIR, trials=100_000).p_same_line.value == pytest.approx(after, abs=0.01)


def test_struct_file_is_the_case_studied():
    assert (FILE.size, FILE.member("f_count").offset, PATCHED.member("f_count").offset) == (256, 56, 248)


SMALL = make_layout("a:8 b:4 c:40 d:1 e:24 f:2")


def every_order(line_bytes: int) -> tuple[float, float]:
    """Share of all 720 orders in which b and f share a line, and the mean size: placed here, not by the kit."""
    met = total = 0
    for order in itertools.permutations(SMALL.members):
        position, lines = 0, {}
        for member in order:
            position = -(-position // member.align) * member.align
            lines[member.name] = {position // line_bytes, (position + member.size - 1) // line_bytes}
            position += member.size
        met += bool(lines["b"] & lines["f"])
        total += -(-position // 8) * 8
    return met / 720, total / 720


@pytest.mark.parametrize("line_bytes", [32, 64])
def test_full_mode_has_the_distribution_of_all_orders(line_bytes):
    share, mean_size = every_order(line_bytes)
    risk = ask(SMALL, "gcc-full", ("b", "f"), trials=100_000, line_bytes=line_bytes)
    assert risk.p_same_line.value == pytest.approx(share, abs=0.006)
    assert risk.size.mean == pytest.approx(mean_size, abs=0.05)


def test_intervals_hold_the_true_share_in_95_of_100():
    share, _ = every_order(64)
    bounds = [ask(SMALL, "gcc-full", ("b", "f"), trials=300, seed=seed).p_same_line.ci95 for seed in range(400)]
    assert 370 <= sum(low <= share <= high for low, high in bounds) <= 391


def test_published_mean_size():
    assert ask(FILE, "gcc-full", PAIR, trials=50_000).size.mean == pytest.approx(271, abs=0.5)
    assert ask(PATCHED, "gcc-performance", PAIR, trials=50_000).size.mean == pytest.approx(268, abs=0.5)


def test_two_members_are_counted_exactly():
    layout = make_layout("a:64 b:64 c:64")
    risk = ask(layout, "gcc-full", ("a", "b"), trials=2000)
    assert risk.p_same_line.hits == 0
    assert not risk.same_line_declared
    small = ask(make_layout("a:8 b:8"), "gcc-full", ("a", "b"), trials=2000)
    assert small.p_same_line.value == 1.0
    assert small.same_line_declared
    assert small.size.counts == ((16, 2000),)


def test_phase_and_line_size_are_used():
    layout = make_layout("a:32 b:32")
    assert ask(layout, "gcc-full", ("a", "b"), trials=10, line_bytes=64).p_same_line.value == 1
    assert ask(layout, "gcc-full", ("a", "b"), trials=10, line_bytes=64, phase=32).p_same_line.value == 0
    assert ask(layout, "gcc-full", ("a", "b"), trials=10, line_bytes=32).p_same_line.value == 0


def test_growth_comes_from_holes():
    layout = make_layout("a:4 b:4 c:8")
    risk = ask(layout, "gcc-full", ("a", "b"), trials=3000)
    assert risk.size.declared == 16
    assert [size for size, _ in risk.size.counts] == [16, 24]
    assert risk.size.counts[1][1] == pytest.approx(1000, abs=120)  # c in the middle: 2 orders of 6


def test_lines_of_a_path():
    layout = make_layout("a:8 big:120 b:8")
    risk = ask(layout, "gcc-full", ("a", "b"), trials=3000, paths={"hot": ["a", "b"]})
    [(label, lines)] = risk.lines
    assert (label, lines.declared) == ("hot", 2)
    assert {value for value, _ in lines.counts} == {1, 2}
    assert lines.total == 3000


@pytest.mark.parametrize("mode", MODES)
def test_samples_and_the_cost_hook(mode):
    drawn = list(sample_layouts(FILE, mode, 5, seed=4))
    assert len(drawn) == 5
    assert all({m.name for m in layout} == {m.name for m in FILE} for layout in drawn)
    spread = sample_costs(FILE, mode, lambda x: float(x.size), trials=5, seed=4)
    assert spread.costs == tuple(sorted(x.size for x in drawn))
    assert spread.declared == 256
    assert spread.worse.hits == sum(x.size > 256 for x in drawn)
    assert spread.quantile(0) <= spread.mean <= spread.quantile(1)


def test_a_wrapped_anonymous_struct_is_what_is_shuffled():
    inner = make_layout("a:8 b:4 c:64", "inner")
    tail = Member("tail", "unsigned char[]", inner.size * 8, 0, 1, count=0)
    wrapped = Member(None, "struct {...}", 0, inner.size * 8, 8, inner=inner)
    outer = Layout("outer", "struct", inner.size, 8, (wrapped, tail))
    assert randomised_part(outer).name is None
    assert randomised_part(inner) is inner
    bare = replace(inner, name=None)
    asked = ask(outer, "gcc-full", ("a", "b"), trials=500)
    direct = ask(bare, "gcc-full", ("a", "b"), trials=500)
    assert (asked.p_same_line, asked.size) == (direct.p_same_line, direct.size)
    assert asked.struct == "struct outer"
    assert 0 < asked.p_same_line.value < 1


def test_what_stands_around_the_randomised_part():
    """A tail that stays is refused by name; the size is that of the whole struct with its own alignment."""
    inner = make_layout("a:8 b:4 c:8 d:4", name=None)
    tail = Member("tail", "unsigned char[]", inner.size * 8, 0, 1, count=0)
    wrapped = Member(None, "struct {...}", 0, inner.size * 8, 8, inner=inner)
    outer = settle(Layout("outer", "struct", 64, 64, (wrapped, tail), forced_align=64))
    assert outer.replaceable
    assert {size for size, _ in ask(outer, "gcc-full", ("a", "b"), trials=500).size.counts} == {64}
    with pytest.raises(PlacementError, match="tail stands outside the anonymous struct in struct outer"):
        ask(outer, "gcc-full", ("a", "tail"), trials=5)
    with pytest.raises(PlacementError, match="tail stands outside"):
        ask(outer, "gcc-full", ("a", "b"), trials=5, paths={"p": ["a", "tail"]})
    with pytest.raises(NotFound, match="struct outer"):
        ask(outer, "gcc-full", ("a", "b"), trials=5, paths={"p": ["nope"]})


def test_large_structs_are_drawn_less_often_by_default():
    assert default_trials(FILE) == 200_000
    large = make_layout(" ".join(f"m{i}:4" for i in range(2000)))
    assert default_trials(large) == 5000
    assert default_trials(Layout("empty", "struct", 0, 1, ())) == 200_000


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_interval_holds_its_estimate(trials, share):
    estimate = Estimate(int(share * trials), trials)
    low, high = estimate.ci95
    assert 0 <= low <= estimate.value <= high <= 1
    assert not math.isnan(low)


def test_interval_known_value():
    # 10 of 100: Wilson 95 % is 0.0552 to 0.1744 (Brown, Cai and DasGupta 2001)
    assert Estimate(10, 100).ci95 == (pytest.approx(0.0552, abs=1e-4), pytest.approx(0.1744, abs=1e-4))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ask(FILE, "gcc-full", ("f_count", "f_mod")), NotFound, "f_mode"),
        (lambda: ask(FILE, "gcc-full", ("f_count",)), DataError, "at least one other"),
        (lambda: ask(FILE, "gcc-full", ("f_count", "f_count")), DataError, "named twice"),
        (lambda: ask(FILE, "gcc-full", ("f_count", "", "f_mode")), DataError, "a name is missing"),
        (lambda: ask(FILE, "gcc-full", PAIR, trials=0), DataError, "trials 0"),
        (lambda: ask(FILE, "gcc-full", PAIR, trials=-4), DataError, "trials -4"),
        (lambda: ask(FILE, "gcc-ful", PAIR), DataError, "gcc-full"),
        (lambda: ask(FILE, "gcc-full", PAIR, seed=-1), DataError, "seed -1"),
        (lambda: ask(FILE, "gcc-full", PAIR, line_bytes=48), PlacementError, "48"),
    ],
)
def test_bad_questions(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "file.json"
    path.write_text(layouts_to_json([FILE]))
    return str(path)


def run(*words: str):
    return CliRunner().invoke(randomize, list(words))


def test_command_json(saved):
    result = run(saved, "file", "--pair", ",".join(PAIR), "--trials", "4000", "--seed", "3", "--format", "json")
    record = json.loads(result.output)
    assert {"mode", "trials", "seed", "pair", "p_same_line", "size"} <= set(record)
    assert record["pair"] == list(PAIR)
    low, high = record["p_same_line"]["ci95"]
    assert low < record["p_same_line"]["estimate"] < high
    assert record["size"]["min"] <= record["size"]["mean"] <= record["size"]["max"]
    assert (record["mode"], record["trials"], record["seed"], record["kind"]) == ("gcc-full", 4000, 3, "model")
    again = run(saved, "file", "--pair", ",".join(PAIR), "--trials", "4000", "--seed", "3", "--format", "json")
    assert again.output == result.output


def test_command_compares_with_a_scenario(saved, tmp_path):
    scenario = tmp_path / "patch.json"
    scenario.write_text(Scenario(FILE, (Move("f_count", after="f_sb_err"),)).to_json())
    words = [saved, "file", "--pair", ",".join(PAIR), "--mode", "gcc-performance", "--trials", "4000"]
    record = json.loads(run(*words, "--after", str(scenario), "--format", "json").output)
    assert record["p_same_line"]["estimate"] > 0.9
    assert record["after"]["p_same_line"]["estimate"] == 0
    text = run(*words, "--after", str(scenario), "--path", "hot=f_mode,f_count").output
    assert "before" in text
    assert "after" in text
    assert "hot" in text


@pytest.mark.parametrize(("mode", "seed"), [("gcc-full", "ab" * 32), ("clang", "any text")])
def test_command_shows_the_layout_of_one_seed(saved, mode, seed):
    words = [saved, "file", "--pair", "f_count,f_mode", "--mode", mode, "--trials", "10", "--layout-seed", seed]
    record = json.loads(run(*words, "--format", "json").output)["layout"]
    assert record["kind"] == "exact"
    assert sorted(record["order"]) == sorted(m.name for m in FILE)
    assert record["offsets"] == sorted(record["offsets"])


MACHINE = """format = "kitlib-machine"
version = 1
[numbers]
dirty_near_ns = {value = 50, certainty = "assumed"}
"""


def test_command_predicts_costs(tmp_path):
    machine = tmp_path / "machine.toml"
    machine.write_text(MACHINE)
    words = ["file-5.8", "file", "--pair", "f_count,f_mode", "--trials", "50", "--profile", "struct_file"]
    words += ["--machine", str(machine), "--after", "file-5.8-patch"]
    record = json.loads(run(*words, "--format", "json").output)
    for side in (record, record["after"]):
        cost = side["cost"]
        assert cost["kind"] == "model"
        assert 0 < cost["min"] <= cost["median"] <= cost["max"]
        assert cost["min"] < cost["mean"] < cost["max"]
        assert "fget" in side["lines"]
    assert "predicted cost before" in run(*words).output


@pytest.mark.parametrize(
    "words",
    [
        ("--pair", "f_count,f_mod"),
        ("--pair", "f_count"),
        ("--pair", "f_count,f_mode", "--trials", "0"),
        ("--pair", "f_count,f_mode", "--trials", "-1"),
        ("--pair", "f_count,f_mode", "--layout-seed", "12"),
        ("--pair", "f_count,f_mode", "--path", "hot"),
        ("--pair", "f_count,f_mode", "--machine", "any"),
        ("--pair", "f_count,f_mode", "--after", "nowhere.json"),
        ("--pair", "f_count,f_mode", "--after", "mm-5.12"),
        ("--pair", "f_count,f_mode", "--after", ""),
        ("--pair", "f_count,f_mode", "--path", "hot=f_mode", "--path", "hot=f_count"),
        ("--pair", "f_count,f_mode", "--path", "hot=f_mode,"),
        ("--pair", "f_count,f_mode", "--path", "fget=f_mode", "--profile", "struct_file"),
        ("--pair", "f_count,f_mode", "--profile", "mm_struct"),
        ("--pair", "f_count,f_mode", "--mode", "clang", "--layout-seed", "\ud800"),
    ],
)
def test_command_refuses(saved, words):
    result = run(saved, "file", *words)
    assert isinstance(result.exception, KitError)
    assert result.output == ""
