"""Access profiles: which members a code path touches, how, and how often, and how objects are shared.

A profile is a TOML file (``format = "kitlib-profile"``, ``version = 1``) or a shipped name. Every access
carries its evidence, and ``confirmed = false`` where it is believed but was not checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as _with
from pathlib import Path as FilePath
from typing import Any, Literal, cast

from kitlib import datafiles
from kitlib import tomlfile as toml
from kitlib.errors import DataError, NotFound, PlacementError, near
from kitlib.lines import find_leaf
from kitlib.model import Layout

FORMAT, VERSION = "kitlib-profile", 1
_KEYS = {"format", "version", "name", "struct", "about", "source", "slab_align", "workload", "path"}
MAKE = "start from a copy of one in data/profiles"
Op = Literal["read", "write", "add", "cmpxchg"]
OPS: tuple[Op, ...] = ("read", "write", "add", "cmpxchg")
"""``add`` is a fetch-and-add; ``cmpxchg`` is a load, then a compare-exchange until it succeeds."""
ATOMIC: frozenset[Op] = frozenset({"add", "cmpxchg"})
MAX_WORD = 8
"""Widest single access in bytes."""


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a path: ``times`` per run of the path (a fraction: only in that share of the runs).

    ``at`` is a byte offset inside the member and ``size`` the bytes accessed there (0: the whole member,
    at most 8 bytes), for sources that do not show what a member holds.
    """

    member: str
    op: Op
    times: float = 1.0
    at: int = 0
    size: int = 0
    evidence: str = ""
    confirmed: bool = True

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise DataError(f"access to {self.member}: op '{self.op}' must be one of {', '.join(OPS)}")
        if not (math.isfinite(self.times) and 0 < self.times <= 1000):
            raise DataError(f"access to {self.member}: times = {self.times} must be above 0 and at most 1000")
        if self.at < 0 or not 0 <= self.size <= MAX_WORD:
            raise DataError(f"access to {self.member}: at must be 0 or more and size 0 to {MAX_WORD} (bytes)")

    @property
    def writes(self) -> bool:
        return self.op != "read"

    @property
    def label(self) -> str:
        """``f_count``, or ``mmap_lock+8`` for a place inside a member."""
        return f"{self.member}+{self.at}" if self.at else self.member


@dataclass(frozen=True, slots=True)
class Path:
    """A code path, with ``rate`` runs per operation mix (relative to the other paths)."""

    name: str
    rate: float
    accesses: tuple[Access, ...]
    about: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise DataError(f"path {self.name}: rate = {self.rate} must be 0 or more")
        if not self.accesses:
            raise DataError(f"path {self.name}: it has no accesses; list at least one")


