"""The reviewer's questions that the layout itself answers: the claim, later edits, random layouts, other writers.

Each takes a `Subject` and gives an `Answer`; verdicts are computed, none is stored with a case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kitlib.access import Profile
from kitlib.answer import Answer, Confidence, Fact, listed
from kitlib.cases import Case
from kitlib.datafiles import data_root
from kitlib.diff import diff_layouts
from kitlib.fragility import Fragility, fragility
from kitlib.guard import evaluate
from kitlib.lines import Leaf, find_leaf, line_span, mates, share_line
from kitlib.model import Layout
from kitlib.promise import write_rules
from kitlib.randstats import Risk, ask_modes
from kitlib.randstruct import MODE_TITLES, MODES
from kitlib.rulefile import read_rules
from kitlib.rules import StructRules
from kitlib.scan import Row, scan
from kitlib.text import count

TRIALS = 100_000
"""Random layouts drawn a mode: a probability near one half is then known to about 0.003."""
HOT_SCORE = 50.0
"""Scan rows from this score are looked at; the hand-labelled sample was drawn from the same range."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A case with its layouts read; ``profile`` is None if the case has none."""

    case: Case
    before: Layout
    after: Layout
    profile: Profile | None

    @property
    def moved(self) -> bool:
        """Whether the layouts differ at all."""
        return self.before != self.after

    def meets(self, layout: Layout, line_bytes: int = 64) -> list[str]:
        """Which of the members that should keep away share a line with the case's member."""
        return [name for name in self.case.meets if share_line(layout, self.case.member, name, line_bytes)]


def claim(subject: Subject) -> Answer:
    """Is what the change says of the layout true? Exact."""
    case, question = subject.case, "Is the claim true?"
    if not subject.moved:
        change = diff_layouts(subject.before, subject.after)
        text = f"{subject.before.title} is the same before and after: {count(len(change.members), 'changed member')}."
        fact = Fact(f"size {subject.before.size}, every offset equal", "exact", subject.case.before)
        why = "The layout is excluded as a cause; look at the code."
        return Answer("claim", "Did the layout change?", "no: layout excluded", "high", f"{text} {why}", (fact,))
    if case.claim is None:
        return Answer("claim", question, "nothing is claimed", "none", "The change makes no statement about a line.")
    held = {size: [o for o in case.claim.others if share_line(subject.before, case.claim.member, o, size)]
            for size in case.line_bytes}  # fmt: skip
    true = [size for size, found in held.items() if len(found) == len(case.claim.others)]
    false = [size for size in held if size not in true]
    facts = [_where(subject.before, name, case.line_bytes) for name in (case.claim.member, *case.claim.others)]
    facts += [_company(subject.before, case.claim.member, size) for size in case.line_bytes]
    verdict = "true" if not false else "false" if not true else f"{_at('false', false)}, {_at('true', true)}"
    lead = f"\u201c{case.claim.text}\u201d is {verdict}, in this configuration."
    real = _names(mates(subject.before, case.claim.member, min(case.line_bytes)), case.claim.member)
    text = f"{lead} On its {min(case.line_bytes)}-byte line {case.claim.member} is together with {listed(real)}."
    return Answer("claim", question, verdict, "high", text, tuple(facts), settle=_show(case, case.before))


def _at(word: str, sizes: list[int]) -> str:
    return f"{word} at {listed([str(size) for size in sizes])} bytes"


def _where(layout: Layout, name: str, sizes: tuple[int, ...]) -> Fact:
    leaf = find_leaf(layout, name)
    spans = {size: line_span(leaf.bit_offset, leaf.bit_size, size) for size in sizes}
    lines = ", ".join(
        f"line {first} of {size} bytes" if first == last else f"lines {first} to {last} of {size} bytes"
        for size, (first, last) in spans.items()
    )
    return Fact(f"{name} is at offset {leaf.offset}: {lines}", "exact", _label(layout))


