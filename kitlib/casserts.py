"""The same promises as C: ``static_assert``s, and the kernel's cache-line group macros with what they miss.

``CACHELINE_ASSERT_GROUP_MEMBER/SIZE`` (include/linux/cache.h, since v6.8) say that a member is inside its
group and that the group is no longer than so many bytes. They say neither on which line the group is nor
that nobody else is on that line; the assertions added here do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from kitlib.baseline import Place, flat
from kitlib.errors import DataError, NotFound
from kitlib.guard import outsiders
from kitlib.lines import Leaf, check_line, find_leaf, leaves, line_span
from kitlib.model import Layout
from kitlib.rules import Rule, StructRules

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_MACROS = """\
#define KIT_SIZE(type, member) sizeof(((type *)0)->member)
#define KIT_FIRST(type, member, line, phase) ((offsetof(type, member) + (phase)) / (line))
#define KIT_LAST(type, member, line, phase) \\
    ((offsetof(type, member) + KIT_SIZE(type, member) - 1 + (phase)) / (line))
#define KIT_APART(type, a, b, line, phase) \\
    (KIT_LAST(type, a, line, phase) < KIT_FIRST(type, b, line, phase) || \\
     KIT_LAST(type, b, line, phase) < KIT_FIRST(type, a, line, phase))
"""
_GROUP_MACROS = (
    _MACROS
    + """\
