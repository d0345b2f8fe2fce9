"""``--after``: the layout that a command compares with."""

from __future__ import annotations

from kitlib.errors import DataError, KitError
from kitlib.model import Layout


def after_layout(text: str | None, struct: str, base: Layout) -> Layout | None:
    """`struct` of what ``--after`` names: a scenario file (see ``kitlib edit --save``), or another source.

    None if nothing was named. Raises `DataError` if it is no `base` of the same kind and architecture, and what
    reading it raises, each message beginning with ``--after``.
    """
    from kitlib.sources import open_source

    if text is None:
        return None
    if not text.strip():
        raise DataError("--after: names nothing; give a scenario file or another SOURCE")
    try:
        found = open_source(text).struct(struct)
    except KitError as error:
        raise type(error)(f"--after: {error}") from None
    if found.kind != base.kind:
        raise DataError(f"--after {text}: {found.title} is no {base.kind}")
    if not found.abi.agrees(base.abi):
        raise DataError(
            f"--after {text} is built for {found.abi.name} and SOURCE for {base.abi.name}: layouts of different "
            "architectures are not compared; give two builds for one"
        )
    return found
