"""Case files: what is read, and one clear line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from kitlib.cases import Case, open_case, read_case, shipped_cases
from kitlib.errors import DataError, NotFound

GOOD = """
format = "kitlib-case"
version = 1
title = "t"
struct = "file"
before = "file-5.8"
after = "file-5.8-patch"

[member]
name = "f_count"
meets = ["f_mode"]
"""


def read(tmp_path: Path, text: str) -> Case:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_case(path)


@pytest.mark.parametrize("name", shipped_cases())
def test_shipped_cases_are_complete(name: str) -> None:
    case = open_case(name)
    assert case.title
    assert case.about
    assert case.source
    assert case.unknown
    assert all(e.shared for e in case.evidence)


def test_a_small_case_has_defaults(tmp_path: Path) -> None:
    case = read(tmp_path, GOOD)
    assert (case.name, case.member, case.meets, case.line_bytes) == ("mine", "f_count", ("f_mode",), (64, 128))
    assert case.claim is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("kitlib-case", "other"), "must begin with format"),
        (('title = "t"', ""), "'title' must be text and is missing"),
        (('title = "t"', "titel = 1"), "unknown key 'titel'; did you mean title"),
        (('["f_mode"]', '"f_mode"'), "'meets' must be a list of texts"),
        (("[member]", "[[member]]"), "must be a table"),
        (('after = "file-5.8-patch"', 'after = "file-5.8-patch'), "line 7, column"),
        (("[member]", "line_bytes = [48]\n[member]"), "32, 64, 128 or 256"),
        (("[member]", 'rules = "nowhere.toml"\n[member]'), "no file 'nowhere.toml'"),
        (("[member]", "randomised = 1\n[member]"), "true or false"),
        (("[member]", '[claim]\ntext = "x"\nmember = "f_count"\n[member]'), "'with' must name"),
        (("[member]", '[[evidence]]\nworkload = "big"\n[member]'), "'micro' or 'application'"),
        (("[member]", '[[evidence]]\nworkload = "micro"\n[member]'), "give either 'published'"),
        (("[member]", '[code]\nmember = "f_count"\nbefore = "cas"\nafter = "add"\n[member]'), "is no operation"),
        (("[member]", "evidence = 3\n[member]"), "must be written as [[evidence]]"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, GOOD.replace(*change))
    assert says in str(caught.value)
    assert "mine.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_case_offers_near_names() -> None:
    with pytest.raises(NotFound, match="did you mean struct-file-2020"):
        open_case("struct-fil-2020")
