"""Reading and writing files so that a failure leaves one clear line and nothing half-written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kitlib.errors import SourceError


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path`, or nothing: the file appears only once it is complete.

    Raises `SourceError` if the folder is missing or cannot be written to, or if `path` is no regular file: a
    device or a pipe is not replaced by a file.
    """
    try:
        if path.exists() and not path.is_file():
            raise SourceError(f"{path}: is no regular file; give the name of a file")
        path = path.resolve() if path.is_symlink() else path  # write to the file, do not replace the link to it
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; choose a folder that exists and can be written to") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except (OSError, UnicodeEncodeError) as error:
        os.unlink(temporary)
        reason = error.strerror if isinstance(error, OSError) else "a name in it is no Unicode text"
        raise SourceError(f"{path}: {reason}; nothing was written") from None


def read_text(path: Path, limit_bytes: int = 1 << 28) -> str:
    """The text of `path` (UTF-8; other bytes replaced). Raises `SourceError` if it cannot be read."""
    try:
        if path.stat().st_size > limit_bytes:
            raise SourceError(f"{path}: larger than {limit_bytes >> 20} MiB; give a smaller extract")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; give the path of a readable file") from None
