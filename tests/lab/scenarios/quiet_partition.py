# SPDX-License-Identifier: Apache-2.0
"""grade = "quiet": dedicated vCPUs have a cpuset partition, whoever writes and whatever is killed, and leave nothing of it behind."""
# lab shapes: smt8
# lab timeout: 1200

import itertools
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import check, cpus, helper, kernel, product
from lab.cgroup import Cgroup, Scope
from lab.expect import expect_dedicated, expect_floating, expect_housekeeping
from lab.helper import Helper
from lab.partitions import ROOT, answer, files, of_process, path_to, read, remove
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE
from lab.vm import Vm, Vms, VmSpec

OWN, SECOND, FLOOR, REST = "2-3", "6-7", "0-1", "0-1,4-7"
CHILD = "kata-affinity"
SPEC = VmSpec(vcpus=3, debug_threads=True)
AT_ONCE = 0.3  # seconds
KILLS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # after so much of the time that a partition takes
SETTINGS = {"grade": "quiet", "quiet_floor": FLOOR, "housekeeping": "shared-pool", "drift_check": 1}
FIFO, OTHER = (os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 1), (os.SCHED_OTHER, 0)
FULL_POWER = {1: "0", 2: "n/a", 3: "n/a"}
OF_KUBELET = ("cpuset.cpus", "cpuset.cpus.effective")  # kubelet and Kata write them meanwhile


def isolated() -> str:
    """CPUs of all partitions, by the kernel."""
    return read(ROOT / "cpuset.cpus.isolated")


def directory(vm: Vm) -> Path:
    """The sandbox's cgroup."""
    return of_process(vm.pid)


def inside(vm: Vm) -> set[int]:
    """Threads in the sandbox's partition, by the kernel."""
    return {int(tid) for tid in read(directory(vm) / CHILD / "cgroup.threads").split() if tid.isdigit()}


def owners(vm: Vm, own: str) -> set[int]:
    """The vCPUs whose CPUs `own` are."""
    on = {str(cpu) for cpu in cpus.parse(own)}
    return {tid for tid in vm.vcpu_tids().values() if kernel.allowed(tid) in on}


def partition_of(vm: Vm) -> tuple[str, int]:
    """Its state, and whether its threads are the dedicated vCPUs: all of them, and no other."""
    state = read(directory(vm) / CHILD / "cpuset.cpus.partition")
    return state, len(inside(vm)) if inside(vm) <= set(vm.vcpu_tids().values()) else -1


def expect_partition(vm: Vm, own: str, all_of_them: str = "", seconds: float = PATIENCE) -> None:
    """The vCPUs on `own` are alone there, whatever masks others have."""
    check.eventually(f"{vm.id}: its partition and the vCPUs in it", lambda: partition_of(vm), ("isolated", len(cpus.parse(own))), seconds)
    check.eventually(f"{vm.id}: the vCPUs in it are those on {own}", lambda: owners(vm, own) == inside(vm), True, seconds)
    check.eventually("isolated CPUs", isolated, all_of_them or own, seconds)
    check.true("PID 1 cannot run there", not cpus.parse(kernel.allowed(1)) & cpus.parse(own))


def expect_none(vm: Vm) -> None:
    check.eventually(f"{vm.id}: it has no partition", (directory(vm) / CHILD).exists, False, PATIENCE)


def same(before: dict[str, str]) -> None:
    """Every file of the cgroups that are there still."""

    def differs() -> dict[str, tuple[str, str]]:
        now = {name: (text, read(ROOT / name)) for name, text in before.items() if (ROOT / name).exists()}
        return {name: pair for name, pair in now.items() if pair[0] != pair[1] and not name.endswith(OF_KUBELET)}

    check.eventually("files of cgroups that are not as before", differs, {}, PATIENCE)
    check.eventually("isolated CPUs", isolated, "", PATIENCE)


def told(vm: Vm) -> str | None:
    """Why it has no partition, by the daemon; empty: it has."""
    partition = product.call("GET", f"/v1/sandboxes/{vm.id}")["partition"]
    return None if partition is None else partition["problem"]


