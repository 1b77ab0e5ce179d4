# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with an API server: pods come through it, and burstable ones get another CPU limit while they run and the daemon is killed."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes
# lab peers: kubelet kube-apiserver etcd cni-bridge cni-host-local cni-loopback

from pathlib import Path

from lab import check, containerd, kata, kernel, product, witness
from lab.api_server import KUBECONFIG, ApiServer, make_a_node
from lab.kubelet_service import Kubelet
from lab.kubelet_steps import Node, go_through, killed_within
from lab.manifests import burstable, container, pod
from lab.product import NRI_SOCKET, Daemon
from lab.static_pods import StaticPods

LIMIT, LOWER = "1500m", "800m"


def threads(name: str, part: str) -> list[witness.Thread]:
    """The threads of one part of the pod `name`."""
    pods = {id_: each for id_, each in witness.pods().items() if each.name == name}
    return [each for each in witness.threads(pods) if each.part == part]


def quota(name: str) -> str:
    """What the kernel holds the container of a runc pod to."""
    tid = threads(name, "app")[0].tid
    path = Path(f"/proc/{tid}/cgroup").read_text().strip().rpartition("::")[2]
    return Path(f"/sys/fs/cgroup{path}/cpu.max").read_text().strip()


def resize(api: ApiServer, limit: str, wanted: str) -> None:
    """Both that share may use `limit` now."""
    for name in ("shared", "shared-vm"):
        api.resize(name, limit)
    check.eventually("the runc pod's quota", lambda: quota("shared"), wanted, seconds=120)


def come(node: Node) -> None:
    """a pod of runc and a VM pod that share, and one that owns CPUs"""
    node.pods.put(pod("shared", burstable()), pod("shared-vm", burstable(), vm=True), pod("own-vm", container(cpu="2"), vm=True))
    node.pods.settle("they are there")
    check.equal("the VM's vCPUs", len(threads("shared-vm", "vcpu")), 2)


def grow(node: Node, api: ApiServer) -> None:
    """both that share may use more"""
    resize(api, LIMIT, "150000 100000")
    check.eventually("the VM's vCPUs", lambda: len(threads("shared-vm", "vcpu")), 3, seconds=120)
    node.pods.settle("with the new limits")


def shrink(node: Node, api: ApiServer) -> None:
    """both that share may use less again, and a pod comes that owns one CPU"""
    node.pods.put(pod("late-vm", container(cpu="1"), vm=True))
    resize(api, LOWER, "80000 100000")
    node.pods.settle("with the new pod")


def go(node: Node) -> None:
    """all of them go"""
    node.pods.remove("late-vm", "own-vm", "shared-vm", "shared")
    node.pods.settle("an empty node")


def with_api(step: object, api: ApiServer) -> object:
    """The step with the API server for its second argument."""

    def do(node: Node) -> None:
        step(node, api)

    do.__doc__ = step.__doc__
    return do


def main() -> None:
    kernel.stop_numa_balancing()
    make_a_node()
    containerd.start("go", "systemd")
    kubelet = Kubelet(f"--kubeconfig={KUBECONFIG}", cgroupDriver="systemd", registerNode=True)
    with ApiServer() as api, Daemon(nri_socket=NRI_SOCKET, log_level="debug") as daemon, kubelet:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        steps = (come, killed_within(with_api(grow, api)), killed_within(with_api(shrink, api)), go)
        go_through(steps, Node(StaticPods(api), kubelet, daemon, kata.SANDBOXES["go"]))


main()
