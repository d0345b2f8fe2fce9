"""Self-contained HTML pages: one file that asks for nothing, with Plotly figures and explorers that work offline.

plotly.js is carried gzipped and inflated by the browser (``DecompressionStream``); a Content-Security-Policy lets
nothing be loaded from elsewhere. Everything that comes from data is escaped here.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from latex2mathml.converter import convert

from kitlib import __version__
from kitlib.figures.style import KIND_MEANS, KINDS, PLOTLY, plotly_js

EXPLORER_TYPE = "application/vnd.kitlib.explorer+json"
"""MIME type under which an explorer leaves its data among a cell's outputs."""
PLOTLY_TYPE = "application/vnd.plotly.v1+json"
CSP = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; form-action 'none'; base-uri 'none'"
)
PACK_FROM = 8_000
"""Characters from which a figure's JSON is carried gzipped."""
_HERE = Path(__file__).resolve().parent
_HEADING = re.compile(r'<h([23])[^>]*\bid="([^"]+)"[^>]*>(.*?)</h\1>', re.DOTALL)
_CODE_OR_MATH = re.compile(r"(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|(?<![\\$\w])\$([^$\n]+?)\$(?!\w)", re.DOTALL)


class Told(NamedTuple):
    """A question, its verdict, and the kinds of figure that the verdict rests on, as plain text."""

    question: str
    verdict: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the index: a page's file name, title, first sentences and its `Told`, all plain text."""

    file: str
    title: str
    about: str = ""
    verdicts: tuple[Told, ...] = ()


@cache
def front_end() -> str:
    """The explorer's front end as one ES module."""
    return "\n".join(_asset(name) for name in ("explorer_map.js", "explorer_page.js", "explorer.js"))


@cache
def styles() -> str:
    """The explorer's style sheet."""
    return _asset("explorer.css")


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def script_json(value: object) -> str:
    """JSON that is safe inside a script element: no ``<``, ``>`` or ``&`` is left in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def badge_html(kind: str, note: str = "") -> str:
    """The badge that says whether figures are exact, a model or measured."""
    style = KINDS[kind]  # type: ignore[index]
    means = KIND_MEANS[kind]  # type: ignore[index]
    text = f"{style.mark} {style.label}" + (f" · {note}" if note else "")
    return f'<span class="kit-badge kit-{kind}" title="{escape(means)}">{escape(text)}</span>'


def figure_html(figure: Mapping[str, Any], number: int = 1) -> str:
    """A Plotly figure (``fig.to_plotly_json()`` or its MIME bundle) for a page.

    Title and badge of a figure in the kit's style become its caption, its alternative text the label that screen
    readers read; any other figure is named by its title.
    """
    layout = dict(figure.get("layout", {}))
    kit = dict((layout.get("meta") or {}).get("kit", {}) if isinstance(layout.get("meta"), dict) else {})
    title = layout.get("title")
    title_text = str(title.get("text") or "" if isinstance(title, dict) else title or "")
    caption = ""
    if kit:
        layout.pop("title", None)
        layout["annotations"] = [a for a in layout.get("annotations", ()) if a.get("name") != "kit-badge"]
        _lower(layout)
        mark = badge_html(kit["kind"], kit.get("note", "")) if "kind" in kit else ""
        caption = f"<figcaption><span>{title_text}</span> {mark}</figcaption>"  # escaped by kitlib.figures.style
    layout.pop("meta", None)
    layout.pop("width", None)
    height = int(layout.get("height") or 420)
    spoken = escape(str(kit.get("alt") or title_text or f"figure {number}"))
    point = {"point": kit["point"]} if "point" in kit else {}
    data = script_json({"data": figure.get("data", []), "layout": layout, "config": PLOTLY, **point})
    return (
        f'<figure class="kit-figure">{caption}<div class="kit-scroll">'
        f'<div class="kit-plot" role="img" aria-label="{spoken}" '
        f'style="height:{height}px;min-width:{int(kit.get("min_width", 0))}px"></div></div>'
        f"{_carried(data)}</figure>"
    )


def _carried(data: str) -> str:
    """JSON for a figure inside a script element, gzipped where that pays."""
    if len(data) < PACK_FROM:
        return f'<script type="application/json">{data}</script>'
    packed = _packed(gzip.compress(data.encode(), 9, mtime=0))
    return f'<script type="application/octet-stream">{packed}</script>'


def _lower(layout: dict[str, Any]) -> None:
    """Take away the room that title and badge had above the plot."""
    margin = dict(layout.get("margin") or {})
    top = int(margin.get("t", 64))
    kept = 36 if (layout.get("xaxis") or {}).get("side") == "top" else 24
    if top > kept:
        layout["margin"] = {**margin, "t": kept}
        if layout.get("height"):
            layout["height"] = layout["height"] - (top - kept)


def explorer_html(data: Mapping[str, Any]) -> str:
    """An explorer for a page, from the values of `kitlib.states.page_data`."""
    packed = _packed(gzip.compress(script_json(data).encode(), 9, mtime=0))
    return (
        '<div class="kit-host"><noscript>The explorer needs JavaScript.</noscript></div>'
        f'<script type="application/octet-stream" class="kit-states">{packed}</script>'
    )


def math_to_mathml(markdown: str) -> str:
    r"""`markdown` with ``$…$`` and ``$$…$$`` turned into MathML, which needs no script; code is left alone.

    >>> math_to_mathml("cost `$x`")
    'cost `$x`'
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        display = match[2] is not None
        return str(convert((match[2] or match[3]).strip(), display="block" if display else "inline"))

    return _CODE_OR_MATH.sub(replaced, markdown)


