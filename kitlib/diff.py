"""Layout differences: one struct or every struct of two sources, those that look hot or contended first.

Offsets, sizes, lines and line-mates are exact; the ranking is a model (`kitlib.heat`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kitlib.baseline import History, Place, history, snapshot
from kitlib.errors import DataError, NotFound
from kitlib.heat import Role, clash, role_of
from kitlib.lines import check_line, line_span
from kitlib.model import Abi, Layout
from kitlib.source import Source, definitions
from kitlib.straddle import halves

Change = Literal["added", "removed", "moved", "shifted", "resized", "retyped", "stays"]


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One member, before and after. ``gained`` and ``lost`` are paths of line-mates; ``heat`` 0 to 100 (a model).

    ``moved``: its place in the order changed; ``shifted``: the same order, another offset; ``stays``: the
    same place, but other line-mates. ``note`` tells of a straddle that came or went.
    """

    path: str
    change: Change
    before: Place | None
    after: Place | None
    lines_before: tuple[int, int] | None
    lines_after: tuple[int, int] | None
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    note: str = ""
    heat: float = 0.0

    @property
    def changed_line(self) -> bool:
        return None not in (self.before, self.after) and self.lines_before != self.lines_after


@dataclass(frozen=True, slots=True)
class StructDiff:
    """One struct. ``change`` is ``added``, ``removed``, ``changed`` or ``same``; sizes in bytes, None if absent."""

    name: str
    change: Literal["added", "removed", "changed", "same"]
    size_before: int | None
    size_after: int | None
    members: tuple[MemberChange, ...] = ()
    causes: tuple[str, ...] = ()
    score: float = 0.0
    reason: str = ""
    line_bytes: int = 64
    phase: int = 0

    @property
    def layout_changed(self) -> bool:
        """Whether anything is at another place; a member whose type only got another name is not."""
        return (
            self.change in ("added", "removed")
            or any(m.change not in ("retyped", "stays") for m in self.members)
            or (self.size_before != self.size_after)
        )


@dataclass(frozen=True, slots=True)
class SourceDiff:
    """All structs that differ, the hottest-looking first; ``compared`` counts those present in both."""

    a: str
    b: str
    structs: tuple[StructDiff, ...]
    compared: int
    line_bytes: int
    phase: int

    @property
    def layout_changed(self) -> bool:
        return any(s.layout_changed for s in self.structs)

    @property
    def verdict(self) -> str:
        """One sentence; for two builds with the same layouts it says where to look instead."""
        many = f"{self.compared:,} structs" if self.compared != 1 else "1 struct"
        if not self.layout_changed:
            return f"no layout changed ({many} compared): look at code"
        kinds = [s.change for s in self.structs if s.layout_changed]
        counts = [f"{kinds.count(k)} {k}" for k in ("changed", "added", "removed") if k in kinds]
        return f"{', '.join(counts)}; {many} in both"


def diff_sources(
    a: Source, b: Source, names: Sequence[str] = (), *, line_bytes: int = 64, phase: int = 0
) -> SourceDiff:
    """Compare `names` (none given: every struct) of two sources.

    Raises `DataError` for sources of different architectures and `NotFound` for a name that neither has, or
    if neither has any struct.
    """
    check_line(line_bytes, phase)
    before, after = (_chosen(a, names), _chosen(b, names)) if names else (_all(a), _all(b))
    for name in names:
        if not before.get(name) and not after.get(name):
            b.struct(name)  # raises NotFound with near names
    if not before and not after:
        raise NotFound(f"no struct in {a.label} nor in {b.label}: there is nothing to compare")
    _same_architecture(a, b, before, after)
    found, compared = [], 0
    for name in [*before, *(n for n in after if n not in before)]:
        for one, two in _pair(before.get(name, []), after.get(name, [])):
            compared += one is not None and two is not None
            if one != two:
                found.append(_diff(one, two, line_bytes, phase))
    found = [d for d in found if d.change != "same"]
    found.sort(key=lambda d: (not d.layout_changed, -d.score, d.name))
    return SourceDiff(a.label, b.label, tuple(found), compared, line_bytes, phase)


def _all(source: Source) -> dict[str, list[Layout]]:
    found: dict[str, list[Layout]] = defaultdict(list)
    for layout in source.structs():
        if layout.name is not None:
            found[layout.name].append(layout)
    return found


