"""What the explorer shows, as plain values: records of layouts, and a session that answers its controls.

One front end (``explorer.js``) has two hosts: with a kernel a `Session` answers each request; in a page the same
answers come from `page_data`. Layouts are computed here and in `kitlib.statetable`, never in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kitlib.blocks import Block, blocks, moved, title_of
from kitlib.cdecl import declaration
from kitlib.edit import Align, AlignStruct, Edit, Move
from kitlib.errors import KitError
from kitlib.figures.layout import explorer_style, hover_parts
from kitlib.figures.style import KINDS, FigureKind
from kitlib.layoutjson import layout_to_dict
from kitlib.lines import check_line
from kitlib.model import Layout, Member
from kitlib.paholetext import pahole_text
from kitlib.scenario import Scenario
from kitlib.statetable import BUDGET, STRUCT_ALIGNS, fixed_because, member_aligns, page_tables, positions
from kitlib.tags import WRITTEN_TAGS
from kitlib.text import visible

Row = Mapping[str, object]
Extra = Callable[[Layout], Sequence[Row]]
ALL_VARIANTS_BUDGET = 3 * BUDGET
"""States a page holds for all variants of one explorer together."""
EXTRA_STATES = 4_000
"""Layouts for which a page calls `extra` ahead of time."""


@dataclass(frozen=True, slots=True)
class Toggle:
    """A control of its own for one thing in which variants differ: labels of its states; an ``option`` has the two
    of being off and on."""

    name: str
    states: tuple[str, ...]
    option: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an explorer is opened on: ``variants`` are the layouts to choose from (label to layout, at least one),
    ``before`` what they are compared with (None: each with itself unedited), ``extra`` gives the rows of a
    further table for a layout, headed ``extra_title`` and marked with ``extra_kind``. With ``toggles`` a variant is
    chosen by them rather than by its label; ``settings`` has, for each variant in order, the state of each."""

    variants: Mapping[str, Layout]
    before: Layout | None = None
    extra: Extra | None = None
    extra_title: str = ""
    extra_kind: FigureKind = "model"
    toggles: tuple[Toggle, ...] = ()
    settings: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.variants:
            raise KitError("nothing to explore: give a layout, or variants with at least one")
        if self.toggles and len(set(self.settings)) != len(self.variants):
            raise KitError("toggles: each variant needs a setting of its own")


@dataclass(frozen=True, slots=True)
class View:
    """What the explorer shows first: a member (None: one that is written to), line size and phase in bytes."""

    member: str | None = None
    line_bytes: int = 64
    phase: int = 0

    def __post_init__(self) -> None:
        check_line(self.line_bytes, self.phase)


# -- records ---------------------------------------------------------------------------------------------


def subject_data(subject: Subject, view: View) -> dict[str, Any]:
    """What both hosts send to the front end once: styles, the first view, and a record of every variant."""
    first = next(iter(subject.variants.values()))
    kind = KINDS[subject.extra_kind]
    return {
        "style": explorer_style(),
        "view": {"member": _first_member(first, view.member), "line": view.line_bytes, "phase": view.phase},
        "variants": [variant_record(label, v, subject.before or v) for label, v in subject.variants.items()],
        "toggles": [asdict(toggle) for toggle in subject.toggles],
        "settings": subject.settings,
        "extra": {"title": subject.extra_title, "kind": subject.extra_kind, "mark": f"{kind.mark} {kind.label}"}
        if subject.extra
        else None,
    }


def _first_member(layout: Layout, name: str | None) -> int:
    """The member to show first: the one asked for, else the first that is written to, else the first."""
    if name is not None:
        return layout.index(name)
    written = (i for i, m in enumerate(layout.members) if m.tags & WRITTEN_TAGS)
    return next(written, 0)


def variant_record(label: str, layout: Layout, before: Layout) -> dict[str, Any]:
    """A layout as the front end needs it; offsets and sizes of members are in bits, of structs in bytes."""
    was = {title_of(m): m for m in before.members}
    drawn = {(b.path, b.type, b.bit_offset): b for b in blocks(layout, gaps=False)}
    members = []
    for i, member in enumerate(layout.members):
        block = drawn[(member.name or "", member.type, member.bit_offset)]
        old = was.get(title_of(member))
        record = _member_record(i, layout, block)
        record["was"] = old.bit_offset if old else None
        members.append(record)
    return {
        "label": label,
        "title": layout.title,
        "name": layout.name,
        "kind": layout.kind,
        "reason": layout.reason,
        "members": members,
        "struct_aligns": sorted({*STRUCT_ALIGNS, layout.forced_align}),
        "start": state_record(layout, tuple(range(len(members))), before),
        "before": {
            "title": before.title,
            "same": before is layout,
            "size": before.size,
            "align": before.align,
            "members": [
                {"name": title_of(m), "bit": m.bit_offset, "bits": m.bit_size}
                for m in sorted(before.members, key=lambda m: m.bit_offset)
            ],
        },
    }