def come(pod: VmPod, before: dict[str, str]) -> None:
    check.step(f"a container gets CPUs {OWN}: its vCPUs have a partition, and the other threads the rest")
    pod.update("app", OWN, exclusive=True)
    expect_partition(pod.vm, OWN)
    expect_dedicated(pod.vm, OWN)
    expect_floating(pod.vm, FLOOR, count=1)
    expect_housekeeping(pod.vm, FLOOR)
    check.eventually("the daemon says so", lambda: told(pod.vm), "")
    check.equal("metric", product.metric("kata_affinity_partitions"), 1.0)
    check.true("the VM runs", pod.vm.is_undisturbed())
    verify = product.ctl("verify")
    print(verify.stdout, flush=True)
    check.equal("verify's exit status", verify.returncode, 0)
    for line in product.ctl("status", pod.vm.id).stdout.splitlines():
        if "grade" in line or "partition" in line:
            print(f"          status: {line.strip()}")
    check.step("another pod's container is given the same CPUs by mistake: the kernel lets it onto none of them")
    stray = Cgroup("kubepods/podstray/stray")
    stray.set_cpus(OWN)
    check.true(f"it has {stray.effective_cpus()}", not cpus.parse(stray.effective_cpus()) & cpus.parse(OWN))
    stray.remove()
    check.step("the container gives them up, and gets them again")
    pod.update("app", REST)
    expect_none(pod.vm)
    same(before)
    pod.update("app", OWN, exclusive=True)
    expect_partition(pod.vm, OWN)


def kata_writes(pod: VmPod) -> None:
    cgroup = directory(pod.vm)
    check.step("Kata writes a vCPU's id to cgroup.procs, and the sandbox's cpuset")
    for _ in range(3):
        began = time.monotonic()
        check.equal("cgroup.procs", answer(cgroup / "cgroup.procs", str(sorted(owners(pod.vm, OWN))[0])), "ok")
        expect_partition(pod.vm, OWN)
        print(f"          as before after {time.monotonic() - began:.2f} s", flush=True)
    for cpu_list in ("0-7", "0-3"):
        check.equal(f"cpuset.cpus = {cpu_list}", answer(cgroup / "cpuset.cpus", cpu_list), "ok")
        expect_partition(pod.vm, OWN)
    expect_dedicated(pod.vm, OWN)


def others_write(pod: VmPod) -> None:
    cgroup = directory(pod.vm)
    check.step("others undo it: it is made again")
    for file, text in (
        (cgroup / CHILD / "cpuset.cpus.partition", "member"),
        (path_to(cgroup)[0] / "cpuset.cpus.exclusive", "2"),
        (path_to(cgroup)[0] / "cpuset.cpus.exclusive", "\n"),
        (cgroup / "cgroup.subtree_control", "-cpuset"),
    ):
        check.equal(f"{file.relative_to(ROOT)} = {text.strip()}", answer(file, text), "ok")
        expect_partition(pod.vm, OWN)
        expect_dedicated(pod.vm, OWN)
    check.step("one of its CPUs goes offline, then both, and they come back")
    online = [Path(f"/sys/devices/system/cpu/cpu{cpu}/online") for cpu in sorted(cpus.parse(OWN))]
    for gone in (online[1:], online):
        for each in gone:
            answer(each, "0")
        time.sleep(3)
        for each in gone:
            answer(each, "1")
        expect_partition(pod.vm, OWN)
        expect_dedicated(pod.vm, OWN)


def second(vms: Vms, pod: VmPod) -> None:
    check.step(f"a second pod has CPUs {SECOND}: both have a partition; its VMM is killed, and its cgroup can be removed at once")
    for _ in range(3):
        other = VmPod(vms, "second", SPEC, extra_cpus=FLOOR)
        other.update("app", SECOND, exclusive=True)
        expect_partition(other.vm, SECOND, f"{OWN},{SECOND}")
        expect_partition(pod.vm, OWN, f"{OWN},{SECOND}")
        cgroup = directory(other.vm)
        other.vm.process.kill()
        other.vm.process.wait()
        began, removed = time.monotonic(), "EBUSY"
        while removed != "ok" and time.monotonic() - began < 5:
            removed = remove(cgroup)
        seconds = time.monotonic() - began
        check.equal("its cgroup is removed", removed, "ok")
        print(f"          {seconds * 1000:.0f} ms after the VMM's end", flush=True)
        check.true(f"within {AT_ONCE * 1000:.0f} ms", seconds < AT_ONCE)
        cgroup.mkdir()
        other.remove()
        expect_partition(pod.vm, OWN)
        check.equal("exclusive CPUs of the topmost cgroup", read(path_to(cgroup)[0] / "cpuset.cpus.exclusive"), OWN)


