"""The error tree: every message says what is wrong, where, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KitError(Exception):
    """Anything the user can put right. The command line prints it as one line and exits with 2."""


class SourceError(KitError):
    """A file cannot be read, or is not of a kind that is understood."""


class NotFound(KitError):
    """A struct, member, profile or shipped name does not exist; near names are offered."""


class PlacementError(KitError):
    """A layout cannot be re-placed, or an edit does not fit it."""


class ToolError(KitError):
    """A compiler or another program is missing, failed or took too long."""


class DataError(KitError):
    """A profile, rules, scenario or other data file is malformed or contradicts itself."""


def near(wanted: str, names: Iterable[str], limit: int = 3) -> str:
    """Return ``"; did you mean a, b?"`` for the closest of `names`, or ``""`` if none is close."""
    pool = sorted(set(names))
    lowered = {name.lower(): name for name in reversed(pool)}
    found = difflib.get_close_matches(wanted, pool, n=limit, cutoff=0.6)
    exact_but_case = lowered.get(wanted.lower())
    if exact_but_case and exact_but_case not in found:
        found = [exact_but_case, *found][:limit]
    if not found:
        found = [name for name in pool if wanted and wanted in name][:limit]
    return f"; did you mean {', '.join(found)}?" if found else ""