def _company(layout: Layout, name: str, size: int) -> Fact:
    return Fact(
        f"at {size} bytes {name} shares its line with {listed(_names(mates(layout, name, size), name))}",
        "exact",
        _label(layout),
    )


def _names(found: Iterable[Leaf], about: str) -> list[str]:
    """Names of leaves, each once: top-level ones, and inside the struct that holds `about` at its own depth."""
    own, depth = _top(about), about.count(".") + 1
    paths = (leaf.path.split(".") for leaf in found)
    return list(dict.fromkeys(".".join(p[:depth] if p[0] == own else p[:1]) for p in paths))


def _label(layout: Layout) -> str:
    return layout.source.label if layout.source else layout.title


def _show(case: Case, source: str) -> str:
    return f"kitlib show {source} {case.struct} --line-bytes {min(case.line_bytes)}"


# -- what stops a later edit ---------------------------------------------------------------------------


def keeps(subject: Subject) -> Answer:
    """What stops a later innocent edit from undoing the change? Exact."""
    question = "What stops a later edit from undoing it?"
    case = subject.case
    if not subject.moved:
        return Answer("keeps", question, "does not apply", "high", "No member moved, so there is no placement to keep.")
    group = _rules(subject)

    def holds(layout: Layout) -> bool:
        return not subject.meets(layout)

    if not holds(subject.after):
        together = listed(subject.meets(subject.after))
        if holds(subject.before):
            text = f"The change itself puts {case.member} on a line with {together}; before it they were apart."
        else:
            text = f"After the change {case.member} still shares a line with {together}: there is nothing to keep."
        return Answer("keeps", question, "nothing is gained", "high", text)
    if subject.after.reason is not None:
        return _cannot("keeps", question, subject.after)
    tried = fragility(subject.after, holds, frozenset({_top(n) for n in (case.member, *case.meets)}))
    total, broken = sum(f.tried for f in tried), [edit for f in tried for edit in f.broken]
    caught = sum(any(o.status == "fail" for o in evaluate(group, edit.apply(subject.after))) for edit in broken)
    itself = "The change carries an assertion." if case.guarded else "The change itself carries no assertion."
    share = f"{len(broken)} of {total} small edits undo it"
    rules = f"{count(len(group.rules), 'rule')} for kitlib check catch {caught} of these {len(broken)}"
    verdict = f"{'an assertion' if case.guarded else 'nothing in the change'}; {share}"
    facts = [_tried(f) for f in tried]
    facts += [Fact(rules, "exact", case.rules.name if case.rules else "written from the layout after the change")]
    facts += [Fact(f"before the change: {_score(group, subject.before)}", "exact", _label(subject.before))]
    text = f"{itself} {share}; {rules}."
    return Answer("keeps", question, verdict, "high", text, tuple(facts), settle=_guard(case))


def _cannot(key: str, question: str, layout: Layout) -> Answer:
    text = f"{layout.title} from {_label(layout)} cannot be re-placed ({layout.reason}), so no edit was tried."
    return Answer(key, question, "undecided", "none", text, settle="give a build in which the whole struct is known")


def _rules(subject: Subject) -> StructRules:
    """The case's own rules for its struct, or rules written from the layout after the change."""
    if subject.case.rules is not None:
        for group in read_rules(subject.case.rules).structs:
            if group.struct == subject.case.struct:
                return group
    return write_rules(subject.after, (subject.case.member, *subject.case.meets))


def _tried(found: Fragility) -> Fact:
    example = f", e.g. {found.broken[0]}" if found.broken else ""
    return Fact(
        f"{found.kind}: {len(found.broken)} of {found.tried} edits undo it{example}", "exact", "every edit tried"
    )


def _score(group: StructRules, layout: Layout) -> str:
    outcomes = evaluate(group, layout)
    failed = [o.rule.id for o in outcomes if o.status == "fail"]
    return f"{len(failed)} of {len(outcomes)} rules broken" + (f" ({listed(failed)})" if failed else "")


def _top(path: str) -> str:
    return path.partition(".")[0]


