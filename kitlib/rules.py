"""Layout rules as values: what a project promises about a struct, and which promises exclude each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from kitlib.baseline import Snapshot
from kitlib.errors import DataError
from kitlib.lines import LINE_SIZES


@dataclass(frozen=True, slots=True)
class KindSpec:
    """What a kind of rule takes: number of members, number keys (all of `needs`, or one of `one_of`)."""

    about: str
    least: int = 1
    most: int | None = None
    needs: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.needs + self.one_of + self.optional


KINDS: dict[str, KindSpec] = {
    "apart": KindSpec("no two of the members on one line", 2),
    "together": KindSpec("the members within `lines` neighbouring lines (1 if not given)", 2, optional=("lines",)),
    "at": KindSpec("the member at `offset` bytes", 1, 1, needs=("offset",)),
    "on_line": KindSpec("each member wholly on line `line`, counted from 0", 1, needs=("line",)),
    "no_straddle": KindSpec("no member across a line boundary", 1),
    "straddle": KindSpec("each member across a line boundary, on purpose", 1),
    "alone": KindSpec("nobody but the members, and those in `allow`, on the lines they touch", 1),
    "size": KindSpec("the struct exactly `bytes`, or at most `max_bytes`", 0, 0, one_of=("bytes", "max_bytes")),
    "lines": KindSpec("the members (none named: the struct) touch at most `max_lines`", 0, needs=("max_lines",)),
}
_OPTION = re.compile(r"!?CONFIG_\w+", re.ASCII)
NUMBER_KEYS = tuple(dict.fromkeys(key for spec in KINDS.values() for key in spec.numbers))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a rule applies.

    ``line_bytes`` and ``phases``: the rule must hold for each combination; ``phases`` None stands for every
    phase that the struct's alignment allows. ``abis``: names of `kitlib.model.Abi` (empty: any).
    ``config``: ``CONFIG_X`` must be on, ``!CONFIG_X`` off. ``with_members`` / ``without_members``: the
    struct has / lacks them, which tells builds apart without a configuration file.
    """

    line_bytes: tuple[int, ...] = (64,)
    phases: tuple[int, ...] | None = (0,)
    abis: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    with_members: tuple[str, ...] = ()
    without_members: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [n for n in self.line_bytes if n not in LINE_SIZES]
        if wrong or not self.line_bytes:
            raise DataError(f"line_bytes {wrong or 'is empty'}: use some of {', '.join(map(str, LINE_SIZES))}")
        if self.phases is not None and (not self.phases or min(self.phases) < 0):
            raise DataError('phases: give bytes from 0, or "all"')
        if self.phases is not None and max(self.phases) >= min(self.line_bytes):
            raise DataError(f"phase {max(self.phases)} is outside a {min(self.line_bytes)}-byte line")
        self._check_conditions()

    def _check_conditions(self) -> None:
        """A rule that can never apply would be skipped for ever, and so look as if it were kept."""
        for option in self.config:
            if not _OPTION.fullmatch(option):
                raise DataError(f"config '{option}': write CONFIG_NAME, or !CONFIG_NAME for builds without it")
            if not option.startswith("!") and f"!{option}" in self.config:
                raise DataError(f"contradictory: {option} cannot be on and off, so the rule would never apply")
        for lacking in self.without_members:
            for present in self.with_members:
                if _inside(present, lacking):
                    text = f"with '{present}' and without '{lacking}'"
                    raise DataError(f"contradictory: no struct is {text}, so the rule would never apply")

    @property
    def conditions(self) -> frozenset[tuple[str, str]]:
        """The conditions as a set: a rule applies whenever all of them hold."""
        found = {("abi", "|".join(sorted(self.abis)))} if self.abis else set()
        found |= {("config", c) for c in self.config}
        found |= {("with", m) for m in self.with_members}
        return frozenset(found | {("without", m) for m in self.without_members})

    def positions(self, align: int) -> Iterator[tuple[int, int]]:
        """Each (line_bytes, phase) to check, for a struct aligned to `align` bytes."""
        for line_bytes in self.line_bytes:
            phases = range(0, line_bytes, min(align, line_bytes)) if self.phases is None else self.phases
            for phase in phases:
                yield line_bytes, phase


