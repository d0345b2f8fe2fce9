"""The CPUs this process may use: SMT siblings, affinity limits, virtual machines, caches. Linux only."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

SYS_CPU = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Topology:
    """``cpus`` may be used by this process; ``siblings`` groups those that share a core; caches in bytes.

    ``limited`` tells that the process may use fewer CPUs than are online; ``virtual`` names a hypervisor.
    """

    model: str
    cpus: tuple[int, ...]
    online: int
    siblings: tuple[tuple[int, ...], ...]
    caches: tuple[tuple[str, int], ...]
    virtual: str | None = None
    arch: str = ""
    line_bytes: int = 64

    @property
    def limited(self) -> bool:
        return len(self.cpus) < self.online

    @property
    def cores(self) -> tuple[int, ...]:
        """One usable CPU of each core, so that threads do not share a core while cores are free."""
        first: list[int] = []
        taken: set[int] = set()
        for cpu in self.cpus:
            if cpu not in taken:
                first.append(cpu)
                taken.update(next((g for g in self.siblings if cpu in g), (cpu,)))
        return tuple(first)

    def pick(self, threads: int) -> tuple[int, ...]:
        """CPUs for `threads` pinned threads: separate cores first, then their siblings."""
        order = [*self.cores, *(c for c in self.cpus if c not in self.cores)]
        return tuple(order[:threads])

    def cache_bytes(self, level: str) -> int:
        """Size of ``L1``, ``L2`` or ``L3`` (0: not known)."""
        return dict(self.caches).get(level, 0)

    def notes(self) -> tuple[str, ...]:
        """What a reader of a measurement has to know of this machine, one sentence each."""
        found = []
        if self.virtual:
            found.append(f"a virtual machine ({self.virtual}): CPUs may be shared with other guests")
        if self.limited:
            found.append(f"{len(self.cpus)} of {self.online} CPUs may be used (affinity)")
        if len(self.cores) < len(self.cpus):
            found.append(f"{len(self.cpus)} CPUs on {len(self.cores)} cores: some are SMT siblings")
        if len(self.cpus) == 1:
            found.append("one CPU: nothing can be shared between CPUs here")
        return tuple(found)


def read_topology(sys_cpu: Path = SYS_CPU, cpuinfo: Path = CPUINFO) -> Topology:
    """Read what the kernel says of this machine; what it does not say is left empty or 0."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    text = cpuinfo.read_text(errors="replace") if cpuinfo.exists() else ""
    online = parse_cpu_list(_read(sys_cpu / "online")) or cpus
    groups = {tuple(c for c in _siblings(sys_cpu, cpu) if c in cpus) or (cpu,) for cpu in cpus}
    line = _read(sys_cpu / f"cpu{cpus[0]}/cache/index0/coherency_line_size")
    return Topology(
        model=_field(text, "model name") or platform.processor() or platform.machine(),
        cpus=cpus,
        online=len(online),
        siblings=tuple(sorted(groups)),
        caches=tuple(_caches(sys_cpu / f"cpu{cpus[0]}/cache")),
        virtual=_hypervisor(text),
        arch=platform.machine(),
        line_bytes=int(line) if line.isdigit() else 64,
    )


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers in the kernel's list form.

    >>> parse_cpu_list("0-2,5")
    (0, 1, 2, 5)
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if match:
            found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _siblings(sys_cpu: Path, cpu: int) -> tuple[int, ...]:
    return parse_cpu_list(_read(sys_cpu / f"cpu{cpu}/topology/thread_siblings_list"))


def _field(text: str, key: str) -> str:
    match = re.search(rf"^{re.escape(key)}\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _hypervisor(cpuinfo: str) -> str | None:
    if "hypervisor" not in _field(cpuinfo, "flags").split():
        return None
    return _read(Path("/sys/class/dmi/id/sys_vendor")) or "hypervisor"


def _caches(folder: Path) -> list[tuple[str, int]]:
    found = []
    for index in sorted(folder.glob("index*")):
        if _read(index / "type") in ("Data", "Unified"):
            size = re.fullmatch(r"(\d+)([KM]?)", _read(index / "size"))
            if size:
                scale = {"": 1, "K": 1024, "M": 1 << 20}[size[2]]
                found.append((f"L{_read(index / 'level')}", int(size[1]) * scale))
    return found