def _member_record(index: int, layout: Layout, block: Block) -> dict[str, Any]:
    member = layout.members[index]
    low, high = positions(layout, index)
    return {
        "name": title_of(member),
        "named": _called(layout, index) == member.name == title_of(member),
        "bits": member.bit_size,
        "tag": block.tag,
        "inside": block.inside,
        "lane": block.lane,
        "lanes": block.lanes,
        "natural": 1 if member.packed or layout.packed else member.natural_align,
        "aligns": member_aligns(member),
        "positions": [low, high],
        "fixed": fixed_because(layout, index),
        "hover": hover_parts(block),
        "declaration": declaration_rows(member),
    }


def _called(layout: Layout, index: int) -> str:
    """What edits call the member at `index`: its name, or its number if that is not clear."""
    name = layout.members[index].name
    return name if name is not None and layout.index(name) == index else f"#{index}"


def declaration_rows(member: Member, depth: int = 1, base: int = 0) -> list[list[Any]]:
    """C text of `member` in rows ``[depth, text, bit offset, size in bits, storage bits]``; those that open a nested
    struct have no offset. Offsets count from the member's own start."""
    inner = member.inner
    attribute = f" __attribute__((__aligned__({member.forced_align})))" if member.forced_align else ""
    width = f":{member.bit_size}" if member.is_bitfield else ""
    if inner is None or inner.name is not None or not inner.members:
        text = f"{declaration(member.type, member.name)}{width}{attribute};"
        return [[depth, text, base, member.bit_size, member.storage_bits]]
    rows: list[list[Any]] = [[depth, f"{inner.kind} {{", None, 0, 0]]
    for child in inner.members:
        rows += declaration_rows(child, depth + 1, base + child.bit_offset)
    bounds = member.type[member.type.index("[") :] if "[" in member.type else ""
    close = f"}} {member.name or ''}{bounds}".rstrip()
    return [*rows, [depth, f"{close}{attribute};", base, member.bit_size, 0]]


def state_record(layout: Layout, order: Sequence[int], before: Layout) -> dict[str, Any]:
    """One state: ``offsets`` (bits) and ``forced`` (bytes) by member number in the variant, ``order`` the numbers in
    place order, ``moved`` those that changed places against `before`, and the struct's size and alignment."""
    offsets, forced = [0] * len(order), [0] * len(order)
    for number, member in zip(order, layout.members, strict=True):
        offsets[number], forced[number] = member.bit_offset, member.forced_align
    changed = moved(before, layout)
    return {
        "offsets": offsets,
        "forced": forced,
        "order": list(order),
        "moved": [n for n, m in zip(order, layout.members, strict=True) if title_of(m) in changed],
        "size": layout.size,
        "align": layout.align,
        "struct_align": layout.forced_align,
    }


def extra_record(extra: Extra | None, layout: Layout) -> dict[str, Any] | None:
    """The rows of `extra` for `layout` as columns and cells of text."""
    if extra is None:
        return None
    rows = list(extra(layout))
    columns = list(dict.fromkeys(str(key) for row in rows for key in row))
    return {"columns": columns, "rows": [[str(row.get(c, "")) for c in columns] for row in rows]}


# -- with a kernel ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A layout and where the variant's members stand in it."""

    layout: Layout
    order: tuple[int, ...]


