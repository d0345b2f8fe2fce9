"""The kit's own TOML files (cases, profiles, machines, variants, rules): reading them so that a mistake is one line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kitlib.errors import DataError, near


def read_toml(path: Path, *, form: str, version: int, make: str) -> dict[str, Any]:
    """The file at `path`, checked as `parse_toml` does. Raises `DataError` if it cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; {make}") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start}); {make}") from None
    return parse_toml(text, str(path), form=form, version=version, make=make)


def _refuse_endless(value: object, where: str) -> None:
    """TOML's integers have 64 bits; Python reads longer ones, which then fit no float."""
    if isinstance(value, int) and value.bit_length() > 64:
        raise DataError(f"{where}: a whole number of {len(str(value))} digits is too large")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_endless(part, where)


def parse_toml(text: str, where: str, *, form: str, version: int, make: str) -> dict[str, Any]:
    """`text` as a table of the kit's own format `form`; `make` says how to get such a file.

    Raises `DataError` naming `where`, with line and column for what is not TOML.
    """
    try:
        record = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is an endless integer
        raise DataError(f"{where}: not TOML: {error}") from None
    _refuse_endless(record, where)
    check_format(record, where, form=form, version=version, make=make)
    return record


def check_format(record: Mapping[str, Any], where: str, *, form: str, version: int, make: str) -> None:
    """Raise `DataError` unless `record` says that it is of format `form` and `version`."""
    if record.get("format") != form or record.get("version") != version:
        raise DataError(f'{where}: it must begin with format = "{form}" and version = {version}; {make}')


def table(record: object, where: str) -> Mapping[str, Any]:
    """`record` if it is a table."""
    if not isinstance(record, Mapping):
        raise DataError(f"{where} must be a table")
    return record


def only(record: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse keys that are not `known`; near ones are offered."""
    names = list(known)
    for key in record:
        if key not in names:
            raise DataError(f"{where}: unknown key '{key}'{near(key, names)}")


def text(record: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """The text at `key`; needed unless there is a `default`."""
    value = record.get(key, default)
    if not isinstance(value, str):
        raise DataError(f"{where}: '{key}' must be text" + (" and is missing" if value is None else ""))
    return value


def texts(record: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The list of texts at `key`; empty if it is left out."""
    value = record.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise DataError(f"{where}: '{key}' must be a list of texts")
    return tuple(value)


def flag(record: Mapping[str, Any], key: str, where: str, default: bool = False) -> bool:
    """The true or false at `key`."""
    value = record.get(key, default)
    if not isinstance(value, bool):
        raise DataError(f"{where}: '{key}' must be true or false, not {value!r}")
    return value


def number(record: Mapping[str, Any], key: str, where: str, default: float, *, whole: bool = False) -> float:
    """The number at `key`."""
    value = record.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise DataError(f"{where}: {key} = {value!r} is no {'whole ' if whole else ''}number")
    return value


def rows(record: Mapping[str, Any], key: str, where: str, *, needed: bool = False) -> list[Mapping[str, Any]]:
    """The tables written as ``[[key]]``; none if they are left out and not `needed`."""
    found = record.get(key, None if needed else [])
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        raise DataError(f"{where}: '{key}' must be written as [[{key}]]")
    return found
