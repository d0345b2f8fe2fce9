"""One struct under many configurations: members tied to CONFIG options, and choices of how it was written.

A `Variants` holds the struct with *every* optional member in it. A setting says which options are on and which
state each choice is in; its layout is that of the choices' edits with the absent members taken out, as the
preprocessor would.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_

from kitlib.cdecl import member_from_decl
from kitlib.edit import Edit, apply
from kitlib.errors import DataError, KitError, NotFound, near
from kitlib.model import Layout, Member
from kitlib.place import replace

MAX_COMBINATIONS = 4096

Setting = Mapping[str, bool | str]
"""Option name to on or off, choice name to the label of its state; what is left out keeps its default."""


@dataclass(frozen=True, slots=True)
class Option:
    """A CONFIG option.

    ``members`` are there only when it is on, ``absent`` only when it is off; ``types`` are declarations that
    members have when it is on (``("f_lock", "unsigned long f_lock[3]")``).
    """

    name: str
    members: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    default: bool = True
    about: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """One state of a choice: edits made to the full struct before absent members are taken out."""

    label: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives in how the struct is written; the first state is the default."""

    name: str
    states: tuple[State, ...]
    about: str = ""

    def state(self, label: object) -> State:
        """The state called `label`. Raises `NotFound`, with near labels."""
        for state in self.states:
            if state.label == label:
                return state
        labels = [state.label for state in self.states]
        raise NotFound(f"{self.name} has no state '{label}'{near(str(label), labels)}; it has {', '.join(labels)}")


@dataclass(frozen=True, slots=True)
class Variants:
    """A struct with its options and choices; ``base`` has every optional member.

    Raises `DataError` if there is nothing to vary, a name is used twice, an option names a member that no
    combination has, or there are more than 4,096 combinations; `PlacementError` if ``base`` cannot be re-placed.
    """

    base: Layout
    options: tuple[Option, ...] = ()
    choices: tuple[Choice, ...] = ()
    about: str = ""
    full: tuple[Layout, ...] = field(init=False, repr=False, compare=False)
    """The struct with all members for each combination of choice states, in the order of `choice_states`."""

    def __post_init__(self) -> None:
        if not self.options and not self.choices:
            raise DataError(f"{self.base.title}: neither an option nor a choice to vary; add [[option]]")
        if self.count > MAX_COMBINATIONS:
            many = f"{self.count:,}" if self.count < 1 << 32 else "more than 4 billion"
            raise DataError(f"{self.base.title}: {many} combinations; at most {MAX_COMBINATIONS:,} are tried")
        self._check_names()
        object.__setattr__(self, "full", self._edited())
        self._check_members()

    def _check_names(self) -> None:
        """Refuse names that cannot be shown on one line, or told apart once ``CONFIG_`` is left out, as on screen."""
        names = [*(option.name for option in self.options), *(choice.name for choice in self.choices)]
        for text in (*names, *(state.label for choice in self.choices for state in choice.states)):
            if not text.strip() or not text.isprintable():
                raise DataError(f"{text!a}: a name or label must be a text of one line")
        seen: dict[str, str] = {}
        for name in names:
            shown = name.removeprefix("CONFIG_")
            if seen.get(shown) == name:
                raise DataError(f"{name}: given twice; an option or choice has one entry")
            if shown in seen:
                raise DataError(f"{name} and {seen[shown]} look alike on screen; rename one")
            seen[shown] = name

    def _edited(self) -> tuple[Layout, ...]:
        """The base with the edits of every combination of states; what combinations begin with is edited once."""
        found: list[tuple[str, Layout]] = [("", self.base)]
        for choice in self.choices:
            longer = []
            for chosen, layout in found:
                for state in choice.states:
                    label = f"{chosen}, {choice.name} {state.label}".removeprefix(", ")
                    try:
                        longer.append((label, apply(layout, state.edits)))
                    except KitError as error:
                        raise type(error)(f"with {label}: {error}") from None
            found = longer
        return tuple(layout for _, layout in found)

    def _check_members(self) -> None:
        known = {name for layout in self.full for name in layout.member_names()}
        typed: dict[str, str] = {}
        for option in self.options:
            retyped = tuple(name for name, _ in option.types)
            for name in (*option.members, *option.absent, *retyped):
                if name not in known:
                    raise DataError(f"{option.name}: no member '{name}' in {self.base.title}{near(name, known)}")
            for name in option.absent:
                if name in (*option.members, *retyped):
                    raise DataError(f"{option.name}: says both that {name} is there and that it is absent; keep one")
            for name, declaration in option.types:
                if name in typed:
                    raise DataError(f"{option.name}: {typed[name]} changes the type of {name} too; only one option may")
                typed[name] = option.name
                _retyped(self.base, name, declaration)

    @property
    def count(self) -> int:
        """Number of combinations."""
        total = 1 << len(self.options)
        for choice in self.choices:
            total *= len(choice.states)
        return total

    @property
    def default(self) -> dict[str, bool | str]:
        """The setting that says everything."""
        chosen: dict[str, bool | str] = {option.name: option.default for option in self.options}
        return chosen | {choice.name: choice.states[0].label for choice in self.choices}

    def complete(self, setting: Setting | None = None) -> dict[str, bool | str]:
        """`setting` with defaults for what it leaves out. Raises `NotFound` for an unknown name or state."""
        whole = self.default
        for name, value in (setting or {}).items():
            if name not in whole:
                raise NotFound(f"no option or choice '{name}' for {self.base.title}{near(name, whole)}")
            if isinstance(whole[name], bool) is not isinstance(value, bool):
                raise NotFound(f"{name} = {value!r}: an option is true or false, a choice the label of a state")
            whole[name] = value
        for choice in self.choices:
            choice.state(whole[choice.name])
        return whole

    def choice_states(self) -> Iterator[tuple[State, ...]]:
        """Every combination of choice states, the last choice varying fastest."""
        return itertools.product(*(choice.states for choice in self.choices))

    def settings(self) -> Iterator[dict[str, bool | str]]:
        """Every setting, in the order of `kitlib.variantmatrix.matrix`: choices first, options vary fastest."""
        for states in self.choice_states():
            chosen = {choice.name: state.label for choice, state in zip(self.choices, states, strict=True)}
            for on in itertools.product((False, True), repeat=len(self.options)):
                yield {o.name: x for o, x in zip(self.options, on, strict=True)} | chosen

    def layout(self, setting: Setting | None = None) -> Layout:
        """The layout of `setting`. Raises `NotFound` for an unknown name or state."""
        whole = self.complete(setting)
        edits = [edit for choice in self.choices for edit in choice.state(whole[choice.name]).edits]
        layout = apply(self.base, edits)
        gone: set[str] = set()
        for option in self.options:
            gone |= set(option.absent if whole[option.name] else option.members)
            if whole[option.name]:
                layout = retype(layout, option.types)
        return replace(layout, [member for member in layout.members if member.name not in gone])

    def layouts(self, limit: int = 64) -> dict[str, Layout]:
        """Label to layout for every combination, the default first: what ``explore(variants=...)`` takes.

        Raises `DataError` for more than `limit` combinations (a chooser cannot show more).
        """
        if self.count > limit:
            raise DataError(f"{self.base.title}: {self.count:,} combinations are too many to choose from ({limit})")
        every = {self.label(self.default): self.layout()}
        every |= {self.label(setting): self.layout(setting) for setting in self.settings()}
        if len(every) < self.count:
            raise DataError(f"{self.base.title}: two combinations have the same label; rename a state")
        return every

    def label(self, setting: Setting) -> str:
        """``MMU, not MEMBARRIER; write_protect_seq absent``: a setting in words."""
        whole = self.complete(setting)
        options = [("" if whole[o.name] else "not ") + o.name.removeprefix("CONFIG_") for o in self.options]
        states = [f"{choice.name} {whole[choice.name]}" for choice in self.choices]
        return "; ".join(part for part in (", ".join(options), *states) if part)


