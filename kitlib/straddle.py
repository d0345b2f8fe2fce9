"""Members that lie across a line boundary, and what the boundary parts."""

from __future__ import annotations

from kitlib.lines import leaves, line_span
from kitlib.model import Layout


def halves(layout: Layout, path: str, line_bytes: int, phase: int = 0) -> tuple[str, str] | None:
    """The members of the struct at `path` on either side of the first line boundary inside it.

    None if `path` is no struct, lies on one line, or one of its members is itself cut by the boundary.

    >>> from kitlib.sources import open_source
    >>> halves(open_source("mm-5.12").struct("mm_struct"), "mmap_lock", 64)
    ('mmap_lock.count', 'mmap_lock.owner')
    """
    depth = path.count(".") + 1
    ahead: list[str] = []
    behind: list[str] = []
    own: tuple[int, int] | None = None
    for leaf in leaves(layout, containers=True):
        span = line_span(leaf.bit_offset, leaf.bit_size, line_bytes, phase)
        if leaf.path == path and leaf.name is not None:
            own = span
        if own is None or not leaf.path.startswith(path + ".") or leaf.path.count(".") != depth or not leaf.bit_size:
            continue
        if span[1] == own[0]:
            ahead.append(leaf.path)
        elif span[0] > own[0]:
            behind.append(leaf.path)
        else:
            return None
    return (ahead[-1], behind[0]) if ahead and behind else None
