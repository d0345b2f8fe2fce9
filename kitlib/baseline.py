"""What a struct looked like before, and which edits since then put a member where it is now.

The explanation is arithmetic on two member lists. Members present in both, in the same order, are the
anchors; where the shift between an anchor's old and new offset changes, something was inserted, removed,
moved, resized or aligned just in front of it, and that something gets the difference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from kitlib.errors import NotFound
from kitlib.lines import find_leaf
from kitlib.model import Layout, Member, bytes_touched


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member is: ``path`` as written in C, ``bit_offset`` and ``bit_size`` in bits."""

    path: str
    type: str
    bit_offset: int
    bit_size: int

    @property
    def offset(self) -> int:
        return self.bit_offset >> 3

    @property
    def size(self) -> int:
        """Bytes the member touches."""
        return bytes_touched(self.bit_offset, self.bit_size)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A struct's members with anonymous structs and unions opened up, as they were in ``source``.

    ``places`` are in declaration order; ``inside`` holds members of named nested structs (dotted paths)
    that someone cares about. ``size`` and ``align`` are in bytes.
    """

    source: str
    abi: str
    size: int
    align: int
    places: tuple[Place, ...]
    inside: tuple[Place, ...] = ()

    def find(self, path: str) -> Place | None:
        for place in self.places + self.inside:
            if place.path == path:
                return place
        return None


def flat(layout: Layout) -> tuple[Place, ...]:
    """Members that have a name in C, in declaration order; those of anonymous members are included."""
    found: list[Place] = []
    _flatten(layout.members, 0, found)
    return tuple(found)


def _flatten(members: tuple[Member, ...], base: int, found: list[Place]) -> None:
    for member in members:
        if member.name is not None:
            found.append(Place(member.name, member.type, base + member.bit_offset, member.bit_size))
        elif member.inner is not None:
            _flatten(member.inner.members, base + member.bit_offset, found)


def snapshot(layout: Layout, paths: Iterable[str] = (), source: str = "") -> Snapshot:
    """Take down `layout`; dotted `paths` are kept too, those that do not exist are left out."""
    places = flat(layout)
    known = {place.path for place in places}
    inside = []
    for path in dict.fromkeys(paths):
        if path in known:
            continue
        try:
            leaf = find_leaf(layout, path)
        except NotFound:
            continue
        inside.append(Place(path, leaf.type, leaf.bit_offset, leaf.bit_size))
    label = source or (layout.source.label if layout.source else "")
    return Snapshot(label, layout.abi.name, layout.size, layout.align, places, tuple(inside))


@dataclass(frozen=True, slots=True)
class Step:
    """What happened in front of one anchor: ``shift`` bytes, and the members that came, went or changed."""

    anchor: str | None
    shift: int
    inserted: tuple[Place, ...] = ()
    removed: tuple[Place, ...] = ()
    moved_in: tuple[Place, ...] = ()
    moved_out: tuple[Place, ...] = ()
    resized: tuple[tuple[Place, Place], ...] = ()

    def what(self) -> str:
        """The events in words, without a place: ``write_protect_seq inserted``."""
        parts = [
            _event(self.inserted, "inserted"),
            _event(self.removed, "removed"),
            _event(self.moved_in, "moved in"),
            _event(self.moved_out, "moved away"),
            ", ".join(
                f"{b.path} {'grown' if b.size > a.size else 'shrunk'} {a.size} → {b.size}" for a, b in self.resized
            ),
        ]
        return " and ".join(part for part in parts if part) or "alignment or padding changed"


def _event(places: tuple[Place, ...], verb: str) -> str:
    names = [place.path for place in places]
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    return f"{', '.join(names)} {verb}" if names else ""


@dataclass(frozen=True, slots=True)
class History:
    """All that changed between two snapshots: ``steps`` in member order, ``moved`` paths, net growth in bytes."""

    before: Snapshot
    after: Snapshot
    anchors: tuple[str, ...]
    steps: tuple[Step, ...]
    moved: frozenset[str]

    def explain(self, path: str) -> list[str]:
        """Sentences on why the member at `path` is not where it was; empty if it is."""
        old, new = self.before.find(path), self.after.find(path)
        if old is None or new is None:
            word = "removed or renamed" if old is not None else "inserted"
            return [f"{path} {word}"] if old is not new else []
        top = path.split(".", 1)[0] if self._top(path) else path
        told = self._explain_top(top)
        old_top, new_top = self.before.find(top), self.after.find(top)
        if top != path and old_top is not None and new_top is not None:
            inner = (new.offset - new_top.offset) - (old.offset - old_top.offset)
            if inner:
                told.append(f"{path} moved inside {top}: {inner:+d}")
        if old.size != new.size:
            told.append(f"{path} {'grown' if new.size > old.size else 'shrunk'}: {old.size} → {new.size} bytes")
        return told

    def _top(self, path: str) -> bool:
        return all(place.path != path for place in self.before.places)

    def _explain_top(self, path: str) -> list[str]:
        old, new = self.before.find(path), self.after.find(path)
        if old is None or new is None or old.offset == new.offset:
            return []
        places = f"(offset {old.offset} → {new.offset})"
        if path in self.moved:
            was, now = _neighbour(self.before, path), _neighbour(self.after, path)
            return [f"{path} moved from {was} to {now}: {new.offset - old.offset:+d} {places}"]
        told = []
        for step in self.steps[: self.anchors.index(path) + 1]:
            if step.shift:
                told.append(f"{step.what()} before {path}: {step.shift:+d}")
        if told:
            told[-1] += f" {places}"
        return told

    def explain_size(self) -> list[str]:
        """Sentences on why the struct's size changed; empty if it did not."""
        if self.before.size == self.after.size:
            return []
        told = [f"{s.what()}: {s.shift:+d}" for s in self.steps if s.shift]
        return told or [f"the struct's alignment went from {self.before.align} to {self.after.align}"]


