"""Find locks, atomics, reference counts, RCU heads and per-CPU counters that share a line with others.

Which members share a line is exact, for an object that starts `phase` bytes into a line. That one of them
is contended or often read is told from types and names alone: the score is a model (`kitlib.heat`).

Nested structs are opened, arrays once (their first element). A writer's mates inside the same named nested
struct are left to that struct's own rows, so that ``struct device`` is not reported in each of its holders.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any, NamedTuple

from kitlib.errors import DataError, NotFound, near
from kitlib.heat import Role, clash, role_of
from kitlib.lines import check_line
from kitlib.model import Layout, Member
from kitlib.source import Source

_SATURATION = 6.0
"""Weighed sum of clashes at which 63 % of the score is reached; 6 is one mate that is a spinlock."""
_SMALL = 0.6
"""Factor for a struct that fits a line as a whole: its members can only be parted by growing it."""
_MAX_MATES = 40


GROUPS = ("atomic", "refcount", "lock", "rcu", "percpu", "wait")
BESIDE = ("writers", "read-mostly", "both", "data")


@dataclass(frozen=True, slots=True)
class Row:
    """One finding: `member` of `struct` dirties `line`, where `mates` are too; ``score`` 0 to 100, a model.

    ``kind`` is the member's group (``atomic``, ``refcount``, ``lock``, ``rcu``, ``percpu``, ``wait``) and what
    it is beside: ``+writers``, ``+read-mostly``, ``+both``, or ``+data`` if only plain data.
    """

    struct: str
    member: str
    line: int
    mates: tuple[str, ...]
    kind: str
    score: float
    reason: str

    @property
    def top(self) -> str:
        """The member of `struct` itself that the finding is in, as `kitlib.explore` takes it."""
        return self.member.partition(".")[0].removesuffix("[]")

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "struct": self.struct,
            "member": self.member,
            "line": self.line,
            "mates": list(self.mates),
            "kind": self.kind,
            "score": self.score,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """What to keep: rows from `min_score`, of structs that fit a glob of `structs`, of `kinds` (``lock`` or
    ``lock+writers``), of members that no glob of `allow` (``struct.member``) fits."""

    min_score: float = 0.0
    structs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    allow: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not 0 <= self.min_score <= 100:
            raise DataError(f"smallest score {self.min_score}: it must be from 0 to 100")
        for kind in self.kinds:
            group, _, beside = kind.partition("+")
            if group not in GROUPS or (kind != group and beside not in BESIDE):
                forms = f"{', '.join(GROUPS)}; with +{' or +'.join(BESIDE)} behind it if you like"
                raise DataError(f"kind '{kind}' is not known{near(kind, GROUPS)}; use one of {forms}")

    def wants(self, struct: str) -> bool:
        return not self.structs or any(fnmatch.fnmatchcase(struct, glob) for glob in self.structs)

    def keeps(self, row: Row) -> bool:
        if row.score < self.min_score:
            return False
        if self.kinds and not any(row.kind == k or row.kind.split("+")[0] == k for k in self.kinds):
            return False
        return not any(fnmatch.fnmatchcase(f"{row.struct}.{row.member}", glob) for glob in self.allow)


class _Atom(NamedTuple):
    """A leaf as the scan needs it; offsets in bits, relative to the struct it was collected for.

    ``arms`` are (union, arm) numbers it lies in; ``box`` is the named nested struct it is part of (-1: none).
    """

    start: int
    end: int
    path: str
    role: Role
    arms: tuple[tuple[int, int], ...]
    box: int


def scan(
    layouts: Iterable[Layout], keep: ScanFilter | None = None, *, line_bytes: int = 64, phase: int = 0
) -> list[Row]:
    """Rows of all `layouts` that `keep` lets through, the highest score first.

    Layouts of one name and equal contents (one in each compilation unit) are looked at once.
    """
    check_line(line_bytes, phase)
    chosen = keep or ScanFilter()
    scanner = _Scanner(line_bytes, phase)
    seen: dict[str, list[Layout]] = {}
    rows: list[Row] = []
    for layout in layouts:
        if layout.name is None or layout.kind == "union" or not chosen.wants(layout.name):
            continue
        known = seen.setdefault(layout.name, [])
        if known and layout in known:
            continue
        known.append(layout)
        rows += (row for row in scanner.rows(layout, chosen.min_score) if chosen.keeps(row))
    rows.sort(key=lambda r: (-r.score, r.struct, r.line, r.member))
    return rows


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Rows of one source, and how many structs were looked at."""

    source: str
    structs: int
    rows: tuple[Row, ...]
    line_bytes: int
    phase: int

    def record(self, top: int | None = None) -> dict[str, Any]:
        """Plain values for JSON, with at most `top` rows."""
        return {
            "source": self.source,
            "structs": self.structs,
            "line_bytes": self.line_bytes,
            "phase": self.phase,
            "found": len(self.rows),
            "rows": [row.record() for row in self.rows[:top]],
        }


