"""All combinations of options and choices at once: who meets whom on a line, and which option decides it.

Exact: placement is the compiler's (`kitlib.placebatch`), a column a combination.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kitlib.errors import NotFound
from kitlib.lines import check_line
from kitlib.model import Layout
from kitlib.placebatch import Batch, Ints, Spot, as_batch, meets, place_present, spans, spot_of, table_of
from kitlib.variants import Builds, Setting, Variants, retype

Answers = NDArray[np.int64]
ABSENT = -1
"""Answer where a member that was asked about is not there."""


@dataclass(frozen=True, slots=True)
class Block:
    """Combinations with one list of members and types.

    ``columns`` says which combinations of the matrix they are; ``present`` and the batch are (members, columns).
    """

    layout: Layout
    columns: Ints
    present: NDArray[np.bool_]
    batch: Batch


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every combination, in the order of `Variants.settings`; ``on`` is (options, combinations)."""

    variants: Variants
    on: NDArray[np.bool_]
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        return self.variants.count

    @property
    def sizes(self) -> Ints:
        """Size of the struct in bytes, a combination."""
        out = np.zeros(self.count, dtype=np.int64)
        for block in self.blocks:
            out[block.columns] = block.batch.sizes
        return out

    def offsets(self, path: str) -> Answers:
        """Byte in which the member at `path` starts, `ABSENT` where it is not there. Raises `NotFound`."""

        def start(batch: Batch, spots: list[Spot]) -> Answers:
            bits: Ints = batch.bit_offsets[spots[0].top] + spots[0].inside
            return bits >> 3

        return self._each((path,), start)

    def first_lines(self, path: str, line_bytes: int = 64, phase: int = 0) -> Answers:
        """Line in which the member at `path` starts, `ABSENT` where it is not there. Raises `NotFound`."""
        check_line(line_bytes, phase)
        return self._each((path,), lambda batch, spots: spans(batch, spots[0], line_bytes, phase)[0])

    def on_one_line(self, a: str, b: str, line_bytes: int = 64, phase: int = 0) -> Answers:
        """1 where `a` and `b` share a line, 0 where they do not, `ABSENT` where one is not there.

        Raises `NotFound` if no combination has a member at one of the paths.
        """
        check_line(line_bytes, phase)
        return self._each((a, b), lambda batch, spots: meets(batch, spots, line_bytes, phase).astype(np.int64))

    def straddles(self, path: str, line_bytes: int = 64, phase: int = 0) -> Answers:
        """1 where the member at `path` is on more than one line, 0 where on one, `ABSENT` where it is not there."""
        check_line(line_bytes, phase)

        def ends_differ(batch: Batch, spots: list[Spot]) -> Answers:
            first, last = spans(batch, spots[0], line_bytes, phase)
            differ: Answers = (first != last).astype(np.int64)
            return differ

        return self._each((path,), ends_differ)

    def _each(self, paths: tuple[str, ...], answer: Callable[[Batch, list[Spot]], Answers]) -> Answers:
        out = np.full(self.count, ABSENT, dtype=np.int64)
        for path in paths:
            self._must_exist(path)
        for block in self.blocks:
            try:
                spots = [spot_of(block.layout, path) for path in paths]
            except NotFound:  # no combination of this block has it
                continue
            there = np.logical_and.reduce([block.present[spot.top] for spot in spots])
            out[block.columns] = np.where(there, answer(block.batch, spots), ABSENT)
        return out

    def _must_exist(self, path: str) -> None:
        """Raise `NotFound` unless one of the layouts has a member at `path`."""
        for number, block in enumerate(self.blocks, 1):
            try:
                spot_of(block.layout, path)
                return
            except NotFound:
                if number == len(self.blocks):
                    raise


def matrix(variants: Variants) -> Matrix:
    """Place every combination of `variants`."""
    count = len(variants.options)
    codes = np.arange(1 << count)
    on = np.array([(codes >> (count - 1 - i)) & 1 for i in range(count)], dtype=np.bool_).reshape(count, len(codes))
    blocks: list[Block] = []
    for number, layout in enumerate(variants.full):
        present = _present(variants, layout, on)
        for types, columns in _by_types(variants, on):
            typed = retype(layout, types)
            here = present[:, columns]
            blocks.append(Block(typed, columns + number * len(codes), here, place_present(table_of(typed), here)))
    return Matrix(variants, np.tile(on, (1, len(variants.full))), tuple(blocks))