@dataclass(frozen=True, slots=True)
class Workload:
    """How objects are used: ``cpus`` share one object, ``work_ns`` of other work lie between two path runs.

    ``shared`` is the share of path runs that hit an object which other CPUs use at the same time, and
    ``cold`` the share of the other runs whose object is in no cache; ``objects`` are in use in all.
    """

    cpus: int = 2
    objects: int = 1
    work_ns: float = 0.0
    shared: float = 1.0
    cold: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 1 or self.objects < 1:
            raise DataError("a workload needs cpus and objects of 1 or more")
        if not (math.isfinite(self.work_ns) and self.work_ns >= 0):
            raise DataError(f"work_ns = {self.work_ns} must be 0 or more")
        for name, share in (("shared", self.shared), ("cold", self.cold)):
            if not 0 <= share <= 1:
                raise DataError(f"{name} = {share} must be a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class Profile:
    """An access profile of ``struct``; ``slab_align`` is the alignment in bytes its allocator gives objects."""

    name: str
    struct: str
    paths: tuple[Path, ...]
    workload: Workload
    slab_align: int = 8
    about: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        names = [p.name for p in self.paths]
        if not names or len(set(names)) != len(names):
            raise DataError(f"profile {self.name}: it needs paths, each with a name of its own")
        if sum(p.rate for p in self.paths) <= 0:
            raise DataError(f"profile {self.name}: at least one path needs a rate above 0")
        if self.slab_align < 1 or self.slab_align & (self.slab_align - 1):
            raise DataError(f"profile {self.name}: slab_align = {self.slab_align} must be a power of two")

    @property
    def mix(self) -> tuple[tuple[Path, float], ...]:
        """Paths that run, with their share of all path runs (sums to 1)."""
        total = sum(p.rate for p in self.paths)
        return tuple((p, p.rate / total) for p in self.paths if p.rate > 0)

    def path(self, name: str) -> Path:
        for path in self.paths:
            if path.name == name:
                return path
        raise NotFound(f"no path '{name}' in profile {self.name}{near(name, [p.name for p in self.paths])}")

    def only(self, name: str) -> Profile:
        """The profile with the path `name` alone."""
        return _with(self, name=f"{self.name}:{name}", paths=(_with(self.path(name), rate=1.0),))

    def with_workload(self, **changes: Any) -> Profile:
        """A copy with some values of the workload changed."""
        return _with(self, workload=_with(self.workload, **changes))

    def with_op(self, member: str, old: Op, new: Op) -> Profile:
        """A copy in which every `old` access to `member` is a `new` one (a fetch-add for a cmpxchg loop)."""
        paths = tuple(
            _with(
                p,
                accesses=tuple(_with(a, op=new) if a.member == member and a.op == old else a for a in p.accesses),
            )
            for p in self.paths
        )
        return _with(self, paths=paths)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """``path: member`` of each access that is believed but was not checked."""
        return tuple(f"{p.name}: {a.label}" for p in self.paths for a in p.accesses if not a.confirmed)


@dataclass(frozen=True, slots=True)
class Placed:
    """An access at its place in a layout: ``offset`` and ``size`` in bytes."""

    access: Access
    offset: int
    size: int


def locate(profile: Profile, layout: Layout) -> dict[str, tuple[Placed, ...]]:
    """Place every access of `profile` in `layout`, by path name.

    Raises `NotFound`, with near names, for a member that is not there and `DataError` for an access
    that lies outside its member.
    """
    return {p.name: tuple(_locate(a, p, profile, layout) for a in p.accesses) for p in profile.paths}


def _locate(access: Access, path: Path, profile: Profile, layout: Layout) -> Placed:
    try:
        leaf = find_leaf(layout, access.member)
    except NotFound as error:
        raise NotFound(f"profile {profile.name}, path {path.name}: {error}") from None
    size = access.size or min(max(leaf.size - access.at, 0), MAX_WORD)
    if size == 0 or access.at + size > leaf.size:
        raise DataError(
            f"profile {profile.name}, path {path.name}: {size or 1} bytes at {access.at} lie outside "
            f"{access.member}, which has {leaf.size} bytes"
        )
    return Placed(access, leaf.offset + access.at, size)


def spacing(profile: Profile, layout: Layout) -> int:
    """Bytes from one object to the next in its slab: the size rounded up to the slab's alignment."""
    unit = max(profile.slab_align, layout.align)
    return max((layout.size + unit - 1) // unit, 1) * unit


# -- files ---------------------------------------------------------------------------------------------


def shipped() -> dict[str, FilePath]:
    """Profiles that come with the kit, by name."""
    folder = datafiles.path("profiles")
    return {f.stem: f for f in sorted(folder.glob("*.toml")) if f.stem != "MANIFEST"}


def load_profile(name: str) -> Profile:
    """Read the shipped profile `name` or the TOML file at that path.

    Raises `NotFound` (near names) if there is neither, and `DataError` for a file that is no profile.
    """
    ours = shipped()
    file = ours.get(name, FilePath(name))
    if not file.is_file():
        raise NotFound(f"no profile '{name}': give a TOML file or one of {', '.join(ours)}{near(name, ours)}")
    record = toml.read_toml(file, form=FORMAT, version=VERSION, make=MAKE)
    return profile_from(record, file.stem, file.name)


def profile_for(layout: Layout, name: str | None = None) -> Profile:
    """The profile called `name`, or the shipped one for the struct; raises `NotFound` if there is none."""
    if name is not None:
        return load_profile(name)
    fitting = [p for p in map(load_profile, shipped()) if p.struct == layout.name]
    # struct_file is about the struct; the other profiles of the same struct are single benchmarks or versions
    fitting.sort(key=lambda p: p.name not in (layout.name, f"struct_{layout.name}"))
    for profile in fitting:
        if _fits(profile, layout):
            return profile
    if fitting:
        locate(fitting[0], layout)  # says which member is missing
    raise NotFound(
        f"no shipped profile is for {layout.title}: write one and give it with --profile "
        f"(shipped: {', '.join(shipped())})"
    )


def _fits(profile: Profile, layout: Layout) -> bool:
    try:
        locate(profile, layout)
    except NotFound:
        return False
    return True


def profile_from(record: Mapping[str, Any], name: str, where: str) -> Profile:
    """A profile from parsed TOML. Raises `DataError` that names the file and the entry."""
    toml.check_format(record, where, form=FORMAT, version=VERSION, make=MAKE)
    toml.only(record, _KEYS, where)
    try:
        workload = Workload(**_table(record.get("workload", {}), Workload, f"{where}, [workload]"))
        rows = toml.rows(record, "path", where, needed=True)
        paths = tuple(_path(entry, f"{where}, path {i}") for i, entry in enumerate(rows, 1))
        return Profile(
            name=toml.text(record, "name", where, name),
            struct=toml.text(record, "struct", where),
            paths=paths,
            workload=workload,
            slab_align=cast(int, toml.number(record, "slab_align", where, 8, whole=True)),
            about=toml.text(record, "about", where, ""),
            source=toml.text(record, "source", where, ""),
        )
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(where) else f"{where}: {message}") from None


def _path(entry: Mapping[str, Any], where: str) -> Path:
    toml.only(entry, {"name", "rate", "about", "access"}, where)
    name = toml.text(entry, "name", where)
    accesses = []
    for number, item in enumerate(toml.rows(entry, "access", where, needed=True), 1):
        at = f"{where} ({name}), access {number}"
        values = _table(item, Access, at)
        if not isinstance(values.get("member"), str) or not isinstance(values.get("op"), str):
            raise DataError(f'{at}: give member = "…" and op = "…" ({", ".join(OPS)})')
        accesses.append(Access(**values))
    return Path(name, toml.number(entry, "rate", where, 1.0), tuple(accesses), toml.text(entry, "about", where, ""))


def _table(entry: object, cls: type[Access] | type[Workload], where: str) -> dict[str, Any]:
    """The entry as arguments of the dataclass `cls`, with keys and types checked."""
    if not isinstance(entry, Mapping):
        raise DataError(f"{where}: a table is needed")
    kinds = {name: str(f.type) for name, f in cls.__dataclass_fields__.items()}
    toml.only(entry, set(kinds), where)
    for key, value in entry.items():
        kind = kinds[key]
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = {
            "int": number and isinstance(value, int),
            "float": number,
            "bool": isinstance(value, bool),
        }.get(kind, isinstance(value, str))
        if not fits:
            raise DataError(f"{where}: {key} = {value!r} is no {'text' if kind in ('str', 'Op') else kind}")
    return dict(entry)


def aligned_atomic(placed: Placed) -> bool:
    """Whether an atomic access can be done in one piece: its size is a power of two and divides the offset."""
    return placed.size & (placed.size - 1) == 0 and placed.offset % placed.size == 0


def refuse_split_locks(places: Mapping[str, tuple[Placed, ...]], layout: Layout) -> None:
    """Raise `PlacementError` for an atomic member that no single atomic instruction covers."""
    for path, found in places.items():
        for placed in found:
            if placed.access.op in ATOMIC and not aligned_atomic(placed):
                raise PlacementError(
                    f"{layout.title}: {placed.access.label} (path {path}) is at offset {placed.offset} with "
                    f"{placed.size} bytes, where no single atomic instruction covers it; align it"
                )
