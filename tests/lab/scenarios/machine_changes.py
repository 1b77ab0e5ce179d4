# SPDX-License-Identifier: Apache-2.0
"""The clock jumps, a dedicated vCPU's CPU goes offline and comes back, SMT is switched off and on: masks by the kernel, and what verify and status say of it."""
# lab shapes: smt8
# lab timeout: 600
# lab core: yes

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lab import check, cpus, kernel, product
from lab.expect import expect_dedicated, expect_floating, expect_housekeeping, expect_inside
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

TIGHT, ROOMY, POOL = "2-3", "6-7", "0-1,4-5"
SYSTEM = Path("/sys/devices/system/cpu")
HOUR = 3600
PIN = 10  # seconds
DRIFT_CHECK = 2  # seconds: the daemon sees then which CPUs are online
# The kernel gives a thread whose last CPU goes offline all that its cgroup has. The daemon mends that at its next check; the node is emulated.
BOUND = DRIFT_CHECK + 8


@dataclass
class Node:
    """Its daemon and its pods: the cgroup of `tight` holds no CPU of another pod, that of `roomy` all CPUs."""

    daemon: Daemon
    tight: VmPod
    roomy: VmPod
    shared: VmPod

    def pods(self) -> dict[VmPod, frozenset[int]]:
        """With the CPUs that belong to others."""
        return {self.tight: cpus.parse(ROOMY), self.roomy: cpus.parse(TIGHT), self.shared: cpus.parse(f"{TIGHT},{ROOMY}")}


class Astray:
    """Looks all the time for threads that may run on CPUs of others, and how long they may."""

    def __init__(self, node: Node) -> None:
        self._threads = {tid: (pod.vm.id, others) for pod, others in node.pods().items() for tid in pod.vm.all_tids()}
        self._since: dict[int, float] = {}
        self._stopped = threading.Event()
        self.looks, self.longest = 0, dict.fromkeys((pod.vm.id for pod in node.pods()), 0.0)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped.wait(0.02):
            for tid, (pod, others) in self._threads.items():
                self._look(tid, pod, others)
            self.looks += 1

    def _look(self, tid: int, pod: str, others: frozenset[int]) -> None:
        try:
            is_astray = bool(os.sched_getaffinity(tid) & others)
        except ProcessLookupError:
            is_astray = False
        now = time.monotonic()
        if is_astray:
            self.longest[pod] = max(self.longest[pod], now - self._since.setdefault(tid, now))
        else:
            self._since.pop(tid, None)

    def stop(self) -> None:
        """Ends it, and fails where a thread might run there for longer than it may."""
        self._stopped.set()
        self._thread.join()
        print(f"          {self.looks} looks at {len(self._threads)} threads; longest on CPUs of others: {self.longest}", flush=True)
        check.equal("pods whose cgroup keeps them off these", {pod for pod, longest in self.longest.items() if longest and pod != "roomy"}, set())
        check.true(f"the other one is back within {BOUND} s", self.longest["roomy"] <= BOUND)


def verdict() -> str:
    """The first word of verify."""
    return product.call("POST", "/v1/verify")["verdict"]


def expect_not_ok() -> None:
    """Also before the daemon has seen which CPUs are online."""
    now = verdict()
    check.true(f"verdict at once: {now}", now != "ok")


def missing() -> dict[str, str]:
    """The CPUs that containers lack, by sandbox, as verify has it."""
    findings = product.call("POST", "/v1/verify")["findings"]
    return {each["sandbox"]: each["actual"] for each in findings if each.get("reason") == "cpus-unusable"}


def expect_known() -> None:
    """Nothing of what the pods own is forgotten."""
    told = {each["id"]: [one["cpus"] for one in each["containers"]] for each in product.call("GET", "/v1/sandboxes")["sandboxes"]}
    check.equal("containers' CPUs that the daemon knows", told, {"tight": [TIGHT], "roomy": [ROOMY], "shared": [POOL]})
    check.equal("CPUs that are exclusive", product.owned(), f"{TIGHT},{ROOMY}")


def expect_planned(node: Node) -> None:
    """All is as it was before anything happened."""
    for pod, own in ((node.tight, TIGHT), (node.roomy, ROOMY)):
        expect_dedicated(pod.vm, own)
        expect_floating(pod.vm, POOL, count=1)
        expect_housekeeping(pod.vm, POOL)
    expect_inside(node.shared.vm, POOL)
    check.eventually("verdict", verdict, "ok")
    expect_known()
    check.true("all VMs run", all(pod.vm.is_undisturbed() for pod in node.pods()))


