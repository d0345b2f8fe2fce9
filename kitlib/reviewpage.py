"""A review as HTML: the answers in the first screen, each opening what it rests on. Everything is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from kitlib.answer import Answer, Fact
from kitlib.evidence import tables
from kitlib.figures.bench import delta_forest
from kitlib.figures.layout import before_after, cacheline_map
from kitlib.figures.risk_random import probability_bars
from kitlib.page import Told, badge_html, explorer_html, figure_html, page_html, styles
from kitlib.questions import TRIALS
from kitlib.randstats import ask_modes
from kitlib.randstruct import MODES
from kitlib.review import Review
from kitlib.reviewtext import review_text
from kitlib.states import Subject, View, page_data

CONFIDENCE = {
    "high": "exact arithmetic, or a drawing large enough",
    "medium": "a model, or figures of one kind",
    "low": "few or undecided measurements",
    "none": "not determined",
}


IN_INDEX = 3
"""Answers of a review that the index of pages shows."""
TERMS = {
    "cache line": "the unit in which processors move memory, 64 bytes on most machines; some act on pairs, 128 bytes",
    "shares a line with": "a write to one member takes the whole line, with all others on it, from every other CPU",
    "micro-benchmark": "a loop of one or a few calls, as against an application",
    "path run": "one pass through a piece of code, such as a lookup or a close",
    "hot, cold, shared": "an object in this CPU's own cache, in no cache, in use by other CPUs at the same time",
    "decided": "the runs differ by more than chance explains; otherwise the verdict is undecided",
    "mode": "one of the ways in which a compiler randomises member order",
    "score": "0 to 100, from types and names: how much a writer and its line-mates look contended or often read",
    "member of the promise": "a member that must keep its place for the change to last",
}


@dataclass(frozen=True, slots=True, repr=False)
class ReviewPage:
    """Shows a `Review` in a notebook and in its page."""

    review: Review

    def __repr__(self) -> str:
        return review_text(self.review)

    def _repr_html_(self) -> str:
        rows = "".join(_row(answer) for answer in self.review.answers)
        head = "<thead><tr><th>question</th><th>verdict</th><th>confidence</th></tr></thead>"
        table = (
            f'<div class="kit-scroll"><table class="kit-table kit-verdicts">{head}<tbody>{rows}</tbody></table></div>'
        )
        parts = "".join(_details(answer) for answer in self.review.answers)
        return f'<style>{styles()}</style><div class="kit-review">{table}{parts}</div>'


def _kinds(answer: Answer) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.kind for fact in answer.facts))


def _row(answer: Answer) -> str:
    kinds = " ".join(map(badge_html, _kinds(answer)))
    anchor = f'<a href="#answer-{escape(answer.key)}">{escape(answer.question)}</a>'
    meaning = escape(CONFIDENCE[answer.confidence])
    sure = f'<span title="{meaning}">{escape(answer.confidence)}</span>'
    return f"<tr><td>{anchor}</td><td><strong>{escape(answer.verdict)}</strong> {kinds}</td><td>{sure}</td></tr>"


def _details(answer: Answer) -> str:
    facts = "".join(_fact(fact) for fact in answer.facts)
    unknown = "".join(f"<li>{escape(text)}</li>" for text in answer.unknown)
    parts = [
        f'<p id="answer-{escape(answer.key)}"><strong>{escape(answer.question)}</strong> {escape(answer.text)}</p>'
    ]
    body = f"<ul>{facts}</ul>" if facts else ""
    if unknown:
        body += f"<p>Not known:</p><ul>{unknown}</ul>"
    if answer.settle:
        body += f"<p>What would settle it: <code>{escape(answer.settle)}</code></p>"
    if body:
        parts.append(f"<details><summary>what this rests on ({len(answer.facts)})</summary>{body}</details>")
    return "".join(parts)


def _fact(fact: Fact) -> str:
    source = f" <small>({escape(fact.source)})</small>" if fact.source else ""
    return f"<li>{badge_html(fact.kind)} {escape(fact.text)}{source}</li>"


def figures_of(review: Review) -> list[tuple[str, Any]]:
    """Headings and figures of a review: the layouts, the evidence, the random layouts. Empty parts are left out."""
    case = review.case
    found: list[tuple[str, Any]] = []
    if review.before != review.after:
        found.append(("The layouts", before_after(review.before, review.after, highlight=[_top(case.member)])))
    else:
        found.append(
            ("The layout, the same before and after", cacheline_map(review.before, highlight=[_top(case.member)]))
        )
    if judged := tables(case):
        found.append(("What was measured", delta_forest(judged)))
    if case.randomised and review.before != review.after:
        risks = [ask_modes(x, (case.member, *case.meets), MODES, trials=TRIALS) for x in (review.before, review.after)]
        found.append(("Randomised layouts", probability_bars(*risks)))
    return found


def review_html(review: Review) -> str:
    """The whole page of a review: verdicts, details, figures and an explorer that works offline."""
    case = review.case
    parts = [f"<h1>{escape(case.title)}</h1><p>{escape(case.about)}</p>", ReviewPage(review)._repr_html_()]
    for number, (heading, figure) in enumerate(figures_of(review), 1):
        parts.append(f"<h2>{escape(heading)}</h2>{figure_html(figure.to_plotly_json(), number)}")
    if review.before.replaceable:
        subject = Subject({review.before.title: review.before}, review.before)
        data = page_data(subject, View(_top(case.member)))
        parts.append(f"<h2>Move it yourself</h2>{explorer_html(data)}")
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(means)}</dd>" for term, means in TERMS.items())
    parts.append(f"<h2>Terms on this page</h2><dl>{terms}</dl>")
    parts.append(f"<p><small>Source of the case: {escape(case.source)}</small></p>")
    verdicts = [Told(a.question, a.verdict, _kinds(a)) for a in review.answers[:IN_INDEX]]
    return page_html(case.title, "".join(parts), about=case.about, verdicts=verdicts)


def _top(path: str) -> str:
    return path.partition(".")[0]
