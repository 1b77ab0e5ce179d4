# SPDX-License-Identifier: Apache-2.0
"""Where a VM's memory lies when its container starts, without the product and with it."""

from pathlib import Path
from statistics import mean

from lab import check, claims, containerd, cpus, kata, kernel, kubelet_service, product, witness
from lab.kata import Cell
from lab.kubelet_service import Kubelet
from lab.manifests import container, pod
from lab.product import NRI_SOCKET, Daemon

_ROUNDS = 4
_PODS = ("first", "second")  # kubelet gives each two CPUs of a core, on a node with room: both nodes get one
_START = 240.0  # seconds: a pod and its VM, in emulation
# The guest's kernel and its first programs are all that has run: what they touched before the daemon heard of the VM is the rest.
_LOCAL = 0.9


def run() -> None:
    """Shows the share of local memory of each VM, in both modes, and fails unless most of it is local with the product."""
    kernel.stop_numa_balancing()
    if kata.is_real():
        kata.configure(Cell())
    containerd.start("go", "systemd")
    with Daemon(nri_socket=NRI_SOCKET, mode="observe") as daemon, Kubelet(cgroupDriver="systemd"):
        before = _rounds("observe")
        daemon.configure(nri_socket=NRI_SOCKET, mode="follow")
        after = _rounds("follow")
    _show("observe", before)
    _show("follow", after)
    check.true(f"of each VM {_LOCAL:.0%} of the memory are on its pod's node", min(after) >= _LOCAL)


def _rounds(mode: str) -> list[float]:
    for source in ("nri", "kubelet"):
        check.eventually(f"the daemon hears {source}", lambda name=source: product.is_heard(name), True)
    shares = []
    for number in range(1, _ROUNDS + 1):
        check.step(f"{mode}, round {number}")
        names = [f"{name}-{mode}-{number}" for name in _PODS]
        shares += [_share_of_new(name) for name in names]
        for name in names:
            kubelet_service.remove(name)
        check.eventually("pods", lambda: len(witness.pods()), 0, _START)
    return shares


def _share_of_new(name: str) -> float:
    """A pod comes. The share of its VM's memory on the node of its CPUs, at the moment its container is there."""
    kubelet_service.put(pod(name, container(cpu="2"), vm=True))
    check.eventually(f"{name} has its container", lambda: bool(_containers(name)), True, _START)
    found = next(each for each in witness.pods().values() if each.name == name)
    own = claims.read().of_pod(found.uid)
    memory = kernel.guest_memory(witness.vmm(found.sandbox))
    share = sum(kib for node, kib in memory.items() if own & _cpus_of(node)) / sum(memory.values())
    print(f"          {name}: CPUs {cpus.show(own)}, KiB by node {memory}: {share:.0%} local", flush=True)
    return share


def _containers(name: str) -> dict[str, str]:
    return next((each.containers for each in witness.pods().values() if each.name == name), {})


def _cpus_of(node: int) -> frozenset[int]:
    return cpus.parse(Path(f"/sys/devices/system/node/node{node}/cpulist").read_text())


def _show(mode: str, shares: list[float]) -> None:
    check.step(f"local memory with mode = {mode!r}: mean {mean(shares):.0%}, least {min(shares):.0%}, {len(shares)} VMs")
