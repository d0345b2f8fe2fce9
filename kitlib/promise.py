"""Write rules that hold for a layout today: what a project would want to keep of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from kitlib.baseline import flat, snapshot
from kitlib.errors import DataError
from kitlib.guard import evaluate, outsiders
from kitlib.lines import Leaf, find_leaf, leaves, line_span
from kitlib.model import Layout
from kitlib.rules import Rule, Scope, StructRules
from kitlib.straddle import halves
from kitlib.tags import WRITTEN_TAGS


def write_rules(
    layout: Layout,
    hot: Iterable[str] = (),
    *,
    line_bytes: Sequence[int] = (64,),
    phases: Sequence[int] | None = (0,),
    exclusive: bool = False,
    source: str = "",
) -> StructRules:
    """Rules about the `hot` members of `layout` (none given: its locks, atomics and counters) that hold today.

    Each hot member keeps its line, or its straddle if it has one; hot members that share a line keep
    sharing it, those that do not stay apart; the struct may not grow onto more lines. With `exclusive`
    nobody new may enter a hot member's line. A snapshot is kept so that `kitlib.guard` can name the edit
    that breaks a rule. Raises `NotFound` for an unknown member and `DataError` if there is nothing to keep.
    """
    chosen = list(dict.fromkeys(hot)) or written_members(layout)
    if not chosen:
        raise DataError(f"{layout.title} has no lock, atomic or counter; say which members matter with --hot A,B")
    found = {path: find_leaf(layout, path) for path in chosen}
    rules: list[Rule] = []
    for size in line_bytes:
        scope = Scope((size,), None if phases is None else tuple(phases))
        for path, leaf in found.items():
            rules += _own_lines(layout, path, leaf, scope)
        rules += _pairs(found, scope)
        if exclusive:
            rules += _company(layout, found, scope)
    rules.append(Rule("size", "size", numbers=(("max_bytes", layout.size),), why="no growth since the baseline"))
    kept = [rule for rule in rules if _holds(rule, layout)]
    return StructRules(layout.name or "", _unique(kept), snapshot(layout, _paths(kept), source))


def written_members(layout: Layout) -> list[str]:
    """Members with a C name whose own type, or a type inside, is a lock, an atomic, a refcount or a counter."""
    tops = {place.path for place in flat(layout)}
    names: dict[str, None] = {}
    for leaf in leaves(layout, containers=True):
        top = leaf.path.split(".", 1)[0]
        if leaf.tags & WRITTEN_TAGS and top in tops and leaf.bit_size:
            names[top] = None
    return list(names)


def _holds(rule: Rule, layout: Layout) -> bool:
    """A line number is no promise at several phases unless it is the same at all of them: only keep what holds."""
    return evaluate(StructRules(layout.name or "", (rule,)), layout)[0].status == "pass"


def _paths(rules: Iterable[Rule]) -> list[str]:
    return list(dict.fromkeys(path for rule in rules for path in rule.members))


def _unique(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules under ids that differ."""
    return tuple({rule.id: rule for rule in rules}.values())


def _span(leaf: Leaf, scope: Scope) -> tuple[int, int]:
    return line_span(leaf.bit_offset, leaf.bit_size, scope.line_bytes[0], (scope.phases or (0,))[0])


def _label(kind: str, members: Sequence[str], scope: Scope) -> str:
    size = scope.line_bytes[0]
    name = "-".join([kind.replace("_", "-"), *members])
    return name if size == 64 else f"{name}-{size}"


def _own_lines(layout: Layout, path: str, leaf: Leaf, scope: Scope) -> list[Rule]:
    first, last = _span(leaf, scope)
    size = scope.line_bytes[0]
    if first == last:
        why = f"{path} is on {size}-byte line {first} today"
        fixed = Rule(_label("line", [path], scope), "on_line", (path,), (("line", first),), scope, why)
        return [fixed, Rule(_label("no_straddle", [path], scope), "no_straddle", (path,), (), scope, why)]
    if leaf.bit_size > size * 8:
        return [_start(path, leaf, scope)]
    why = f"{path} crosses from {size}-byte line {first} to {last} today"
    rules = [Rule(_label("straddle", [path], scope), "straddle", (path,), (), scope, why)]
    parts = halves(layout, path, size, (scope.phases or (0,))[0])
    if parts:
        why = f"{parts[0]} ends line {first} and {parts[1]} starts line {first + 1} today"
        rules.append(Rule(_label("apart", parts, scope), "apart", parts, (), scope, why))
    return rules


def _start(path: str, leaf: Leaf, scope: Scope) -> Rule:
    why = f"{path} is longer than a line; it starts here today"
    return Rule(f"offset-{path}", "at", (path,), (("offset", leaf.offset),), scope, why)


def _pairs(found: dict[str, Leaf], scope: Scope) -> list[Rule]:
    rules = []
    for (a, one), (b, two) in combinations(found.items(), 2):
        if a.startswith(b + ".") or b.startswith(a + "."):
            continue
        first, second = _span(one, scope), _span(two, scope)
        if first == second and first[0] == first[1]:
            why = f"on one {scope.line_bytes[0]}-byte line today"
            rules.append(Rule(_label("together", [a, b], scope), "together", (a, b), (), scope, why))
        elif first[1] < second[0] or second[1] < first[0]:
            why = f"on different {scope.line_bytes[0]}-byte lines today"
            rules.append(Rule(_label("apart", [a, b], scope), "apart", (a, b), (), scope, why))
    return rules


def _company(layout: Layout, found: dict[str, Leaf], scope: Scope) -> list[Rule]:
    rules = []
    tops = {place.path for place in flat(layout)}
    for path in found:
        here = outsiders(layout, (path,), scope.line_bytes[0], (scope.phases or (0,))[0])
        mates = [leaf.path.split(".", 1)[0] for leaf in here]
        own = path.split(".", 1)[0]
        allow = tuple(dict.fromkeys([*(m for m in mates if m in tops and m != own), *([own] if own != path else [])]))
        label = _label("company-of", [path], scope)
        why = f"nobody else is on the lines of {path} today"
        rules.append(Rule(label, "alone", (path,), (), scope, why, allow=allow))
    return rules