def _chosen(source: Source, names: Iterable[str]) -> dict[str, list[Layout]]:
    found: dict[str, list[Layout]] = {}
    for name in names:
        try:
            found[name] = definitions(source, name)
        except NotFound:
            found[name] = []
    return found


def _pair(before: list[Layout], after: list[Layout]) -> list[tuple[Layout | None, Layout | None]]:
    """Pair layouts of one name: equal ones first, then in order."""
    if len(before) == 1 and len(after) == 1:
        return [(before[0], after[0])]
    left, right = list(before), list(after)
    pairs: list[tuple[Layout | None, Layout | None]] = []
    for layout in before:
        if layout in right:
            right.remove(layout)
            left.remove(layout)
            pairs.append((layout, layout))
    longest = max(len(left), len(right))
    padded = [[*side, *[None] * (longest - len(side))] for side in (left, right)]
    return pairs + list(zip(*padded, strict=True))


def _same_architecture(a: Source, b: Source, before: dict[str, list[Layout]], after: dict[str, list[Layout]]) -> None:
    one, two = _abi(before), _abi(after)
    if one is not None and two is not None and not one.agrees(two):
        raise DataError(
            f"{a.label} is {one.name} and {b.label} is {two.name}: layouts of different architectures are not "
            "compared; give two builds for one"
        )


def _abi(layouts: dict[str, list[Layout]]) -> Abi | None:
    return next((each[0].abi for each in layouts.values() if each), None)


def diff_layouts(before: Layout, after: Layout, *, line_bytes: int = 64, phase: int = 0) -> StructDiff:
    """Compare two layouts of one struct; ``change`` is ``same`` if nothing differs."""
    check_line(line_bytes, phase)
    return _diff(before, after, line_bytes, phase)


# -- one struct ---------------------------------------------------------------------------------------


def _diff(before: Layout | None, after: Layout | None, line_bytes: int, phase: int) -> StructDiff:
    name = (before or after or _nobody()).name or "{...}"
    if before is None or after is None:
        sizes = (before.size if before else None, after.size if after else None)
        return StructDiff(name, "removed" if after is None else "added", *sizes, line_bytes=line_bytes, phase=phase)
    since = history(snapshot(before), snapshot(after))
    one, two = _Lines(since.before.places, line_bytes, phase), _Lines(since.after.places, line_bytes, phase)
    notes = _straddle_notes(before, after, since, line_bytes, phase)
    members = tuple(_members(since, one, two, notes))
    changed = bool(members) or before.size != after.size
    score, reason = _rank(members)
    causes = _causes(since)
    change: Literal["changed", "same"] = "changed" if changed else "same"
    return StructDiff(name, change, before.size, after.size, members, causes, score, reason, line_bytes, phase)


def _nobody() -> Layout:
    raise ValueError("a difference needs at least one layout")


_LONG = 64
"""Lines from which a member's are not listed one by one: an array can span millions."""


class _Lines:
    """The members of one side by path, the lines they touch, and who else is on those."""

    def __init__(self, places: tuple[Place, ...], line_bytes: int, phase: int) -> None:
        self.span = {p.path: line_span(p.bit_offset, p.bit_size, line_bytes, phase) for p in places}
        self.on: dict[int, list[str]] = defaultdict(list)
        self.ends: list[tuple[int, int, str]] = []  # (first, last, path) of members too long to list by line
        for place in places:
            first, last = self.span[place.path]
            if last - first >= _LONG:
                self.ends.append((first, last, place.path))
                continue
            for line in range(first, last + 1) if place.bit_size else ():
                self.on[line].append(place.path)

    def mates(self, path: str) -> set[str]:
        first, last = self.span[path]
        lines = (n for n in self.on if first <= n <= last) if last - first >= _LONG else range(first, last + 1)
        found = {mate for line in lines for mate in self.on.get(line, ())}
        found |= {mate for low, high, mate in self.ends if low <= last and first <= high}
        found.discard(path)
        return found