def scan_source(source: Source, keep: ScanFilter | None = None, *, line_bytes: int = 64, phase: int = 0) -> ScanResult:
    """Scan every struct of `source`; see `scan`.

    Raises `NotFound` if there is no struct, or if globs were given and no struct fits any of them.
    """
    layouts = list(source.structs())
    if not layouts:
        raise NotFound(f"no struct in {source.label}: there is nothing to scan")
    if keep is not None and keep.structs and not any(x.name and keep.wants(x.name) for x in layouts):
        hint = near(keep.structs[0], (x.name for x in layouts if x.name))
        raise NotFound(f"no struct in {source.label} fits '{', '.join(keep.structs)}'{hint}")
    rows = scan(layouts, keep, line_bytes=line_bytes, phase=phase)
    return ScanResult(source.label, len(layouts), tuple(rows), line_bytes, phase)


class _Scanner:
    """Collects atoms, keeping what was found for each nested layout (they are shared objects in BTF)."""

    def __init__(self, line_bytes: int, phase: int) -> None:
        self.line_bits, self.phase_bits = line_bytes * 8, phase * 8
        self.line_bytes = line_bytes
        self._writes: dict[int, bool] = {}
        self._atoms: dict[int, list[_Atom]] = {}
        self._alive: list[Layout] = []  # keeps id() of the layouts above from being given to another
        self._unions = 0

    # -- collecting -------------------------------------------------------------------------------------

    def has_writer(self, layout: Layout) -> bool:
        """Whether a lock, atomic, … is anywhere inside."""
        key = id(layout)
        known = self._writes.get(key)
        if known is None:
            self._writes[key] = False  # a cycle cannot add one
            self._alive.append(layout)
            known = self._writes[key] = any(
                role_of(m.name or "", m.type).writes > 0 or (m.inner is not None and self.has_writer(m.inner))
                for m in layout.members
            )
        return known

    def atoms(self, layout: Layout) -> list[_Atom]:
        """All leaves of `layout`, types that are a lock or a counter as a whole not opened."""
        key = id(layout)
        found = self._atoms.get(key)
        if found is None:
            self._alive.append(layout)
            found = self._atoms[key] = list(self._collect(layout))
        return found

    def _collect(self, layout: Layout) -> Iterator[_Atom]:
        union = 0
        if layout.kind == "union":
            self._unions += 1
            union = self._unions
        for number, member in enumerate(layout.members):
            if member.bit_size == 0:
                continue
            arms = ((union, number),) if union else ()
            yield from self._member(member, number, arms)

    def _member(self, member: Member, number: int, arms: tuple[tuple[int, int], ...]) -> Iterator[_Atom]:
        name, inner, base = member.name, member.inner, member.bit_offset
        role = role_of(name or "", member.type)
        if inner is None or not inner.members or role.is_writer or role.group == "links":
            if name is not None:
                path = name + "[]" if member.count is not None else name
                yield _Atom(base, base + member.bit_size, path, role, arms, -1)
            return
        prefix = "" if name is None else (name + "[]." if member.count is not None else name + ".")
        # an unnamed type cannot be scanned by itself, so its members count as the holder's own
        box = -1 if inner.name is None else number
        end = base + inner.size * 8 if member.count is not None else 0
        for start, stop, path, part, deeper, own in self.atoms(inner):
            boxed = box if box >= 0 else (-1 if own < 0 else number)
            yield _Atom(base + start, base + stop, prefix + path, part, arms + deeper, boxed)
        if member.count is not None and member.count > 1 and name is not None:
            rest = Role("further elements", "plain", 0, 0)
            yield _Atom(end, base + member.bit_size, name + "[1…]", rest, arms, box)

    # -- judging ----------------------------------------------------------------------------------------

    def rows(self, layout: Layout, min_score: float) -> Iterator[Row]:
        """Findings in one struct, at most one a writer and line."""
        if not self.has_writer(layout):
            return
        atoms = self.atoms(layout)
        spans = [self._lines(a) for a in atoms]
        small = layout.size <= self.line_bytes
        for atom, (first, last) in zip(atoms, spans, strict=True):
            if not atom.role.writes:
                continue
            best: Row | None = None
            for line in range(first, min(last, first + 3) + 1):
                mates = [
                    b for b, (low, high) in zip(atoms, spans, strict=True) if low <= line <= high and _meets(atom, b)
                ]
                score = _score(atom.role, mates) * (_SMALL if small else 1.0)
                if score > 0 and score >= min_score and (best is None or score > best.score):
                    best = _row(layout.name or "", atom, line, mates, score, small)
            if best is not None:
                yield best

    def _lines(self, atom: _Atom) -> tuple[int, int]:
        start, last = atom.start + self.phase_bits, atom.end + self.phase_bits - 1
        return start // self.line_bits, last // self.line_bits


