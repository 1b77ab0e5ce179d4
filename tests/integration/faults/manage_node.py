# SPDX-License-Identifier: Apache-2.0
"""A node of the fault matrix with `cgroup = "manage"`: the daemon keeps the CPUs of another pod out of the cgroup of the VM.

The cgroup is one of version 2. Where the kernel has its cpusets in version 1, the daemon's mount namespace shows version 2
alone, with the files of a cgroup of version 1 in it under the names of version 2: the kernel does what it would."""
import contextlib
import itertools
import os
import re
import subprocess
from pathlib import Path

from nodes import ApiNode

NUMBERS = itertools.count()
ROOT = "/sys/fs/cgroup"
SANDBOX = "guest"  # whose own cgroup is named after it
# $1: the root of all cgroups, $2: a cgroup, $3: what it shows, $4: the root's controllers, $5: cpusets of version 1, $6: where
# they are then. Behind them the daemon.
PLAY = """mount --make-rprivate / && mount --bind "$5" "$6" && umount -l -R "$1" && mount -t cgroup2 cgroup2 "$1" &&
mount --bind "$3" "$1/$2" && mount --bind "$4" "$1/cgroup.controllers" || exit 98
shift 6 && exec "$@" """
SHOWN = {"cpuset.cpus": "cpuset.cpus", "cpuset.cpus.effective": "cpuset.effective_cpus", "cpuset.mems": "cpuset.mems",
         "cpuset.mems.effective": "cpuset.effective_mems", "cgroup.procs": "cgroup.procs", "cgroup.threads": "tasks"}


def mount_of(kind, option=""):
    """The first mount of a kind; empty: there is none."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((words[1] for words in lines if words[2] == kind and (not option or option in words[3].split(","))), "")


def has_cpusets(root):
    return "cpuset" in Path(root, "cgroup.controllers").read_text().split()


def why_not():
    """Why there can be no such node here; empty: there can."""
    root, v1 = mount_of("cgroup2"), mount_of("cgroup", "cpuset")
    if not root or not (v1 or has_cpusets(root)):
        return "no cgroups of version 2, or none with cpusets, are mounted"
    if os.geteuid() != 0 or not all(os.access(place, os.W_OK) for place in (root, v1) if place):
        return "it may not make cgroups"
    if not has_cpusets(root) and subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        return "it may not make a mount namespace"
    return ""


class VmCgroup:
    """A cgroup below one of its own, which the VM's process is in."""

    def __init__(self, directory, pid, cpus):
        root = Path(mount_of("cgroup2"))
        name = f"kata-affinity-faults-{os.getpid()}-{next(NUMBERS)}"
        self._made, self.wrapper = [root / name, root / name / SANDBOX], []
        for made in self._made:
            made.mkdir()
        self._files = self._made[-1]
        if has_cpusets(root):
            for parent in (root, root / name):
                (parent / "cgroup.subtree_control").write_text("+cpuset")
        else:
            self._play(directory, name, pid, cpus)
        (self._made[1] / "cgroup.procs").write_text(str(pid))

    def _play(self, directory, name, pid, cpus):
        v1, shown, kept, controllers = mount_of("cgroup", "cpuset"), *(directory / one for one in ("shown", "v1", "controllers"))
        self._files = Path(v1, name)
        self._files.mkdir()
        self._made.append(self._files)
        (self._files / "cpuset.cpus").write_text(cpus)
        (self._files / "cpuset.mems").write_text(Path(v1, "cpuset.mems").read_text())
        (self._files / "cgroup.procs").write_text(str(pid))
        kept.mkdir()
        controllers.write_text("cpuset cpu\n")
        for at, real in ((shown, kept), (shown / SANDBOX, kept / name)):
            at.mkdir()
            for file, theirs in SHOWN.items():
                (at / file).symlink_to(real / theirs)
        self.wrapper = ["unshare", "-m", "sh", "-c", PLAY, "sh", ROOT, name, shown, controllers, v1, kept]

    def cpus(self):
        text = (self._files / "cpuset.cpus").read_text().strip()
        ranges = [part.split("-") for part in text.split(",") if part]
        return {cpu for one in ranges for cpu in range(int(one[0]), int(one[-1]) + 1)}

    def remove(self):
        for directory in reversed(self._made):
            with contextlib.suppress(OSError):
                directory.rmdir()


class ManageNode(ApiNode):
    settings = ApiNode.settings + 'cgroup = "manage"\n'

    def __init__(self, directory):
        super().__init__(directory)
        self.cgroup = VmCgroup(directory, self.vm.pid, f"{self.first}-{self.last}")

    def wrapped(self):
        return self.cgroup.wrapper

    def trespasses(self):
        return super().trespasses() or (not self.may_trespass and self.last in self.cgroup.cpus())

    def as_planned(self):
        return super().as_planned() and self.cgroup.cpus() == {self.first}

    def admits(self, call):
        """The threads are as planned, and what is wrong with their cgroup is said on request, and in the log, if that can be written."""
        is_logged = call == "write" or re.search("cannot (be )?(read|write|written)", self.output()) is not None
        return super().as_planned() and "its cgroup" in self.ctl("verify")[1] and is_logged

    def close(self):
        super().close()
        self.cgroup.remove()
