# SPDX-License-Identifier: Apache-2.0
"""What a node of a real kubelet goes through, step by step. After each the node must be as it should."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import check, claims, containerd, evictions, intruders, kata, kernel, kubelet_service, product, selftest, witness
from lab.evictions import Evictions
from lab.intruders import Intruders
from lab.kata import Cell
from lab.kubelet_service import Kubelet
from lab.manifests import burstable, container, ending, pod, sidecar
from lab.product import NRI_SOCKET, Daemon
from lab.static_pods import StaticPods

_MIDDLE = 6.0  # seconds after a step's begin: kubelet looks for changed manifests every 5 s
_KILLS = ((0.0, 8.0), (12.0, 24.0), (30.0, 60.0))  # between which seconds of a step the daemon is killed
_AWAY = 3.0
# Seconds that a thread of a sandbox may run on CPUs that kubelet gave to another pod.
_BOUNDS = {
    # The daemon may be away, and the node is emulated. Without a daemon kubelet and Kata take up to 10 s: a longer bound would prove nothing.
    intruders.STAYING: 2 * _AWAY,
    # The kernel makes them with all CPUs and without a notification: a VM that starts is looked at with growing pauses.
    intruders.STARTING: 20,
    # Kata's cgroup allows the thread nothing else until kubelet updates its container, every 10 s: containerd and Kata come after.
    intruders.HELD: 20,
    # kubelet gives a pod's CPUs away before it has ended the pod, and may be restarted in between.
    intruders.GOING: 30,
}


@dataclass
class Node:
    """All that a step acts on."""

    pods: StaticPods
    kubelet: Kubelet
    daemon: Daemon
    sandboxes: Path  # Kata's folders


def come(node: Node) -> None:
    """burstable and Guaranteed pods of both kinds come"""
    node.pods.put(pod("shared", burstable()), pod("shared-vm", burstable(), vm=True))
    node.pods.settle("two pods that share")
    node.pods.put(pod("own", container(cpu="2")), pod("own-vm", container(cpu="2"), vm=True))
    node.pods.settle("and two that own CPUs")


def two_containers(node: Node) -> None:
    """a pod with two containers that own a CPU each; another one goes"""
    node.pods.put(pod("two-vm", container("first", cpu="1"), container("second", cpu="1"), vm=True))
    node.pods.settle("two containers")
    node.pods.remove("own")
    node.pods.settle("one pod less")


def init_container(node: Node) -> None:
    """an init container hands its CPUs on"""
    init = ending(container("init", cpu="2"), seconds=5)
    node.pods.put(pod("init-vm", container(cpu="2"), init=(init,), vm=True))
    node.pods.settle("after the init container")
    node.pods.remove("two-vm")
    node.pods.settle("one pod less")


def sidecars(node: Node) -> None:
    """a sidecar: an init container that stays, with a CPU of its own"""
    node.pods.put(pod("side-vm", container(cpu="1"), init=(sidecar(container("side", cpu="1")),), vm=True))
    node.pods.settle("the sidecar and its container")
    node.pods.remove("init-vm")
    node.pods.settle("one pod less")


def crashing(seconds: int) -> Callable[[Node], None]:
    """The step in which a container crashes again and again, each time after `seconds`."""

    def do(node: Node) -> None:
        node.pods.put(pod("crash-vm", ending(container(cpu="1"), seconds=seconds, status=1), vm=True))
        lives = set()

        def count() -> bool:
            lives.update(each.containers.get("app", "") for each in witness.pods().values() if each.name == "crash-vm")
            return len(lives - {""}) >= 3

        check.eventually("it was started three times", count, True, seconds=240)
        node.pods.settle("while it crashes")
        node.pods.remove("crash-vm")
        node.pods.settle("without it")

    do.__doc__ = f"a container crashes again and again, each time after {seconds} s"
    return do


crash_loop = crashing(3)


def deleted_at_birth(node: Node) -> None:
    """a pod is deleted while its VM starts"""
    before = set(node.sandboxes.iterdir())
    node.pods.put(pod("brief-vm", container(cpu="1"), vm=True))
    check.eventually("its shim has begun", lambda: bool(set(node.sandboxes.iterdir()) - before), True, seconds=120)
    node.pods.remove("brief-vm")
    node.pods.settle("nothing is left of it")


def changed_in_place(node: Node) -> None:
    """a manifest is changed in place: one CPU more"""
    node.pods.put(pod("own-vm", container(cpu="3"), vm=True))
    node.pods.settle("the pod with 3 CPUs")


def kubelet_restarts(node: Node) -> None:
    """kubelet is restarted, with and without its state"""
    node.kubelet.stop()
    node.kubelet.start()
    node.pods.settle("with its state")
    node.kubelet.stop()
    node.kubelet.forget()
    node.kubelet.start()
    node.pods.settle("without its state")


def containerd_restarts(node: Node) -> None:
    """containerd is restarted; then a pod comes"""
    containerd.restart()
    node.pods.put(pod("late-vm", container(cpu="1"), vm=True))
    node.pods.settle("with the new pod")


def daemon_restarts(node: Node) -> None:
    """the daemon is killed while a VM starts and another pod goes, and is started again"""
    node.pods.remove(node.pods.names()[0])
    before = set(node.sandboxes.iterdir())
    node.pods.put(pod("other-vm", container(cpu="1"), vm=True))
    check.eventually("its shim has begun", lambda: bool(set(node.sandboxes.iterdir()) - before), True, seconds=120)
    node.daemon.kill()
    time.sleep(3)
    node.daemon.start()
    node.pods.settle("after the restart")


def full(node: Node) -> None:
    """the node is full: the shared pool is one CPU, and a pod that asks for more is refused"""
    node.pods.put(pod("rest", container(cpu=str(len(claims.read().pool) - 1))))
    node.pods.settle("a shared pool of one CPU")
    kubelet_service.put(pod("refused-vm", container(cpu="1"), vm=True))
    time.sleep(10)
    node.pods.settle("nothing of the pod that was refused")
    kubelet_service.remove("refused-vm")


def go(node: Node) -> None:
    """all of them go"""
    *first, last = node.pods.names()
    node.pods.remove(*first)
    node.pods.settle("one pod is left")
    node.pods.remove(last)
    node.pods.settle("an empty node")


def self_test(node: Node) -> None:
    """the self-test, which is then killed in the middle and run again"""
    report = selftest.run("--demo")
    selftest.expect_success(report)
    selftest.expect_demonstration(report, halts=not kata.is_real())
    if kata.is_real():
        selftest.expect_guest(report)
    node.pods.settle("nothing is left of it")
    selftest.kill_in_the_middle()
    report = selftest.run()
    selftest.expect_success(report)
    check.equal("its first step", report["steps"][0]["step"], "pods of an interrupted self-test end")
    node.pods.settle("nothing is left of either")


Step = Callable[[Node], None]

ALL: tuple[Step, ...] = (
    come,
    two_containers,
    init_container,
    sidecars,
    crash_loop,
    deleted_at_birth,
    changed_in_place,
    kubelet_restarts,
    containerd_restarts,
    daemon_restarts,
    full,
    go,
    self_test,
)
MAIN: tuple[Step, ...] = (come, two_containers, init_container, kubelet_restarts, daemon_restarts, full, go, self_test)
SHORT: tuple[Step, ...] = (come, two_containers, changed_in_place, daemon_restarts, go)
# What the two lists above leave out, and what it needs before it; a VM takes a minute to start again.
REST: tuple[Step, ...] = (come, two_containers, init_container, sidecars, crashing(60), deleted_at_birth, containerd_restarts, go)
LISTS = {"all": ALL, "main": MAIN, "short": SHORT, "rest": REST, "self-test": (self_test,)}


def killed_within(step: Step, instants: Sequence[float] = (_MIDDLE,)) -> Step:
    """The step, with the daemon killed and started again at `instants`, seconds after its begin, as far as it lasts, and once more after it."""
    shown = ", ".join(f"{instant:.1f}" for instant in instants)

    def do(node: Node) -> None:
        over = threading.Event()
        killing = threading.Thread(target=_kill_at, args=(node.daemon, instants, over))
        killing.start()
        try:
            step(node)
        finally:
            over.set()
            killing.join()
        _kill(node.daemon)
        node.pods.settle("with the daemon that was started again")

    do.__doc__ = f"{step.__doc__}, and the daemon is killed after {shown} s and at the end"
    return do


def kill_times(chance: random.Random) -> list[float]:
    """When to kill the daemon within a step: soon, in its middle, and late, if it is a long one."""
    return [chance.uniform(first, last) for first, last in _KILLS]


def _kill_at(daemon: Daemon, instants: Sequence[float], over: threading.Event) -> None:
    began = time.monotonic()
    for instant in instants:
        if over.wait(max(0.0, began + instant - time.monotonic())):
            return
        _kill(daemon)


def _kill(daemon: Daemon) -> None:
    daemon.kill()
    time.sleep(_AWAY)
    daemon.start()


def run(steps: Iterable[Step], cell: Cell | None = None) -> None:
    """Does `steps` on a node that is set up as `cell`, and shows how soon threads left CPUs that kubelet gave away."""
    cell = cell or Cell()
    kernel.stop_numa_balancing()
    if kata.is_real():
        check.step(f"the real Kata: {cell}")
        kata.configure(cell)
    containerd.start(cell.runtime, cell.driver, cell.proxy, cell.wants_nri)
    socket = NRI_SOCKET if containerd.has_nri() else ""
    proxied = {"real_shim": str(kata.shim(cell.runtime))} if cell.proxy else {}
    settings = {"nri_socket": socket, "log_level": "debug", **proxied, **cell.affinity}
    with Daemon(**settings) as daemon, Kubelet(cgroupDriver=cell.driver, **cell.kubelet) as kubelet:
        for source in ("nri", "kubelet") if socket else ("kubelet",):
            check.eventually(f"the daemon hears {source}", lambda name=source: product.is_heard(name), True)
        static_pods = StaticPods(housekeeping=cell.affinity.get("housekeeping", "shared-pool"))
        go_through(steps, Node(static_pods, kubelet, daemon, kata.SANDBOXES[cell.runtime]))


def go_through(steps: Iterable[Step], node: Node) -> None:
    """Does `steps` on a node that is set up, and shows and judges how soon threads left CPUs that kubelet gave away."""
    watch, scheduler = Evictions(), Intruders()
    count = 0
    for count, do in enumerate(steps, start=1):
        check.step(f"{do.__doc__} ({kernel.free_memory_mib()} MiB free)")
        do(node)
    check.step(f"{count} steps, {node.pods.looks} looks at every thread, {len(node.pods.failures)} steps after which something did not hold")
    check.step("how soon threads left CPUs that kubelet gave away, by a watcher of its file and of the kernel's masks")
    evictions.show(watch.stop())
    check.step("who ran on CPUs of other pods, by the kernel's scheduler")
    seen = scheduler.stop()
    intruders.show(seen)
    check.equal("trace events that the kernel lost", seen.lost, 0)
    check.true("switches were seen", seen.switches > 0)
    for kind, bound in _BOUNDS.items():
        check.true(f"none of {kind} ran there for longer than {bound:.0f} s", seen.longest(kind) <= 1000 * bound)
    product.show_times()
    check.equal("steps after which something did not hold", node.pods.failures, [])
