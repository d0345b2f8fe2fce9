"""Whole kernels that come with the kit, as type information: every struct of Debian's 6.1 and 6.12."""

from __future__ import annotations

from kitlib import datafiles
from kitlib.btf import BtfSource, btf_from_bytes, open_running
from kitlib.compression import decompress
from kitlib.errors import KitError, NotFound, near
from kitlib.model import X86_64

WHOLE = {"6.1": "btf/linux-6.1.btf.xz", "6.12": "btf/linux-6.12.btf.xz"}


def open_kernel(version: str) -> BtfSource:
    """All structs of the kernel `version` (``6.1`` or ``6.12``, x86-64). Raises `NotFound` for another one.

    >>> open_kernel("6.1").struct("file").member("f_count").offset
    56
    """
    if version not in WHOLE:
        raise NotFound(f"no kernel '{version}' comes with the kit{near(version, WHOLE)}; it has {', '.join(WHOLE)}")
    path = datafiles.path(WHOLE[version])
    return btf_from_bytes(decompress(path.read_bytes(), path.name), f"Linux {version} (Debian)", abi=X86_64)


def here_or(version: str) -> tuple[BtfSource, str]:
    """The running kernel, or `version` if it has no BTF; and a sentence that says which it is."""
    try:
        source = open_running()
    except KitError as error:
        return open_kernel(version), f"Linux {version} (Debian), since the kernel here has no type information: {error}"
    return source, f"the kernel this page was made on: {source.label}"
