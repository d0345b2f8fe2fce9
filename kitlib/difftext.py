"""Layout differences as plain values for JSON and as text for terminals."""

from __future__ import annotations

from typing import Any

from kitlib.diff import MemberChange, SourceDiff, StructDiff
from kitlib.text import printable, table

_TOLD = 12


def diff_record(diff: StructDiff) -> dict[str, Any]:
    """Plain values: offsets and sizes in bytes, lines as [first, last]."""
    return {
        "name": diff.name,
        "change": diff.change,
        "size": [diff.size_before, diff.size_after],
        "layout_changed": diff.layout_changed,
        "score": diff.score,
        "reason": diff.reason,
        "causes": list(diff.causes),
        "members": [_member_record(m) for m in diff.members],
    }


def _member_record(m: MemberChange) -> dict[str, Any]:
    return {
        "path": m.path,
        "change": m.change,
        "offset": [m.before.offset if m.before else None, m.after.offset if m.after else None],
        "size": [m.before.size if m.before else None, m.after.size if m.after else None],
        "type": [m.before.type if m.before else None, m.after.type if m.after else None],
        "lines": [list(m.lines_before) if m.lines_before else None, list(m.lines_after) if m.lines_after else None],
        "changed_line": m.changed_line,
        "gained_mates": list(m.gained),
        "lost_mates": list(m.lost),
        "note": m.note,
        "heat": m.heat,
    }


def source_record(diff: SourceDiff) -> dict[str, Any]:
    """The whole comparison as plain values."""
    return {
        "a": diff.a,
        "b": diff.b,
        "line_bytes": diff.line_bytes,
        "phase": diff.phase,
        "compared": diff.compared,
        "layout_changed": diff.layout_changed,
        "verdict": diff.verdict,
        "structs": [diff_record(s) for s in diff.structs],
    }


def diff_text(diff: StructDiff) -> str:
    """One struct's differences as a table."""
    if diff.change == "same":
        return f"struct {printable(diff.name)}: no layout changed"
    if diff.change in ("added", "removed"):
        size = diff.size_after if diff.change == "added" else diff.size_before
        return f"struct {printable(diff.name)}: {diff.change} ({size} bytes)"
    sizes = (
        f"{diff.size_before} bytes"
        if diff.size_before == diff.size_after
        else (f"{diff.size_before} → {diff.size_after} bytes")
    )
    shown = [m for m in diff.members if m.change != "retyped"]
    rows = [
        (
            m.path,
            m.change,
            _arrow(m.before and m.before.offset, m.after and m.after.offset),
            _line_text(m),
            _mates_text(m),
        )
        for m in shown
    ]
    out = [f"struct {printable(diff.name)}: {sizes}, {diff.line_bytes}-byte lines"]
    out += [f"  {printable(cause)}" for cause in diff.causes[:_TOLD]]
    out += [f"  … and {len(diff.causes) - _TOLD} more"] if len(diff.causes) > _TOLD else []
    if rows:
        out += ["", table(["member", "change", "offset", "line", "line-mates"], rows)]
    retyped = len(diff.members) - len(shown)
    return "\n".join(out + ([f"{retyped} members changed type in place"] if retyped else []))


def _arrow(a: object, b: object) -> str:
    if a == b:
        return f"{a}"
    return f"{'–' if a is None else a} → {'–' if b is None else b}"


def _line_text(m: MemberChange) -> str:
    sides = [
        None if s is None else (f"{s[0]}" if s[0] == s[1] else f"{s[0]}–{s[1]}")
        for s in (m.lines_before, m.lines_after)
    ]
    return _arrow(*sides)


def _mates_text(m: MemberChange) -> str:
    parts = [m.note] if m.note else []
    for sign, names in (("+", m.gained), ("−", m.lost)):
        if names:
            parts.append(
                " ".join(f"{sign}{n}" for n in names[:5]) + (f" ({len(names) - 5} more)" if len(names) > 5 else "")
            )
    return "; ".join(parts)


def source_text(diff: SourceDiff, limit: int = 40) -> str:
    """The comparison of two sources: each struct if there are few, otherwise the ranked list."""
    if len(diff.structs) <= 3:
        parts = [diff_text(s) for s in diff.structs]
        return "\n\n".join([*parts, printable(diff.verdict)])
    rows = [
        (s.name, s.change, _arrow(s.size_before, s.size_after), f"{s.score:.0f}", s.reason)
        for s in diff.structs[:limit]
    ]
    rest = len(diff.structs) - limit
    more = [f"… and {rest:,} more; name structs to see their members, or use --format json"] if rest > 0 else []
    head = f"{diff.a} → {diff.b}, {diff.line_bytes}-byte lines; score: how hot or contended it looks (a model)"
    return "\n".join(
        [printable(head), table(["struct", "change", "size", "score", "why"], rows, right="lllr"), *more, diff.verdict]
    )
