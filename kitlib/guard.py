"""Check layouts against rules, say which edit broke one, and write rules from a layout as it is today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from kitlib.baseline import History, history, snapshot
from kitlib.errors import NotFound
from kitlib.lines import Leaf, find_leaf, leaves, line_span, n_lines
from kitlib.model import ABIS, Layout
from kitlib.rules import Rule, RuleFile, StructRules
from kitlib.source import Source, definitions

Status = Literal["pass", "fail", "undecided", "skipped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one rule. ``places`` are the (line_bytes, phase) at which it failed; ``edits`` say why.

    ``undecided``: the rule could not be evaluated (a member is gone, the configuration is not known); that is
    never a pass. ``skipped``: the rule is for another configuration.
    """

    struct: str
    rule: Rule
    status: Status
    message: str
    places: tuple[tuple[int, int], ...] = ()
    edits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a rule file on one source."""

    rules: str
    source: str
    outcomes: tuple[Outcome, ...]

    def count(self, status: Status) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def ok(self) -> bool:
        """Every rule that applies holds, and at least one does apply."""
        return self.count("pass") > 0 and not self.count("fail") and not self.count("undecided")


def check(rules: RuleFile, source: Source, config: Mapping[str, str] | None = None) -> Report:
    """Evaluate all `rules` on `source`. `config` maps ``CONFIG_X`` to ``y``, ``m`` or a value, if known.

    Where several layouts go by a struct's name, a rule must hold for each of them. Raises `NotFound` for a
    struct that the source has not.
    """
    outcomes: list[Outcome] = []
    for group in rules.structs:
        layouts = definitions(source, group.struct)
        each = zip(*(evaluate(group, layout, config) for layout in layouts), strict=True)
        outcomes += (_worst(found, layouts) for found in each)
    return Report(rules.where, source.label, tuple(outcomes))


_GRAVITY: tuple[Status, ...] = ("fail", "undecided", "pass", "skipped")


def _worst(found: Sequence[Outcome], layouts: Sequence[Layout]) -> Outcome:
    """The outcome that counts of those of one rule on several layouts."""
    at = min(range(len(found)), key=lambda i: _GRAVITY.index(found[i].status))
    if len(found) == 1 or found[at].status in ("pass", "skipped"):
        return found[at]
    which = f"definition {at + 1} of {len(found)} ({layouts[at].size} bytes): "
    return replace(found[at], message=which + found[at].message)


def evaluate(group: StructRules, layout: Layout, config: Mapping[str, str] | None = None) -> list[Outcome]:
    """Evaluate the rules of one struct on `layout`."""
    since = None
    if group.baseline is not None and _comparable(group.baseline.abi, layout):
        since = history(group.baseline, snapshot(layout, group.paths), group.paths)
    return [_evaluate(rule, group.struct, layout, config, since) for rule in group.rules]


def _comparable(abi: str, layout: Layout) -> bool:
    """Whether a baseline taken on `abi` says anything of this layout: pointers must have the same size."""
    return abi not in ABIS or ABIS[abi].pointer_bytes == layout.abi.pointer_bytes


def _evaluate(
    rule: Rule, struct: str, layout: Layout, config: Mapping[str, str] | None, since: History | None
) -> Outcome:
    applies, why = _applies(rule, layout, config)
    if applies is not None:
        return Outcome(struct, rule, applies, why)
    found: dict[str, Leaf] = {}
    for path in rule.members:
        try:
            found[path] = find_leaf(layout, path)
        except NotFound as error:
            edits = tuple(since.explain(path)) if since is not None else ()
            return Outcome(struct, rule, "undecided", f"cannot be evaluated: {error}", edits=edits)
    broken, first, blamed = [], "", dict.fromkeys(rule.members)
    for line_bytes, phase in rule.scope.positions(layout.align):
        problem = _TESTS[rule.kind](rule, layout, found, line_bytes, phase)
        if problem is not None:
            broken.append((line_bytes, phase))
            first = first or problem.text
            blamed.update(dict.fromkeys(problem.others))
    if not broken:
        return Outcome(struct, rule, "pass", "holds")
    return Outcome(struct, rule, "fail", _where(first, broken, rule), tuple(broken), _edits(rule, since, blamed))


def _where(text: str, broken: list[tuple[int, int]], rule: Rule) -> str:
    if rule.kind in ("at", "size"):
        return text
    line_bytes, phase = broken[0]
    at = f" (line {line_bytes} bytes" + (f", phase {phase}" if phase else "")
    return text + at + (f"; and {len(broken) - 1} more line sizes or phases)" if len(broken) > 1 else ")")


def _edits(rule: Rule, since: History | None, blamed: Iterable[str]) -> tuple[str, ...]:
    if since is None:
        return ()
    if rule.kind == "size":
        return tuple(since.explain_size())
    told: dict[str, None] = {}
    for path in blamed:
        told.update(dict.fromkeys(since.explain(path)))
    if rule.kind == "lines" and not rule.members:
        told.update(dict.fromkeys(since.explain_size()))
    return tuple(told)


def _applies(rule: Rule, layout: Layout, config: Mapping[str, str] | None) -> tuple[Status | None, str]:
    scope = rule.scope
    if scope.abis and layout.abi.name not in scope.abis:
        return "skipped", f"for {', '.join(scope.abis)}, not {layout.abi.name}"
    for names, wanted in ((scope.with_members, True), (scope.without_members, False)):
        for path in names:
            if _has(layout, path) != wanted:
                return "skipped", f"for builds {'with' if wanted else 'without'} {path}"
    if scope.config and config is None:
        options = ", ".join(scope.config)
        return "undecided", f"cannot be evaluated: it is for {options}; give the build's .config with --config FILE"
    for option in scope.config:
        name = option.removeprefix("!")
        on = (config or {}).get(name, "n") not in ("n", "")
        if on == option.startswith("!"):
            return "skipped", f"for builds with {option}"
    return None, ""


def _has(layout: Layout, path: str) -> bool:
    try:
        find_leaf(layout, path)
    except NotFound:
        return False
    return True


def read_config(text: str) -> dict[str, str]:
    """Options of a kernel ``.config``: ``CONFIG_X=y`` lines; what is not set is left out."""
    pairs = (line.strip().split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_") and "=" in line)
    return dict(pairs)


# -- the kinds of rule --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    others: tuple[str, ...] = ()


_Test = Callable[[Rule, Layout, dict[str, Leaf], int, int], _Problem | None]


def _span(leaf: Leaf, line_bytes: int, phase: int) -> tuple[int, int]:
    return line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)


def _on(span: tuple[int, int]) -> str:
    return f"line {span[0]}" if span[0] == span[1] else f"lines {span[0]}–{span[1]}"


def _apart(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    for a, b in combinations(rule.members, 2):
        one, two = _span(found[a], line_bytes, phase), _span(found[b], line_bytes, phase)
        if one[0] <= two[1] and two[0] <= one[1]:
            shared = max(one[0], two[0])
            return _Problem(f"{a} (offset {found[a].offset}) and {b} (offset {found[b].offset}) share line {shared}")
    return None


def _together(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    spans = [_span(leaf, line_bytes, phase) for leaf in found.values()]
    first, last = min(s[0] for s in spans), max(s[1] for s in spans)
    allowed = rule.number("lines", 1)
    if last - first + 1 <= allowed:
        return None
    each = ", ".join(f"{path} on {_on(span)}" for path, span in zip(found, spans, strict=True))
    return _Problem(f"{each}: {last - first + 1} lines, {allowed} allowed")


def _at(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    leaf, wanted = found[rule.members[0]], rule.number("offset")
    if leaf.bit_offset == wanted * 8:
        return None
    return _Problem(f"{rule.members[0]} is at offset {leaf.offset}, not {wanted}")


def _on_line(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    wanted = rule.number("line")
    for path, leaf in found.items():
        span = _span(leaf, line_bytes, phase)
        if span != (wanted, wanted):
            return _Problem(f"{path} (offset {leaf.offset}) is on {_on(span)}, not on line {wanted}")
    return None


def _no_straddle(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    for path, leaf in found.items():
        span = _span(leaf, line_bytes, phase)
        if span[0] != span[1]:
            return _Problem(f"{path} (offset {leaf.offset}, {leaf.size} bytes) crosses from {_on(span)}")
    return None


def _straddle(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    for path, leaf in found.items():
        span = _span(leaf, line_bytes, phase)
        if span[0] == span[1]:
            return _Problem(f"{path} (offset {leaf.offset}, {leaf.size} bytes) lies on {_on(span)} alone")
    return None


def outsiders(
    layout: Layout, members: Iterable[str], line_bytes: int, phase: int, allow: Iterable[str] = ()
) -> list[Leaf]:
    """Leaves on a line that one of `members` touches, other than the members, `allow` and what is in them."""
    members = tuple(members)
    own = (*members, *allow)
    taken = [_span(find_leaf(layout, path), line_bytes, phase) for path in members]
    found = []
    for leaf in leaves(layout):
        if leaf.bit_size == 0 or any(leaf.path == path or leaf.path.startswith(path + ".") for path in own):
            continue
        first, last = _span(leaf, line_bytes, phase)
        if any(first <= high and low <= last for low, high in taken):
            found.append(leaf)
    return found


def _alone(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    others = outsiders(layout, rule.members, line_bytes, phase, rule.allow)
    if not others:
        return None
    names = list(dict.fromkeys(leaf.path or leaf.type for leaf in others))
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return _Problem(f"{shown} on a line kept for {', '.join(rule.members)}", tuple(names))


def _size(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    exact, most = rule.number("bytes"), rule.number("max_bytes")
    if exact and layout.size != exact:
        return _Problem(f"{layout.title} has {layout.size} bytes, not {exact}")
    if most and layout.size > most:
        return _Problem(f"{layout.title} has {layout.size} bytes, at most {most} allowed")
    return None


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """How many lines the (first, last) `spans` touch together."""
    count, end = 0, -1
    for first, last in sorted(spans):
        count += max(0, last - max(first, end + 1) + 1)
        end = max(end, last)
    return count


def _lines(rule: Rule, layout: Layout, found: dict[str, Leaf], line_bytes: int, phase: int) -> _Problem | None:
    spans = [_span(leaf, line_bytes, phase) for leaf in found.values()]
    count = _covered(spans) if rule.members else n_lines(layout, line_bytes, phase)
    if count <= rule.number("max_lines"):
        return None
    who = ", ".join(rule.members) or layout.title
    return _Problem(f"{who} on {count} lines, at most {rule.number('max_lines')} allowed")


_TESTS: dict[str, _Test] = {
    "apart": _apart,
    "together": _together,
    "at": _at,
    "on_line": _on_line,
    "no_straddle": _no_straddle,
    "straddle": _straddle,
    "alone": _alone,
    "size": _size,
    "lines": _lines,
}