def _guard(case: Case) -> str:
    if case.rules is not None:
        ours = data_root()
        shown = case.rules.resolve()
        path = f"data/{shown.relative_to(ours)}" if shown.is_relative_to(ours) else case.rules
        return f"kitlib check {path} YOUR_BUILD"
    return f"kitlib guard {case.after} {case.struct} --hot {','.join((case.member, *case.meets))}"


# -- random layouts ------------------------------------------------------------------------------------


def randomised(subject: Subject) -> Answer:
    """What about kernels that randomise the layout? A model: layouts drawn as the plugin draws them."""
    question = "What about randomised layouts?"
    case = subject.case
    if not case.randomised:
        text = f"{subject.before.title} is not marked __randomize_layout, so no plugin shuffles it."
        return Answer("randomised", question, "does not apply", "high", text)
    if not subject.moved:
        return Answer(
            "randomised", question, "no difference", "high", "The layouts are equal, and so are their shuffles."
        )
    pair = (case.member, *case.meets)
    for layout in (subject.before, subject.after):
        if layout.reason is not None:
            return _cannot("randomised", question, layout)
    both = [ask_modes(layout, pair, MODES, trials=TRIALS) for layout in (subject.before, subject.after)]
    facts: list[Fact] = []
    helps: list[str] = []
    same: list[str] = []
    for before, after in zip(*both, strict=True):
        name = MODE_TITLES[before.mode]
        facts.append(
            Fact(f"{name}: {_chance(before)} before, {_chance(after)} after", "model", f"{TRIALS:,} draws a mode")
        )
        (helps if before.p_same_line.ci95[0] > after.p_same_line.ci95[1] + 0.05 else same).append(name)
    verdict = f"helps in {len(helps)} of {len(facts)} modes"
    text = (
        f"The chance that {case.member} shares a line with any of {listed(case.meets)}: it falls with {listed(helps)}"
    )
    text += f", and is about the same with {listed(same)}." if same else "."
    settle = f"kitlib randomize {case.before} {case.struct} --pair {','.join(pair)} --after {case.after}"
    return Answer("randomised", question, verdict, "high", text, tuple(facts), settle=settle)


def _chance(risk: Risk) -> str:
    low, high = risk.p_same_line.ci95
    return f"{risk.p_same_line.value:.3f} ({low:.3f} to {high:.3f})"


# -- every other lock and atomic -----------------------------------------------------------------------


def others(subject: Subject) -> Answer:
    """What about all the other locks and atomics that share lines? Who shares is exact; the score is a model."""
    question = "What about the other locks and atomics in the struct?"
    sides = [[row for row in scan([layout]) if row.score >= HOT_SCORE] for layout in (subject.before, subject.after)]
    before, after = sides
    facts = [Fact(_writer(row), "model", _label(subject.after)) for row in after]
    gone = sorted({r.member for r in before} - {r.member for r in after})
    new = sorted({r.member for r in after} - {r.member for r in before})
    changes = [f"no longer listed: {listed(gone)}"] * bool(gone) + [f"newly listed: {listed(new)}"] * bool(new)
    verdict = f"{count(len(after), 'more place', 'places')} to look at" if after else "none stands out"
    verb = "shares" if len(after) == 1 else "share"
    text = f"After the change {count(len(after), 'writer')} of the struct {verb} a line with members that others use"
    text += f" ({'; '.join(changes)})." if changes else ", the same as before."
    confidence: Confidence = "medium"
    settle = f"kitlib scan {subject.case.after} --struct {subject.case.struct}"
    return Answer("others", question, verdict, confidence, text, tuple(facts), settle=settle)


def _writer(row: Row) -> str:
    more = f" and {len(row.mates) - 6} more" if len(row.mates) > 6 else ""
    mates = ", ".join(row.mates[:6]) + more if more else listed(row.mates)
    return f"{row.member} ({row.kind}, score {row.score:.0f}) shares line {row.line} with {mates}"
