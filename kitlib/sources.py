"""`open_source`: one call for everything layouts can be read from; the kind is told from the contents."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace as _with
from pathlib import Path
from typing import Literal

from kitlib.btf import BtfSource, btf_from_bytes, open_btf, open_running
from kitlib.btftypes import BtfTypes, is_btf
from kitlib.compression import compression_of, decompress
from kitlib.elf import MAGIC as ELF_MAGIC
from kitlib.elf import Elf, open_elf
from kitlib.errors import SourceError, near
from kitlib.model import SourceInfo
from kitlib.shipped import SHIPPED, open_shipped
from kitlib.source import LayoutList, Source, pick
from kitlib.vmlinuz import btf_in_image, btf_of_vmlinuz, is_vmlinuz

__all__ = ["open_source", "pick"]

Prefer = Literal["dwarf", "btf"]
MAX_FILE_BYTES = 1 << 30
"""Largest file that is read as a whole (an ELF file is mapped and may be larger)."""

# A pahole member comment "/* 16 8 */", "/* 4: 0 4 */", "/* 0x10 0x8 */", or its trailer "/* size: 24,".
_PAHOLE = re.compile(r"/\*\s*(?:(?:0x[0-9a-f]+|\d+)(?::\s*\d+)?\s+(?:0x[0-9a-f]+|\d+)\s*(?:\|[^*]*)?\*/|size:\s*\d)")
_C = re.compile(r"\b(struct|union|class|typedef|enum)\b|^\s*#\s*include\b", re.MULTILINE)
_KINDS = (
    "an ELF file with DWARF or BTF, raw BTF, a vmlinuz, pahole text, a C file, a layout JSON, "
    "'running' or a shipped name"
)


def open_source(x: str | os.PathLike[str], *, prefer: Prefer = "dwarf", base: str | None = None) -> Source:
    """Open `x`: a path, C or pahole text itself, ``running``, or a shipped name such as ``file-5.8``.

    The kind of a file is told from its contents. An ELF file with both DWARF and BTF is read as `prefer`
    says (DWARF states alignments and knows C++; BTF is quicker to list); ``btf:PATH`` and ``dwarf:PATH``
    say the same in the text. `base` names the vmlinux of a module's split BTF, also written
    ``MODULE.ko@VMLINUX``; files under ``/sys/kernel/btf`` find theirs alone. A file called like a shipped
    name is given as ``./file-5.8``.

    Raises `SourceError` if there is no such file or it is not understood, `ToolError` if a compiler or a
    package is missing for it.

    >>> open_source("file-5.8").struct("file").member("f_count").offset
    56
    """
    text = os.fspath(x)
    if text == "running":
        return open_running()
    if text in SHIPPED:
        return open_shipped(text)
    if "{" in text:
        return _open_text(text)
    for kind in ("btf", "dwarf"):
        if text.startswith(f"{kind}:") and not os.path.exists(text):
            return open_source(text[len(kind) + 1 :], prefer=kind, base=base)
    if base is None and "@" in text and not os.path.exists(text):
        module, _, base = text.rpartition("@")
        return open_source(module, prefer="btf", base=base)
    return _open_path(Path(text), prefer, base)


def _open_path(path: Path, prefer: Prefer, base: str | None) -> Source:
    head = _head(path)
    if head[:4] == ELF_MAGIC:
        return _open_elf(path, prefer, base)
    if is_btf(head):
        return open_btf(path, _base_types(base))
    if is_vmlinuz(head):
        return btf_of_vmlinuz(path.read_bytes(), str(path))
    if compression_of(head[:16]):
        return _open_compressed(path, base)
    if _is_binary(head):
        raise SourceError(f"{path}: binary data of a kind that is not known; give {_KINDS}")
    return _open_textfile(path, head)


def _head(path: Path) -> bytes:
    """The first KiB of a regular, non-empty file."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise SourceError(f"{path}: is a directory; give a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{path}: is no regular file; save its contents and give that file")
        with path.open("rb") as file:
            head = file.read(1024)
    except (FileNotFoundError, NotADirectoryError):
        hint = near(path.name, [*SHIPPED, "running"])
        raise SourceError(f"{path}: no such file and no shipped name{hint or f'; give {_KINDS}'}") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{str(path)!r}: cannot be read ({error})") from None
    if not head:
        raise SourceError(f"{path}: is empty")
    if head[:4] != ELF_MAGIC and status.st_size > MAX_FILE_BYTES:
        raise SourceError(f"{path}: {status.st_size} bytes are too much for a file that is not ELF")
    return head