def _present(variants: Variants, layout: Layout, on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(members, settings of the options): whether each member is there."""
    present = np.ones((len(layout.members), on.shape[1]), dtype=np.bool_)
    for row, option in zip(on, variants.options, strict=True):
        for i, member in enumerate(layout.members):
            if member.name in option.members:
                present[i] &= row
            if member.name in option.absent:
                present[i] &= ~row
    return present


def _by_types(variants: Variants, on: NDArray[np.bool_]) -> Iterator[tuple[tuple[tuple[str, str], ...], Ints]]:
    """Types that differ from the base's, and the settings of the options that have exactly those."""
    typing = [i for i, option in enumerate(variants.options) if option.types]
    for chosen in itertools.product((False, True), repeat=len(typing)):
        fits = np.ones(on.shape[1], dtype=np.bool_)
        types: list[tuple[str, str]] = []
        for i, state in zip(typing, chosen, strict=True):
            fits &= on[i] == state
            types += variants.options[i].types if state else ()
        yield tuple(types), np.flatnonzero(fits)


# -- which option decides -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flip:
    """Changing ``name`` from ``was`` to ``now``, and nothing else, turns the answer from ``before`` to ``after``."""

    name: str
    was: bool | str
    now: bool | str
    before: int
    after: int


def flips(variants: Variants, answers: Answers, setting: Setting | None = None) -> tuple[Flip, ...]:
    """Single changes to `setting` (the default one if None) that change its answer.

    `answers` has one number a combination, from any question to `matrix`.
    """
    start = variants.complete(setting)
    before = int(answers[position(variants, start)])
    found: list[Flip] = []
    for option in variants.options:
        found += _flip(variants, answers, start, before, option.name, not start[option.name])
    for choice in variants.choices:
        for state in choice.states:
            found += _flip(variants, answers, start, before, choice.name, state.label)
    return tuple(found)


def _flip(
    variants: Variants, answers: Answers, start: dict[str, bool | str], before: int, name: str, now: bool | str
) -> list[Flip]:
    after = int(answers[position(variants, {**start, name: now})])
    return [Flip(name, start[name], now, before, after)] if after != before else []


def position(variants: Variants, setting: Setting) -> int:
    """Position of `setting` among `Variants.settings`."""
    whole = variants.complete(setting)
    at = 0
    for choice in variants.choices:
        at = at * len(choice.states) + choice.states.index(choice.state(whole[choice.name]))
    for option in variants.options:
        at = at * 2 + bool(whole[option.name])
    return at


def influence(variants: Variants, answers: Answers) -> dict[str, float]:
    """For each option, the share of combinations in which turning it over changes the answer (0: never)."""
    count = len(variants.options)
    cube = answers.reshape((-1, *([2] * count)))
    shares = {}
    for i, option in enumerate(variants.options):
        off, on = np.take(cube, 0, axis=i + 1), np.take(cube, 1, axis=i + 1)
        shares[option.name] = float((off != on).mean())
    return shares


def builds_on_one_line(builds: Builds, a: str, b: str, line_bytes: int = 64, phase: int = 0) -> dict[str, int]:
    """Whether `a` and `b` share a line in each build: 1, 0, or `ABSENT` where one is not there.

    Raises `NotFound` if no build has a member at one of the paths.
    """
    check_line(line_bytes, phase)
    answers = {label: ABSENT for label, _ in builds.layouts}
    spots_of = {path: _in_builds(builds, path) for path in (a, b)}
    for label, layout in builds.layouts:
        pair = [spots[label] for spots in spots_of.values() if label in spots]
        if len(pair) == 2:
            answers[label] = int(meets(as_batch(layout), pair, line_bytes, phase)[0])
    return answers


def _in_builds(builds: Builds, path: str) -> dict[str, Spot]:
    """Where the member at `path` is in each build that has it. Raises `NotFound` if none has."""
    spots: dict[str, Spot] = {}
    for number, (label, layout) in enumerate(builds.layouts, 1):
        try:
            spots[label] = spot_of(layout, path)
        except NotFound:
            if number == len(builds.layouts) and not spots:
                raise
    return spots
