"""containerd with NRI, driven through the CRI as kubelet does: the daemon follows pods, VM and runc, through restarts on both sides."""
# lab shapes: smt8
# lab timeout: 780

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import check, cpus, kernel, product
from lab.cri import Cri, CriPod, import_image
from lab.kubelet import CpuManager
from lab.product import Daemon

BOUND = 0.2  # seconds from the return of a CRI call
PATIENCE = 15.0
ROUNDS = 10


class Times:
    """How long after a CRI call's return the kernel's masks were right."""

    def __init__(self) -> None:
        self._all: list[float] = []

    def expect(self, what: str, read: Callable[[], object], wanted: object) -> None:
        """Fails unless `read()` becomes `wanted`, and remembers when it did."""
        start = time.monotonic()
        while (found := read()) != wanted and time.monotonic() - start < PATIENCE:
            time.sleep(0.002)
        self._all.append(time.monotonic() - start)
        if found != wanted:
            raise check.Failed(f"{what}: after {PATIENCE} s wanted {wanted}, found {found}")

    def expect_bound(self) -> None:
        """Prints the distribution, and fails unless all of it lies within the bound."""
        times = sorted(each * 1000 for each in self._all)
        marks = {"least": 0.0, "median": 0.5, "90 of 100": 0.9, "most": 1.0}
        text = ", ".join(f"{name} {times[int(share * (len(times) - 1))]:.1f} ms" for name, share in marks.items())
        print(f"          {len(times)} times from a CRI call's return until the masks were right: {text}", flush=True)
        check.true(f"all within {BOUND} s", max(self._all) <= BOUND)


def vcpu_masks(pod: CriPod) -> list[str]:
    """Where the vCPUs of a VM pod may run."""
    return sorted(kernel.allowed(tid) for tid in kernel.threads(pod.pid) if kernel.comm(tid).startswith("CPU "))


def outside(pod: CriPod, cpu_list: str) -> list[str]:
    """Masks of a VM pod's threads that reach beyond `cpu_list`, asked of the kernel without a detour: this is timed."""
    inside = cpus.parse(cpu_list)
    masks = [os.sched_getaffinity(tid) for tid in kernel.threads(pod.pid)]
    return [cpus.show(mask) for mask in masks if not mask <= inside]


def owned() -> str:
    """What the daemon takes for exclusive."""
    return product.call("GET", "/v1/node")["exclusive"]


def is_heard(source: str) -> bool:
    """Whether the daemon says that it hears a source."""
    stands = {each["source"]: each["up"] for each in product.call("GET", "/v1/node")["sources"]}
    return stands[source]


def start_containerd() -> Cri:
    subprocess.run(["systemctl", "start", "containerd"], check=True)
    check.eventually("NRI's socket is there", Path("/run/nri/nri.sock").exists, True)
    import_image("docker.io/lab/sleep:1", {"bin/busybox": Path("/usr/bin/busybox")}, ["/bin/busybox", "sleep", "2147483647"])
    return Cri()


def main() -> None:
    cri, kubelet, times = start_containerd(), CpuManager(), Times()
    with Daemon(log_level="debug") as daemon:
        check.eventually("the daemon hears containerd", lambda: is_heard("nri"), True)
        check.equal("the daemon hears kubelet", is_heard("kubelet"), True)

        check.step("a VM pod that shares, and an exclusive runc pod")
        shared = CriPod(cri, "shared", "vm")
        app = shared.run("app", kubelet.pool())
        times.expect("the shared pod's threads", lambda: outside(shared, "0-7"), [])
        runc = CriPod(cri, "runc")
        kubelet.admit(runc.uid, "app", "4-5")
        times.expect("admitted, before any container is there", lambda: outside(shared, "0-3,6-7"), [])
        runc.run("app", "4-5", quota=200000)
        times.expect("after the container's start", lambda: outside(shared, "0-3,6-7"), [])
        shared.update(app, kubelet.pool())
        check.equal("exclusive CPUs", owned(), "4-5")

        check.step("an exclusive VM pod, with one vCPU more than CPUs")
        vm = CriPod(cri, "exclusive", "vm")
        kubelet.admit(vm.uid, "app", "2-3")
        container = vm.run("app", "2-3", quota=200000)
        times.expect("its vCPUs", lambda: [mask for mask in vcpu_masks(vm) if mask.isdigit()], ["2", "3"])
        times.expect("the shared pod's threads", lambda: outside(shared, "0-1,6-7"), [])

        check.step("a container's CPUs move, again and again")
        for turn in range(ROUNDS):
            mine, pool = ("6-7", "0-3") if turn % 2 == 0 else ("2-3", "0-1,6-7")
            kubelet.admit(vm.uid, "app", mine)
            vm.update(container, mine, quota=200000)
            times.expect("its vCPUs", lambda here=mine: outside(vm, here), [])
            times.expect("the shared pod's threads", lambda here=pool: outside(shared, here), [])
            shared.update(app, kubelet.pool())
            times.expect("the shared pod, updated", lambda here=pool: outside(shared, here), [])

        check.step("the plugin is away while a container moves and a pod ends")
        daemon.stop()
        kubelet.admit(vm.uid, "app", "6-7")
        vm.update(container, "6-7", quota=200000)
        runc.remove()
        kubelet.forget(runc.uid)
        daemon.start()
        check.eventually("exclusive CPUs", owned, "6-7", seconds=5)
        check.eventually("the VM pod's threads outside its CPUs", lambda: outside(vm, "6-7"), [], seconds=5)

        check.step("containerd restarts; what is told afterwards is followed, and pods end whose end nobody tells")
        late = CriPod(cri, "late")
        kubelet.admit(late.uid, "app", "4")
        late.run("app", "4", quota=100000)
        subprocess.run(["systemctl", "restart", "containerd"], check=True)
        check.eventually("the daemon hears containerd", lambda: is_heard("nri"), True)
        kubelet.admit(vm.uid, "app", "2-3")
        vm.update(container, "2-3", quota=200000)
        times.expect("the VM pod's threads", lambda: outside(vm, "2-3"), [])
        vm.remove()
        late.remove()
        kubelet.forget(vm.uid)
        kubelet.forget(late.uid)
        check.eventually("exclusive CPUs", owned, "", seconds=20)
        check.eventually("pods that the daemon knows", lambda: product.metric("kata_affinity_pods"), 1.0)
        check.equal("violations that verify finds", product.violations(), [])
        shared.remove()
        times.expect_bound()


main()
