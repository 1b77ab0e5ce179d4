# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with an API server: pods come through it, and burstable ones get another CPU limit while they run."""
# lab shapes: smt8
# lab timeout: 1200
# lab alone: yes
# lab peers: kubelet kube-apiserver etcd cni-bridge cni-host-local cni-loopback

from pathlib import Path

from lab import check, containerd, kernel, product, witness
from lab.api_server import KUBECONFIG, ApiServer, make_a_node
from lab.kubelet_service import Kubelet
from lab.manifests import burstable, container, pod
from lab.product import NRI_SOCKET, Daemon
from lab.static_pods import StaticPods

LIMIT = "1500m"


def threads(name: str, part: str) -> list[witness.Thread]:
    """The threads of one part of the pod `name`."""
    pods = {id_: each for id_, each in witness.pods().items() if each.name == name}
    return [each for each in witness.threads(pods) if each.part == part]


def quota(name: str) -> str:
    """What the kernel holds the container of a runc pod to."""
    tid = threads(name, "app")[0].tid
    path = Path(f"/proc/{tid}/cgroup").read_text().strip().rpartition("::")[2]
    return Path(f"/sys/fs/cgroup{path}/cpu.max").read_text().strip()


def resize(pods: StaticPods, api: ApiServer) -> None:
    """Two that share get more, of either kind; what a pod beside them owns stays its own."""
    check.step("a pod of runc and a VM pod that share, and one that owns CPUs")
    pods.put(pod("shared", burstable()), pod("shared-vm", burstable(), vm=True), pod("own-vm", container(cpu="2"), vm=True))
    pods.settle("they are there")
    check.equal("the VM's vCPUs", len(threads("shared-vm", "vcpu")), 2)
    check.step(f"both that share may use {LIMIT} now")
    for name in ("shared", "shared-vm"):
        api.resize(name, LIMIT)
    check.eventually("the runc pod's quota", lambda: quota("shared"), "150000 100000", seconds=120)
    check.eventually("the VM's vCPUs", lambda: len(threads("shared-vm", "vcpu")), 3, seconds=120)
    pods.settle("with the new limits")
    check.step("a pod comes that owns one CPU, then all go")
    pods.put(pod("late-vm", container(cpu="1"), vm=True))
    pods.settle("with the new pod")
    pods.remove("late-vm", "own-vm", "shared-vm", "shared")
    pods.settle("an empty node")


def main() -> None:
    kernel.stop_numa_balancing()
    make_a_node()
    containerd.start("go", "systemd")
    kubelet = Kubelet(f"--kubeconfig={KUBECONFIG}", cgroupDriver="systemd", registerNode=True)
    with ApiServer() as api, Daemon(nri_socket=NRI_SOCKET, log_level="debug"), kubelet:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        pods = StaticPods(api)
        resize(pods, api)
        check.equal("steps after which something did not hold", pods.failures, [])


main()
