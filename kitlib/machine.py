"""Machine profiles: what an access costs on which machine, each number with its source and its doubt.

A profile is a TOML file (``format = "kitlib-machine"``) or a shipped name. Numbers a file leaves out
are taken from `ASSUMED`, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as _with
from pathlib import Path
from typing import Any, Literal, cast, get_args

from kitlib import datafiles
from kitlib import tomlfile as toml
from kitlib.errors import DataError, NotFound, near

FORMAT, VERSION = "kitlib-machine", 1
MAKE = "start from a copy of one in data/machines"
Certainty = Literal["measured here", "fitted here", "published", "nearest known", "assumed"]

SPREAD: dict[Certainty, float] = {
    "measured here": 0.1,
    "fitted here": 0.2,
    "published": 0.15,
    "nearest known": 0.3,
    "assumed": 0.5,
}
"""By how much of its value a number may be off either way where its file does not say. *Fitted* is what was found with
the model itself, from other measurements."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value with where it is from; ``low``..``high`` is what it could be instead."""

    value: float
    certainty: Certainty
    source: str = ""
    low: float = math.nan
    high: float = math.nan

    def __post_init__(self) -> None:
        spread = SPREAD[self.certainty]
        if math.isnan(self.low):
            object.__setattr__(self, "low", self.value * (1 - spread))
        if math.isnan(self.high):
            object.__setattr__(self, "high", self.value * (1 + spread))


@dataclass(frozen=True, slots=True)
class Kind:
    """What a number means: its unit, a range that is possible, and a word for people."""

    about: str
    unit: str
    low: float
    high: float


