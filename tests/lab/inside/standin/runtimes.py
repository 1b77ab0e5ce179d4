# SPDX-License-Identifier: Apache-2.0
"""Kata's two runtimes, as far as the host sees them: their folders, state files, cgroups, VMM, and in which order they come."""

import json
import math
import os
import shutil
import signal
import socket
from pathlib import Path

from lab import cpus
from lab.cgroup import Cgroup, Scope
from lab.vm import Vm, VmSpec, launch

_GO_SANDBOXES, _GO_VMS, _RUST_SANDBOXES = Path("/run/vc/sbs"), Path("/run/vc/vm"), Path("/run/kata")
_DEFAULT_VCPUS = 1
_RUST_OVERHEAD_VCPUS = 0.2


def clean_up(sandbox: str, rust: bool) -> None:
    """Ends what is left of a sandbox whose shim is dead."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _is_vmm_of(entry, sandbox):
            os.kill(int(entry.name), signal.SIGKILL)
    for folder in (_RUST_SANDBOXES,) if rust else (_GO_SANDBOXES, _GO_VMS):
        shutil.rmtree(folder / sandbox, ignore_errors=True)


def _is_vmm_of(process: Path, sandbox: str) -> bool:
    try:
        return f"sandbox-{sandbox}" in (process / "cmdline").read_text()
    except OSError:
        return False


class _Runtime:
    """What both have in common: a sandbox with its VM, and the resources of its containers, the sandbox's own among them."""

    def __init__(self) -> None:
        self._id = ""
        self._cgroup: Cgroup | Scope
        self._vm: Vm
        self._resources: dict[str, dict] = {}
        self._monitor: socket.socket | None = None

    @property
    def vmm_pid(self) -> int:
        """What is told as the process of every task."""
        return self._vm.pid

    def is_alive(self) -> bool:
        """Whether its VM is there."""
        return self._vm.process.poll() is None

    def wait_for_vm(self) -> None:
        """Returns when the VMM has ended."""
        self._vm.process.wait()

    def _serve_monitor(self, folder: Path) -> None:
        self._monitor = socket.socket(socket.AF_UNIX)
        self._monitor.bind(str(folder / "shim-monitor.sock"))
        self._monitor.listen(1)

    def _union(self) -> str:
        sets = (cpus.parse(each.get("cpus", "")) for each in self._resources.values())
        return cpus.show(frozenset().union(*sets))

    def _end_vm(self) -> None:
        self._vm.qmp.close()
        for process in (self._vm.process, self._vm.virtiofsd):
            if process:
                process.kill()
                process.wait()


