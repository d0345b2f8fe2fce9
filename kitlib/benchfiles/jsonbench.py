"""JSON of hyperfine, pyperf, Google Benchmark, fio, and plain ``{"metric": [samples]}``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kitlib.errors import SourceError
from kitlib.series import LARGEST_RUNS, LARGEST_SPREAD_PCT, Series, Unread, Value, usable

Found = tuple[str, list[Series], list[Unread]]


def read(text: str, name: str) -> Found:
    """(kind, series, unread entries) of a JSON text. Raises `SourceError` if it is none of these."""
    fio = "fio version" in text[:4000]  # with two output formats, fio writes text around its JSON
    begin = max(text.find("{"), 0) if fio else 0
    try:
        data = json.JSONDecoder().raw_decode(text, begin)[0] if fio else json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise SourceError(f"{name}: not valid JSON ({problem}); give the tool's file as written") from None
    if _numbers(data):
        data = {"value": data}
    if not isinstance(data, dict):
        raise SourceError(
            f"{name}: JSON, but a {type(data).__name__} at the top; an object or a list of numbers is needed"
        )
    for kind, belongs, reader in _KINDS:
        if belongs(data):
            series, unread = reader(data)
            if not series and not unread:
                raise SourceError(f"{name}: {kind} JSON without any result; was the run cut short?")
            return kind, [replace(s, metric=_speakable(s.metric)) for s in series], unread
    raise SourceError(
        f'{name}: JSON of no known kind; read are hyperfine, pyperf, Google Benchmark, fio and {{"metric": [samples]}}'
    )


def _speakable(name: str) -> str:
    """A name without lone surrogates: JSON can hold them, but no output can."""
    return name.encode("utf-8", "replace").decode()


def _figure(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not usable(value):
        return None
    return float(value)


def _numbers(values: object) -> list[float]:
    return [number for value in _list(values) if (number := _figure(value)) is not None]


def _list(value: object) -> list[Any]:
    """A list in the file, or an empty one where something else stands: files are damaged or by hand."""
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entry(index: int, name: object, reason: str) -> Unread:
    return Unread(0, _speakable(f"entry {index + 1}: {str(name)[:150]}"), _speakable(reason))


def _hyperfine(data: Mapping[str, Any]) -> tuple[list[Series], list[Unread]]:
    series: list[Series] = []
    unread: list[Unread] = []
    for index, result in enumerate(data["results"]):
        name = str(result.get("command", f"command {index + 1}"))
        times = _numbers(result.get("times"))
        mean = _figure(result.get("mean"))
        failed = [code for code in _list(result.get("exit_codes")) if code != 0]
        note = f"{len(failed)} runs ended with an error code" if failed else ""
        if times:
            series.append(Series(f"time: {name}", Value.of(times), "s", note=note))
        elif mean is not None:
            series.append(Series(f"time: {name}", Value(mean), "s", note="no single runs in the file"))
        else:
            unread.append(_entry(index, name, "neither times nor a mean"))
    return series, unread


_PYPERF_UNITS = {"second": "s", "byte": "B", "integer": ""}


def _pyperf(data: Mapping[str, Any]) -> tuple[list[Series], list[Unread]]:
    series: list[Series] = []
    unread: list[Unread] = []
    shared = _object(data.get("metadata"))
    for index, benchmark in enumerate(data["benchmarks"]):
        facts = {**shared, **_object(benchmark.get("metadata"))}
        name = str(facts.get("name", f"benchmark {index + 1}"))
        # Values of one process share its address layout and hash seed: the process is the run.
        runs = [found for run in _list(benchmark.get("runs")) if (found := _numbers(_object(run).get("values")))]
        if not runs:
            unread.append(_entry(index, name, "no values (only calibration?)"))
            continue
        means = [math.fsum(run) / len(run) for run in runs]
        unit = str(facts.get("unit", "second"))
        per_run = max(len(run) for run in runs)
        note = f"each sample is the mean of a process ({per_run} values)" if per_run > 1 else ""
        metric = f"memory: {name}" if unit == "byte" else f"time: {name}"
        series.append(Series(metric, Value.of(means), _PYPERF_UNITS.get(unit, unit), note=note))
    return series, unread


def _google(data: Mapping[str, Any]) -> tuple[list[Series], list[Unread]]:
    samples: dict[tuple[str, str, str], list[float]] = {}
    aggregates: dict[tuple[str, str, str], dict[str, float]] = {}
    repeats: dict[str, int | None] = {}
    unread: list[Unread] = []
    for index, entry in enumerate(data["benchmarks"]):
        name = str(entry.get("run_name") or entry.get("name"))
        if entry.get("error_occurred"):
            unread.append(_entry(index, name, f"the benchmark failed: {entry.get('error_message', '')}"))
            continue
        unit = str(entry.get("time_unit", "ns"))
        keys = (("real_time", unit), ("items_per_second", "items/s"), ("bytes_per_second", "B/s"))
        for key, key_unit in keys:
            value = _figure(entry.get(key))
            if value is None:
                continue
            where = (name, key, key_unit)
            if entry.get("run_type") == "aggregate":
                aggregates.setdefault(where, {})[str(entry.get("aggregate_name"))] = value
                repeats[name] = _runs(entry.get("repetitions"))
            else:
                samples.setdefault(where, []).append(value)
    series = [_google_series(where, Value.of(values), "") for where, values in samples.items()]
    for where, found in aggregates.items():
        if where not in samples and "mean" in found:
            series.append(_google_series(where, _aggregated(found, repeats[where[0]]), "aggregates only"))
    return series, unread


def _google_series(where: tuple[str, str, str], value: Value, note: str) -> Series:
    name, key, unit = where
    prefix = {"real_time": "time", "items_per_second": "items", "bytes_per_second": "bytes"}[key]
    return Series(f"{prefix}: {name}", value, unit, note=note)


def _runs(value: object) -> int | None:
    found = _figure(value)
    return int(found) if found is not None and 1 <= found <= LARGEST_RUNS else None


def _aggregated(found: Mapping[str, float], runs: int | None) -> Value:
    mean, sd = found["mean"], found.get("stddev")
    if sd is None or mean == 0 or runs is None or runs < 2 or not 0 <= 100 * sd / abs(mean) <= LARGEST_SPREAD_PCT:
        return Value(mean, n=runs)
    # Google Benchmark's stddev divides by n - 1.
    spread = 100 * sd * math.sqrt((runs - 1) / runs) / abs(mean)
    return Value(mean, mean, mean, spread, "printed", runs)


def _fio(data: Mapping[str, Any]) -> tuple[list[Series], list[Unread]]:
    series: list[Series] = []
    unread: list[Unread] = []
    for index, job in enumerate(data["jobs"]):
        name = str(job.get("jobname", f"job {index + 1}"))
        if job.get("error"):
            unread.append(_entry(index, name, f"the job ended with error {job['error']}"))
            continue
        for way in ("read", "write", "trim"):
            part = job.get(way)
            if isinstance(part, dict) and _figure(part.get("total_ios", part.get("iops"))):
                series += _fio_way(f"fio.{name}.{way}", part)
    return series, unread


# fio's own deviations are over its sampling interval within one run: no run-to-run spread.
_FIO_NOTE = "one run; fio's own deviation is within the run, not from run to run"


def _fio_way(prefix: str, part: Mapping[str, Any]) -> list[Series]:
    found: list[tuple[str, float | None, str]] = [
        ("iops", _figure(part.get("iops")), "IOPS"),
        ("bw", _figure(part.get("bw")), "KiB/s"),
    ]
    for key, unit in (("clat_ns", "ns"), ("clat", "us"), ("lat_ns", "ns")):
        latency = part.get(key)
        if isinstance(latency, dict):
            found.append((f"{key.partition('_')[0]}_mean", _figure(latency.get("mean")), unit))
            percentiles = _object(latency.get("percentile"))
            found.append((f"{key.partition('_')[0]}_p99", _figure(percentiles.get("99.000000")), unit))
    return [
        Series(f"{prefix}.{name}", Value(value, n=1), unit, note=_FIO_NOTE)
        for name, value, unit in found
        if value is not None
    ]


def _plain(data: Mapping[str, Any]) -> tuple[list[Series], list[Unread]]:
    series: list[Series] = []
    unread: list[Unread] = []
    for index, (metric, values) in enumerate(data.items()):
        listed = values if isinstance(values, list) else [values]
        kept = _numbers(listed)
        if not kept:
            unread.append(_entry(index, metric, "no number in it"))
            continue
        left = len(listed) - len(kept)
        note = f"{left} of {len(listed)} samples are not numbers" if left else ""
        series.append(Series(metric, Value.of(kept), note=note))
    return series, unread


def _has_list(data: Mapping[str, Any], key: str, *inner: str) -> bool:
    values = data.get(key)
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        return False
    return not values or any(name in values[0] for name in inner)


_Reader = Callable[[Mapping[str, Any]], tuple[list[Series], list[Unread]]]
_KINDS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], _Reader], ...] = (
    ("fio", lambda d: "fio version" in d and _has_list(d, "jobs", "jobname", "read"), _fio),
    ("hyperfine", lambda d: _has_list(d, "results", "command", "times", "mean"), _hyperfine),
    ("pyperf", lambda d: "version" in d and _has_list(d, "benchmarks", "runs"), _pyperf),
    ("Google Benchmark", lambda d: _has_list(d, "benchmarks", "name", "run_name"), _google),
    ("samples", lambda d: any(_numbers(v if isinstance(v, list) else [v]) for v in d.values()), _plain),
)