def history(before: Snapshot, after: Snapshot, focus: Iterable[str] = ()) -> History:
    """Compare two snapshots. Where it is open which of two members moved, one of `focus` is said to have."""
    blamed = {path.split(".", 1)[0] for path in focus} | set(focus)
    old_at = {place.path: i for i, place in enumerate(before.places)}
    new_at = {place.path: i for i, place in enumerate(after.places)}
    common = [path for path in old_at if path in new_at]
    anchors = _stay(common, new_at, blamed)
    kept = set(anchors)
    moved = frozenset(path for path in common if path not in kept)
    steps, last_old, last_new, shift = [], -1, -1, 0
    for anchor in (*anchors, None):
        i = len(before.places) if anchor is None else old_at[anchor]
        j = len(after.places) if anchor is None else new_at[anchor]
        total = after.size - before.size if anchor is None else after.places[j].offset - before.places[i].offset
        went, came = before.places[last_old + 1 : i], after.places[last_new + 1 : j]
        pair = (before.places[last_old], after.places[last_new]) if last_old >= 0 else None
        steps.append(
            Step(
                anchor,
                total - shift,
                tuple(p for p in came if p.path not in old_at),
                tuple(p for p in went if p.path not in new_at),
                tuple(p for p in came if p.path in moved),
                tuple(p for p in went if p.path in moved),
                (pair,) if pair is not None and pair[0].size != pair[1].size else (),
            )
        )
        last_old, last_new, shift = i, j, total
    return History(before, after, tuple(anchors), tuple(steps), moved)


def _stay(common: list[str], new_at: dict[str, int], blamed: set[str]) -> list[str]:
    """The longest run of members whose order did not change; of equally long ones that with fewest `blamed`."""
    longest = _increasing(common, new_at)
    if len(longest) == len(common) or blamed.isdisjoint(longest):
        return longest
    best: list[tuple[int, int]] = []  # (length, members not blamed) of the best run that ends here
    back: list[int] = []
    for i, path in enumerate(common):
        earlier = [(best[j], j) for j in range(i) if new_at[common[j]] < new_at[path]]
        (length, innocent), j = max(earlier, default=((0, 0), -1))
        best.append((length + 1, innocent + (path not in blamed)))
        back.append(j)
    i = best.index(max(best))
    found = []
    while i >= 0:
        found.append(common[i])
        i = back[i]
    return found[::-1]


def _increasing(paths: list[str], new_at: dict[str, int]) -> list[str]:
    """Longest subsequence of `paths` that is increasing in `new_at` (patience sorting, n log n)."""
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for i, path in enumerate(paths):
        pile = bisect_left(tails, new_at[path])
        back.append(ends[pile - 1] if pile else -1)
        if pile == len(tails):
            tails.append(new_at[path])
            ends.append(i)
        else:
            tails[pile] = new_at[path]
            ends[pile] = i
    found = []
    i = ends[-1] if ends else -1
    while i >= 0:
        found.append(paths[i])
        i = back[i]
    return found[::-1]


def _neighbour(snap: Snapshot, path: str) -> str:
    i = next(i for i, place in enumerate(snap.places) if place.path == path)
    return f"behind {snap.places[i - 1].path}" if i else "the front"
