# SPDX-License-Identifier: Apache-2.0
"""What may run on CPUs besides the vCPUs that own them, by the kernel's word alone, and whether the kernel would let somebody move it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import cpus, kernel

_IRQS, _HANDLED = Path("/proc/irq"), Path("/sys/kernel/irq")
_WORKQUEUES = Path("/sys/devices/virtual/workqueue")
_NET = Path("/sys/class/net")
CGROUPS = Path("/sys/fs/cgroup")
UNITS = ("system.slice", "user.slice", "init.scope", "machine.slice")
_WORK = re.compile(r"^(kworker/u?\d+:\d+H?)[-+].*")  # a worker's name has what it does just now at its end
# include/linux/sched.h
_PF_KTHREAD, _PF_NO_SETAFFINITY = 0x00200000, 0x04000000


@dataclass(frozen=True, order=True)
class Left:
    """Something that may run on some of the CPUs. `kind` is the product's word for it, or `process`; `cpus`: its mask; `movable`: by anyone."""

    kind: str
    name: str
    cpus: str
    movable: bool

    def would_lose_all(self, own: str) -> bool:
        """Whether nothing would be left of its mask without `own`."""
        return cpus.parse(self.cpus) <= cpus.parse(own)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.cpus})"


def left(own: str, owners: set[int]) -> list[Left]:
    """All that may run on some of `own`, but for the threads `owners`."""
    on = cpus.parse(own)
    found = [*_units(), *_tasks(owners), *_interrupts(), *_workqueues(), *_queues()]
    return sorted(each for each in found if cpus.parse(each.cpus) & on)


def for_new_ones() -> list[Left]:
    """What decides where services and interrupts that come are born, whichever CPUs these are."""
    return [*_units(), next(_interrupts()), *_workqueues()]


def mask_files() -> list[Path]:
    """Every file with a mask of the node that keeps something off CPUs, but for those of cgroups."""
    irqs = [_IRQS / "default_smp_affinity", *(irq / "smp_affinity" for irq in _irqs())]
    return [*irqs, *sorted(_WORKQUEUES.rglob("cpumask")), *(file for _, file in _queue_files())]


def kernel_threads() -> dict[str, str]:
    """The masks of the kernel's threads, by what names one as long as it lives."""
    return {f"{each.name}, started at {each.born}": each.cpus for each in _threads() if each.is_of_kernel}


def programs() -> dict[str, str]:
    """The same of everything else."""
    return {f"{each.name}, started at {each.born}": each.cpus for each in _threads() if not each.is_of_kernel}


def refuses_masks(tid: int) -> bool:
    """Whether the kernel lets nobody move a thread; one that has ended it would have let."""
    thread = _thread(tid)
    return thread is not None and not thread.is_movable


def is_movable(irq: Path) -> bool:
    """Whether the kernel takes a mask for an interrupt. It is given the one that it has."""
    try:
        (irq / "smp_affinity").write_text((irq / "smp_affinity").read_text())
    except OSError:
        return False
    return True


def of_mask(text: str) -> str:
    """The list of a mask in hexadecimal, as the kernel writes it."""
    bits = int(text.strip().replace(",", ""), 16)
    return cpus.show({cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1})


@dataclass(frozen=True)
class _Thread:
    tid: int
    name: str
    cpus: str
    flags: int
    born: int

    @property
    def is_of_kernel(self) -> bool:
        return bool(self.flags & _PF_KTHREAD)

    @property
    def is_movable(self) -> bool:
        """Workers of unbound workqueues refuse masks, and follow those of the workqueues."""
        return not self.flags & _PF_NO_SETAFFINITY or self.name.startswith("kworker/u")


def _threads() -> Iterator[_Thread]:
    for pid in kernel.processes():
        try:
            tids = kernel.threads(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield from filter(None, map(_thread, tids))


def _thread(tid: int) -> _Thread | None:
    """None where it has ended."""
    try:
        name, _, rest = Path(f"/proc/{tid}/stat").read_text().rpartition(") ")
        fields = rest.split()
        named = _WORK.sub(r"\1", name.partition("(")[2])
        return _Thread(tid, f"{named} {tid}", cpus.show(os.sched_getaffinity(tid)), int(fields[6]), int(fields[19]))
    except (FileNotFoundError, ProcessLookupError):
        return None


def _tasks(owners: set[int]) -> Iterator[Left]:
    for each in _threads():
        if each.tid not in owners:
            yield Left("kernel-thread" if each.is_of_kernel else "process", each.name, each.cpus, each.is_movable)


def _irqs() -> list[Path]:
    return sorted((each for each in _IRQS.iterdir() if each.name.isdigit()), key=lambda each: int(each.name))


def _interrupts() -> Iterator[Left]:
    yield Left("new-interrupts", "default_smp_affinity", of_mask((_IRQS / "default_smp_affinity").read_text()), True)
    for irq in _irqs():
        # One that nobody handles never comes.
        if handlers := _text(_HANDLED / irq.name / "actions"):
            yield Left("interrupt", f"{irq.name} {handlers}", (irq / "smp_affinity_list").read_text().strip(), is_movable(irq))


def _workqueues() -> Iterator[Left]:
    """Each unbound workqueue has no more CPUs than this (Documentation/core-api/workqueue.rst)."""
    yield Left("workqueue", "cpumask", of_mask((_WORKQUEUES / "cpumask").read_text()), True)


def _queue_files() -> list[tuple[str, Path]]:
    """Those that one can read: a transmit queue that is the only one of its device has no mask."""
    found = [("receive-queue", file) for file in sorted(_NET.glob("*/queues/rx-*/rps_cpus"))]
    found += [("transmit-queue", file) for file in sorted(_NET.glob("*/queues/tx-*/xps_cpus"))]
    return [(kind, file) for kind, file in found if _text(file)]


def _queues() -> Iterator[Left]:
    """Those of pods nobody sees from here: one of each kind stands for all."""
    for kind, file in _queue_files():
        yield Left(kind, f"{file.parents[2].name} {file.parent.name}", of_mask(_text(file)), True)
    for kind in ("receive-queue", "transmit-queue"):
        yield Left(kind, "in network namespaces of pods", cpus.show(kernel.online()), False)


def _units() -> Iterator[Left]:
    for unit in UNITS:
        if text := _text(CGROUPS / unit / "cpuset.cpus.effective"):
            yield Left("unit", unit, text, True)


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