class GoRuntime(_Runtime):
    """src/runtime, with its defaults: sandbox_cgroup_only = false, static_sandbox_resource_mgmt = false.

    systemd's form of a path is taken for a name at the root (resourcecontrol/cgroups.go), beside kubelet's slices.
    """

    def __init__(self) -> None:
        super().__init__()
        self._overhead: Cgroup
        self._config: list[dict] = []

    def create_sandbox(self, sandbox: str, spec: dict) -> None:
        """Folder, cgroups, VM, then the pause container in it."""
        self._id = sandbox
        (_GO_SANDBOXES / sandbox).mkdir(0o700, parents=True)
        self._cgroup = Cgroup(_go_path(spec["linux"]["cgroupsPath"]))
        self._overhead = Cgroup(f"kata_overhead/{sandbox}")
        self._overhead.add(os.getpid())
        folder = _GO_VMS / sandbox
        folder.mkdir(0o750, parents=True)
        most = os.cpu_count() or 1
        shape = VmSpec(vcpus=_DEFAULT_VCPUS, max_vcpus=most, iothread=False, virtiofs=True)
        self._vm = launch(sandbox, shape, self._cgroup, folder, folder / "qmp.sock")
        self.create_container(sandbox, spec)
        self._serve_monitor(_GO_SANDBOXES / sandbox)

    def create_container(self, container: str, spec: dict) -> None:
        """Its vCPUs, the union in the cgroup, the state file."""
        self._resources[container] = dict(spec["linux"]["resources"].get("cpu", {}))
        self._config.append({"ID": container, "Annotations": spec["annotations"], "RootFs": "rootfs"})
        self._plug_vcpus()
        self._apply()
        self._store()

    def start_container(self, _: str) -> None:
        """Stored first; then its vCPUs, without a word to the cgroup."""
        self._store()
        self._plug_vcpus()

    def update_container(self, container: str, resources: dict) -> None:
        """What is empty stays as it was."""
        told = resources.get("cpu", {})
        self._resources[container] |= {key: told[key] for key in ("period", "quota", "cpus", "mems") if told.get(key)}
        self._plug_vcpus()
        self._apply()
        self._store()

    def stop_container(self, _: str) -> None:
        """A stopped container's CPUs stay in the union."""
        self._store()

    def delete_container(self, container: str) -> None:
        """Its CPUs leave the union."""
        del self._resources[container]
        self._config = [each for each in self._config if each["ID"] != container]
        self._apply()
        self._store()

    def end(self) -> None:
        """Stops the VM and removes what there was of it."""
        self._end_vm()
        Cgroup("").add(os.getpid())
        self._cgroup.remove()
        self._overhead.remove()
        for folder in (_GO_VMS, _GO_SANDBOXES):
            shutil.rmtree(folder / self._id)

    def _apply(self) -> None:
        """An empty union is not written. With cgroup v2 a vCPU brings its whole process along."""
        if union := self._union():
            self._cgroup.set_cpus(union)
        for tid in self._vm.vcpu_tids().values():
            self._cgroup.add(tid)

    def _plug_vcpus(self) -> None:
        """Never fewer than there are: nothing in the guest could remove one."""
        wanted = min(_DEFAULT_VCPUS + math.ceil(self._workload_cpus()), os.cpu_count() or 1)
        for _ in range(wanted - len(self._vm.vcpu_tids())):
            self._vm.plug_vcpu()

    def _workload_cpus(self) -> float:
        quotas = ((each.get("quota") or 0, each.get("period") or 0) for each in self._resources.values())
        by_quota = sum(quota / period for quota, period in quotas if quota > 0 and period > 0)
        return by_quota or sum(len(cpus.parse(each.get("cpus", ""))) for each in self._resources.values())

    def _store(self) -> None:
        """In place, as Kata does: a reader may see a part."""
        containers = [each | {"Resources": {"cpu": self._resources[each["ID"]]}} for each in self._config]
        virtiofsd = self._vm.virtiofsd.pid if self._vm.virtiofsd else 0
        state = {
            "State": "running",
            "SandboxContainer": self._id,
            "SandboxCgroupPath": self._cgroup.path,
            "OverheadCgroupPath": self._overhead.path,
            "HypervisorState": {"Type": "qemu", "VirtiofsDaemonPid": virtiofsd, "Pid": self._vm.pid},
            "Config": {"HypervisorType": "qemu", "SandboxCgroupOnly": False, "ContainerConfigs": containers},
            "PersistVersion": 2,
        }
        with open(_GO_SANDBOXES / self._id / "persist.json", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(state, file)


class RustRuntime(_Runtime):
    """src/runtime-rs, with its defaults: sandbox_cgroup_only = true, static_sandbox_resource_mgmt = true."""

    def create_sandbox(self, sandbox: str, spec: dict) -> None:
        """Folder with the management socket, cgroup with the shim in it, VM, state file, then the pause container."""
        self._id = sandbox
        folder = _RUST_SANDBOXES / sandbox
        (folder / "root").mkdir(0o750, parents=True)
        self._serve_monitor(folder)
        self._cgroup = _enter_cgroup(spec["linux"]["cgroupsPath"])
        shape = VmSpec(vcpus=_sandbox_vcpus(spec["annotations"]), iothread=False, virtiofs=True, rust=True)
        # Below the shim's working directory, the bundle, whose whole name is too long for a socket.
        self._vm = launch(sandbox, shape, self._cgroup, folder / "root", Path("qmp.sock"))
        self._store(folder)
        self.create_container(sandbox, spec)

    def create_container(self, container: str, spec: dict) -> None:
        """Its CPUs join the union."""
        self._take(container, spec["linux"]["resources"])

    def start_container(self, _: str) -> None:
        """Nothing that the host could see."""

    def update_container(self, container: str, resources: dict) -> None:
        """Replaces what was there: without a word of CPUs the container has none any more."""
        self._take(container, resources)

    def stop_container(self, _: str) -> None:
        """A stopped container's CPUs stay in the union."""

    def delete_container(self, container: str) -> None:
        """Its CPUs leave the union."""
        del self._resources[container]
        self._apply()

    def end(self) -> None:
        """Stops the VM and removes what there was of it."""
        self._end_vm()
        Cgroup("").add(os.getpid())
        self._cgroup.remove()
        shutil.rmtree(_RUST_SANDBOXES / self._id)

    def _take(self, container: str, resources: dict) -> None:
        told = resources.get("cpu", {})
        fresh = {key: told[key] for key in ("cpus", "mems") if told.get(key)}
        if self._resources.get(container) == fresh:
            return
        self._resources[container] = fresh
        self._apply()

    def _apply(self) -> None:
        if union := self._union():
            self._cgroup.set_cpus(union)

    def _store(self, folder: Path) -> None:
        """Once, and without a word of the VMM's process or of containers."""
        cgroup = {"path": self._cgroup.path, "overhead_path": "", "sandbox_cgroup_only": True, "enable_vcpus_pinning": False}
        hypervisor = {"hypervisor_type": "qemu", "pid": None, "id": self._id}
        state = {"sandbox_type": "virt_container", "resource": {"endpoint": [], "cgroup_state": cgroup}, "hypervisor": hypervisor}
        (folder / "state.json").write_text(json.dumps(state, indent=2))


def _go_path(cgroups_path: str) -> str:
    if ":" in cgroups_path:
        return cgroups_path
    parent, _, name = cgroups_path.strip("/").rpartition("/")
    return f"{parent}/kata_{name}"


def _enter_cgroup(cgroups_path: str) -> Cgroup | Scope:
    """The cgroup of this path with this process in it; a scope where it is in systemd's form, `slice:prefix:name`."""
    if ":" in cgroups_path:
        slice_, prefix, name = cgroups_path.split(":")
        return Scope(slice_, f"{prefix}-{name}.scope", os.getpid())
    cgroup = Cgroup(cgroups_path.strip("/"))
    cgroup.add(os.getpid())
    return cgroup


def _sandbox_vcpus(annotations: dict[str, str]) -> int:
    """What the pod's annotations ask for, and the VM's own part; never more than the shim may use CPUs."""
    quota, period = (int(annotations.get(f"io.kubernetes.cri.sandbox-cpu-{what}", 0)) for what in ("quota", "period"))
    asked = quota / period if quota > 0 and period > 0 else 0.0
    default = float(annotations.get("io.katacontainers.config.hypervisor.default_vcpus", _DEFAULT_VCPUS))
    return min(math.ceil(max(asked + _RUST_OVERHEAD_VCPUS, default)), len(os.sched_getaffinity(0)))