def no_room(vms: Vms) -> None:
    check.step("a pod whose cgroup allows its own CPUs alone: no partition, and the reason")
    bare = VmPod(vms, "bare", SPEC)
    bare.update("app", "4-5", exclusive=True)
    check.eventually("it says why", lambda: "other threads of the sandbox" in (told(bare.vm) or ""), True, PATIENCE)
    print(f"          {told(bare.vm)}", flush=True)
    expect_none(bare.vm)
    check.eventually("it is quiet", lambda: product.call("GET", f"/v1/sandboxes/{bare.vm.id}")["grade"], "quiet", PATIENCE)
    check.equal("its threads' CPUs", {cpu for tid in kernel.threads(bare.vm.pid) for cpu in cpus.parse(kernel.allowed(tid))}, {4, 5})
    bare.remove()


def seconds_of_partition(pod: VmPod) -> float:
    """From the container's CPUs to its partition."""
    pod.update("app", REST)
    expect_none(pod.vm)
    began = time.monotonic()
    pod.update("app", OWN, exclusive=True)
    while isolated() != OWN and time.monotonic() - began < PATIENCE:
        time.sleep(0.001)
    return time.monotonic() - began


def killed(pod: VmPod, daemon: Daemon, program: Helper, expect_gone: Callable[[], None], expect_there: Callable[[], None]) -> None:
    """In the middle of it all."""
    victims: tuple[tuple[str, Callable[[], object]], ...] = (
        ("the daemon", lambda: (daemon.kill(), daemon.start())),
        ("the helper", lambda: (program.kill(), program.start())),
        ("both", lambda: (daemon.kill(), program.kill(), program.start(), daemon.start())),
    )
    seconds = seconds_of_partition(pod)
    for after, (name, kill) in itertools.product((share * seconds for share in KILLS), victims):
        check.step(f"{name} killed {after * 1000:.0f} ms after the container's CPUs went, and after they came")
        for own, exclusive in ((REST, False), (OWN, True)):
            pod.update("app", own, exclusive)
            time.sleep(after)
            kill()
            expect_there() if exclusive else expect_gone()


def released(pod: VmPod, before: dict[str, str]) -> None:
    check.step("release: every file is as it was; reconcile: it is made again")
    product.call("POST", "/v1/release")
    same(before)
    product.call("POST", "/v1/reconcile")
    expect_partition(pod.vm, OWN)
    expect_dedicated(pod.vm, OWN)


