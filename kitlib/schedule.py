"""The order in which a profile's paths run: a short cycle that model, simulation and measurement share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kitlib.access import Path, Profile
from kitlib.errors import DataError

MAX_TURNS = 32
"""Most path runs in one cycle."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a path: ``steps`` are positions in the path's accesses, repeated or left out as ``times`` says."""

    path: Path
    steps: tuple[int, ...]


@lru_cache(maxsize=64)
def schedule(profile: Profile, most: int = MAX_TURNS) -> tuple[Turn, ...]:
    """The mix as the shortest cycle (up to `most` runs) whose shares are closest to the profile's rates.

    Every path with a rate above 0 runs at least once; the interleaving is smooth weighted round-robin.
    An access with ``times`` below 1 takes part in that share of its path's runs in the cycle.
    Raises `DataError` if there are more paths than fit.
    """
    mix = profile.mix
    if len(mix) > most:
        raise DataError(f"profile {profile.name}: {len(mix)} paths are too many for one cycle (at most {most})")
    counts = _counts([share for _, share in mix], most)
    credit = [0] * len(mix)
    seen = [0] * len(mix)
    turns: list[Turn] = []
    for _ in range(sum(counts)):
        credit = [c + n for c, n in zip(credit, counts, strict=True)]
        chosen = max(range(len(mix)), key=lambda i: (credit[i], -i))
        credit[chosen] -= sum(counts)
        seen[chosen] += 1
        turns.append(Turn(mix[chosen][0], _steps(mix[chosen][0], seen[chosen])))
    return tuple(turns)


def _counts(shares: list[float], most: int) -> list[int]:
    best_error, best = float("inf"), [1] * len(shares)
    for total in range(len(shares), most + 1):
        counts = [max(1, round(share * total)) for share in shares]
        whole = sum(counts)
        error = sum(abs(n / whole - share) for n, share in zip(counts, shares, strict=True))
        if whole <= most and error < best_error - 1e-9:
            best_error, best = error, counts
    return best


def _steps(path: Path, turn: int) -> tuple[int, ...]:
    """Positions for the `turn`-th run of `path` (from 1): the whole part of turn·times, counted up."""
    steps: list[int] = []
    for position, access in enumerate(path.accesses):
        repeat = int(turn * access.times + 1e-9) - int((turn - 1) * access.times + 1e-9)
        steps += [position] * repeat
    return tuple(steps)
