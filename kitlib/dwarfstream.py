"""A read-only stream over a section that is mapped or at hand, for pyelftools."""

from __future__ import annotations

import os


class SectionStream:
    """``seek``, ``tell`` and ``read`` over a buffer, which io.BytesIO would copy whole (200 MB of a vmlinux)."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to byte `offset` from the start, from here, or from the end."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        """The place the next `read` begins at."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes from here; all there are if it is negative."""
        end = len(self._data) if size < 0 else self._at + size
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found


class ZeroStream(SectionStream):
    """Stands in for sections of addresses and ranges.

    pyelftools looks the addresses of a unit up when it first reads it; types do not depend on them.
    """

    def __init__(self) -> None:
        super().__init__(b"")

    def read(self, size: int = -1) -> bytes:
        """`size` zero bytes."""
        return bytes(max(size, 0))
