"""Measurements as files: what ``kitlib measure --format json`` writes, and reading it back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from kitlib import datafiles
from kitlib.errors import DataError
from kitlib.measure import UNIT, Measurement, ModeName, ModeResult, ModeSpec, Outcome, Refused
from kitlib.verdict import Verdict


def measurement_record(done: Measurement) -> dict[str, Any]:
    """The measurement as JSON values: ``modes`` with raw samples in ns per run, and what was refused."""
    return {
        "layout": done.layout,
        "profile": done.profile,
        "machine": done.machine,
        "work_ns": done.work_ns,
        "seconds": round(done.seconds, 2),
        "modes": [_mode_record(result) for result in done.results],
        "refused": [{"mode": r.mode, "reason": r.reason} for r in done.refused],
        "notes": list(done.notes),
    }


def _mode_record(result: ModeResult) -> dict[str, Any]:
    judged = result.judged
    return {
        "mode": result.spec.mode,
        "threads": result.spec.threads,
        "objects": result.spec.objects,
        "bytes": result.spec.bytes_in_use,
        "main": result.main,
        "unit": UNIT,
        "before": list(result.before),
        "after": list(result.after),
        "slices": result.slices,
        "change_pct": judged.change if judged else None,
        "ci95": list(judged.ci95) if judged and judged.ci95 else None,
        "verdict": judged.verdict if judged else None,
        "reason": judged.reason if judged else None,
        "retries_per_run": list(result.retries),
        "preempted": result.preempted,
    }


def load_measurement(path: Path | str) -> Measurement:
    """Read a file that ``kitlib measure --format json`` wrote, or a shipped one (``scores/file-5.8-measured.json``).

    Raises `DataError` for a file that is none, `NotFound` for a shipped one that is not there.
    """
    file = Path(path) if Path(path).exists() else datafiles.path(str(path))
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file.name}: cannot be read as JSON ({error})") from None
    return measurement_from_record(record, file.name)


def measurement_from_record(record: object, where: str = "measurement") -> Measurement:
    """The inverse of `measurement_record`. Raises `DataError` that names `where` and what is wrong."""
    try:
        return _measurement(record)
    except KeyError as error:
        problem = f"{error} is missing"
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = str(error)
    raise DataError(f"{where}: no measurement ({problem}); write one with 'kitlib measure … --format json'")


def _measurement(record: Any) -> Measurement:
    return Measurement(
        layout=_text(record["layout"]),
        profile=_text(record["profile"]),
        work_ns=_number(record["work_ns"]),
        results=tuple(_mode_result(mode) for mode in record["modes"]),
        refused=tuple(Refused(_one_of(r["mode"], ModeName), _text(r["reason"])) for r in record["refused"]),
        machine=_text(record["machine"]),
        notes=tuple(map(_text, record["notes"])),
        seconds=_number(record["seconds"]),
    )


def _mode_result(mode: Mapping[str, Any]) -> ModeResult:
    if mode["unit"] != UNIT:
        raise ValueError(f"unit {mode['unit']!r} is not {UNIT}")
    name = cast(ModeName, _one_of(mode["mode"], ModeName))
    spec = ModeSpec(name, int(mode["threads"]), int(mode["objects"]), name == "shared", int(mode["bytes"]))
    before, after = _numbers(mode["before"]), _numbers(mode["after"])
    if not before:
        raise ValueError("a mode without samples before")
    outcome = None
    if mode["verdict"] is not None:
        if not after:
            raise ValueError("a verdict without samples after")
        interval = _numbers(mode["ci95"], 2) if mode["ci95"] is not None else None
        outcome = Outcome(
            None if mode["change_pct"] is None else _number(mode["change_pct"]),
            (interval[0], interval[1]) if interval else None,
            cast(Verdict, _one_of(mode["verdict"], Verdict)),
            _text(mode["reason"]),
        )
    retries = _numbers(mode["retries_per_run"], 2)
    preempted, slices = int(mode["preempted"]), int(mode["slices"])
    main = mode["main"] is True
    return ModeResult(spec, before, after, outcome, preempted, (retries[0], retries[1]), main, slices)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _numbers(values: Sequence[object], count: int | None = None) -> tuple[float, ...]:
    found = tuple(map(_number, values))
    if count is not None and len(found) != count:
        raise ValueError(f"{len(found)} numbers where {count} belong")
    return found


def _one_of(value: object, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ValueError(f"{value!r} is none of {', '.join(get_args(kind))}")
    return value
