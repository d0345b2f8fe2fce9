"""Blocks of one-sided figures ("with this patch: …") and how they are paired to before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kitlib.benchfiles.context import Condition, Context, factor_label
from kitlib.series import Delta, Series, Table


@dataclass(frozen=True, slots=True)
class Run:
    """The figures measured under one condition; `also_at` are lines of quoted copies."""

    kind: str
    condition: Condition
    series: tuple[Series, ...]
    line: int
    also_at: tuple[int, ...] = ()


def without_copies(runs: list[Run]) -> list[Run]:
    """Runs with quoted copies folded into the first one."""
    kept: dict[tuple[object, ...], Run] = {}
    copies: dict[tuple[object, ...], list[int]] = {}
    for run in runs:
        key = (
            run.kind, run.condition.factors, run.condition.label if not run.condition.factors else "",
            tuple((s.metric, s.value) for s in run.series),
        )  # fmt: skip
        if key in kept:
            copies[key].append(run.line)
        else:
            kept[key], copies[key] = run, []
    return [replace(run, also_at=tuple(copies[key])) for key, run in kept.items()]


def pair(runs: list[Run], context: Context) -> tuple[list[Table], list[Series], list[str]]:
    """Tables of runs that are the two sides of a change, series of the rest, and remarks.

    Runs are compared within one kind, place and number of copies only: another number of copies is
    scaling, another place another machine.
    """
    groups: dict[tuple[str, str, int | None], list[Run]] = {}
    for run in without_copies(runs):
        groups.setdefault((run.kind, run.condition.place, run.condition.copies), []).append(run)
    tables: list[Table] = []
    alone: list[Series] = []
    notes: list[str] = []
    for members in groups.values():
        pairs, remarks = _pairs(members, context)
        notes += remarks
        paired: set[int] = set()
        for before, after, note in pairs:
            rows = _rows(before, after)
            if rows:
                tables.append(_table(before, after, rows, context, note))
                paired |= {id(before), id(after)}
        alone += [s for run in members if id(run) not in paired for s in _labelled(run)]
    return tables, alone, notes


def _pairs(members: list[Run], context: Context) -> tuple[list[tuple[Run, Run, str]], list[str]]:
    known = [run for run in members if run.condition.factors]
    if len(known) >= 2:
        return _factor_pairs(known)
    if len(members) != 2 or not all(run.condition.label for run in members):
        return [], []
    first, second = members
    culprit = context.culprit
    if culprit and _same_commit(first.condition.label, culprit):
        return [(second, first, "")], []
    if culprit and _same_commit(second.condition.label, culprit):
        return [(first, second, "")], []
    return [(first, second, "which side came first is taken from their order in the text")], []


def _same_commit(label: str, commit: str) -> bool:
    label = label.strip(': "')
    return len(label) >= 7 and (label.startswith(commit[:10]) or commit.startswith(label[:40]))


def _factor_pairs(known: list[Run]) -> tuple[list[tuple[Run, Run, str]], list[str]]:
    names = sorted({name for run in known for name, _ in run.condition.factors if name != "any"})
    names = names or ["any"]
    cells: dict[tuple[int, ...], Run] = {}
    for run in known:
        states = dict(run.condition.factors)
        default = states.get("any", 0)
        cells.setdefault(tuple(states.get(name, default) for name in names), run)
    ordered = sorted(cells, key=lambda cell: (sum(cell), cell))
    pairs = [
        (cells[low], cells[high], "")
        for i, low in enumerate(ordered)
        for high in ordered[i + 1 :]
        if all(a <= b for a, b in zip(low, high, strict=True))
    ]
    return pairs, _missing_cells(names, cells, known[0])


def _missing_cells(names: list[str], cells: dict[tuple[int, ...], Run], example: Run) -> list[str]:
    """What a 2 × 2 of two changes cannot say when one of its cells was not measured."""
    if len(names) != 2 or len(cells) != 3:
        return []
    missing = next(c for c in ((0, 0), (0, 1), (1, 0), (1, 1)) if c not in cells)
    words = factor_label(tuple(zip(names, missing, strict=True)))
    alone = [name for name, on in zip(names, missing, strict=True) if on]
    effect = f"the effect of {alone[0]} alone, and " if len(alone) == 1 else ""
    where = example.condition.place or "this set-up"
    return [
        f"two changes, three of four cells measured on {where}: '{words}' is missing, so {effect}whether "
        "the two changes add up or depend on each other, cannot be separated from these figures"
    ]


def _rows(before: Run, after: Run) -> list[Delta]:
    others = {(s.metric, s.unit): s for s in after.series}
    return [
        Delta(s.metric, s.value, other.value, s.unit == "%", None, s.unit, s.line, s.group)
        for s in before.series
        if (other := others.get((s.metric, s.unit)))
    ]


def _copies(number: int | None) -> str:
    return f"{number} {'copy' if number == 1 else 'copies'}" if number else ""


def _labelled(run: Run) -> list[Series]:
    where = [run.condition.place, _copies(run.condition.copies)]
    group = ", ".join(part for part in where if part)
    return [replace(s, label=s.label or run.condition.label, group=s.group or group) for s in run.series]


def _table(before: Run, after: Run, rows: list[Delta], context: Context, note: str) -> Table:
    condition = before.condition
    parameters = (("copies", str(condition.copies)),) if condition.copies else ()
    stated = all(row.before.n is not None and row.after.n is not None for row in rows)
    use_context = before.kind == "samples"
    return Table(
        before.kind, tuple(rows), condition.label, after.condition.label,
        context.testcase if use_context else before.kind, condition.place or (
            context.machine if use_context else ""
        ),
        parameters or (tuple(context.parameters) if use_context else ()),
        context.headline if use_context else None, context.claim if use_context else None,
        "stated" if stated else "not stated", min(before.line, after.line),
        tuple(sorted({*before.also_at, *after.also_at})), (note,) if note else (),
    )  # fmt: skip