def _is_binary(head: bytes) -> bool:
    """Text has no zero bytes and hardly a control character besides tab, line ends, form feed and escape."""
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return 0 in head or controls * 20 > len(head)


def _base_types(base: str | None) -> BtfTypes | None:
    """Types of the vmlinux that `base` names (any source that holds BTF)."""
    if base is None:
        return None
    source = open_source(base, prefer="btf")
    if not isinstance(source, BtfSource):
        raise SourceError(f"{base}: holds no BTF, so it cannot be the base of a module's BTF; give a vmlinux with .BTF")
    return source.types


def _open_elf(path: Path, prefer: Prefer, base: str | None) -> Source:
    elf = open_elf(path)
    has_dwarf = any(name in elf for name in (".debug_info", ".zdebug_info", ".debug_info.dwo"))
    has_btf = ".BTF" in elf
    if has_btf and (prefer == "btf" or not has_dwarf):
        return _btf_of_elf(elf, base)
    if has_dwarf:
        from kitlib.dwarf import open_dwarf

        return open_dwarf(path)
    raise _no_types(str(path))


def _no_types(where: str) -> SourceError:
    return SourceError(
        f"{where}: no debug information (neither .debug_info nor .BTF); compile with -g, or give the file "
        "with debug symbols (Debian: the -dbg or -dbgsym package)"
    )


def _btf_of_elf(elf: Elf, base: str | None) -> BtfSource:
    data = elf.contents(".BTF") or b""
    distilled = elf.contents(".BTF.base")
    if distilled is not None:  # a module built outside the kernel tree brings the base types it uses
        types: BtfTypes | None = BtfTypes(distilled, f"{elf.where}: .BTF.base")
    else:
        types = _base_types(base)
    return btf_from_bytes(data, elf.where, abi=elf.abi, base=types)


def _open_compressed(path: Path, base: str | None) -> Source:
    """A compressed kernel, module or BTF file (``.ko.xz``, ``vmlinux.gz``, ``Image.gz``)."""
    data = decompress(path.read_bytes(), str(path))
    if data[:4] == ELF_MAGIC:
        elf = Elf(data, str(path))
        if ".BTF" in elf:
            return _btf_of_elf(elf, base)
        if ".debug_info" in elf:
            raise SourceError(f"{path}: an ELF file with DWARF, compressed; decompress it and give the result")
        raise _no_types(str(path))
    if is_btf(data[:4]):
        return btf_from_bytes(data, str(path), base=_base_types(base))
    return btf_in_image(data, str(path))


def _open_textfile(path: Path, head: bytes) -> Source:
    from kitlib.files import read_text

    if head.lstrip()[:1] in (b"{", b"["):
        return _open_json(path)
    text = read_text(path)
    if _PAHOLE.search(text):
        from kitlib.pahole import open_pahole

        return open_pahole(path)
    if _C.search(text):
        from kitlib.csource import open_c

        return open_c(path)
    raise SourceError(f"{path}: text that is neither pahole output, C nor a layout JSON; give {_KINDS}")


def _open_json(path: Path) -> Source:
    """A layout file, or a scenario saved by ``kitlib edit --save``, which stands for its edited layout."""
    from kitlib.files import read_text
    from kitlib.layoutjson import layouts_from_json
    from kitlib.scenario import FORMAT, Scenario

    text = read_text(path)
    if f'"{FORMAT}"' in text[:400]:
        scenario = Scenario.from_json(text, str(path))
        detail = "; ".join(map(str, scenario.edits)) or "no edits"
        edited = _with(scenario.layout, source=SourceInfo(str(path), "scenario", detail))
        return LayoutList((edited,), str(path), "scenario")
    return LayoutList(layouts_from_json(text, str(path)), str(path), "json")


def _open_text(text: str) -> Source:
    """Pahole output or C given as text instead of a path."""
    if _PAHOLE.search(text):
        from kitlib.pahole import PaholeSource

        return PaholeSource(text, "pahole text")
    if not _C.search(text):
        raise SourceError(f"{text[:40]!r}: neither a path nor C or pahole text; give {_KINDS}")
    from kitlib.csource import open_snippet

    return open_snippet(text)
