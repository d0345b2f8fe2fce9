"""What the words around the figures say: test case, machine, commits, and with or without what."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

_CLAIM = re.compile(
    r"noticed an? (?P<size>[-+]?\d[\d.]{0,12}(?:e[+-]?\d{1,3})?%) (?P<what>improvement|regression) of "
    r"(?P<metric>\S{1,300}?) due to"
)
_SUBJECT = re.compile(
    r"(?P<metric>[a-z][\w-]{1,60}\.\S{1,200})\s{1,4}(?P<size>[-+]?\d[\d.]{0,12}%)\s{1,4}"
    r"(?P<what>improvement|regression)"
)
_BARE = re.compile(r"\d[\d.]{0,12}% (?:improvement|regression)")
_WITH = re.compile(r"\b(with(?:out)?)\b", re.IGNORECASE)
_PATCH = re.compile(r"\b(?:(this|the|any|my|both|no)\s{1,3})?patch(?:es)?\b(?:\s{0,3}(\[\d{1,3}\]))?", re.I)
_PLACE = re.compile(r"\bon ((?:[A-Z0-9][\w().+-]{0,60} ?){1,6})")
_COPIES = re.compile(r"\brunning (\d{1,6}) parallel cop(?:y|ies)\b")
_PLAIN_LABELS = {
    "before": 0, "base": 0, "baseline": 0, "vanilla": 0, "unpatched": 0, "original": 0, "old": 0,
    "parent": 0, "after": 1, "patched": 1, "new": 1, "fixed": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """What a block of figures was measured under.

    `factors` says which changes were in (1) or out (0); ("any", 0) means none at all. Two blocks can
    be compared when `place` and `copies` agree.
    """

    label: str = ""
    factors: tuple[tuple[str, int], ...] = ()
    place: str = ""
    copies: int | None = None
    line: int = 0


@dataclass(slots=True)
class Context:
    """The state of the surrounding text, updated line by line."""

    headline: str | None = None
    claim: str | None = None
    testcase: str = ""
    machine: str = ""
    culprit: str = ""
    parameters: list[tuple[str, str]] = field(default_factory=list)
    condition: Condition = Condition()
    bare_claim: str = ""
    _in_parameters: bool = False
    _blank: bool = True

    def feed(self, text: str, number: int) -> None:
        """Take in one cleaned line."""
        if not text or text.isspace():
            if self.parameters:
                self._in_parameters = False
            return
        head = text[:300]
        stripped = head.strip()
        if self._in_parameters and not self._parameter(stripped):
            self._in_parameters = False
        if "noticed a" in head:
            self._claim(_CLAIM.search(head))
        elif "improvement" in head or "regression" in head:
            if self.headline is None:
                self._claim(_SUBJECT.search(head))
            if not self.bare_claim and (found := _BARE.search(head)):
                self.bare_claim = f"'{found[0]}' (line {number})"
        if stripped.startswith("in testcase:"):
            self.testcase = stripped[12:].strip()
        elif "on test machine:" in head:
            self.machine = head.partition("on test machine:")[2].strip()
        elif stripped.startswith("commit:") and len(stripped) > 20:
            self.culprit = stripped[7:].split()[0]
        elif stripped.startswith("with following parameters"):
            self._in_parameters, self.parameters = True, []
        elif stripped.startswith("test-description"):
            self._in_parameters = False
        else:
            self._condition(stripped, number)

    def _claim(self, found: re.Match[str] | None) -> None:
        if found:
            self.headline = found["metric"]
            self.claim = f"{found['size']} {found['what']}"

    def _parameter(self, text: str) -> bool:
        key, colon, value = text.partition(":")
        if not colon or " " in key or "." in key or not value.strip():
            return False
        self.parameters.append((key.strip(), value.strip()))
        return True

    def _condition(self, text: str, number: int) -> None:
        words = text.rstrip(":").strip().lower()
        if copies := _copies(text):
            self.condition = replace(self.condition, copies=copies)
            return
        place = _place(text)
        factors = parse_factors(text)
        if words in _PLAIN_LABELS:
            factors = (("change", _PLAIN_LABELS[words]),)
        if factors:
            label = text.rstrip(":").strip() if len(text) < 80 else factor_label(factors)
            if place:
                label = factor_label(factors)
            self.condition = Condition(label, factors, place or self.condition.place, None, number)
        elif place and "patch" not in text:
            self.condition = replace(self.condition, place=place)


def _copies(text: str) -> int | None:
    if "parallel cop" in text and (found := _COPIES.search(text)):
        return int(found[1])
    first, _, rest = text.partition(" ")
    if first.isdigit() and rest.startswith("x ") and len(first) < 7 and len(rest) > 4:
        return int(first)
    return None


def _place(text: str) -> str:
    """The platform in "… on Huawei Kunpeng920 with this patch": named parts, first letter capital."""
    if " on " not in f" {text}" or not re.search(r"patch|run on|platform|unixbench", text, re.I):
        return ""
    found = _PLACE.search(text)
    if not found:
        return ""
    name = _WITH.split(found[1].partition(". ")[0])[0].strip()
    return re.sub(r"\(\w{1,12}\)\.?$", "", name).rstrip(".:,")


def parse_factors(text: str) -> tuple[tuple[str, int], ...]:
    """``"with this patch and without the patch [1]"`` → (("this patch", 1), ("patch [1]", 0))."""
    if "patch" not in text or "ith" not in text:
        return ()
    pieces = _WITH.split(text[:300])
    found: dict[str, int] = {}
    for word, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        state = 0 if word.lower() == "without" else 1
        for which, mark in _PATCH.findall(piece):
            which = which.lower()
            if which in ("any", "no", "both"):
                return (("any", 0 if which == "no" else state),)
            found[f"patch {mark}" if mark else "this patch"] = state
    return tuple(found.items())


def factor_label(factors: tuple[tuple[str, int], ...]) -> str:
    """The words for a set of factors: "with this patch, without patch [1]"."""
    return ", ".join(f"{'with' if on else 'without'} {name}" for name, on in factors)
