"""Write every layout file of this folder anew: the stubs compiled with gcc, the kernels read by the kit.

    python data/layouts/make_layouts.py [VMLINUX_6_1 [VMLINUX_6_12]]

A kernel is a vmlinux with DWARF (Debian: package linux-image-*-cloud-amd64-dbg); one that is not given keeps its file.
The manifest is written too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from kitlib.files import write_whole
from kitlib.layoutjson import layouts_to_json, shared_json
from kitlib.manifest import NAME, checksum
from kitlib.model import Layout, SourceInfo
from kitlib.shipped import SHIPPED
from kitlib.sources import open_source

HERE = Path(__file__).resolve().parent
STUB_FOLDER = HERE / "stubs"
_THREAD = "gcc, x86-64, from the member list in the patch thread of June 2020"
_MM = "partial: the members up to env_end, without the anonymous struct around them"
_LATER = "gcc, x86-64, from the member list of that kernel"
_COUNTER = "gcc, x86-64, from the lines that the patch of August 2022 takes away and keeps"
_INODE = "only the neighbourhood of i_version (0x140 to 0x170) is known"

# shipped name: stub, macro, struct, what to say of the source, reason why it cannot be re-placed
STUBS: dict[str, tuple[str, str, str, str, str | None]] = {
    "file-5.8": ("file.c", "UNPATCHED", "file", _THREAD, None),
    "file-5.8-patch": ("file.c", "PATCHED", "file", _THREAD, None),
    "mm-5.12": ("mm.c", "SEQ_NONE", "mm_struct", _MM, None),
    "mm-5.13-seq": ("mm.c", "SEQ_EARLY", "mm_struct", _MM, None),
    "mm-5.13-fixed": ("mm.c", "SEQ_LATE", "mm_struct", _MM, None),
    "file-6.5": ("file_later.c", "V6_5", "file", _LATER, None),
    "file-6.14": ("file_later.c", "V6_14", "file", _LATER, None),
    "file-6.15": ("file_later.c", "V6_15", "file", _LATER, None),
    "page_counter-6.0": ("page_counter.c", "PLAIN", "page_counter", _COUNTER, None),
    "inode-4.16": ("inode.c", "PLAIN", "inode", f"partial: {_INODE}", _INODE),
}
KERNEL_STRUCTS = (
    "file",
    "mm_struct",
    "inode",
    "dentry",
    "rw_semaphore",
    "page_counter",
    "mem_cgroup",
    "sock",
    "tcp_sock",
    "net_device",
    "task_struct",
)
KERNELS = {
    "linux-6.1": "linux-image-6.1.0-57-cloud-amd64-dbg",
    "linux-6.12": "linux-image-6.12.113+deb12-cloud-amd64-dbg",
}

_PUBLIC = {
    "file.c": "https://lore.kernel.org, patch 'fs: Move @f_count to different cacheline with @f_mode' and the replies",
    "mm.c": "Linux commits 57efa1fe5957 and 2e3025434a6b (the message gives the lines of mmap_lock)",
    "file_later.c": "Linux commits a7bc2e8ddf3c, c0390d541128 and e249056c91a2; include/linux/fs.h",
    "page_counter.c": "https://lore.kernel.org, patch 'mm: page_counter: rearrange struct page_counter fields'",
    "inode.c": "https://lore.kernel.org, report of an aim7 regression (inode->i_version)",
}


def compiled(stub: str, macro: str, struct: str) -> Layout:
    """The struct as gcc places it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "stub.o"
        subprocess.run(["gcc", "-g", "-c", f"-D{macro}", "-o", target, STUB_FOLDER / stub], check=True)
        return open_source(target).struct(struct)


def relabelled(layout: Layout, source: SourceInfo) -> Layout:
    """`layout` and all it holds by value with `source`, so that no path of this machine is kept."""
    done: dict[int, Layout] = {}

    def visit(one: Layout) -> Layout:
        if id(one) not in done:
            members = tuple(m if m.inner is None else replace(m, inner=visit(m.inner)) for m in one.members)
            done[id(one)] = replace(one, members=members, source=None)
        return done[id(one)]

    return replace(visit(layout), source=source)


def write_stubs(folder: Path) -> None:
    for name, (stub, macro, struct, detail, reason) in STUBS.items():
        layout = relabelled(compiled(stub, macro, struct), SourceInfo(name, "shipped", detail))
        write_whole(folder / f"{name}.json", layouts_to_json([replace(layout, reason=reason)]))


def write_kernel(name: str, vmlinux: str) -> None:
    source = open_source(vmlinux)
    info = SourceInfo(name, "shipped", f"{Path(vmlinux).name}, Debian, x86-64, read from {source.kind.upper()}")
    layouts = [relabelled(source.struct(struct), info) for struct in KERNEL_STRUCTS]
    write_whole(HERE / f"{name}.json", shared_json(layouts))


def write_manifest() -> None:
    """List every layout file with its source and checksum."""
    parts = []
    for name, what in SHIPPED.items():
        if name in STUBS:
            stub, macro, *_ = STUBS[name]
            source = f"{_PUBLIC[stub]}; offsets: gcc on stubs/{stub} with -D{macro}"
        else:
            source = f"debug information of Debian's package {KERNELS[name]}, read by this kit"
        fields = {
            "name": f"{name}.json",
            "what": what,
            "source": source,
            "unit": "bits (bit_offset, bit_size), bytes (size, align)",
            "licence": "MIT (facts about Linux, which is GPL-2.0)",
            "sha256": checksum(HERE / f"{name}.json"),
        }
        parts.append("[[file]]\n" + "".join(f'{key} = "{value}"\n' for key, value in fields.items()))
    write_whole(HERE / NAME, "# written by make_layouts.py\n\n" + "\n".join(parts))


if __name__ == "__main__":
    write_stubs(HERE)
    for kernel, path in zip(KERNELS, sys.argv[1:], strict=False):
        write_kernel(kernel, path)
    write_manifest()
