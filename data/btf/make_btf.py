"""Write the files of this folder anew: ``python data/btf/make_btf.py VMLINUX_6_1 VMLINUX_6_12``.

The vmlinux files are those of the Debian packages that the manifest names; put the new checksums into it
(``python -m kitlib.manifest data/btf`` prints them).
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

from kitlib.elf import open_elf

HERE = Path(__file__).resolve().parent


def main(vmlinux: list[str]) -> None:
    """Take the .BTF section out of each file and compress it."""
    for name, path in zip(("linux-6.1.btf.xz", "linux-6.12.btf.xz"), vmlinux, strict=True):
        section = open_elf(Path(path)).contents(".BTF")
        if section is None:
            sys.exit(f"{path}: no .BTF section")
        (HERE / name).write_bytes(lzma.compress(section, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(sys.argv[1:])
