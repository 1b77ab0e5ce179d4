# SPDX-License-Identifier: Apache-2.0
"""Dedicated vCPUs in a cpuset partition of their own: what the kernel lets root do, and what systemd, Kata and kubelet's writes do to it."""
# lab shapes: smt8 bookworm
# lab timeout: 900
# lab product: no

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lab import check, cpus, kernel
from lab.cgroup import Cgroup, Scope
from lab.partitions import ROOT, Look, Partition, answer, files, is_of_kernel, movable_kernel_threads, of_process, path_to, read, remove
from lab.vm import Vm, Vms, VmSpec

OWN, OTHERS, REST = "2-3", "6-7", "0-1,4-7"
OF_KUBELET = "+cpuset +cpu +io +memory +pids"  # the controllers that it enables for its pods
UNITS = ("system.slice", "user.slice", "init.scope", "machine.slice")
IN_FORCE = Look("isolated", 2, OWN, REST, REST, OWN)
_SETTLING = 3.0  # seconds: systemd answers before it has acted


def scope_of_pod(vm: Vm) -> Path:
    """runtime-rs, and the Go runtime with sandbox_cgroup_only, under systemd's driver: a scope in the pod's slice."""
    scope = Scope("kubepods-pod1.slice", "cri-containerd-1.scope", vm.pid)
    cgroup = ROOT / scope.path.lstrip("/")
    for each in path_to(cgroup)[:-1]:
        answer(each / "cgroup.subtree_control", OF_KUBELET)
    scope.set_cpus(OWN)
    return cgroup


def directory(path: str) -> Callable[[Vm], Path]:
    """A cgroup that Kata makes itself, below what kubelet has made."""

    def make(vm: Vm) -> Path:
        cgroup = Cgroup(path)
        made = ROOT / path
        for each in (ROOT, *path_to(made)[:-1]):
            answer(each / "cgroup.subtree_control", OF_KUBELET)
        cgroup.set_cpus(OWN)
        cgroup.add(vm.pid)
        return made

    return make


CELLS = {
    "systemd's driver, sandbox_cgroup_only = true": scope_of_pod,
    "systemd's driver, sandbox_cgroup_only = false": directory("kubepods-pod2.slice:cri-containerd:2"),
    "cgroupfs's driver, sandbox_cgroup_only = true": directory("kubepods/pod3/3"),
    "cgroupfs's driver, sandbox_cgroup_only = false": directory("kubepods/pod4/kata_4"),
}


def masks(vm: Vm) -> Counter[str]:
    """How many of a VMM's threads have which mask."""
    return Counter(kernel.allowed(tid) for tid in kernel.threads(vm.pid))


def dedicated(vm: Vm) -> list[int]:
    """The vCPUs of the container; vCPU 0 floats."""
    return [tid for index, tid in sorted(vm.vcpu_tids().items()) if index > 0]


def systemctl(*words: str) -> None:
    """Returns when systemd has done it."""
    subprocess.run(["systemctl", *words], check=True, stderr=subprocess.DEVNULL)
    time.sleep(_SETTLING)


def set_up(vm: Vm, cgroup: Path) -> Partition:
    """Makes the child, moves the vCPUs into it, and makes it a partition."""
    part = Partition(cgroup, OWN)
    made = part.make()
    check.equal("the child", made, ["ok", "ok", "threaded", "domain threaded"])
    check.equal("vCPUs move into it", part.move(dedicated(vm)), ["ok", "ok"])
    check.equal("a partition without exclusive CPUs above it", part.enable_without_exclusive_cpus().partition(" (")[0], "isolated invalid")
    check.equal("exclusive CPUs down the path, and the partition", set(part.enable()), {"ok"})
    check.equal("by the kernel", part.look(), IN_FORCE)
    return part


def everybody_is_out(vm: Vm) -> None:
    check.equal("the VMM's threads", masks(vm), Counter({REST: len(kernel.threads(vm.pid)) - 2, OWN: 2}))
    check.equal("PID 1", kernel.allowed(1), REST)
    check.equal("system.slice", read(ROOT / "system.slice/cpuset.cpus.effective"), REST)
    check.equal("unbound workqueues", read(Path("/sys/devices/virtual/workqueue/cpumask")), "f3")
    print(f"          kernel threads that may still run there: {', '.join(movable_kernel_threads(OWN))}", flush=True)