@dataclass(frozen=True, slots=True)
class Rule:
    """One promise.

    ``numbers`` holds the kind's number keys; ``allow`` who else may be on the line (kind ``alone`` only);
    ``file_line`` is where the rule stands in its file (0: in none).
    """

    id: str
    kind: str
    members: tuple[str, ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()
    scope: Scope = field(default_factory=Scope)
    why: str = ""
    file_line: int = 0
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        spec = KINDS.get(self.kind)
        if spec is None:
            raise DataError(f"kind '{self.kind}' is not known; use one of {', '.join(KINDS)}")
        self._check_members(spec)
        given = dict(self.numbers)
        missing = [key for key in spec.needs if key not in given]
        if missing or (spec.one_of and sum(key in given for key in spec.one_of) != 1):
            raise DataError(f"a rule of kind '{self.kind}' needs {' or '.join(spec.needs or spec.one_of)}")
        unknown = [key for key in given if key not in spec.numbers]
        if unknown:
            raise DataError(f"a rule of kind '{self.kind}' does not take {', '.join(unknown)}")
        zero_ok = ("offset", "line")
        if any(value < (0 if key in zero_ok else 1) for key, value in self.numbers):
            raise DataError(f"a rule of kind '{self.kind}': {self.numbers[0][0]} is too small")

    def _check_members(self, spec: KindSpec) -> None:
        count = len(self.members)
        if count < spec.least or (spec.most is not None and count > spec.most):
            wanted = f"{spec.least}" if spec.most == spec.least else f"at least {spec.least}"
            raise DataError(f"a rule of kind '{self.kind}' takes {wanted} members, not {count}")
        if self.allow and self.kind != "alone":
            raise DataError(f"a rule of kind '{self.kind}' does not take allow")
        if len(set(self.members)) != count:
            raise DataError(f"a rule of kind '{self.kind}' names a member twice")
        for a, b in combinations(self.members, 2):
            if self.kind == "apart" and (_inside(a, b) or _inside(b, a)):
                raise DataError(f"contradictory: '{a}' can never be apart from '{b}', one holds the other")

    def number(self, key: str, default: int = 0) -> int:
        return dict(self.numbers).get(key, default)


@dataclass(frozen=True, slots=True)
class StructRules:
    """The rules of one struct, and what it looked like when they were written."""

    struct: str
    rules: tuple[Rule, ...]
    baseline: Snapshot | None = None
    file_line: int = 0

    def __post_init__(self) -> None:
        ids = [rule.id for rule in self.rules]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise DataError(f"struct {self.struct}: rule id '{twice[0]}' is used twice; give each rule one of its own")
        find_contradiction(self)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every member that a rule names, each once."""
        return tuple(dict.fromkeys(path for rule in self.rules for path in (*rule.members, *rule.allow)))


@dataclass(frozen=True, slots=True)
class RuleFile:
    """All rules of a file; ``where`` is the file's name as given. A struct may have several groups of rules."""

    where: str
    structs: tuple[StructRules, ...]

    def __post_init__(self) -> None:
        groups: dict[str, list[Rule]] = {}
        for each in self.structs:
            groups.setdefault(_plain(each.struct), []).extend(each.rules)
        if len(groups) < len(self.structs):
            for name, rules in groups.items():
                StructRules(name, tuple(rules))  # ids used once, and no contradictions, over all groups of a struct


def _plain(struct: str) -> str:
    """The name alone, as sources take it with and without the keyword."""
    words = struct.split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("struct", "union", "class") else words)


def _inside(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer + ".")


# -- contradictions -----------------------------------------------------------------------------------


def find_contradiction(group: StructRules) -> None:
    """Raise `DataError` if two rules that apply at the same time can never both hold."""
    settings = {rule.scope.conditions for rule in group.rules}
    for conditions in sorted(settings, key=lambda s: sorted(s)):
        active = [rule for rule in group.rules if rule.scope.conditions <= conditions]
        _sizes_agree(active, group.struct)
        _offsets_agree(active, group.struct)
        for line_bytes in LINE_SIZES:
            for phase in _phases(active, line_bytes):
                here = [rule for rule in active if _covers(rule, line_bytes, phase)]
                _straddles_agree(here, group.struct, line_bytes)
                _Lines(here, group.struct, line_bytes, phase).check()


def _phases(rules: Iterable[Rule], line_bytes: int) -> list[int]:
    found: set[int] = set()
    for rule in rules:
        if line_bytes in rule.scope.line_bytes:
            found |= {0} if rule.scope.phases is None else set(rule.scope.phases)
    return sorted(found)


def _covers(rule: Rule, line_bytes: int, phase: int) -> bool:
    scope = rule.scope
    return line_bytes in scope.line_bytes and (scope.phases is None or phase in scope.phases)


def _clash(struct: str, a: Rule, b: Rule, why: str) -> DataError:
    lines = f" (lines {a.file_line} and {b.file_line})" if a.file_line and b.file_line else ""
    return DataError(f"struct {struct}: rules '{a.id}' and '{b.id}'{lines} are contradictory: {why}")


