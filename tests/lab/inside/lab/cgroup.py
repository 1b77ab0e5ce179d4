# SPDX-License-Identifier: Apache-2.0
"""Cgroups as kubelet and Kata make them, on cgroup v2 and, for cpuset, on v1."""

import errno
import shutil
import subprocess
import time
from pathlib import Path

from lab import cpus

_UNIFIED = Path("/sys/fs/cgroup")
IS_V2 = (_UNIFIED / "cgroup.controllers").exists()
_CPUSET_V1 = _UNIFIED / "cpuset"
_EFFECTIVE = "cpuset.cpus.effective" if IS_V2 else "cpuset.effective_cpus"


def allowed_cpus(tid: int) -> frozenset[int]:
    """The CPUs that thread `tid`'s cgroup lets it run on. Empty where the thread is gone."""
    try:
        lines = [line.split(":", 2) for line in Path(f"/proc/{tid}/cgroup").read_text().splitlines()]
        path = next(path for number, controllers, path in lines if (number == "0" if IS_V2 else controllers == "cpuset"))
        # Without the controller there, the nearest parent that has it holds.
        folder = (_UNIFIED if IS_V2 else _CPUSET_V1) / path.lstrip("/")
        file = next(each / _EFFECTIVE for each in (folder, *folder.parents) if (each / _EFFECTIVE).exists())
        return cpus.parse(file.read_text().strip())
    except (OSError, StopIteration):
        return frozenset()


class Cgroup:
    """A cgroup with the cpuset controller, e.g. `kubepods/pod1/sandbox1`. Parents are made by themselves, with every CPU."""

    def __init__(self, path: str) -> None:
        self.path = f"/{path}"
        self._dir = _make(path)

    def set_cpus(self, cpus: str, mems: str = "") -> None:
        """Writes the cpuset as Kata does after each change of a container."""
        (self._dir / "cpuset.cpus").write_text(cpus)
        if mems:
            (self._dir / "cpuset.mems").write_text(mems)

    def cpus(self) -> str:
        """The cpuset that was written."""
        return (self._dir / "cpuset.cpus").read_text().strip()

    def effective_cpus(self) -> str:
        """The CPUs on which the kernel lets its threads run."""
        return (self._dir / _EFFECTIVE).read_text().strip()

    def add(self, pid: int) -> None:
        """Moves process `pid` into the cgroup."""
        (self._dir / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Deletes the cgroup, which must be empty, as patiently as containerd/cgroups (cgroup2/utils.go): another one may be about to leave it."""
        for pause in (0.01, 0.02, 0.04, 0.08):
            try:
                return self._dir.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            time.sleep(pause)
        self._dir.rmdir()


class Scope:
    """A unit of systemd with one process in it, as runtimes make it with cgroup v2 and the systemd driver."""

    def __init__(self, slice_: str, name: str, pid: int) -> None:
        self._name = name
        told = ["Slice", "s", slice_, "Delegate", "b", "true", "PIDs", "au", "1", str(pid)]
        _ask_systemd("StartTransientUnit", "ssa(sv)a(sa(sv))", name, "replace", "3", *told, "0")
        self.path = _wait_for_cgroup(pid, name)

    def set_cpus(self, cpus: str) -> None:
        """Asks systemd for these CPUs, until the unit ends."""
        subprocess.run(["systemctl", "set-property", "--runtime", self._name, f"AllowedCPUs={cpus}"], check=True)

    def remove(self) -> None:
        """It ends with its last process."""


def _ask_systemd(call: str, *arguments: str) -> None:
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    subprocess.run(["busctl", "call", *manager, call, *arguments], check=True, stdout=subprocess.DEVNULL)


def _wait_for_cgroup(pid: int, unit: str, seconds: float = 20) -> str:
    """The cgroup of `pid` once that is the one of `unit`: systemd's answer comes before it has acted."""
    until = time.monotonic() + seconds
    while not (path := _path_of(pid)).endswith(f"/{unit}"):
        if time.monotonic() > until:
            raise RuntimeError(f"{unit}: its process is in {path} after {seconds} s")
        time.sleep(0.02)
    return path


def _path_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text().strip().rpartition("::")[2]


def _make(path: str) -> Path:
    directory = _UNIFIED if IS_V2 else _CPUSET_V1
    for name in path.split("/"):
        if IS_V2:
            (directory / "cgroup.subtree_control").write_text("+cpuset +cpu")
        parent, directory = directory, directory / name
        directory.mkdir(exist_ok=True)
        if not IS_V2:
            _inherit(parent, directory)
    return directory


def _inherit(parent: Path, child: Path) -> None:
    """On v1 a new cpuset is empty and takes no process until it has CPUs and nodes."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (child / name).read_text().strip():
            shutil.copyfile(parent / name, child / name)
