"""The layouts that come with the kit, by their short names (files and sources: data/layouts/MANIFEST.toml)."""

from __future__ import annotations

from functools import cache

from kitlib import datafiles
from kitlib.errors import NotFound, near
from kitlib.files import read_text
from kitlib.layoutjson import layouts_from_json
from kitlib.source import LayoutList

SHIPPED: dict[str, str] = {
    "file-5.8": "struct file of Linux 5.8",
    "file-5.8-patch": "struct file of Linux 5.8 with f_count moved to its end",
    "file-6.5": "struct file of Linux 6.5: f_lock, f_mode and f_count together (a7bc2e8ddf3c)",
    "file-6.14": "struct file of Linux 6.14: packed into three lines, f_ref first",
    "file-6.15": "struct file of Linux 6.15: f_ref last, f_owner in the first line (e249056c91a2)",
    "mm-5.12": "mm_struct before commit 57efa1fe5957 (no write_protect_seq)",
    "mm-5.13-seq": "mm_struct with write_protect_seq in front of mmap_lock (57efa1fe5957)",
    "mm-5.13-fixed": "mm_struct with write_protect_seq moved into a hole (2e3025434a6b)",
    "page_counter-6.0": "struct page_counter of Linux 6.0, before usage got a line of its own",
    "inode-4.16": "the neighbourhood of inode.i_version in Linux 4.16 (partial)",
    "linux-6.1": "structs of Debian's 6.1 kernel",
    "linux-6.12": "structs of Debian's 6.12 kernel",
}
"""Shipped names and what they hold."""


@cache
def open_shipped(name: str) -> LayoutList:
    """The source called `name`. Raises `NotFound`, with near names, if the kit ships none of that name."""
    if name not in SHIPPED:
        raise NotFound(f"no shipped layout '{name}'{near(name, SHIPPED)}; there are {', '.join(SHIPPED)}")
    path = datafiles.path(f"layouts/{name}.json")
    return LayoutList(layouts_from_json(read_text(path), str(path)), name, "shipped")