def contents_html(body: str) -> str:
    """A contents list of the second and third headings in `body`; empty if there are fewer than two."""
    found = [(level, anchor, _plain(text)) for level, anchor, text in _HEADING.findall(body)]
    if len(found) < 2:
        return ""
    rows = "".join(f'<li class="level{level}"><a href="#{anchor}">{text}</a></li>' for level, anchor, text in found)
    return f'<nav class="kit-contents" aria-label="Contents"><h2>Contents</h2><ol>{rows}</ol></nav>'


def _with_contents(body: str) -> str:
    """`body` with its contents list behind the first heading (in front of everything if there is none)."""
    head, found, rest = body.partition("</h1>")
    return f"{head}{found}{contents_html(body)}{rest}" if found else contents_html(body) + body


def _plain(markup: str) -> str:
    """The text of a heading, without its anchor and without markup; entities stay escaped."""
    return re.sub(r"<[^>]+>", "", re.sub(r'<a class="anchor-link".*?</a>', "", markup, flags=re.DOTALL)).strip()


def page_html(
    title: str,
    body: str,
    *,
    about: str = "",
    home: str = "index.html",
    verdicts: Sequence[Told] = (),
) -> str:
    """A whole page around `body` (markup that is trusted or escaped); `title`, `about` and `verdicts` (for the index)
    are plain text.

    plotly.js is carried along only if there is a figure or an explorer. `home` links back to the index ("" for none).
    """
    needs_plotly = 'class="kit-figure"' in body or 'class="kit-host"' in body
    library = (
        f'<script type="application/octet-stream" id="kit-plotly">{_packed(plotly_js())}</script>'
        if needs_plotly
        else ""
    )
    back = f'<a href="{escape(home)}">All reports</a>' if home else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{CSP}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="kitlib {__version__}">
<meta name="description" content="{escape(about)}">
{_verdict_marks(verdicts)}<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{styles()}{_asset("page.css")}</style>
</head>
<body>
<header class="kit-top">{back}<button type="button" id="kit-theme" hidden>Theme: auto</button></header>
<main class="kit-page">{_with_contents(body)}</main>
{library}<script type="module">{front_end()}
{_asset("page.js")}</script>
</body>
</html>
"""


def _verdict_marks(verdicts: Sequence[Told]) -> str:
    marks = (escape(f"{' '.join(told.kinds)}|{told.question}|{told.verdict}") for told in verdicts)
    return "".join(f'<meta name="kit-verdict" content="{mark}">\n' for mark in marks)


REVIEW_PREFIX = "review-"
_SECTIONS = (
    ("Start here", ("0", f"{REVIEW_PREFIX}struct-file-2020")),
    ("Reviews: one change, a reviewer's questions, answers", (REVIEW_PREFIX,)),
    ("Investigations", ("1",)),
    ("Your own struct, report, kernel", ("2",)),
)
"""Headings of the index, and how the files of each begin; other pages follow under "More"."""


def _section(heading: str, entries: Sequence[Entry]) -> str:
    rows = "".join(
        f'<li><a href="{escape(e.file)}">{escape(e.title)}</a><p>{escape(e.about)}</p>{_short(e)}</li>' for e in entries
    )
    return f'<h2>{escape(heading)}</h2><ul class="kit-index">{rows}</ul>' if rows else ""


def _short(entry: Entry) -> str:
    rows = "".join(
        f"<li>{escape(t.question)} <strong>{escape(t.verdict)}</strong> {' '.join(map(badge_html, t.kinds))}</li>"
        for t in entry.verdicts
    )
    return f'<ul class="kit-short">{rows}</ul>' if rows else ""


def index_html(entries: Iterable[Entry]) -> str:
    """The page that lists all reports, in sections."""
    left = list(entries)
    sections = ""
    for heading, starts in (*_SECTIONS, ("More", ("",))):
        here = [e for e in left if e.file.startswith(starts)]
        left = [e for e in left if e not in here]
        sections += _section(heading, here)
    legend = "".join(f"<li>{badge_html(kind)} {escape(means)}</li>" for kind, means in KIND_MEANS.items())
    body = (
        "<h1>Struct layouts and what they cost: reports</h1>"
        f"{sections}"
        f'<h2>Three kinds of figure</h2><ul class="kit-legend">{legend}</ul>'
    )
    return page_html("Struct layouts: reports", body, about="All reports", home="")


def read_entry(path: Path) -> Entry | None:
    """What the index says of the page at `path`; None if the kit did not write it."""
    head = path.read_text(encoding="utf-8", errors="replace")[:4000]
    title = re.search(r"<title>(.*?)</title>", head, re.DOTALL)
    about = re.search(r'<meta name="description" content="(.*?)">', head, re.DOTALL)
    if '<meta name="generator" content="kitlib' not in head or title is None:
        return None
    verdicts = re.findall(r'<meta name="kit-verdict" content="([a-z ]*)\|(.*?)\|(.*?)">', head)
    return Entry(
        path.name,
        _unescaped(title[1]),
        _unescaped(about[1]) if about else "",
        tuple(Told(_unescaped(q), _unescaped(v), tuple(k for k in ks.split() if k in KINDS)) for ks, q, v in verdicts),
    )


def _unescaped(text: str) -> str:
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text