#define KIT_OUTSIDE(type, member, group, line) \\
    (KIT_LAST(type, member, line, 0) < offsetof(type, __cacheline_group_begin__##group) / (line) || \\
     KIT_FIRST(type, member, line, 0) > (offsetof(type, __cacheline_group_end__##group) - 1) / (line))
"""
)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A C condition, the message for when it is false, and members a compiler cannot take an offset of."""

    condition: str
    message: str


def static_asserts(group: StructRules, layout: Layout) -> str:
    """C11 text that fails to compile where a rule of `group` is broken; it is appended to the struct's file.

    Rules that C cannot state (about bit-fields, other configurations) are listed in a comment at the end,
    never dropped silently. Raises `DataError` if the struct has no name that C could use and `NotFound` if a
    rule for every configuration names a member that `layout` has not.
    """
    kind = _c_type(layout)
    body: list[str] = []
    left_out: list[str] = []
    for rule in group.rules:
        try:
            reason = _inexpressible(rule, layout)
        except NotFound as error:
            raise NotFound(f"rule '{rule.id}': {error}") from None
        if reason:
            left_out.append(f" * {rule.id}: {reason}")
            continue
        body.append(f"\n/* {_comment(rule.id)}{': ' + _comment(rule.why) if rule.why else ''} */")
        for line_bytes, phase in rule.scope.positions(layout.align):
            for claim in _claims(rule, layout, kind, line_bytes, phase):
                text = f'static_assert({claim.condition},\n\t"{_string(claim.message)}");'
                if text not in body:
                    body.append(text)
    head = f"/* Layout promises of {kind}, written by kitlib. Put them after the definition of {kind}. */"
    tail = ["", "/* Not expressible in C; 'kitlib check' covers them:", *left_out, " */"] if left_out else []
    return "\n".join([head, _INCLUDES, _MACROS.rstrip(), *body, *tail]) + "\n"


_INCLUDES = """\
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif
"""


def _c_type(layout: Layout) -> str:
    if layout.name is None or not _IDENTIFIER.fullmatch(layout.name):
        raise DataError(f"{layout.title}: C assertions need a struct with a plain name")
    return f"{'union' if layout.kind == 'union' else 'struct'} {layout.name}"


def _string(text: str) -> str:
    return text.encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', "'")


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *")


def _inexpressible(rule: Rule, layout: Layout) -> str | None:
    if rule.scope.abis or rule.scope.config or rule.scope.with_members or rule.scope.without_members:
        return "it is for some configurations only"
    for path in rule.members:
        leaf = find_leaf(layout, path)
        if leaf.member.is_bitfield:
            return f"{path} is a bit-field, which has no offset in C"
        if leaf.bit_size == 0:
            return f"{path} has no size, so sizeof cannot be taken of it"
        if not _c_path(path):
            return f"{path} cannot be named in C"
    return None


def _c_path(path: str) -> bool:
    """Whether `path` is a member designator: base classes and table pointers of C++ objects have none."""
    return all(_IDENTIFIER.fullmatch(name) for name in path.split(".")) and not path.startswith("_vptr.")


def _claims(rule: Rule, layout: Layout, kind: str, line_bytes: int, phase: int) -> list[_Claim]:
    spot = f"{line_bytes}, {phase}"
    said = f"{rule.id}: "
    first = {m: f"KIT_FIRST({kind}, {m}, {spot})" for m in rule.members}
    last = {m: f"KIT_LAST({kind}, {m}, {spot})" for m in rule.members}
    if rule.kind == "size":
        sign, size = ("==", rule.number("bytes")) if rule.number("bytes") else ("<=", rule.number("max_bytes"))
        return [_Claim(f"sizeof({kind}) {sign} {size}", said + f"size must be {sign} {size} bytes")]
    if rule.kind == "at":
        offset = rule.number("offset")
        return [_Claim(f"offsetof({kind}, {rule.members[0]}) == {offset}", said + f"must be at offset {offset}")]
    if rule.kind == "apart":
        pairs = [(a, b) for i, a in enumerate(rule.members) for b in rule.members[i + 1 :]]
        return [_Claim(f"KIT_APART({kind}, {a}, {b}, {spot})", said + f"{a} and {b} share a line") for a, b in pairs]
    if rule.kind == "together":
        span = rule.number("lines", 1)
        return [
            _Claim(f"{last[a]} < {first[b]} + {span}", said + f"{a} and {b} are more than {span} line(s) apart")
            for a in rule.members
            for b in rule.members
            if a != b
        ]
    if rule.kind == "on_line":
        n = rule.number("line")
        return [_Claim(f"{first[m]} == {n} && {last[m]} == {n}", said + f"{m} left line {n}") for m in rule.members]
    if rule.kind == "no_straddle":
        return [_Claim(f"{first[m]} == {last[m]}", said + f"{m} crosses a line boundary") for m in rule.members]
    if rule.kind == "straddle":
        return [_Claim(f"{first[m]} != {last[m]}", said + f"{m} lies on one line") for m in rule.members]
    if rule.kind == "alone":
        return _alone(rule, layout, kind, line_bytes, phase)
    return _line_budget(rule, layout, kind, line_bytes, phase)


def _alone(rule: Rule, layout: Layout, kind: str, line_bytes: int, phase: int) -> list[_Claim]:
    """Every other member of today's struct stays off; new ones show as a gap between today's neighbours."""
    claims = []
    for place in _addressable(layout):
        own = (*rule.members, *rule.allow)
        if any(place.path == m or m.startswith(place.path + ".") for m in own):
            continue
        for member in rule.members:
            condition = f"KIT_APART({kind}, {member}, {place.path}, {line_bytes}, {phase})"
            claims.append(_Claim(condition, f"{rule.id}: {place.path} is on a line of {member}"))
    return claims + _no_newcomers(rule, layout, kind, line_bytes, phase)


def _no_newcomers(rule: Rule, layout: Layout, kind: str, line_bytes: int, phase: int) -> list[_Claim]:
    """Neighbours on the members' lines must follow each other as they do today, so nothing fits in between."""
    taken = [_span(find_leaf(layout, member), line_bytes, phase) for member in rule.members]
    claims = []
    places = _addressable(layout)
    first, last = places[0], max(places, key=lambda p: p.bit_offset + p.bit_size)
    if line_span(0, first.bit_offset + first.bit_size, line_bytes, phase)[1] >= min(low for low, _ in taken):
        text = f"{rule.id}: something new before {first.path}"
        claims.append(_Claim(f"offsetof({kind}, {first.path}) == {first.offset}", text))
    if line_span(last.bit_offset, layout.size * 8 - last.bit_offset, line_bytes, phase)[1] <= max(
        high for _, high in taken
    ):
        end = f"sizeof({kind}) - offsetof({kind}, {last.path}) - KIT_SIZE({kind}, {last.path})"
        text = f"{rule.id}: something new behind {last.path}"
        claims.append(_Claim(f"{end} == {layout.size - last.offset - last.size}", text))
    for a, b in pairwise(places):
        gap = b.offset - a.offset - a.size
        low, _ = line_span(a.bit_offset, a.bit_size, line_bytes, phase)
        _, high = line_span(b.bit_offset, b.bit_size, line_bytes, phase)
        if gap >= 0 and any(low <= end and start <= high for start, end in taken):
            condition = f"offsetof({kind}, {b.path}) - offsetof({kind}, {a.path}) - KIT_SIZE({kind}, {a.path}) == {gap}"
            claims.append(_Claim(condition, f"{rule.id}: something new between {a.path} and {b.path}"))
    return claims


def _span(leaf: Leaf, line_bytes: int, phase: int) -> tuple[int, int]:
    return line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)


def _addressable(layout: Layout) -> list[Place]:
    """Members whose offset C can take: no bit-fields, no zero-size markers or flexible arrays; by offset."""
    bits = {leaf.path for leaf in leaves(layout) if leaf.member.is_bitfield}
    named = (p for p in flat(layout) if p.bit_size and p.path not in bits and _c_path(p.path))
    return sorted(named, key=lambda p: p.bit_offset)


def _line_budget(rule: Rule, layout: Layout, kind: str, line_bytes: int, phase: int) -> list[_Claim]:
    most = rule.number("max_lines")
    if not rule.members:
        condition = f"(sizeof({kind}) - 1 + {phase}) / {line_bytes} < {most}"
        return [_Claim(condition, f"{rule.id}: the struct touches more than {most} lines")]
    # the lines in the middle of a long member hold nothing else; ends count unless counted before
    spot = f"{line_bytes}, {phase}"
    ends: list[str] = []
    terms: list[str] = []
    for m in rule.members:
        first, last = f"KIT_FIRST({kind}, {m}, {spot})", f"KIT_LAST({kind}, {m}, {spot})"
        for end in (first, last):
            terms.append("(" + (" && ".join(f"{end} != {seen}" for seen in ends) or "1") + ")")
            ends.append(end)
        terms.append(f"({last} > {first} ? {last} - {first} - 1 : 0)")
    return [_Claim(" + ".join(terms) + f" <= {most}", f"{rule.id}: the members touch more than {most} lines")]


# -- the kernel's groups ------------------------------------------------------------------------------


def kernel_group(layout: Layout, members: Iterable[str], group: str, line_bytes: int = 64) -> str:
    """Text for a kernel tree: where the group's markers go, the kernel's assertions, and what they miss.

    `members` are top-level members (or members of anonymous ones) that follow each other. Raises
    `DataError` naming what stands between them if they do not, or if `group` is no C identifier.
    """
    check_line(line_bytes)
    if not _IDENTIFIER.fullmatch(group):
        raise DataError(f"group name '{group}' is no C identifier")
    kind = _c_type(layout)
    places = [p for p in flat(layout) if p.bit_size]
    run = _contiguous(layout, places, tuple(dict.fromkeys(members)))
    start, end = run[0], run[-1]
    size = end.offset + end.size - start.offset
    begin, close = f"__cacheline_group_begin__{group}", f"__cacheline_group_end__{group}"
    line, last = start.offset // line_bytes, (end.offset + end.size - 1) // line_bytes
    out = [_GROUP_MACROS, f"/* In {kind}:", " *", f" *\t__cacheline_group_begin({group});"]
    out += [f" *\t{_comment(p.type)} {p.path};" for p in run]
    out += [f" *\t__cacheline_group_end({group});", " *", " * In a function that is always built: */"]
    out += [f"CACHELINE_ASSERT_GROUP_MEMBER({kind}, {group}, {p.path});" for p in run]
    out.append(f"CACHELINE_ASSERT_GROUP_SIZE({kind}, {group}, {size});")
    out += ["", "/* What the two macros above do not say: which line it is, and that outsiders stay out. */"]
    out.append(f'static_assert(offsetof({kind}, {begin}) / {line_bytes} == {line},\n\t"{group} left line {line}");')
    if start.offset % line_bytes + size <= line_bytes:
        text = f"(offsetof({kind}, {close}) - 1) / {line_bytes} == {last}"
        out.append(f'static_assert({text},\n\t"{group} crosses a line boundary");')
    out += _stay_out(layout, kind, group, run, line_bytes)
    return "\n".join(out) + "\n"


def _contiguous(layout: Layout, places: list[Place], members: tuple[str, ...]) -> list[Place]:
    if not members:
        raise DataError("a cache-line group needs members: say which with --hot A,B")
    for path in members:
        leaf = find_leaf(layout, path)
        if leaf.member.is_bitfield or leaf.bit_size == 0 or not _IDENTIFIER.fullmatch(path):
            raise DataError(f"'{path}' cannot be in a cache-line group: use plain members of {layout.title}")
    at = sorted(i for i, place in enumerate(places) if place.path in members)
    run = places[at[0] : at[-1] + 1]
    between = [place.path for place in run if place.path not in members]
    if between:
        raise DataError(f"{', '.join(members)} do not follow each other: {', '.join(between)} stand between them")
    return run


def _stay_out(layout: Layout, kind: str, group: str, run: list[Place], line_bytes: int) -> list[str]:
    """Outsiders off the group's lines must stay off, those on them are named, and newcomers have no room."""
    names = tuple(p.path for p in run)
    inside = dict.fromkeys(leaf.path.split(".", 1)[0] for leaf in outsiders(layout, names, line_bytes, 0))
    out = []
    if inside:
        out.append(f"/* On the group's lines today, though not in it: {', '.join(inside)} */")
    for place in _addressable(layout):
        if place.path not in names and place.path not in inside:
            text = f"{place.path} is on a line of {group}"
            out.append(f'static_assert(KIT_OUTSIDE({kind}, {place.path}, {group}, {line_bytes}),\n\t"{text}");')
    for claim in _no_newcomers(Rule(group, "alone", names), layout, kind, line_bytes, 0):
        out.append(f'static_assert({claim.condition},\n\t"{_string(claim.message)}");')
    return out
