"""A review as text for a terminal."""

from __future__ import annotations

from kitlib.review import Review


def review_text(review: Review) -> str:
    """The review for a terminal."""
    lines = [review.case.title, ""]
    for answer in review.answers:
        lines.append(f"{answer.question}  {answer.verdict}  [confidence: {answer.confidence}]")
        lines.append(f"  {answer.text}")
        lines += [f"    [{fact.kind}] {fact.text}" for fact in answer.facts]
        lines += [f"    not known: {text}" for text in answer.unknown]
        lines += [f"    would settle it: {answer.settle}"] if answer.settle else []
        lines.append("")
    return "\n".join(lines).rstrip()
