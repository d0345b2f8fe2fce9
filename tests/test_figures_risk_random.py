"""Pictures and tables of random layouts and configurations: the rows before the picture."""

from __future__ import annotations

import pytest

from kitlib.errors import DataError
from kitlib.figures.risk_random import cost_histogram, line_bars, probability_bars, size_bars
from kitlib.figures.style import meta
from kitlib.figures.variants import combination_map
from kitlib.randstats import CostSpread, ask, ask_modes
from kitlib.randtables import flips_table, influence_table, offsets_table, pair_table, risk_table, rooms_table
from kitlib.room import rooms
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.variantfile import read_variants
from kitlib.variantmatrix import flips, matrix
from kitlib.variants import Option, Variants

BEFORE = make_layout("a:8 b:8 big:112 c:4 d:8", "before<b>")
AFTER = make_layout("a:8 big:112 b:8 c:4 d:8", "before<b>")
PATHS = {"hot": ["a", "b"]}


def test_probability_bars_show_every_mode_with_its_interval():
    before, after = (ask_modes(x, ("a", "b"), trials=500) for x in (BEFORE, AFTER))
    fig = probability_bars(before, after)
    bars = [t for t in fig.data if t.type == "bar"]
    assert [len(t.x) for t in bars] == [4, 4]
    assert list(bars[0].y) == [r.p_same_line.value for r in before]
    assert all(low >= 0 for low in bars[0].error_y.arrayminus)
    assert meta(fig)["kind"] == "model"
    assert "<b>" not in fig.layout.title.text
    assert list(fig.data[1].y) == [1, 1, 1, 1]
    assert list(risk_table(before)["probability"]) == [round(r.p_same_line.value, 4) for r in before]


def test_probability_bars_need_matching_modes():
    risks = ask_modes(BEFORE, ("a", "b"), trials=10)
    with pytest.raises(DataError, match="same order"):
        probability_bars(risks, risks[::-1])
    with pytest.raises(DataError):
        probability_bars([])


def test_distributions_add_up_to_one():
    before, after = (ask(x, "gcc-full", ("a", "b"), trials=400, paths=PATHS) for x in (BEFORE, AFTER))
    for fig in (size_bars(before, after), line_bars(before, "hot", after), size_bars(before)):
        for trace in fig.data:
            assert sum(trace.y) == pytest.approx(1)
        assert meta(fig)["alt"]
    with pytest.raises(DataError, match="there are hot"):
        line_bars(before, "cold")


def test_cost_histogram_says_how_many_cost_more():
    fig = cost_histogram(CostSpread(2.5, (1.0, 2.0, 3.0, 4.0)), unit="lines", title="x")
    assert "50%" in meta(fig)["note"]
    assert list(fig.data[0].x) == [1.0, 2.0, 3.0, 4.0]


def test_combination_map_of_mm_struct_has_120_and_128():
    variants = read_variants("mm_struct")
    every = matrix(variants)
    together = every.on_one_line("mmap_lock.count", "mmap_lock.owner")
    fig = combination_map(every, together, title="x", numbers=every.offsets("mmap_lock"))
    heat = fig.data[0]
    assert heat.z.shape == (3, 8)
    assert [row[-1] for row in heat.text] == ["○ 120", "● 128", "○ 120"]
    assert "MEMBARRIER" in heat.customdata[0][0]
    assert meta(fig)["kind"] == "exact"
    with pytest.raises(DataError, match="24 combinations"):
        combination_map(every, together[:5], title="x")


def test_combination_map_of_many_options_is_square():
    base = make_layout(" ".join(f"m{i}:8" for i in range(24)))
    variants = Variants(base, tuple(Option(f"CONFIG_{i}", (f"m{i}",)) for i in range(10)))
    every = matrix(variants)
    fig = combination_map(every, every.on_one_line("m11", "m20"), title="x")
    assert fig.data[0].z.shape == (32, 32)
    assert fig.data[0].texttemplate is None


def test_tables_of_mm_struct():
    variants = read_variants("mm_struct")
    answers = matrix(variants).on_one_line("mmap_lock.count", "mmap_lock.owner")
    table = flips_table(flips(variants, answers, {"write_protect_seq": "inserted"}))
    assert ["CONFIG_MEMBARRIER", "y", "n", "yes", "no"] in table.to_numpy().tolist()
    shares = influence_table(variants, answers)
    assert list(shares["option"]) == [o.name for o in variants.options]
    layouts = {name: open_source(name).struct("mm_struct") for name in ("mm-5.12", "mm-5.13-seq", "mm-5.13-fixed")}
    offsets = offsets_table(layouts, ["write_protect_seq", "mmap_lock"])
    assert list(offsets["mmap_lock"]) == ["120 (lines 1–2)", "128 (line 2)", "120 (lines 1–2)"]
    assert list(offsets["write_protect_seq"]) == ["absent", "104 (line 1)", "248 (line 3)"]
    pairs = pair_table(layouts, [("mmap_lock.count", "mmap_lock.owner")])
    assert list(pairs.iloc[:, 1]) == ["apart", "one line", "apart"]
    first = rooms_table(rooms(layouts["mm-5.12"], "seqcount_t write_protect_seq")).iloc[0]
    assert (first["offset"], first["moves"]) == (248, "arg_lock 248→252")