def expect_reduced(pod: VmPod, own: str, pool: str) -> None:
    """One of its CPUs is away: the container's vCPUs share the other, and the third floats in the shared pool."""
    check.eventually(f"{pod.vm.id}: vCPUs' CPUs", lambda: sorted(pod.vm.vcpu_cpus().values()), sorted([own, own, pool]))
    expect_housekeeping(pod.vm, pool)


def clock_jumps(node: Node, seconds: int) -> None:
    """Threads stay where they are, and what follows is done as soon as ever."""
    check.step(f"the clock jumps by {seconds} s")
    pinned = product.ctl("emulatorpin", "tight", "4", "--for", f"{PIN}s")
    check.equal(f"a pin for {PIN} s", (pinned.returncode, pinned.stderr), (0, ""))
    began = time.monotonic()
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)
    check.equal("the emulator's CPUs", {kernel.allowed(tid) for tid in node.tight.vm.other_tids()}, {"4"})
    node.roomy.update("app", "6", exclusive=True)
    expect_dedicated(node.roomy.vm, "6")
    node.roomy.update("app", ROOMY, exclusive=True)
    expect_dedicated(node.roomy.vm, ROOMY)
    node.daemon.kill()
    node.daemon.start()
    lasted = time.monotonic() - began
    check.true("the pin holds, also with the next daemon", lasted > PIN or bool(product.call("GET", "/v1/sandboxes/tight")["overrides"]))
    check.eventually("the emulator's CPUs after the pin", lambda: {kernel.allowed(tid) for tid in node.tight.vm.other_tids()}, {POOL}, seconds=40)
    expect_planned(node)


def switch(file: str, text: str) -> None:
    """Changes which CPUs are online."""
    (SYSTEM / file).write_text(text)


def cpu_goes(node: Node, pod: VmPod, cpu: int, left: str) -> None:
    """`cpu` is a dedicated vCPU's; `left` is what its container has then."""
    name = pod.vm.id
    check.step(f"CPU {cpu} of {name} goes offline")
    switch(f"cpu{cpu}/online", "0")
    expect_not_ok()
    expect_reduced(pod, left, POOL)
    check.eventually("CPUs that verify misses", missing, {name: str(cpu)})
    check.equal("verdict", verdict(), "degraded")
    expect_known()

    check.step("meanwhile its cpuset is told again, and the daemon is killed and started again")
    pod.update("app", TIGHT if pod is node.tight else ROOMY, exclusive=True)
    node.daemon.kill()
    node.daemon.start()
    expect_reduced(pod, left, POOL)
    check.eventually("CPUs that verify misses", missing, {name: str(cpu)})
    expect_known()

    check.step(f"CPU {cpu} comes back")
    switch(f"cpu{cpu}/online", "1")
    expect_planned(node)


def smt_goes(node: Node) -> None:
    """The second thread of each core vanishes, of dedicated vCPUs and of the shared pool alike."""
    check.step("SMT is switched off")
    switch("smt/control", "off")
    check.equal("CPUs online", cpus.show(kernel.online()), "0,2,4,6")
    expect_not_ok()
    expect_reduced(node.tight, "2", "0,4")
    expect_reduced(node.roomy, "6", "0,4")
    expect_inside(node.shared.vm, "0,4")
    check.eventually("CPUs that verify misses", missing, {"tight": "3", "roomy": "7"})
    check.equal("verdict", verdict(), "degraded")
    expect_known()
    check.step("SMT is switched on")
    switch("smt/control", "on")
    expect_planned(node)


def main() -> None:
    with Daemon(housekeeping="shared-pool", guest="none", drift_check=DRIFT_CHECK) as daemon, Vms() as vms:
        check.step("three pods: two own CPUs, one shares the others")
        tight = VmPod(vms, "tight", VmSpec(vcpus=3), extra_cpus=POOL)
        roomy = VmPod(vms, "roomy", VmSpec(vcpus=3), extra_cpus="0-7")
        shared = VmPod(vms, "shared", VmSpec(vcpus=2))
        node = Node(daemon, tight, roomy, shared)
        tight.update("app", TIGHT, exclusive=True)
        roomy.update("app", ROOMY, exclusive=True)
        shared.update("app", POOL)
        expect_planned(node)
        astray, pid = Astray(node), daemon.pid
        clock_jumps(node, HOUR)
        clock_jumps(node, -HOUR)
        cpu_goes(node, tight, 3, "2")
        cpu_goes(node, roomy, 6, "7")
        smt_goes(node)
        astray.stop()


main()
