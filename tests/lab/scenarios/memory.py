# SPDX-License-Identifier: Apache-2.0
"""Memory follows the CPUs to their NUMA node, without stalling the VM; where the node is full, to the next best one."""
# lab shapes: smt8 numa16
# lab timeout: 400
# lab alone: yes
# lab core: no

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from lab import check, kernel, product
from lab.product import Daemon
from lab.vm import Vm, Vms, VmSpec

FILLED_KIB = 40 * 1024
# Seconds between two ticks of the guest that are meant to be 0.2 s apart. The CPUs are emulated, at times on a busy machine: where
# moving takes long, half of that time, which only a VM that runs meanwhile can keep.
LONGEST_STALL = 2.0
NODES = len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))
FAR = NODES - 1


def cpus_of(node: int) -> str:
    return Path(f"/sys/devices/system/node/node{node}/cpulist").read_text().strip()


def share_on(vm: Vm, node: int) -> float:
    memory = kernel.guest_memory(vm.pid)
    return memory.get(node, 0) / sum(memory.values())


def is_on(vm: Vm, node: int) -> bool:
    return share_on(vm, node) >= 0.9


def longest_gap(ticks: list[float]) -> float:
    return max(after - before for before, after in zip(ticks, ticks[1:]))


def ticks(vm: Vm) -> list[float]:
    return [float(tick) for tick in re.findall(r"^tick ([\d.]+)\s*$", vm.console(), re.MULTILINE)]


def move_cpus(vm: Vm, node: int) -> None:
    """What kubelet and Kata do: the container's CPUs are those of another node."""
    vm.cgroup.set_cpus(cpus_of(node))
    product.put_container(vm.id, "app", cpus_of(node), exclusive=True)


def start(vms: Vms, node: int) -> Vm:
    """A VM that wrote 40 MiB while it ran on `node`."""
    # With virtiofs its memory is shared with another process: that moves in another way.
    vm = vms.start("mover", VmSpec(vcpus=2, job="memory", virtiofs=NODES == 2), cpus_of(node))
    vm.wait_for_guest("guest filled")
    product.put_sandbox(vm)
    return vm


def expect_shown(vm: Vm, node: int) -> None:
    """`status` says where the memory is, as the kernel does."""
    memory = product.call("GET", f"/v1/sandboxes/{vm.id}")["memory"]
    check.equal("status: the wanted node", memory["wanted"], str(node))
    check.equal("status: the verdict", memory["verdict"], "in-place")
    shown = {each["node"]: each["bytes"] // 1024 for each in memory["nodes"]}
    check.true("status: as much as the guest wrote is on that node", shown[node] > FILLED_KIB * 0.9)


def follow_only(vms: Vms) -> Vm:
    with Daemon(memory="follow"):
        vm = start(vms, FAR)
        check.true(f"the guest's memory lies on node {FAR}: {kernel.guest_memory(vm.pid)}", is_on(vm, FAR))
        move_cpus(vm, 0)
        check.eventually("follow: the misplaced memory is shown", lambda: verdict(vm), "move")
        time.sleep(1)
        check.true("follow: it stays where it is", is_on(vm, FAR))
    return vm


def verdict(vm: Vm) -> str | None:
    memory = product.call("GET", f"/v1/sandboxes/{vm.id}")["memory"]
    return memory and memory["verdict"]


def migrate(vm: Vm) -> None:
    began, before = time.monotonic(), len(ticks(vm))
    with Daemon(memory="migrate"):
        check.eventually("migrate: 90 % of it are on node 0", lambda: is_on(vm, 0), True, seconds=60)
        took = time.monotonic() - began
        print(f"          {kernel.guest_memory(vm.pid)} after {took:.1f} s")
        check.eventually("status: it is in place", lambda: verdict(vm), "in-place")
        expect_shown(vm, 0)
        told = ticks(vm)
        usual, stall = longest_gap(told[:before]), longest_gap(told[before - 1 :])
        what = f"the VM was not stalled: its ticks were {stall:.2f} s apart at most, {usual:.2f} s before"
        check.true(what, stall < max(LONGEST_STALL, took / 2))
        moved = product.metric("kata_affinity_memory_moved_bytes_total")
        check.true(f"the metric counts what was moved: {moved / 2**20:.0f} MiB", moved / 1024 > FILLED_KIB * 0.9)
        check.true("the VM runs", vm.is_undisturbed())
        check.equal("violations that verify finds", product.violations(), [])


def next_best(vm: Vm) -> None:
    """The CPUs' node is full: memory goes to its neighbour, and not to the node that is far from both."""
    neighbour = FAR - 1
    with filled(FAR), Daemon(memory="migrate"):
        move_cpus(vm, FAR)
        what = f"node {FAR} is full: 90 % are on it or on node {neighbour}"
        check.eventually(what, lambda: share_on(vm, FAR) + share_on(vm, neighbour) >= 0.9, True, seconds=60)
        print(f"          {kernel.guest_memory(vm.pid)}")
        check.true("most is on the neighbour", share_on(vm, neighbour) > 0.5)


@contextlib.contextmanager
def filled(node: int) -> Iterator[None]:
    """Leaves 48 MiB of a node's memory free: the rest is set aside for huge pages."""
    pool = Path(f"/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
    pool.write_text(str((kernel.free_memory_kib(node) - 48 * 1024) // 2048))
    try:
        yield
    finally:
        pool.write_text("0")


def vanish(vm: Vm, vms: Vms) -> None:
    with Daemon(memory="migrate"):
        move_cpus(vm, 1)
        vms.stop(vm)
        check.eventually("a VM that ends while its memory moves is forgotten", lambda: product.call("GET", "/v1/sandboxes")["sandboxes"], [])


def main() -> None:
    # The kernel's own balancing moves what the vCPUs touch, whatever the daemon does.
    Path("/proc/sys/kernel/numa_balancing").write_text("0")
    with Vms() as vms:
        check.step("follow: memory is shown, and stays")
        vm = follow_only(vms)
        check.step("migrate: it follows the CPUs")
        migrate(vm)
        if NODES > 2:
            check.step("the node of the CPUs is full")
            next_best(vm)
        else:
            print("          left out: next best by distance, with two nodes there is none")
        check.step("the VM ends in the middle")
        vanish(vm, vms)


main()
