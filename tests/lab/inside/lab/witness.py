# SPDX-License-Identifier: Apache-2.0
"""Where each thread of a pod may run, and where it must: by containerd's folders, /proc, KVM's debugfs and kubelet's file, not by the product."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lab import cgroup, cpus, kernel, rooms
from lab.claims import Claims

_BUNDLES = Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io")
# The end of a container's cgroup, as systemd's driver names it, and as cgroupfs's does.
_CGROUP = re.compile(r"/(?:cri-containerd-)?([0-9a-f]{64})(?:\.scope)?$", re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{64}")
_PARTS = ("vcpu", "vmm", "virtiofsd", "shim")
_MOMENTARY = ("start", "delete")  # what a shim's program does besides being the shim


@dataclass
class Pod:
    """A pod that containerd runs. `containers`: ids by name; two of a name where one follows the other."""

    uid: str
    name: str
    sandbox: str
    is_vm: bool
    containers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Thread:
    """A thread of a pod. `part`: `vcpu`, `vmm`, `virtiofsd` or `shim`, of kernel threads what they are; for a container of runc its name."""

    tid: int
    pod: str
    part: str
    cpus: frozenset[int]

    def __str__(self) -> str:
        return f"{self.part} {self.tid} on {cpus.show(self.cpus)}"


def pods() -> dict[str, Pod]:
    """The pods of the node by their sandboxes' ids, sandboxes without containers among them."""
    tasks = {folder.name: task for folder in _bundles() if (task := _task(folder))}
    found = {}
    for id_, (said, is_vm) in tasks.items():
        if said["io.kubernetes.cri.container-type"] == "sandbox":
            name = said["io.kubernetes.cri.sandbox-name"].removesuffix(f"-{os.uname().nodename}")
            found[id_] = Pod(said["io.kubernetes.cri.sandbox-uid"], name, id_, is_vm)
    for id_, (said, _) in tasks.items():
        pod = found.get(said["io.kubernetes.cri.sandbox-id"])
        if pod and id_ != pod.sandbox:
            pod.containers[said["io.kubernetes.cri.container-name"]] = id_
    return found


def threads(of: dict[str, Pod]) -> list[Thread]:
    """Every thread of these pods, but for runc's pauses, to which kubelet gives no CPUs."""
    owner_of = {container: (pod, name) for pod in of.values() for name, container in pod.containers.items()}
    found: list[Thread] = []
    for pid in kernel.processes():
        try:
            found += _threads_of(pid, of, owner_of)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended
    return found


def orphans(of: dict[str, Pod]) -> list[str]:
    """VMMs of no pod."""
    lines = {pid: _command_line(pid) for pid in kernel.processes()}
    vmms = {pid: set(_ID.findall(line)) for pid, line in lines.items() if _is_vmm(line)}
    return [f"VMM {pid} of no pod" for pid, ids in vmms.items() if not ids & of.keys()]


def vmm(sandbox: str) -> int:
    """The process of a sandbox's VMM."""
    lines = {pid: _command_line(pid) for pid in kernel.processes()}
    return next(pid for pid, line in lines.items() if _is_vmm(line) and sandbox in line)


def wrong(claims: Claims, of: dict[str, Pod], seen: list[Thread], housekeeping: str = "shared-pool") -> list[str]:
    """What of `seen` is not where kubelet's file and `housekeeping` want it, as far as each thread's cgroup allows it."""
    found = []
    for pod in of.values():
        mine = [thread for thread in seen if thread.pod == pod.sandbox]
        if pod.is_vm:
            found += _wrong_in_vm(pod, claims, mine, housekeeping) + _beside_dedicated(pod, claims, mine, housekeeping)
        else:
            found += _wrong_in_runc(pod, claims, mine)
    return found


def own_cpus(pod: Pod, claims: Claims, seen: list[Thread], housekeeping: str = "shared-pool") -> set[int]:
    """The CPUs that `pod` owns and to which one of its vCPUs is bound. One that floats may be bound to one of them,
    too, where the sandbox's cgroup allows no other."""
    return set(_dedicated(pod, claims, [thread for thread in seen if thread.pod == pod.sandbox], housekeeping))


def _dedicated(pod: Pod, claims: Claims, mine: list[Thread], housekeeping: str) -> dict[int, Thread]:
    own = claims.of_pod(pod.uid) - rooms.set_aside(housekeeping, pod.containers, pod.uid, claims)
    return {min(thread.cpus): thread for thread in mine if thread.part == "vcpu" and len(thread.cpus) == 1 and thread.cpus <= own}


def _wrong_in_vm(pod: Pod, claims: Claims, mine: list[Thread], housekeeping: str) -> list[str]:
    allowed = rooms.allowed(housekeeping, pod.containers, pod.uid, claims)
    found = _not_seen(pod, _PARTS, mine)
    found += [f"{pod.name}: {thread}, may use {cpus.show(allowed)}" for thread in mine if not thread.cpus <= allowed]
    wanted = frozenset().union(*rooms.owners(pod.containers, pod.uid, claims))
    wanted -= rooms.set_aside(housekeeping, pod.containers, pod.uid, claims)
    have = own_cpus(pod, claims, mine, housekeeping)
    if not wanted <= have:
        found.append(f"{pod.name}: CPUs with a vCPU of their own: {sorted(have)}, wanted {sorted(wanted)}")
    return found


