"""Rule files: TOML that a project keeps in its tree, read with the line of every mistake, and written.

    format = "kitlib-rules"
    version = 1

    [[struct]]
    name = "mm_struct"

    [[struct.rule]]
    id = "mmap-lock-halves"
    kind = "apart"
    members = ["mmap_lock.count", "mmap_lock.owner"]
    why = "the cmpxchg and the spinning waiters must not meet on one line"

``line_bytes``, ``phases``, ``abi``, ``config``, ``with_members`` and ``without_members`` may stand at a struct (for
all its rules) or at a rule. ``[struct.baseline]`` is what ``kitlib guard`` saw when it wrote the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from kitlib.baseline import Place, Snapshot
from kitlib.errors import DataError, near
from kitlib.model import ABIS
from kitlib.rules import KINDS, NUMBER_KEYS, Rule, RuleFile, Scope, StructRules

FORMAT, VERSION = "kitlib-rules", 1
_SCOPE_KEYS = {"line_bytes", "phases", "abi", "config", "with_members", "without_members"}
_STRUCT_KEYS = {"name", "rule", "baseline"} | _SCOPE_KEYS
_RULE_KEYS = {"id", "kind", "members", "allow", "why"} | _SCOPE_KEYS | set(NUMBER_KEYS)
_LARGEST = 1 << 53
"""Larger numbers (2^53 bytes is more than an address space holds, and JSON readers round them) are mistakes."""
_HEADER = re.compile(r"^\s*\[\[\s*struct\s*(\.\s*rule\s*)?\]\]")


def read_rules(path: str | Path) -> RuleFile:
    """Read a rule file. Raises `DataError` with file, line and (for TOML errors) column."""
    where = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")  # some editors put a byte order mark in front
    except FileNotFoundError:
        raise DataError(f"{where}: no such rules file; write one with 'kitlib guard SOURCE STRUCT'") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DataError(f"{where}: the rules file cannot be read: {reason}") from None
    return parse_rules(text, where)


def parse_rules(text: str, where: str = "rules") -> RuleFile:
    """Rules from TOML `text`; `where` names it in messages."""
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise DataError(f"{where}: arrays or tables nested too deep for a rules file") from None
    except ValueError:  # int() refuses more than 4,300 digits
        raise DataError(f"{where}: a number in it is too large") from None
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise DataError(f'{where}: line 1: a rules file starts with format = "{FORMAT}" and version = {VERSION}')
    entries = record.get("struct")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, Mapping) for e in entries):
        raise DataError(f"{where}: no [[struct]] in it: nothing would be checked")
    _only(record, {"format", "version", "about", "struct"}, f"{where}: line 1")
    lines = _header_lines(text, entries)
    structs = tuple(_struct(e, lines[i], where) for i, e in enumerate(entries))
    try:
        return RuleFile(where, structs)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _header_lines(text: str, entries: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """For each struct the line of its header, then those of its rules; zeros if they cannot be told."""
    found: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line)
        if match and match[1] and found:
            found[-1].append(number)
        elif match:
            found.append([number])
    wanted = [1 + len(e["rule"]) if isinstance(e.get("rule"), list) else 1 for e in entries]
    return found if [len(f) for f in found] == wanted else [[0] * n for n in wanted]


def _struct(entry: Mapping[str, Any], lines: list[int], where: str) -> StructRules:
    here = _at(where, lines[0])
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise DataError(f'{here}: a [[struct]] needs name = "..."')
    _only(entry, _STRUCT_KEYS, here)
    rules = entry.get("rule")
    if not isinstance(rules, list) or not rules or not all(isinstance(r, Mapping) for r in rules):
        raise DataError(f"{here}: struct {name} has no [[struct.rule]]: nothing would be checked")
    baseline = entry.get("baseline")
    try:
        shared = _scope(entry, Scope())
        snap = None if baseline is None else _baseline(baseline)
    except DataError as error:
        raise DataError(f"{here}: struct {name}: {error}") from None
    made = tuple(_rule(r, i, shared, lines[i], where) for i, r in enumerate(rules, 1))
    try:
        return StructRules(name, made, snap, lines[0])
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _rule(entry: Mapping[str, Any], number: int, shared: Scope, line: int, where: str) -> Rule:
    here = _at(where, line)
    _only(entry, _RULE_KEYS, here)
    name, kind, why = (entry.get(key, "") for key in ("id", "kind", "why"))
    if not all(isinstance(value, str) for value in (name, kind, why)):
        raise DataError(f"{here}: id, kind and why must be text")
    if not kind:
        raise DataError(f"{here}: a rule needs kind = one of {', '.join(KINDS)}")
    try:
        numbers = tuple((key, _integer(entry, key)) for key in NUMBER_KEYS if key in entry)
        members = _texts(entry, "members")
        allow, scope = _texts(entry, "allow"), _scope(entry, shared)
        return Rule(name or f"{kind}-{number}", kind, members, numbers, scope, why, line, allow)
    except DataError as error:
        raise DataError(f"{here}: rule '{name or number}': {error}") from None


def _scope(entry: Mapping[str, Any], shared: Scope) -> Scope:
    values: dict[str, Any] = {f.name: getattr(shared, f.name) for f in fields(Scope)}
    if "line_bytes" in entry:
        values["line_bytes"] = _integers(entry, "line_bytes")
    if "phases" in entry:
        values["phases"] = None if entry["phases"] == "all" else _integers(entry, "phases")
    for key, name in (("abi", "abis"), *((k, k) for k in ("config", "with_members", "without_members"))):
        if key in entry:
            values[name] = _texts(entry, key)
    for abi in values["abis"]:
        if abi not in ABIS:
            raise DataError(f"abi '{abi}' is not known{near(abi, ABIS)}; use some of {', '.join(ABIS)}")
    return Scope(**values)


def _baseline(entry: object) -> Snapshot:
    rows = [entry.get("members"), entry.get("inside", [])] if isinstance(entry, Mapping) else []
    if not isinstance(entry, Mapping) or not all(isinstance(each, list) for each in rows):
        raise DataError("[struct.baseline] needs source, abi, size, align and members")
    places, inside = ([_place(row) for row in each or []] for each in rows)
    source, abi = str(entry.get("source", "")), str(entry.get("abi", ""))
    size, align = _integer(entry, "size"), _integer(entry, "align")
    if size < 0 or align < 1:
        raise DataError("[struct.baseline]: size must be from 0 and align from 1")
    return Snapshot(source, abi, size, align, tuple(places), tuple(inside))


def _place(row: object) -> Place:
    good = isinstance(row, list) and len(row) == 4 and all(isinstance(x, str) for x in (row[0], row[3]))
    if not good or not isinstance(row, list) or not all(_is_count(x) for x in row[1:3]):
        raise DataError(f"baseline row {row!r}: write [path, bit offset, bit size, type]")
    return Place(row[0], row[3], row[1], row[2])


def _at(where: str, line: int) -> str:
    return f"{where}: line {line}" if line else where


def _only(entry: Mapping[str, Any], known: set[str], here: str) -> None:
    for key in entry:
        if key not in known:
            raise DataError(f"{here}: key '{key}' is not known{near(key, known)}")


def _integer(entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"{key} must be a whole number, not {value!r}")
    return _bounded(value, key)


def _bounded(value: int, key: str) -> int:
    if abs(value) > _LARGEST:
        raise DataError(f"{key} is too large: more than 2^53")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _integers(entry: Mapping[str, Any], key: str) -> tuple[int, ...]:
    values = entry[key] if isinstance(entry[key], list) else [entry[key]]
    if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
        raise DataError(f"{key} must be whole numbers, not {entry[key]!r}")
    return tuple(_bounded(v, key) for v in values)


def _texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(v, str) and v.strip() for v in values):
        raise DataError(f"{key} must be a list of names, not {value!r}")
    return tuple(values)


# -- writing ------------------------------------------------------------------------------------------


def rules_to_toml(groups: Sequence[StructRules], about: str = "") -> str:
    """TOML text that `parse_rules` reads back as equal rules."""
    out = [f'format = "{FORMAT}"', f"version = {VERSION}"]
    if about:
        out.append(f"about = {_quote(about)}")
    for group in groups:
        out += ["", "[[struct]]", f"name = {_quote(group.struct)}"]
        for rule in group.rules:
            out += ["", "[[struct.rule]]", *_rule_lines(rule)]
        if group.baseline is not None:
            out += ["", "[struct.baseline]", *_baseline_lines(group.baseline)]
    return "\n".join(out) + "\n"


def _rule_lines(rule: Rule) -> list[str]:
    out = [f"id = {_quote(rule.id)}", f"kind = {_quote(rule.kind)}"]
    if rule.members:
        out.append(f"members = {_list(rule.members)}")
    if rule.allow:
        out.append(f"allow = {_list(rule.allow)}")
    out += [f"{key} = {value}" for key, value in rule.numbers]
    scope = rule.scope
    if scope.line_bytes != (64,):
        out.append(f"line_bytes = {list(scope.line_bytes)}")
    if scope.phases != (0,):
        out.append('phases = "all"' if scope.phases is None else f"phases = {list(scope.phases)}")
    for key, names in (("abi", scope.abis), ("config", scope.config)):
        out += [f"{key} = {_list(names)}"] if names else []
    for key, names in (("with_members", scope.with_members), ("without_members", scope.without_members)):
        out += [f"{key} = {_list(names)}"] if names else []
    return [*out, f"why = {_quote(rule.why)}"] if rule.why else out


def _baseline_lines(snap: Snapshot) -> list[str]:
    out = [
        f"source = {_quote(snap.source)}",
        f"abi = {_quote(snap.abi)}",
        f"size = {snap.size}",
        f"align = {snap.align}",
    ]
    for key, places in (("members", snap.places), ("inside", snap.inside)):
        if places or key == "members":
            rows = [f"  [{_quote(p.path)}, {p.bit_offset}, {p.bit_size}, {_quote(p.type)}]," for p in places]
            out += [f"{key} = [  # path, bit offset, bit size, type", *rows, "]"]
    return out


def _quote(text: str) -> str:
    # a JSON string is a TOML basic string, but for DEL and raw non-BMP escapes
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(_quote(v) for v in values) + "]"
