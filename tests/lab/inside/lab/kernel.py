# SPDX-License-Identifier: Apache-2.0
"""What the kernel says about threads: the only witness that scenarios believe."""

import re
from dataclasses import dataclass
from pathlib import Path

from lab import cpus

_PROC = Path("/proc")
_KVM = Path("/sys/kernel/debug/kvm")
_SERVANT = re.compile(r"(vhost|kvm-pit|kvm-nx-lpage-recovery)[-/](\d+)")


@dataclass(frozen=True)
class Accounting:
    """Scheduler's numbers of one thread since its start, times in nanoseconds."""

    ran: int
    waited: int
    involuntary: int


def threads(pid: int) -> list[int]:
    """The thread ids of process `pid`."""
    return sorted(int(entry.name) for entry in (_PROC / str(pid) / "task").iterdir())


def comm(tid: int) -> str:
    """The name of thread `tid`."""
    return (_PROC / str(tid) / "comm").read_text().rstrip("\n")


def allowed(tid: int) -> str:
    """The CPUs on which thread `tid` may run, in list format."""
    return _status(tid)["Cpus_allowed_list"]


def allowed_mems(tid: int) -> str:
    """The memory nodes from which thread `tid` may allocate, in list format."""
    return _status(tid)["Mems_allowed_list"]


def last_cpu(tid: int) -> int:
    """The CPU on which thread `tid` was last."""
    return int((_PROC / str(tid) / "stat").read_text().rpartition(") ")[2].split()[36])


def accounting(tid: int) -> Accounting:
    """How long `tid` ran and waited to run, and how often it was interrupted."""
    ran, waited, _ = (_PROC / str(tid) / "schedstat").read_text().split()
    return Accounting(int(ran), int(waited), int(_status(tid)["nonvoluntary_ctxt_switches"]))


def kernel_threads(name: str) -> list[int]:
    """Kernel threads (they have no command line) of the name `name`."""
    return [pid for pid in processes() if _is_named_kernel_thread(pid, name)]


def served_by(pid: int) -> tuple[str, int] | None:
    """What kernel thread `pid` is, and the process that it works for, by its name: the vhost workers of kernels before 6.4 and KVM's own."""
    found = _SERVANT.fullmatch(comm(pid))
    return (found[1], int(found[2])) if found else None


def kvm_vcpus(pid: int) -> dict[int, int]:
    """The thread of each vCPU of the VM that process `pid` runs, by APIC id. Of one that was unplugged KVM keeps the rest.

    KVM names a VM by the thread that made it (kvm_create_vm_debugfs()), which in Cloud Hypervisor is not the first one.
    """
    machine = next(each for tid in threads(pid) for each in _KVM.glob(f"{tid}-*"))
    tids = {int(each.name[4:]): int((each / "pid").read_text()) for each in machine.glob("vcpu[0-9]*")}
    return {apic_id: tid for apic_id, tid in tids.items() if (_PROC / str(tid)).exists()}


def command_line(pid: int) -> list[str]:
    """What process `pid` was started with; empty for a kernel thread."""
    return (_PROC / str(pid) / "cmdline").read_text().rstrip("\0").split("\0")


def processes() -> list[int]:
    """Every process of the node."""
    return sorted(int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def open_files(pid: int) -> int:
    """How many file descriptors process `pid` holds."""
    return len(list((_PROC / str(pid) / "fd").iterdir()))


def resident_kib(pid: int) -> int:
    """The resident memory of process `pid`."""
    return int(_status(pid)["VmRSS"].split()[0])


def guest_memory(pid: int) -> dict[int, int]:
    """Where the largest mapping of process `pid`, a VM's memory, lies: KiB by NUMA node."""
    return max((_pages(line) for line in (_PROC / str(pid) / "numa_maps").read_text().splitlines()), key=lambda each: sum(each.values()))


def free_memory_kib(node: int) -> int:
    """The free memory of a NUMA node."""
    lines = Path(f"/sys/devices/system/node/node{node}/meminfo").read_text().splitlines()
    return next(int(line.split()[3]) for line in lines if "MemFree:" in line)


def free_memory_mib() -> int:
    """The memory that programs may still have."""
    lines = (_PROC / "meminfo").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:"))


def stop_numa_balancing() -> None:
    """It would move pages, at a cost that the emulated node cannot pay."""
    (_PROC / "sys/kernel/numa_balancing").write_text("0")


def online() -> frozenset[int]:
    """The CPUs that are online."""
    return cpus.parse(Path("/sys/devices/system/cpu/online").read_text())


def siblings(cpu: int) -> frozenset[int]:
    """The hardware threads of the core of `cpu`."""
    return cpus.parse(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text())


def has_cpusets_v1() -> bool:
    """Whether it can do cpusets as cgroup v1 has them."""
    config = next(Path("/boot").glob("config-*")).read_text()
    return release() < (6, 12) or "CONFIG_CPUSETS_V1=y" in config


def release() -> tuple[int, int]:
    """The kernel's version, as (6, 12)."""
    major, minor = (_PROC / "sys/kernel/osrelease").read_text().split(".")[:2]
    return int(major), int(minor)


def _pages(line: str) -> dict[int, int]:
    words = dict(word.partition("=")[::2] for word in line.split()[2:])
    kib = int(words.get("kernelpagesize_kB", 4))
    return {int(key[1:]): int(value) * kib for key, value in words.items() if key[0] == "N" and key[1:].isdigit()}


def _status(tid: int) -> dict[str, str]:
    lines = (_PROC / str(tid) / "status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _is_named_kernel_thread(pid: int, name: str) -> bool:
    try:
        return comm(pid) == name and not (_PROC / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