def _beside_dedicated(pod: Pod, claims: Claims, mine: list[Thread], housekeeping: str) -> list[str]:
    """Threads on the CPU of a dedicated vCPU that belong elsewhere by `housekeeping`, as far as their cgroup lets them. KVM's timer goes
    with the VM's first vCPU, and is in no pod's cgroup itself."""
    dedicated = _dedicated(pod, claims, mine, housekeeping)
    owners, taken, found = set(dedicated.values()), frozenset(dedicated), []
    for thread in mine:
        if thread in owners or thread.part == "kvm-pit" or not thread.cpus & taken or not (reach := cgroup.allowed_cpus(thread.tid)):
            continue
        room = rooms.room(housekeeping, pod.containers, pod.uid, claims, taken, reach)
        if thread.cpus & (taken - room):
            found.append(f"{pod.name}: {thread}, beside a dedicated vCPU; of what its cgroup allows, {cpus.show(reach)}, it belongs on {cpus.show(room)}")
    return found


def _wrong_in_runc(pod: Pod, claims: Claims, mine: list[Thread]) -> list[str]:
    owned = claims.owned.get(pod.uid, {})
    allowed = {thread: owned.get(thread.part, claims.pool) for thread in mine}
    found = _not_seen(pod, pod.containers.keys(), mine)
    astray = {thread: wanted for thread, wanted in allowed.items() if thread.cpus != wanted}
    return found + [f"{pod.name}: container {thread}, wanted {cpus.show(wanted)}" for thread, wanted in astray.items()]


def _not_seen(pod: Pod, parts: Iterable[str], mine: list[Thread]) -> list[str]:
    there = {thread.part for thread in mine}
    return [f"{pod.name}: no thread of its {part} was seen" for part in parts if part not in there]


def _bundles() -> list[Path]:
    return list(_BUNDLES.iterdir()) if _BUNDLES.exists() else []


def _task(bundle: Path) -> tuple[dict, bool] | None:
    """The annotations of a task, and whether it is one of a VM; nothing while containerd makes its folder, or takes it away."""
    try:
        return _read_task(bundle)
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


@cache
def _read_task(bundle: Path) -> tuple[dict, bool]:
    """containerd 2 names the shim of a sandbox, and not again that of its containers. Its file is there before the name is in it."""
    said = json.loads((bundle / "config.json").read_text())["annotations"]
    if said["io.kubernetes.cri.container-type"] != "sandbox":
        return said, False
    shim = (bundle / "shim-binary-path").read_text()
    if not shim:
        raise FileNotFoundError(bundle)
    return said, "kata" in shim


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _is_vmm(line: str) -> bool:
    program = line.split("\0")[0]
    return "qemu-system" in program or program.endswith("cloud-hypervisor")


def vm_of(pid: int, of: dict[str, Pod]) -> str:
    """The sandbox of a VM for which a process works, or a kernel thread that is named after its VMM. Empty: of none."""
    return _vm_in(_command_line(pid), pid, of)


def _vm_in(line: str, pid: int, of: dict[str, Pod]) -> str:
    if not line and (served := kernel.served_by(pid)):
        line = _command_line(served[1])
    return next((each for each in _ID.findall(line) if each in of and of[each].is_vm), "")


def _threads_of(pid: int, of: dict[str, Pod], owner_of: dict[str, tuple[Pod, str]]) -> list[Thread]:
    line = _command_line(pid)
    if sandbox := _vm_in(line, pid, of):
        return _of_vm(pid, line, sandbox) if line else _all_of(pid, sandbox, kernel.served_by(pid)[0])
    if line and (cgroup := _CGROUP.search(Path(f"/proc/{pid}/cgroup").read_text())):
        pod, name = owner_of.get(cgroup[1], (None, ""))
        return _all_of(pid, pod.sandbox, name) if pod and not pod.is_vm else []
    return []


def _of_vm(pid: int, line: str, sandbox: str) -> list[Thread]:
    words = line.split("\0")
    if _is_vmm(line):
        vcpus = _vcpus(pid)
        return [Thread(each.tid, sandbox, "vcpu" if each.tid in vcpus else "vmm", each.cpus) for each in _all_of(pid, sandbox, "vmm")]
    if "virtiofsd" in words[0]:
        return _all_of(pid, sandbox, "virtiofsd")
    return [] if words[-1] in _MOMENTARY else _all_of(pid, sandbox, "shim")


def _vcpus(pid: int) -> set[int]:
    try:
        return set(kernel.kvm_vcpus(pid).values())
    except StopIteration:
        return set()  # it has no VM yet


def _all_of(pid: int, sandbox: str, part: str) -> list[Thread]:
    found = []
    for tid in kernel.threads(pid):
        try:
            found.append(Thread(tid, sandbox, part, frozenset(os.sched_getaffinity(tid))))
        except ProcessLookupError:
            pass  # it ended
    return found
