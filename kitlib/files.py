"""Reading and writing files so that a failure leaves one clear line and nothing half-written."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from kitlib.errors import DataError, SourceError


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


def read_toml(path: Path, *, form: str, version: int, make: str) -> dict[str, Any]:
    """The TOML file at `path`, checked to be of the kit's own format `form` and `version`.

    `make` says how to get such a file. Raises `DataError` with line and column for what is not TOML.
    """
    try:
        record = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; {make}") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start}); {make}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    if record.get("format") != form or record.get("version") != version:
        raise DataError(f'{path}: it must begin with format = "{form}" and version = {version}; {make}')
    return record