def kata_writes(vm: Vm, part: Partition) -> None:
    check.step("Kata's writes: any cpuset changes nothing, a thread's id in cgroup.procs empties the partition")
    for cpu_list, left in ((OWN, REST), ("0-7", REST), ("0-1", "0-1"), (OWN, REST)):
        check.equal(f"cpuset.cpus = {cpu_list}", answer(part.cgroup / "cpuset.cpus", cpu_list), "ok")
        check.equal("by the kernel", part.look(), Look("isolated", 2, OWN, left, REST, OWN))
    tids = dedicated(vm)
    for tid, cpu in zip(tids, sorted(cpus.parse(OWN)), strict=True):
        os.sched_setaffinity(tid, {cpu})
    check.equal("cgroup.procs = a vCPU", answer(part.cgroup / "cgroup.procs", str(tids[0])), "ok")
    check.equal("by the kernel", part.look(), Look("isolated", 0, OWN, REST, REST, OWN))
    check.equal("the vCPUs", {kernel.allowed(tid) for tid in tids}, {REST})
    check.equal("vCPUs move in again", part.move(tids), ["ok", "ok"])
    check.equal("and are where they were", [kernel.allowed(tid) for tid in tids], ["2", "3"])


def systemd_acts(part: Partition) -> None:
    check.step("systemd: AllowedCPUs of the scope, another unit's property, daemon-reload, daemon-reexec")
    if part.cgroup.suffix == ".scope":
        systemctl("set-property", "--runtime", part.cgroup.name, f"AllowedCPUs={OWN}")
    systemctl("set-property", "--runtime", "system.slice", "CPUWeight=90")
    systemctl("daemon-reload")
    systemctl("daemon-reexec")
    check.equal("by the kernel", part.look(), IN_FORCE)


def others_write(vm: Vm, part: Partition) -> None:
    check.step("other pods: a container that is given the partition's CPUs runs everywhere else")
    sibling = part.cgroup.parent / "sibling"
    sibling.mkdir()
    check.equal(f"its cpuset.cpus = {OWN}", answer(sibling / "cpuset.cpus", OWN), "ok")
    check.equal("its CPUs", read(sibling / "cpuset.cpus.effective"), REST)
    check.equal("its cpuset.cpus.exclusive = 3-4", answer(sibling / "cpuset.cpus.exclusive", "3-4"), "EINVAL")
    sibling.rmdir()
    check.equal("by the kernel", part.look(), IN_FORCE)

    check.step("less above it: exclusive CPUs that are taken back leave the partition, the controller ends it")
    top = path_to(part.cgroup)[0]
    check.equal("cpuset.cpus.exclusive = 2 of the topmost cgroup", answer(top / "cpuset.cpus.exclusive", "2"), "ok")
    left = part.look()
    check.equal("by the kernel", (left.partition, left.child, left.isolated), ("isolated", "2", "2"))
    check.equal("again", set(part.enable()), {"ok"})
    check.equal("-cpuset in the sandbox's cgroup", answer(part.cgroup / "cgroup.subtree_control", "-cpuset"), "ok")
    check.equal("nothing is isolated", read(ROOT / "cpuset.cpus.isolated"), "")
    check.equal("+cpuset", answer(part.cgroup / "cgroup.subtree_control", "+cpuset"), "ok")
    check.equal("a member it is then", part.look().partition, "member")
    check.equal("again", set(part.enable()), {"ok"})
    check.equal("vCPUs move in again", part.move(dedicated(vm)), ["ok", "ok"])
    check.equal("by the kernel", part.look(), IN_FORCE)