class Session:
    """The explorer's state in a kernel: the chosen variant, the edits made to it, undo and redo.

    `answer` takes the front end's requests. A request with ``commit`` false is a slider under way: it is shown
    and forgotten. An edit that does not fit leaves the state as it was and is answered with ``error``.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._labels = list(subject.variants)
        self._variant = 0
        self._undone: list[tuple[Edit, _Place]] = []
        self._done: list[tuple[Edit, _Place]] = []

    @property
    def base(self) -> Layout:
        """The chosen variant, without edits."""
        return self.subject.variants[self._labels[self._variant]]

    @property
    def layout(self) -> Layout:
        """The layout as edited."""
        return self._now.layout

    @property
    def scenario(self) -> Scenario:
        """The edits as a `Scenario`, to be saved or applied elsewhere."""
        return Scenario(self.base, tuple(edit for edit, _ in self._done))

    @property
    def _now(self) -> _Place:
        if self._done:
            return self._done[-1][1]
        return _Place(self.base, tuple(range(len(self.base.members))))

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The state after `request` (``op`` is one of edit, struct_align, variant, undo, redo, reset, save, copy)."""
        more: dict[str, Any] = {}
        shown = self._now
        try:
            operation = request.get("op")
            if operation in ("edit", "struct_align"):
                shown = self._edit(request)
            elif operation == "variant":
                more["note"] = self._choose(int(request["index"]))
                shown = self._now
            elif operation in ("undo", "redo", "reset"):
                getattr(self, f"_{operation}")()
                shown = self._now
            elif operation == "save":
                more["file"] = {"name": "scenario.json", "text": self.scenario.to_json()}
            elif operation == "copy":
                more["text"] = pahole_text(self.layout)
        except KitError as error:
            more["error"] = str(error)
        return self._record(shown) | more | {"seq": request.get("seq", 0)}

    def _record(self, shown: _Place) -> dict[str, Any]:
        before = self.subject.before or self.base
        return state_record(shown.layout, shown.order, before) | {
            "variant": self._variant,
            "edits": [visible(str(edit)) for edit, _ in self._done],
            "undo": bool(self._done),
            "redo": bool(self._undone),
            "extra": extra_record(self.subject.extra, shown.layout),
        }

    def _edit(self, request: Mapping[str, Any]) -> _Place:
        place = self._now
        edits: list[tuple[Edit, _Place]] = []
        for edit in self._edits_of(request, place):
            place = _applied(edit, place)
            edits.append((edit, place))
        if request.get("commit") and edits:
            self._done += edits
            self._undone.clear()
        return place

    @staticmethod
    def _edits_of(request: Mapping[str, Any], place: _Place) -> list[Edit]:
        if request["op"] == "struct_align":
            wanted = int(request["align"])
            return [AlignStruct(wanted)] if wanted != place.layout.forced_align else []
        at = place.order.index(int(request["member"]))
        member = place.layout.members[at]
        edits: list[Edit] = []
        target, align = request.get("position"), request.get("align")
        if align is not None and int(align) != member.forced_align:
            edits.append(Align(_called(place.layout, at), int(align)))
        if target is not None and int(target) != at:
            edits.append(Move(_called(place.layout, at), index=int(target)))
        return edits

    def _choose(self, index: int) -> str:
        """Switch to another variant and make the same edits there; say which of them do not fit."""
        edits = [edit for edit, _ in self._done]
        self._variant = max(0, min(index, len(self._labels) - 1))
        self._done, self._undone = [], []
        lost = []
        for edit in edits:
            try:
                self._done.append((edit, _applied(edit, self._now)))
            except KitError as error:
                lost.append(f"{edit} ({error})")
        return f"left out, as it does not fit here: {'; '.join(lost)}" if lost else ""

    def _undo(self) -> None:
        if self._done:
            self._undone.append(self._done.pop())

    def _redo(self) -> None:
        if self._undone:
            self._done.append(self._undone.pop())

    def _reset(self) -> None:
        self._done, self._undone = [], []


def _applied(edit: Edit, place: _Place) -> _Place:
    order = list(place.order)
    if isinstance(edit, Move) and edit.index is not None:
        order.insert(edit.index, order.pop(place.layout.index(edit.member)))
    return _Place(edit.apply(place.layout), tuple(order))


# -- without a kernel ------------------------------------------------------------------------------------


def page_data(subject: Subject, view: View) -> dict[str, Any]:
    """`subject_data`, and for every variant the tables that stand in for a kernel."""
    data = subject_data(subject, view)
    members = next(iter(subject.variants.values())).members
    shown = title_of(members[data["view"]["member"]]) if members else None
    budget = min(BUDGET, ALL_VARIANTS_BUDGET // len(subject.variants))
    for record, layout in zip(data["variants"], subject.variants.values(), strict=True):
        record["tables"] = page_tables(layout, budget, shown)
        record["extras"] = _extras(subject.extra, layout, record["tables"]["members"])
        record["base"] = layout_to_dict(layout)
    return data


def _extras(extra: Extra | None, layout: Layout, chosen: Sequence[int]) -> dict[str, Any] | None:
    """The extra table of the unedited layout and of every move at unchanged alignments, equal tables kept once."""
    if extra is None:
        return None
    unique: list[dict[str, Any]] = []
    known: dict[str, int] = {}

    def number(state: Layout) -> int:
        record = extra_record(extra, state)
        if str(record) not in known and record is not None:
            known[str(record)] = len(unique)
            unique.append(record)
        return known[str(record)]

    start = number(layout)
    moves: dict[int, list[int]] = {}
    for index in chosen:
        low, high = positions(layout, index)
        if (len(moves) + 1) * (high - low + 1) > EXTRA_STATES or low == high:
            continue
        name = _called(layout, index)
        moves[index] = [
            start if position == index else number(Move(name, index=position).apply(layout))
            for position in range(low, high + 1)
        ]
    return {"start": start, "moves": moves, "tables": unique}
