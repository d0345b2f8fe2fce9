"""The parts of a review: facts of a known kind, and answers that rest on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

FactKind = Literal["exact", "model", "measured"]
Confidence = Literal["high", "medium", "low", "none"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure in words, with its kind and where it is from."""

    text: str
    kind: FactKind
    source: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question comes to. ``verdict`` is a few words, ``text`` a sentence or two in plain English.

    ``confidence`` is "none" where nothing could be determined; ``unknown`` says what is not known and
    ``settle`` is the command or step that would settle it.
    """

    key: str
    question: str
    verdict: str
    confidence: Confidence
    text: str
    facts: tuple[Fact, ...] = ()
    unknown: tuple[str, ...] = ()
    settle: str = ""

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "key": self.key,
            "question": self.question,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "text": self.text,
            "facts": [{"text": f.text, "kind": f.kind, "source": f.source} for f in self.facts],
            "unknown": list(self.unknown),
            "settle": self.settle,
        }


def listed(names: list[str] | tuple[str, ...], none: str = "nothing") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if not names:
        return none
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
