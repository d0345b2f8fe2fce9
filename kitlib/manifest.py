"""Manifests of data folders: every data file with its source, unit, licence and checksum."""

from __future__ import annotations

import hashlib
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kitlib.errors import DataError

NAME = "MANIFEST.toml"
_KEYS = ("name", "what", "source", "unit", "licence", "sha256")


@dataclass(frozen=True, slots=True)
class Entry:
    """One data file: what it holds, where its figures are from, their unit, licence and SHA-256."""

    name: str
    what: str
    source: str
    unit: str
    licence: str
    sha256: str


def read_manifest(folder: Path) -> tuple[Entry, ...]:
    """The entries of ``folder/MANIFEST.toml``. Raises `DataError` if it is missing or malformed."""
    where = folder / NAME
    try:
        record = tomllib.loads(where.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{where}: {error.strerror}; each data folder needs a manifest") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{where}: {error}") from None
    entries = []
    for number, row in enumerate(record.get("file", []), 1):
        missing = [key for key in _KEYS if not isinstance(row.get(key), str) or not row[key]]
        if missing:
            raise DataError(f"{where}, file {number}: missing {', '.join(missing)}")
        entries.append(Entry(**{key: row[key] for key in _KEYS}))
    return tuple(entries)


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def problems(folder: Path) -> list[str]:
    """What does not agree between a folder and its manifest: one line each, empty if all is well."""
    entries = {entry.name: entry for entry in read_manifest(folder)}
    present = {p.name for p in folder.iterdir() if p.is_file() and p.suffix != ".py" and p.name != NAME}
    found = [f"{folder / name}: not in the manifest" for name in sorted(present - set(entries))]
    found += [f"{folder / name}: in the manifest but not there" for name in sorted(set(entries) - present)]
    for name in sorted(present & set(entries)):
        if entries[name].sha256 != (actual := checksum(folder / name)):
            found.append(f"{folder / name}: sha256 is {actual}, the manifest says {entries[name].sha256}")
    return found


def renew(path: Path) -> str:
    """Write the checksum of `path` into its folder's manifest, if it has an entry there; returns the line.

    Raises `DataError` if the folder's manifest is malformed.
    """
    line, manifest = f'sha256 = "{checksum(path)}"', path.parent / NAME
    old = next((e.sha256 for e in read_manifest(path.parent) if e.name == path.name), "") if manifest.exists() else ""
    if old:
        text = manifest.read_text(encoding="utf-8")
        manifest.write_text(text.replace(f'sha256 = "{old}"', line), encoding="utf-8")
    return line


def main(folders: list[str]) -> int:
    """Print what is wrong with each folder's manifest; 1 if anything is."""
    lines = [line for folder in folders for line in problems(Path(folder))]
    print("\n".join(lines) if lines else "all files agree with their manifests")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