KINDS: dict[str, Kind] = {
    "l1_ns": Kind("load from the L1 cache", "ns", 0.1, 100),
    "l2_ns": Kind("load from the L2 cache", "ns", 0.1, 500),
    "l3_ns": Kind("load from the L3 cache", "ns", 0.1, 2000),
    "dram_ns": Kind("load from memory, random order", "ns", 1, 10000),
    "dirty_near_ns": Kind("line moved from another CPU's cache, same group", "ns", 1, 10000),
    "dirty_far_ns": Kind("line moved from another CPU's cache, other group or socket", "ns", 1, 10000),
    "atomic_ns": Kind("atomic read-modify-write of a line that is exclusive already", "ns", 0.1, 1000),
    "run_ns": Kind("a path run whose reads all hit", "ns", 0.1, 1000),
    "overlap": Kind("cost of a second miss that runs beside the first, as a share of one", "", 0, 1),
    "move_overlap": Kind("the same for reads of lines that other CPUs have written", "", 0, 1),
    "both_halves_ns": Kind("extra when a cold run's lines differ in address bit 6", "ns", 0, 1000),
    "upgrade": Kind("writing a line of which other CPUs hold copies too, as a share of a move", "", 0, 1),
    "migratory": Kind("share of reads of a line another CPU has written that bring it exclusively", "", 0, 1),
    "pair_weight": Kind("share of accesses for which a 128-byte pair acts as one line", "", 0, 1),
    "l1_bytes": Kind("L1 data cache", "bytes", 1024, 1 << 30),
    "l2_bytes": Kind("L2 cache", "bytes", 1024, 1 << 34),
    "l3_bytes": Kind("L3 cache that one CPU can fill", "bytes", 1024, 1 << 40),
}
_HERE = "as on the machine the model was fitted on (two CPUs of a Zen 5 server part)"
ASSUMED: dict[str, Number] = {
    "l1_ns": Number(1.2, "assumed", "4 to 5 cycles at about 3.5 GHz"),
    "l2_ns": Number(4.0, "assumed", "14 cycles at about 3.5 GHz"),
    "l3_ns": Number(20.0, "assumed", "between Rome (10 ns) and Skylake-SP (77 cycles)"),
    "dram_ns": Number(100.0, "assumed", "between Cascade Lake (79 ns) and Rome (122 ns)"),
    "atomic_ns": Number(5.0, "assumed", "about 18 cycles"),
    "run_ns": Number(2.0, "assumed", _HERE),
    "overlap": Number(0.15, "assumed", _HERE),
    "move_overlap": Number(0.45, "assumed", _HERE, 0.0, 1.0),
    "both_halves_ns": Number(0.0, "assumed", "no such effect is known", 0.0, 10.0),
    "upgrade": Number(0.65, "assumed", _HERE, 0.3, 1.0),
    "migratory": Number(0.6, "assumed", _HERE + "; other parts may have none", 0.0, 1.0),
    "pair_weight": Number(0.0, "assumed", "no pair effect is known", 0.0, 0.5),
    "l1_bytes": Number(32768, "assumed", ""),
    "l2_bytes": Number(1 << 20, "assumed", ""),
    "l3_bytes": Number(32 << 20, "assumed", ""),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine: ``machine["dram_ns"]`` is a value, ``numbers["dram_ns"]`` also its source.

    ``group_cpus`` CPUs share the near latency; ``max_cpus`` is the size of the machine. ``grain_bytes`` is
    the unit that moves between groups (64; 128 on Kunpeng 920, whose L3 lines are that long).
    """

    name: str
    about: str
    numbers: Mapping[str, Number]
    group_cpus: int = 8
    max_cpus: int = 256
    line_bytes: int = 64
    grain_bytes: int = 64

    def __post_init__(self) -> None:
        for key, number in self.numbers.items():
            kind = KINDS.get(key)
            if kind is None:
                raise DataError(f"machine {self.name}: number '{key}' is not known{near(key, KINDS)}")
            if not kind.low <= number.value <= kind.high:
                raise DataError(
                    f"machine {self.name}: {key} = {number.value:g} is outside {kind.low:g} to "
                    f"{kind.high:g} {kind.unit}".rstrip()
                )
        missing = [key for key in KINDS if key not in self.numbers]
        if missing:
            raise DataError(f"machine {self.name}: {', '.join(missing)} missing")
        if self.group_cpus < 1 or self.max_cpus < 1:
            raise DataError(f"machine {self.name}: group_cpus and max_cpus must be 1 or more")
        if self.line_bytes not in (32, 64, 128, 256) or self.grain_bytes not in (64, 128, 256):
            raise DataError(f"machine {self.name}: line_bytes or grain_bytes is no cache line size")

    def __getitem__(self, key: str) -> float:
        return self.numbers[key].value

    def with_values(self, **values: float) -> Machine:
        """A copy with some numbers set by hand (their certainty becomes "assumed")."""
        changed = {k: Number(v, "assumed", "set by hand") for k, v in values.items()}
        return _with(self, numbers={**self.numbers, **changed})

    @property
    def doubts(self) -> tuple[str, ...]:
        """Numbers that are neither measured nor published for this very part."""
        return tuple(k for k, n in self.numbers.items() if n.certainty in ("assumed", "nearest known"))


def shipped() -> dict[str, Path]:
    """Machines that come with the kit, by name."""
    folder = datafiles.path("machines")
    return {f.stem: f for f in sorted(folder.glob("*.toml")) if f.stem != "MANIFEST"}


def load_machine(name: str) -> Machine:
    """Read the shipped machine `name` or the TOML file at that path.

    Raises `NotFound` (near names) if there is neither, `DataError` for a file that is no machine profile.
    """
    ours = shipped()
    file = ours.get(name, Path(name))
    if not file.is_file():
        raise NotFound(
            f"no machine '{name}': give a TOML file, 'this' (measured now) or one of "
            f"{', '.join(ours)}{near(name, [*ours, 'this'])}"
        )
    return machine_from(toml.read_toml(file, form=FORMAT, version=VERSION, make=MAKE), file.stem, file.name)


def machine_from(record: Mapping[str, Any], name: str, where: str) -> Machine:
    """A machine from parsed TOML; numbers that are left out are taken from `ASSUMED`."""
    plain = {"name": str, "about": str, "group_cpus": int, "max_cpus": int, "line_bytes": int, "grain_bytes": int}
    toml.check_format(record, where, form=FORMAT, version=VERSION, make=MAKE)
    toml.only(record, {*plain, "format", "version", "numbers"}, where)
    for key, value in record.items():
        if key in plain and (not isinstance(value, plain[key]) or isinstance(value, bool)):
            raise DataError(f"{where}: {key} = {value!r} is no {plain[key].__name__}")
    table = record.get("numbers")
    if not isinstance(table, Mapping):
        raise DataError(f"{where}: it needs a [numbers] table")
    numbers = dict(ASSUMED)
    for key, entry in table.items():
        numbers[key] = _number(entry, f"{where}, numbers.{key}")
    if "dirty_near_ns" in numbers and "dirty_far_ns" not in numbers:
        near_ns = numbers["dirty_near_ns"].value
        numbers["dirty_far_ns"] = Number(near_ns, "assumed", "as dirty_near_ns: nothing is known of another group")
    fields = {key: record[key] for key in plain if key in record}
    return Machine(**{"name": name, "about": "", **fields}, numbers=numbers)


def _number(entry: object, where: str) -> Number:
    if not isinstance(entry, Mapping):
        raise DataError(f'{where}: write {{ value = …, certainty = "…", source = "…" }}')
    toml.only(entry, {"value", "certainty", "source", "low", "high"}, where)
    certainty = entry.get("certainty")
    if certainty not in get_args(Certainty):
        raise DataError(f"{where}: certainty must be one of {', '.join(get_args(Certainty))}")
    values = {key: entry[key] for key in ("value", "low", "high") if key in entry}
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise DataError(f"{where}: {key} = {value!r} is no number")
    if "value" not in values:
        raise DataError(f"{where}: value is missing")
    if not values.get("low", -math.inf) <= values["value"] <= values.get("high", math.inf):
        raise DataError(f"{where}: value = {values['value']} is not between its low and high")
    source = entry.get("source", "")
    return Number(certainty=cast(Certainty, certainty), source=str(source), **{k: float(v) for k, v in values.items()})


def machine_text(machine: Machine) -> str:
    """The machine as TOML that `load_machine` reads."""
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}"]
    for key in ("name", "about", "group_cpus", "max_cpus", "line_bytes", "grain_bytes"):
        value = getattr(machine, key)
        lines.append(f"{key} = {_quoted(value) if isinstance(value, str) else value}")
    lines += ["", "[numbers]"]
    for key, n in machine.numbers.items():
        values = f"value = {n.value!r}, low = {n.low!r}, high = {n.high!r}"
        lines.append(f"{key} = {{ {values}, certainty = {_quoted(n.certainty)}, source = {_quoted(n.source)} }}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