def plug(vm: Vm, part: Partition) -> None:
    check.step("CPU hot-plug: a CPU that goes leaves the partition, and comes back to it; without any it is invalid, and stays so")
    online = [Path(f"/sys/devices/system/cpu/cpu{cpu}/online") for cpu in sorted(cpus.parse(OWN))]
    answer(online[1], "0")
    check.eventually("CPU 3 is off", lambda: (part.look().partition, part.look().child), ("isolated", "2"))
    answer(online[1], "1")
    check.eventually("it is back", part.look, IN_FORCE)
    print(f"          the vCPUs: {[kernel.allowed(tid) for tid in dedicated(vm)]}", flush=True)
    for each in online:
        answer(each, "0")
    check.eventually("both are off", lambda: part.look().partition, "isolated invalid (No cpu available due to hotplug)")
    check.eventually("the vCPUs", lambda: {kernel.allowed(tid) for tid in dedicated(vm)}, {REST})
    for each in online:
        answer(each, "1")
    check.eventually("both are back", lambda: (part.look().partition, part.look().child), ("isolated invalid (No cpu available due to hotplug)", OWN))
    check.equal("partition = isolated again", answer(part.child / "cpuset.cpus.partition", "isolated"), "ok")
    check.eventually("by the kernel", part.look, IN_FORCE)


def end(vm: Vm, part: Partition, is_unit: bool) -> None:
    check.step("the VMM ends: systemd removes its scope with the child; elsewhere the CPUs stay isolated until the child is removed")
    check.equal("the child", part.make(), ["ok", "ok", "threaded", "domain threaded"])
    check.equal("vCPUs move into it", part.move(dedicated(vm)), ["ok", "ok"])
    check.equal("the partition", set(part.enable()), {"ok"})
    top = path_to(part.cgroup)[0]
    if top != part.cgroup:
        for cpu_list in ("4-7", "0-7"):
            check.equal(f"cpuset.cpus = {cpu_list} of {top.name}", answer(top / "cpuset.cpus", cpu_list), "ok")
            check.equal("the partition", (part.look().partition, part.look().child), ("isolated", OWN))
        check.equal("-cpuset in the pod's cgroup", answer(part.cgroup.parent / "cgroup.subtree_control", "-cpuset"), "EBUSY")
    vm.process.kill()
    vm.process.wait()
    if is_unit:
        check.eventually("the scope is gone", part.cgroup.exists, False)
    else:
        check.equal("isolated", read(ROOT / "cpuset.cpus.isolated"), OWN)
        check.equal("the sandbox's cgroup is removed", remove(part.cgroup), "EBUSY")
        check.equal("the child is", remove(part.child), "ok")
        check.equal("then the sandbox's cgroup", remove(part.cgroup), "ok")
    check.eventually("isolated", lambda: read(ROOT / "cpuset.cpus.isolated"), "")
    above = path_to(part.cgroup)[:-1]
    for each in above:
        check.equal(f"exclusive CPUs that {each.name} keeps", read(each / "cpuset.cpus.exclusive") if each.exists() else OWN, OWN)
    for each in reversed(above):
        answer(each / "cpuset.cpus.exclusive", "\n")


def cell(vms: Vms, number: int, place: Callable[[Vm], Path]) -> None:
    vm = vms.start(f"vm{number}", VmSpec(vcpus=3, debug_threads=True))
    cgroup = place(vm)
    check.eventually("the VMM's cgroup", lambda: of_process(vm.pid), cgroup)
    before = files(cgroup)
    part = set_up(vm, cgroup)
    everybody_is_out(vm)
    kata_writes(vm, part)
    systemd_acts(part)
    others_write(vm, part)
    plug(vm, part)
    check.step("undone: every file is as it was")
    check.equal("the answers", set(part.undo()), {"ok"})
    check.eventually("files that differ", lambda: {name for name, text in files(cgroup).items() if before[name] != text}, set())
    check.equal("the VMM's threads", masks(vm), Counter({OWN: len(kernel.threads(vm.pid)) - 2, "2": 1, "3": 1}))
    end(vm, part, is_unit=cgroup.suffix == ".scope")


def two_pods(vms: Vms) -> None:
    check.step("two pods: the topmost cgroup needs the exclusive CPUs of both; written without those of one, its partition is invalid")
    parts = []
    for name, own in (("one", OWN), ("two", OTHERS)):
        vm = vms.start(name, VmSpec(vcpus=3, debug_threads=True))
        part = Partition(directory(f"kubepods/pod{name}/{name}")(vm), own)
        part.make()
        part.move(dedicated(vm))
        check.equal(f"pod {name}", set(part.enable()), {"ok"})
        parts.append(part)
    check.equal("the first", parts[0].look().partition.partition(" (")[0], "isolated invalid")
    for part in parts:
        check.equal("both above", set(part.enable(topmost=f"{OWN},{OTHERS}")), {"ok"})
    check.equal("by the kernel", [part.look().partition for part in parts], ["isolated", "isolated"])
    check.equal("the first is undone", set(parts[0].undo(topmost=OTHERS)), {"ok"})
    check.equal("the second", (parts[1].look().partition, parts[1].look().child), ("isolated", OTHERS))
    check.equal("it is undone", set(parts[1].undo()), {"ok"})