def policies(vm: Vm) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Scheduling policies and priorities: of the vCPUs in the partition, and of all other threads."""
    apart = inside(vm)
    return of_threads(apart), of_threads(set(kernel.threads(vm.pid)) - apart)


def of_threads(tids: set[int]) -> set[tuple[int, int]]:
    """Their policies and priorities."""
    return {(os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority) for tid in tids}


def latencies() -> dict[int, str]:
    """How long each CPU may take to wake up from an idle state; 0: it does not matter, n/a: no time."""
    return {cpu: read(Path(f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")) for cpu in FULL_POWER}


def expect_policies(vm: Vm, of_vcpus: tuple[int, int]) -> None:
    check.eventually(f"{vm.id}: policies and priorities of vCPUs in the partition, and of all other threads", lambda: policies(vm), ({of_vcpus}, {OTHER}), PATIENCE)


def realtime(pod: VmPod, daemon: Daemon, program: Helper, before: dict[str, str]) -> None:
    check.step("grade = realtime: dedicated vCPUs are real-time threads, and no others; killed, changed by others, and back")
    daemon.configure(**SETTINGS | {"grade": "realtime"})
    expect_policies(pod.vm, FIFO)
    check.eventually("the daemon says so", lambda: product.call("GET", f"/v1/sandboxes/{pod.vm.id}")["grade"], "realtime", PATIENCE)
    check.true("the VM runs", pod.vm.is_undisturbed())
    check.eventually("how long the CPUs may take to wake up", latencies, FULL_POWER, PATIENCE)
    print(product.ctl("verify").stdout, flush=True)
    os.sched_setscheduler(sorted(inside(pod.vm))[0], os.SCHED_OTHER, os.sched_param(0))
    expect_policies(pod.vm, FIFO)
    for kill in (lambda: (daemon.kill(), daemon.start()), lambda: (program.kill(), program.start())):
        kill()
        expect_policies(pod.vm, FIFO)

    def expect_gone() -> None:
        same(before)
        check.eventually("how long CPUs may take to wake up", latencies, dict.fromkeys(FULL_POWER, "0"), PATIENCE)
        check.eventually("policies of its threads", lambda: of_threads(set(kernel.threads(pod.vm.pid))), {OTHER}, PATIENCE)

    def expect_there() -> None:
        expect_partition(pod.vm, OWN)
        expect_policies(pod.vm, FIFO)
        check.eventually("how long the CPUs may take to wake up", latencies, FULL_POWER, PATIENCE)

    killed(pod, daemon, program, expect_gone, expect_there)
    daemon.configure(**SETTINGS)
    expect_policies(pod.vm, OTHER)
    expect_partition(pod.vm, OWN)


def container(program: Helper) -> None:
    check.step("a container without a VM: its own cgroup is the partition, kept, and left as it was")
    name = "d" * 64
    cgroup = Cgroup(f"kubepods/poduid-plain/{name}")
    cgroup.set_cpus(SECOND)
    process = subprocess.Popen(["sleep", "infinity"], preexec_fn=lambda: cgroup.add(os.getpid()))
    place = of_process(process.pid)
    before = files(place)
    state = place / "cpuset.cpus.partition"
    product.put_runc_pod("plain")
    product.put_container("plain", name, SECOND, exclusive=True)
    check.eventually("its partition", lambda: read(state), "root", PATIENCE)
    check.equal("where it may run", kernel.allowed(process.pid), SECOND)
    check.true("PID 1 cannot run there", not cpus.parse(kernel.allowed(1)) & cpus.parse(SECOND))
    print(product.ctl("status").stdout, flush=True)
    check.equal("another program undoes it", answer(state, "member"), "ok")
    check.eventually("its partition", lambda: read(state), "root", PATIENCE)
    program.kill()
    program.start()
    check.equal("its partition after the helper was killed", read(state), "root")
    product.put_container("plain", name, SECOND)
    check.eventually("its partition, without CPUs of its own", lambda: read(state), "member", PATIENCE)
    check.equal("files of its cgroups that differ", {each for each, text in before.items() if read(ROOT / each) != text}, set())
    product.put_container("plain", name, SECOND, exclusive=True)
    check.eventually("its partition", lambda: read(state), "root", PATIENCE)
    process.kill()
    process.wait()
    cgroup.remove()
    product.remove_sandbox("plain")
    check.eventually("exclusive CPUs of kubelet's cgroup", lambda: read(ROOT / "kubepods/cpuset.cpus.exclusive"), OWN, PATIENCE)


def ended_unseen(vms: Vms, pod: VmPod, program: Helper) -> None:
    check.step("the pod ends while the helper is dead: its start gives the CPUs back")
    cgroup = directory(pod.vm)
    program.kill()
    pod.vm.process.kill()
    pod.vm.process.wait()
    check.equal("isolated CPUs", isolated(), OWN)
    program.start()
    check.eventually("isolated CPUs", isolated, "", PATIENCE)
    check.eventually("its cgroup is removed", lambda: remove(cgroup), "ok", PATIENCE)
    cgroup.mkdir()
    pod.remove()


def in_scope(vms: Vms) -> None:
    check.step("under systemd's driver: the sandbox's cgroup is a scope")
    vm = vms.start("scoped", SPEC)
    scope = Scope("kubepods-podscoped.slice", "cri-containerd-scoped.scope", vm.pid)
    scope.set_cpus("0-3")
    product.put_sandbox(vm)
    product.put_container("scoped", "app", OWN, exclusive=True)
    expect_partition(vm, OWN)
    expect_dedicated(vm, OWN)
    os.system("systemctl daemon-reload")
    expect_partition(vm, OWN)
    cgroup = directory(vm)
    vms.stop(vm)
    product.remove_sandbox("scoped")
    check.eventually("the scope is gone", cgroup.exists, False, PATIENCE)
    check.eventually("isolated CPUs", isolated, "", PATIENCE)


def main() -> None:
    Cgroup("kubepods")
    with Helper() as program, Daemon(**SETTINGS) as daemon, Vms() as vms:
        pod = VmPod(vms, "silent", SPEC, extra_cpus=FLOOR)
        pod.update("app", REST)
        before = files(directory(pod.vm))
        come(pod, before)
        kata_writes(pod)
        others_write(pod)
        second(vms, pod)
        no_room(vms)
        released(pod, before)

        def expect_there() -> None:
            expect_partition(pod.vm, OWN)
            expect_dedicated(pod.vm, OWN)

        killed(pod, daemon, program, lambda: same(before), expect_there)
        realtime(pod, daemon, program, before)
        container(program)
        ended_unseen(vms, pod, program)
        in_scope(vms)
        check.eventually("what the helper still holds", lambda: [each.name for each in helper.STATE.glob("*.json")], [], PATIENCE)


main()
