"""A layout as plain values (the JSON of ``kitlib show``) and as text for a terminal."""

from __future__ import annotations

from typing import Any

from kitlib.cdecl import declaration
from kitlib.lines import Leaf, check_line, holes, leaves, line_span, n_lines, padding_bits
from kitlib.model import Layout
from kitlib.text import count, table


def layout_record(layout: Layout, *, line_bytes: int = 64, phase: int = 0, expand: bool = False) -> dict[str, Any]:
    """`layout` as the values that ``kitlib show --format json`` prints.

    Bytes unless the key says bits: ``offset`` and ``size`` are the bytes touched, ``bit_offset`` counts
    from the start of the struct, ``bit_size`` is the exact width. ``lines`` is the first and last cache
    line. With `expand`, members of nested structs follow the member that holds them. Raises
    `PlacementError` for a line size or phase that makes no sense.
    """
    check_line(line_bytes, phase)
    source = layout.source
    return {
        "name": layout.name,
        "kind": layout.kind,
        "size": layout.size,
        "align": layout.align,
        "line_bytes": line_bytes,
        "phase": phase,
        "members": [_member_record(leaf, line_bytes, phase) for leaf in rows(layout, expand)],
        "holes": [{"offset": h.offset, "size": h.size, "bits": h.bits} for h in holes(layout)],
        "padding": padding_bits(layout) // 8,
        "replaceable": layout.replaceable,
        "reason": layout.reason,
        "source": {"label": source.label, "kind": source.kind, "detail": source.detail} if source else None,
    }


def rows(layout: Layout, expand: bool) -> list[Leaf]:
    """The members to show: the top level only, or everything with nested structs opened."""
    every = leaves(layout, containers=True)
    return list(every) if expand else [leaf for leaf in every if leaf.depth == 0]


def _member_record(leaf: Leaf, line_bytes: int, phase: int) -> dict[str, Any]:
    member = leaf.member
    return {
        "name": leaf.name,
        "path": leaf.path,
        "type": leaf.type,
        "offset": leaf.offset,
        "size": leaf.size,
        "bit_offset": leaf.bit_offset,
        "bit_size": leaf.bit_size,
        "align": member.align,
        "lines": list(line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)),
        "depth": leaf.depth,
        "bitfield": member.is_bitfield,
        "forced_align": member.forced_align,
        "align_from": member.align_from,
        "tags": sorted(leaf.tags),
    }


def layout_text(layout: Layout, *, line_bytes: int = 64, phase: int = 0, expand: bool = False) -> str:
    """`layout` as a table with a rule at each cache line, and a summary. Raises as `layout_record`."""
    check_line(line_bytes, phase)
    body: list[tuple[int, list[object]]] = []
    for leaf in rows(layout, expand):
        first, last = line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)
        span = str(first) if first == last else f"{first}-{last}"
        cells: list[object] = [span, _offset(leaf), _size(leaf), "  " * leaf.depth + _label(leaf)]
        cells += [leaf.member.align, " ".join(sorted(leaf.tags))]
        body.append((leaf.bit_offset * 100 + leaf.depth, cells))
    for hole in holes(layout):
        first, last = line_span(hole.bit_offset, hole.bits, line_bytes, phase)
        span = str(first) if first == last else f"{first}-{last}"
        size = f"{hole.bits // 8}" if hole.bits % 8 == 0 else f"{hole.bits} bits"
        body.append((hole.bit_offset * 100 + 99, [span, hole.offset, size, "-- hole --", "", ""]))
    body.sort(key=lambda row: row[0])
    text = table(["line", "offset", "size", "member", "align", "tags"], [row for _, row in body], right="rrrlrl")
    return f"{text}\n\n{summary(layout, line_bytes, phase)}"


def summary(layout: Layout, line_bytes: int = 64, phase: int = 0) -> str:
    """One paragraph: size, alignment, lines, holes, padding, and whether the layout can be re-placed."""
    gaps = holes(layout)
    parts = [
        f"{layout.title}: {count(layout.size, 'byte')}, align {layout.align}, "
        f"{count(n_lines(layout, line_bytes, phase), 'line')} of {line_bytes}"
        + (f" (starting {phase} bytes into one)" if phase else ""),
        f"{count(len(gaps), 'hole')}" + (f" ({sum(h.bits for h in gaps) / 8:g} bytes)" if gaps else ""),
        f"padding {padding_bits(layout) / 8:g}",
    ]
    lines = ["; ".join(parts) + "  [exact]"]
    if layout.source is not None:
        detail = f", {layout.source.detail}" if layout.source.detail else ""
        lines.append(f"from {layout.source.label} ({layout.source.kind}{detail})")
    if layout.reason is not None:
        lines.append(f"cannot be re-placed: {layout.reason}")
    return "\n".join(lines)


def _offset(leaf: Leaf) -> str:
    return f"{leaf.offset}:{leaf.bit_offset % 8}" if leaf.member.is_bitfield else str(leaf.offset)


def _size(leaf: Leaf) -> str:
    return f"{leaf.bit_size} bits" if leaf.member.is_bitfield else str(leaf.size)


def _label(leaf: Leaf) -> str:
    text = declaration(leaf.type, leaf.name)
    return f"{text}:{leaf.bit_size}" if leaf.member.is_bitfield else text
