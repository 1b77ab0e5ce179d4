# SPDX-License-Identifier: Apache-2.0
"""Cpuset partitions of cgroup v2: what the kernel answers to each write, and what it says afterwards."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from lab import cpus, kernel

ROOT = Path("/sys/fs/cgroup")
_CHILD = "vcpus"
_OF_ALL = ("cgroup.type", "cgroup.subtree_control", "cpuset.cpus", "cpuset.cpus.exclusive", "cpuset.cpus.partition", "cpuset.cpus.effective")


def answer(file: Path, text: str) -> str:
    """Writes `text` to a file of the kernel: `ok`, or the name of the error."""
    try:
        descriptor = os.open(file, os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def read(file: Path) -> str:
    """What a file says; the name of the error where it says nothing."""
    try:
        return file.read_text().strip()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def remove(directory: Path) -> str:
    """Removes a cgroup: `ok`, or the name of the error."""
    try:
        directory.rmdir()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def of_process(pid: int) -> Path:
    """The cgroup of a process."""
    return ROOT / read(Path(f"/proc/{pid}/cgroup")).rpartition("::")[2].lstrip("/")


def path_to(cgroup: Path) -> list[Path]:
    """`cgroup` and those above it without the root, the topmost first."""
    return [each for each in reversed([cgroup, *cgroup.parents]) if ROOT in each.parents]


def files(cgroup: Path) -> dict[str, str]:
    """All that a partition below `cgroup` may change, by file."""
    return {str((each / name).relative_to(ROOT)): read(each / name) for each in (ROOT, *path_to(cgroup)) for name in _OF_ALL}


def is_of_kernel(pid: int) -> bool:
    """Whether it is a thread of the kernel's own."""
    return not Path(f"/proc/{pid}/cmdline").read_bytes()


def movable_kernel_threads(on: str) -> list[str]:
    """Kernel threads that may run on several CPUs, some of `on` among them."""
    found = []
    for pid in kernel.processes():
        try:
            allowed = cpus.parse(kernel.allowed(pid)) if is_of_kernel(pid) else frozenset()
            if len(allowed) > 1 and allowed & cpus.parse(on):
                found.append(kernel.comm(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended
    return sorted(found)


@dataclass(frozen=True)
class Look:
    """What the kernel says: the child's partition and threads; the CPUs of child, sandbox's cgroup and the one above; all isolated ones."""

    partition: str
    threads: int
    child: str
    sandbox: str
    above: str
    isolated: str


class Partition:
    """A threaded child of a sandbox's `cgroup`, which is to be a remote partition with `own`."""

    def __init__(self, cgroup: Path, own: str) -> None:
        self.cgroup, self.child, self._own = cgroup, cgroup / _CHILD, own

    def make(self) -> list[str]:
        """Enables the cpuset controller in the sandbox's cgroup, and makes the child: the answers, and the types of child and cgroup."""
        enabled = answer(self.cgroup / "cgroup.subtree_control", "+cpuset")
        self.child.mkdir()
        return [enabled, answer(self.child / "cgroup.type", "threaded"), read(self.child / "cgroup.type"), read(self.cgroup / "cgroup.type")]

    def move(self, tids: list[int]) -> list[str]:
        """Puts threads into the child."""
        return [answer(self.child / "cgroup.threads", str(tid)) for tid in tids]

    def enable_without_exclusive_cpus(self) -> str:
        """What becomes of it without exclusive CPUs above it."""
        answer(self.child / "cpuset.cpus", self._own)
        answer(self.child / "cpuset.cpus.partition", "isolated")
        state = read(self.child / "cpuset.cpus.partition")
        answer(self.child / "cpuset.cpus.partition", "member")
        return state

    def enable(self, topmost: str = "") -> list[str]:
        """Exclusive CPUs down the path, then the partition: the answers. `topmost`: what the topmost cgroup gets, where other pods have some, too."""
        way = [*path_to(self.cgroup), self.child]
        told = [answer(way[0] / "cpuset.cpus.exclusive", topmost or self._own)]
        told += [answer(each / "cpuset.cpus.exclusive", self._own) for each in way[1:]]
        return [*told, answer(self.child / "cpuset.cpus.partition", "isolated")]

    def look(self) -> Look:
        """What the kernel says now."""
        return Look(
            read(self.child / "cpuset.cpus.partition"),
            len(self._threads()),
            read(self.child / "cpuset.cpus.effective"),
            read(self.cgroup / "cpuset.cpus.effective"),
            read(self.cgroup.parent / "cpuset.cpus.effective"),
            read(ROOT / "cpuset.cpus.isolated"),
        )

    def undo(self, topmost: str = "\n") -> list[str]:
        """Gives all of it back, the other way round: the answers."""
        told = [answer(self.child / "cpuset.cpus.partition", "member")]
        told += [answer(self.cgroup / "cgroup.threads", str(tid)) for tid in self._threads()]
        told += [answer(each / "cpuset.cpus.exclusive", "\n") for each in (self.child, *reversed(path_to(self.cgroup)[1:]))]
        told += [answer(path_to(self.cgroup)[0] / "cpuset.cpus.exclusive", topmost)]
        return [*told, remove(self.child), answer(self.cgroup / "cgroup.subtree_control", "-cpuset")]

    def _threads(self) -> list[int]:
        return [int(word) for word in read(self.child / "cgroup.threads").split() if word.isdigit()]