def runc() -> None:
    check.step("a runc container's own cgroup: root or isolated; a new cpuset does not move it")
    group = Cgroup("kubepods/podrunc/runc")
    cgroup = ROOT / group.path.lstrip("/")
    group.set_cpus(OTHERS)
    sleeper = subprocess.Popen(["sleep", "infinity"], preexec_fn=lambda: group.add(os.getpid()))
    check.equal("exclusive CPUs", {answer(each / "cpuset.cpus.exclusive", OTHERS) for each in path_to(cgroup)}, {"ok"})
    for kind, isolated in (("root", ""), ("isolated", OTHERS), ("root", "")):
        check.equal(kind, answer(cgroup / "cpuset.cpus.partition", kind), "ok")
        check.equal("by the kernel", (read(cgroup / "cpuset.cpus.partition"), read(ROOT / "cpuset.cpus.isolated")), (kind, isolated))
    group.set_cpus("4-5")
    check.equal("cpuset.cpus = 4-5", (read(cgroup / "cpuset.cpus.partition"), kernel.allowed(sleeper.pid)), ("root", OTHERS))
    answer(cgroup / "cpuset.cpus.partition", "member")
    for each in reversed(path_to(cgroup)):
        answer(each / "cpuset.cpus.exclusive", "\n")
    check.equal("as a member", kernel.allowed(sleeper.pid), "4-5")
    sleeper.kill()
    sleeper.wait()


def is_in_unit(pid: int) -> bool:
    """Whether it is a process of the host's own services."""
    return not is_of_kernel(pid) and path_to(of_process(pid))[:1] in [[ROOT / unit] for unit in UNITS]


def units() -> None:
    check.step("AllowedCPUs of the host's units, in place of a partition")
    for unit in UNITS:
        systemctl("set-property", "--runtime", unit, "AllowedCPUs=0-1")
    check.equal("processes of theirs elsewhere", [pid for pid in kernel.processes() if is_in_unit(pid) and kernel.allowed(pid) != "0-1"], [])
    check.true("PID 1 is one of them", is_in_unit(1))
    print(f"          kernel threads that may still run there: {len(movable_kernel_threads('2-7'))}", flush=True)
    check.equal("a cpuset with processes is emptied", answer(ROOT / "system.slice/cpuset.cpus", "\n"), "ENOSPC")
    for allowed in ("0-7", ""):
        for unit in UNITS:
            systemctl("set-property", "--runtime", unit, f"AllowedCPUs={allowed}")
    check.equal("undone: the CPUs of each", {read(ROOT / unit / "cpuset.cpus.effective") for unit in UNITS}, {"0-7"})
    check.equal("the file of one with processes", read(ROOT / "system.slice/cpuset.cpus"), "0-7")


def before_6_7(vms: Vms) -> None:
    check.step("a kernel before 6.7: vCPUs move into a threaded child, and that cannot become a partition")
    vm = vms.start("old", VmSpec(vcpus=3, debug_threads=True))
    part = Partition(directory("kubepods/podold/old")(vm), OWN)
    check.equal("the child", part.make(), ["ok", "ok", "threaded", "domain threaded"])
    check.equal("vCPUs move into it", part.move(dedicated(vm)), ["ok", "ok"])
    check.equal("a partition", part.enable_without_exclusive_cpus(), "isolated invalid (Parent is not a partition root)")
    check.true("there is no cpuset.cpus.exclusive", not (part.child / "cpuset.cpus.exclusive").exists())


def main() -> None:
    check.step(f"kernel {kernel.release()}")
    with Vms() as vms:
        if kernel.release() < (6, 7):
            before_6_7(vms)
        else:
            for number, (name, place) in enumerate(CELLS.items(), start=1):
                check.step(name)
                cell(vms, number, place)
            two_pods(vms)
            runc()
        units()


main()