def _members(since: History, one: _Lines, two: _Lines, notes: dict[str, str]) -> Iterable[MemberChange]:
    old = {p.path: p for p in since.before.places}
    new = {p.path: p for p in since.after.places}
    for path in dict.fromkeys([*new, *old]):
        before, after = old.get(path), new.get(path)
        spans = one.span.get(path), two.span.get(path)
        if before is None or after is None:
            gained = tuple(sorted(two.mates(path))) if after is not None else ()
            heat, _ = _heat(path, after, gained, new)
            yield MemberChange(path, "removed" if after is None else "added", before, after, *spans, gained, heat=heat)
            continue
        change = _what(before, after, path in since.moved)
        was, now = one.mates(path), two.mates(path)
        gained, lost = tuple(sorted(now - was)), tuple(sorted(was - now))
        note = notes.get(path, "")
        if change == "stays" and not gained and not lost and not note:
            continue
        heat, _ = _heat(path, after, gained, new)
        if spans[0] != spans[1] or note:
            role = role_of(path, after.type)
            heat = max(heat, role.writes * (8 if note else 4), role.reads * 2)
        yield MemberChange(path, change, before, after, *spans, gained, lost, note, round(heat, 1))


def _what(before: Place, after: Place, moved: bool) -> Change:
    if before.size != after.size:
        return "resized"
    if before.bit_offset != after.bit_offset:
        return "moved" if moved else "shifted"
    return "retyped" if before.type != after.type else "stays"


def _heat(path: str, place: Place | None, gained: Sequence[str], new: dict[str, Place]) -> tuple[float, str]:
    """How bad the new line-mates of a member look, 0 to 100, and the worst of them."""
    if place is None or not gained:
        return 0.0, ""
    own = role_of(path, place.type)
    worst, who = 0.0, ""
    for mate in gained:
        other = role_of(mate, new[mate].type)
        cost = max(_cost(own, other), _cost(other, own))
        if cost > worst:
            worst, who = cost, mate
    return round(worst, 1), who


def _cost(writer: Role, mate: Role) -> float:
    return writer.writes * clash(writer, mate) if writer.is_writer else 0.0


def _rank(members: Sequence[MemberChange]) -> tuple[float, str]:
    """A struct's score: its hottest member's, and a little for each further one; and why."""
    hot = sorted((m for m in members if m.heat > 0 and m.change != "removed"), key=lambda m: -m.heat)
    if not hot:
        return 0.0, ""
    top = hot[0]
    score = min(100.0, top.heat + sum(m.heat for m in hot[1:10]) / 50)
    role = role_of(top.path, top.after.type if top.after else "")
    told = [f"{top.path} ({role.label})"]
    if top.note:
        told.append(top.note)
    elif top.gained:
        told.append(f"gained {', '.join(top.gained[:4])}{' …' if len(top.gained) > 4 else ''} on its line")
    elif top.changed_line:
        told.append("changed line")
    return round(score, 1), " ".join(told)


def _causes(since: History) -> tuple[str, ...]:
    """What was done to the member list, in its order, with the shift it caused in bytes."""
    told = [sentence for path in sorted(since.moved) for sentence in since.explain(path)]
    for step in since.steps:
        only_moved = not (step.inserted or step.removed or step.resized) and (step.moved_in or step.moved_out)
        if (step.inserted or step.removed or step.resized or step.shift) and not only_moved:
            where = f" before {step.anchor}" if step.anchor else " at the end"
            told.append(f"{step.what()}{where}: {step.shift:+d}")
    return tuple(told)


def _straddle_notes(before: Layout, after: Layout, since: History, line_bytes: int, phase: int) -> dict[str, str]:
    """For members that came to lie across a line boundary, or off one: which parts that parts or joins."""
    notes = {}
    for old in since.before.places:
        new = since.after.find(old.path)
        if new is None or old.bit_size > line_bytes * 8 or new.bit_size > line_bytes * 8:
            continue
        was = line_span(old.bit_offset, old.bit_size, line_bytes, phase)
        now = line_span(new.bit_offset, new.bit_size, line_bytes, phase)
        straddled, straddles = was[0] != was[1], now[0] != now[1]
        if straddled == straddles:
            continue
        parts = halves(after if straddles else before, old.path, line_bytes, phase)
        between = f" between {parts[0]} and {parts[1]}" if parts else ""
        notes[old.path] = f"now crosses a line boundary{between}" if straddles else f"no longer crosses a line{between}"
    return notes
