"""Figures of a scan and of a comparison hold the rows they were given, escaped, and say which figures they are."""

from __future__ import annotations

from dataclasses import replace

from kitlib.diff import diff_sources
from kitlib.figures.diff import diff_table, diff_treemap
from kitlib.figures.scan import scan_table, scan_treemap
from kitlib.figures.sortable import Column, sortable
from kitlib.figures.style import meta
from kitlib.scan import ScanFilter, scan_source
from kitlib.sources import open_source

RESULT = scan_source(open_source("linux-6.1"), ScanFilter(30))
CHANGES = diff_sources(open_source("linux-6.1"), open_source("linux-6.12"))


def test_the_scan_table_holds_the_rows_in_every_order() -> None:
    fig = scan_table(RESULT)
    cells = fig.data[0].cells["values"]
    assert list(cells[2]) == [r.member for r in RESULT.rows]
    by_struct = fig.layout.updatemenus[0].buttons[1].args[0]["cells.values"][0][1]
    assert by_struct == sorted(by_struct)
    assert sorted(by_struct) == sorted(cells[1])
    assert meta(fig)["kind"] == "model"


def test_sorting_puts_what_is_missing_last() -> None:
    columns = (Column("n", 1, descending=True), Column("name", 1))
    fig = sortable("t", "exact", "alt", columns, [(1, "a"), (None, "b"), (10, "c")])
    assert fig.layout.updatemenus[0].buttons[0].args[0]["cells.values"] == [[["10", "1", "–"], ["c", "a", "b"]]]


def test_the_treemap_adds_up() -> None:
    tree = scan_treemap(RESULT, top=50).data[0]
    values, parents = dict(zip(tree.ids, tree.values, strict=True)), dict(zip(tree.ids, tree.parents, strict=True))
    for node in {p for p in parents.values() if p}:
        below = sum(values[i] for i, parent in parents.items() if parent == node)
        assert abs(below - values[node]) < 0.2
    assert sum(p.isdigit() for p in tree.ids) == 50


def test_names_from_a_file_are_escaped() -> None:
    row = replace(RESULT.rows[0], struct="<img src=x>", member="<b>m</b>", reason="<i>why</i>")
    evil = replace(RESULT, rows=(row,))
    for fig in (scan_table(evil), scan_treemap(evil)):
        text = fig.data[0].to_plotly_json().__repr__() + repr(fig.layout.updatemenus)
        assert "<img" not in text
        assert "<i>" not in text


def test_the_comparison() -> None:
    cells = diff_table(CHANGES).data[0].cells["values"]
    assert list(cells[1]) == [s.name for s in CHANGES.structs]
    tree = diff_treemap(CHANGES)
    assert "mm_struct" in tree.data[0].labels
    assert meta(tree)["kind"] == "exact"


def test_nothing_found_is_still_a_figure() -> None:
    empty = replace(RESULT, rows=())
    assert scan_table(empty).data[0].cells["values"][0] == []
    assert len(scan_treemap(empty).data[0].ids or ()) == 0
    same = diff_sources(open_source("file-5.8"), open_source("file-5.8"))
    assert len(diff_treemap(same).data[0].ids or ()) == 0
