"""The kit's own layout file: JSON that keeps everything a `Layout` holds, with a version.

A struct held by value is written inside its member, or, in a file that shares them, once in the table
``types`` and as its number there (``"inner": 3``); an entry of the table refers to earlier ones only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kitlib.errors import DataError
from kitlib.model import ABIS, Layout, Member, SourceInfo

FORMAT, VERSION = "kitlib-layout", 1
_MAX_DEPTH = 64


def layouts_to_json(layouts: Mapping[str, Layout] | list[Layout], **extra: object) -> str:
    """JSON text of a layout file; `extra` keys (``about``, ``source``) are kept beside the layouts."""
    every = list(layouts.values()) if isinstance(layouts, Mapping) else layouts
    record = {
        "format": FORMAT,
        "version": VERSION,
        **extra,
        "layouts": [layout_to_dict(layout) for layout in every],
    }
    return json.dumps(record, indent=1) + "\n"


def shared_json(layouts: list[Layout], **extra: object) -> str:
    """As `layouts_to_json`, with each struct held by value written once and each layout on one line."""
    types: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}

    def number(inner: Layout) -> int:
        if id(inner) not in numbers:
            record = layout_to_dict(inner, number)
            numbers[id(inner)] = types.index(record) if record in types else len(types)
            if numbers[id(inner)] == len(types):
                types.append(record)
        return numbers[id(inner)]

    every = [layout_to_dict(layout, number) for layout in layouts]
    parts = [f'"format": "{FORMAT}"', f'"version": {VERSION}']
    parts += [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in extra.items()]
    for key, rows in (("types", types), ("layouts", every)):
        parts.append(f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def layouts_from_json(text: str, where: str) -> tuple[Layout, ...]:
    """Read a layout file. Raises `DataError` naming `where` and what is wrong."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); see 'kitlib edit --save'") from None
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise DataError(f'{where}: no kitlib layout file; its "format" must be "{FORMAT}"')
    if record.get("version") != VERSION:
        raise DataError(f"{where}: layout file version {record.get('version')}; this kit reads {VERSION}")
    entries = record.get("layouts")
    if not isinstance(entries, list):
        raise DataError(f"{where}: 'layouts' must be a list")
    table = record.get("types", [])
    if not isinstance(table, list):
        raise DataError(f"{where}: 'types' must be a list")
    types: list[Layout] = []
    for i, entry in enumerate(table):
        types.append(layout_from_dict(entry, f"{where}, type {i}", types=types))
    return tuple(layout_from_dict(entry, f"{where}, layout {i}", types=types) for i, entry in enumerate(entries, 1))


def layout_to_dict(layout: Layout, number: Callable[[Layout], int] | None = None) -> dict[str, Any]:
    """Plain values for JSON; defaults are left out. With `number` inner layouts are written as its numbers."""
    record: dict[str, Any] = {
        "name": layout.name,
        "kind": layout.kind,
        "size": layout.size,
        "align": layout.align,
        "abi": layout.abi.name,
    }
    for key in ("packed", "forced_align", "pack", "reason"):
        if value := getattr(layout, key):
            record[key] = value
    if layout.source is not None:
        source = layout.source
        record["source"] = {"label": source.label, "kind": source.kind, "detail": source.detail}
    record["members"] = [_member_to_dict(member, number) for member in layout.members]
    return record


def _member_to_dict(member: Member, number: Callable[[Layout], int] | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": member.name,
        "type": member.type,
        "bit_offset": member.bit_offset,
        "bit_size": member.bit_size,
        "natural_align": member.natural_align,
    }
    for key in ("forced_align", "packed", "storage_bits"):
        if value := getattr(member, key):
            record[key] = value
    if member.count is not None:
        record["count"] = member.count
    if member.align_from != "abi":
        record["align_from"] = member.align_from
    if member.inner is not None:
        record["inner"] = number(member.inner) if number else layout_to_dict(member.inner)
    return record


def layout_from_dict(record: object, where: str, depth: int = 0, types: Sequence[Layout] = ()) -> Layout:
    """The reverse of `layout_to_dict`. Raises `DataError` naming `where` for anything else."""
    if depth > _MAX_DEPTH:
        raise DataError(f"{where}: structs nested more than {_MAX_DEPTH} deep")
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: a layout must be an object with name, kind, size and members")
    members = record.get("members")
    if not isinstance(members, list):
        raise DataError(f"{where}: 'members' must be a list")
    kind = record.get("kind")
    if kind not in ("struct", "union", "class"):
        raise DataError(f"{where}: kind {kind!r} must be struct, union or class")
    abi = record.get("abi", "x86-64")
    if abi not in ABIS:
        raise DataError(f"{where}: abi {abi!r} is not known; use one of {', '.join(ABIS)}")
    try:
        return Layout(
            _text_or_none(record, "name", where),
            kind,
            _number(record, "size", where),
            _number(record, "align", where, 1),
            tuple(_member_from(m, f"{where}, member {i}", depth, types) for i, m in enumerate(members, 1)),
            packed=bool(record.get("packed", False)),
            forced_align=_number(record, "forced_align", where, 0),
            pack=_number(record, "pack", where, 0),
            abi=ABIS[abi],
            reason=_text_or_none(record, "reason", where),
            source=_source_from(record.get("source")),
        )
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def _member_from(record: object, where: str, depth: int, types: Sequence[Layout]) -> Member:
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: a member must be an object with name, type, bit_offset, bit_size")
    inner = record.get("inner")
    align_from = record.get("align_from", "abi")
    if align_from not in ("abi", "stated", "inferred"):
        raise DataError(f"{where}: align_from {align_from!r} must be abi, stated or inferred")
    type_text = record.get("type")
    if not isinstance(type_text, str):
        raise DataError(f"{where}: 'type' must be text")
    try:
        return Member(
            _text_or_none(record, "name", where),
            type_text,
            _number(record, "bit_offset", where),
            _number(record, "bit_size", where),
            _number(record, "natural_align", where, 1),
            forced_align=_number(record, "forced_align", where, 0),
            packed=bool(record.get("packed", False)),
            storage_bits=_number(record, "storage_bits", where, 0),
            inner=_inner_from(inner, where, depth, types),
            count=None if record.get("count") is None else _number(record, "count", where),
            align_from=align_from,
        )
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def _inner_from(record: object, where: str, depth: int, types: Sequence[Layout]) -> Layout | None:
    if record is None:
        return None
    if isinstance(record, int) and not isinstance(record, bool):
        if not 0 <= record < len(types):
            raise DataError(f"{where}: inner type {record} is not one of the {len(types)} types in front of it")
        return types[record]
    return layout_from_dict(record, where, depth + 1, types)


def _number(record: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = record.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 48:
        raise DataError(f"{where}: '{key}' must be a whole number from 0, not {value!r}")
    return value


def _text_or_none(record: Mapping[str, Any], key: str, where: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: '{key}' must be text or null")
    return value


def _source_from(record: object) -> SourceInfo | None:
    if not isinstance(record, Mapping):
        return None
    label, kind, detail = (str(record.get(key, "")) for key in ("label", "kind", "detail"))
    return SourceInfo(label, kind, detail)