def retype(layout: Layout, types: Sequence[tuple[str, str]]) -> Layout:
    """`layout` with other declarations for some members; those it lacks are passed over."""
    for name, declaration in types:
        if any(member.name == name for member in layout.members):
            index = layout.index(name)
            members = list(layout.members)
            members[index] = _retyped(layout, name, declaration)
            layout = replace(layout, members)
    return layout


def _retyped(layout: Layout, name: str, declaration: str) -> Member:
    member = member_from_decl(declaration, layout)
    if member.name != name:
        raise DataError(f"'{declaration}' declares {member.name}, not {name}")
    old = next((m for m in layout.members if m.name == name), None)
    return member if old is None else with_(member, forced_align=old.forced_align)


# -- several builds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Builds:
    """One struct in several builds of a program: label to layout, in order."""

    layouts: tuple[tuple[str, Layout], ...]

    def __post_init__(self) -> None:
        if len(self.layouts) < 2:
            raise DataError("builds: give the struct of two builds or more")
        labels = [label for label, _ in self.layouts]
        if len(set(labels)) < len(labels):
            raise DataError(f"builds: a label is used twice among {', '.join(labels)}")
        (_, first), *others = self.layouts
        for label, layout in others:
            if not first.abi.agrees(layout.abi):
                raise DataError(
                    f"builds: '{labels[0]}' is for {first.abi.name} and '{label}' for {layout.abi.name}; "
                    "compare builds of one architecture"
                )

    def optional(self) -> dict[str, tuple[bool, ...]]:
        """Members that some builds lack: name to presence a build."""
        names = dict.fromkeys(name for _, layout in self.layouts for name in layout.member_names())
        held = [set(layout.member_names()) for _, layout in self.layouts]
        rows = {name: tuple(name in names_here for names_here in held) for name in names}
        return {name: row for name, row in rows.items() if not all(row)}

    def changed_by(self) -> dict[str, tuple[str, ...]]:
        """For each build after the first, the optional members whose presence differs from the first."""
        optional = self.optional()
        return {
            label: tuple(name for name, row in optional.items() if row[i] is not row[0])
            for i, (label, _) in enumerate(self.layouts)
            if i
        }