def _sizes_agree(rules: Iterable[Rule], struct: str) -> None:
    sized = [rule for rule in rules if rule.kind == "size"]
    for a, b in combinations(sized, 2):
        exact = [r.number("bytes") for r in (a, b) if r.number("bytes")]
        most = min(r.number("bytes") or r.number("max_bytes") for r in (a, b))
        if exact and max(exact) > most:
            raise _clash(struct, a, b, f"the size cannot be {max(exact)} and at most {most} bytes")
    for rule in rules:
        for size in sized:
            limit = size.number("bytes") or size.number("max_bytes")
            if rule.kind == "at" and rule.number("offset") >= limit:
                raise _clash(struct, rule, size, f"offset {rule.number('offset')} is outside {limit} bytes")


def _offsets_agree(rules: Iterable[Rule], struct: str) -> None:
    fixed: dict[str, Rule] = {}
    for rule in rules:
        if rule.kind != "at":
            continue
        other = fixed.setdefault(rule.members[0], rule)
        if other.number("offset") != rule.number("offset"):
            offsets = f"{other.number('offset')} and {rule.number('offset')}"
            raise _clash(struct, other, rule, f"'{rule.members[0]}' cannot be at {offsets}")


def _straddles_agree(rules: list[Rule], struct: str, line_bytes: int) -> None:
    wants = {path: rule for rule in rules if rule.kind == "straddle" for path in rule.members}
    for rule in rules:
        for path in rule.members if rule.kind in ("no_straddle", "on_line") or _on_one_line(rule) else ():
            if path in wants:
                raise _clash(
                    struct, wants[path], rule, f"'{path}' must and must not cross a {line_bytes}-byte boundary"
                )


def _on_one_line(rule: Rule) -> bool:
    """Whether the rule puts its members on one line, all on the same."""
    budget = {"together": rule.number("lines", 1), "lines": rule.number("max_lines")}.get(rule.kind)
    return budget == 1 and bool(rule.members)


class _Lines:
    """Members known to be on one line as each other, merged group by group, and the lines known by number."""

    def __init__(self, rules: list[Rule], struct: str, line_bytes: int, phase: int) -> None:
        self.rules, self.struct, self.line_bytes, self.phase = rules, struct, line_bytes, phase
        self.group: dict[str, str] = {}
        self.number: dict[str, tuple[int, Rule]] = {}
        self.joined: dict[str, Rule] = {}

    def root(self, path: str) -> str:
        while self.group.get(path, path) != path:
            path = self.group[path]
        return path

    def check(self) -> None:
        for rule in self.rules:
            if _on_one_line(rule):
                for path in rule.members:
                    self.group[self.root(path)] = self.root(rule.members[0])
                    self.joined[path] = rule
        for rule in self.rules:
            line = self._line_of(rule)
            for path in rule.members if line is not None else ():
                self._fix(path, int(line or 0), rule)
        for rule in self.rules:
            if rule.kind == "apart":
                self._check_apart(rule)
            if rule.kind == "alone":
                self._check_alone(rule)

    def _line_of(self, rule: Rule) -> int | None:
        if rule.kind == "on_line":
            return rule.number("line")
        return (rule.number("offset") + self.phase) // self.line_bytes if rule.kind == "at" else None

    def _fix(self, path: str, line: int, rule: Rule) -> None:
        known, other = self.number.setdefault(self.root(path), (line, rule))
        if known != line:
            text = f"'{path}' would have to be on {self.line_bytes}-byte lines {known} and {line}"
            raise _clash(self.struct, other, rule, text)

    def _check_apart(self, rule: Rule) -> None:
        for a, b in combinations(rule.members, 2):
            if self.root(a) == self.root(b):
                other = self.joined[a] if a in self.joined else self.joined[b]
                text = f"'{a}' and '{b}' cannot be both on one {self.line_bytes}-byte line and apart"
                raise _clash(self.struct, other, rule, text)
            line_a, line_b = self.number.get(self.root(a)), self.number.get(self.root(b))
            if line_a and line_b and line_a[0] == line_b[0]:
                text = f"'{a}' and '{b}' are both placed on {self.line_bytes}-byte line {line_a[0]}"
                raise _clash(self.struct, line_b[1], rule, text)

    def _check_alone(self, rule: Rule) -> None:
        roots = {self.root(path) for path in rule.members}
        for path, other in self.joined.items():
            allowed = any(_inside(path, m) or _inside(m, path) for m in (*rule.members, *rule.allow))
            if not allowed and self.root(path) in roots:
                text = f"'{path}' must share the line that is kept for {', '.join(rule.members)}"
                raise _clash(self.struct, other, rule, text)
