"""A review: one change, the questions a reviewer asks of it, and answers that follow from data and analyses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kitlib.access import load_profile
from kitlib.answer import Answer
from kitlib.cases import Case
from kitlib.evidence import real_workloads
from kitlib.lines import find_leaf
from kitlib.model import Layout
from kitlib.questions import Subject, claim, keeps, others, randomised
from kitlib.sources import open_source
from kitlib.unshared import unshared


@dataclass(frozen=True, slots=True)
class Review:
    """A case with its layouts and answers, the claim's first."""

    case: Case
    before: Layout
    after: Layout
    answers: tuple[Answer, ...]

    def answer(self, key: str) -> Answer:
        """The answer with that key (``claim``, ``workloads``, ``keeps``, ``randomised``, ``others``, ``unshared``)."""
        return next(a for a in self.answers if a.key == key)

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "case": self.case.name,
            "title": self.case.title,
            "struct": self.case.struct,
            "before": self.case.before,
            "after": self.case.after,
            "answers": [answer.record() for answer in self.answers],
        }


def review_case(case: Case) -> Review:
    """Read the layouts of `case` and answer every question.

    Raises `SourceError`, `NotFound` or `DataError` if a layout, member, profile, figure or rule cannot be read.
    """
    before = open_source(case.before).struct(case.struct)
    after = open_source(case.after).struct(case.struct)
    for layout in (before, after):
        for name in (case.member, *case.meets):
            find_leaf(layout, name)
    profile = load_profile(case.profile) if case.profile else None
    subject = Subject(case, before, after, profile)
    questions = (claim, real_workloads, keeps, randomised, others, unshared)
    return Review(case, before, after, tuple(question(subject) for question in questions))