def _meets(writer: _Atom, mate: _Atom) -> bool:
    """Whether `mate` can be in use while `writer` is written, and is not left to a nested struct's own rows."""
    if mate is writer or (writer.box >= 0 and mate.box == writer.box) or not (mate.role.reads or mate.role.writes):
        return False
    if not writer.arms or not mate.arms:
        return True
    own = dict(writer.arms)
    return all(own.get(union, arm) == arm for union, arm in mate.arms)


def _score(role: Role, mates: Sequence[_Atom]) -> float:
    """0 to 100: how often the member is written times what its mates lose, with diminishing returns.

    The line is moved once, however many mates wait for it: the worst counts in full, the second half, the third
    a third, and so on, so that a line full of plain data does not weigh as much as one hot neighbour.
    """
    worst = sorted((clash(role, mate.role) for mate in mates), reverse=True)
    total = sum(loss / place for place, loss in enumerate(worst, 1))
    return round(10.0 * role.writes * (1.0 - exp(-total / _SATURATION)), 1)


def _row(struct: str, atom: _Atom, line: int, mates: list[_Atom], score: float, small: bool) -> Row:
    ranked = sorted(mates, key=lambda m: -clash(atom.role, m.role))
    writers = [m for m in ranked if m.role.writes >= 2]
    readers = [m for m in ranked if m.role.group == "read-mostly"]
    beside = "both" if writers and readers else "writers" if writers else "read-mostly" if readers else "data"
    names = tuple(m.path for m in ranked[:_MAX_MATES])
    return Row(
        struct,
        atom.path,
        line,
        names,
        f"{atom.role.group}+{beside}",
        round(score, 1),
        _reason(atom, line, ranked, small),
    )


def _reason(atom: _Atom, line: int, ranked: list[_Atom], small: bool) -> str:
    heavy = [m for m in ranked if clash(atom.role, m.role) >= 2][:4]
    shown = ", ".join(f"{m.path} ({m.role.label})" for m in heavy) or f"only plain data ({ranked[0].path})"
    tail = "; the whole struct fits one line" if small else ""
    return f"{atom.path} ({atom.role.label}) dirties line {line}, which also holds {shown}{tail}"


def read_allow(text: str, where: str) -> tuple[str, ...]:
    """Globs of an allow-list: one ``struct.member`` a line, ``#`` starts a comment (say why there).

    Raises `DataError` for a line without a dot.
    """
    globs = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if entry and "." not in entry and entry != "*":
            raise DataError(f"{where}: line {number}: '{entry}' is no struct.member; write e.g. file.f_count or file.*")
        if entry:
            globs.append(entry)
    return tuple(globs)
