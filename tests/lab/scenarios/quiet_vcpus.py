# SPDX-License-Identifier: Apache-2.0
"""grade = "quiet" beside a real kubelet and runtime-rs, which makes no more vCPUs than its shim may use CPUs: the host loses a pod's only when the
VM is there."""
# lab shapes: smt8
# lab timeout: 600
# lab peers: kubelet cni-bridge cni-host-local cni-loopback

from lab import check, claims, containerd, cpus, kernel, kubelet_service, product, witness
from lab.helper import Helper
from lab.kubelet_service import Kubelet
from lab.manifests import container, pod
from lab.product import NRI_SOCKET, Daemon
from lab.quiet import PATIENCE

# A shim may use its pod's CPUs and the 2 others of their NUMA node: without the pod's, its VM would get 2 vCPUs.
OWNED, VCPUS = 2, 3
# kubelet limits no pod of exclusive CPUs by time, from which runtime-rs would count them.
SIZE = {"io.katacontainers.config.hypervisor.default_vcpus": str(VCPUS)}
START = 120.0  # seconds: a pod and its VM, in emulation


def sandbox(name: str) -> str:
    """The sandbox of a pod; empty: there is none yet."""
    return next((each.sandbox for each in witness.pods().values() if each.name == name), "")


def grade(name: str) -> str:
    """By the daemon."""
    found = [each["grade"] for each in product.call("GET", "/v1/sandboxes")["sandboxes"] if each["id"] == sandbox(name)]
    return found[0] if found else ""


def vcpus(name: str) -> int:
    """How many the kernel has of a pod's VM."""
    return sum(each.part == "vcpu" and each.pod == sandbox(name) for each in witness.threads(witness.pods()))


def quiet_pod(name: str) -> None:
    check.step(f"a pod that owns {OWNED} CPUs: {name}")
    manifest = pod(name, container(cpu=str(OWNED)), vm=True)
    manifest["metadata"]["annotations"] = {**manifest["metadata"]["annotations"], **SIZE}
    kubelet_service.put(manifest)
    check.eventually("its grade", lambda: grade(name), "quiet", START)
    check.equal("its vCPUs", vcpus(name), VCPUS)


def left_to_the_host() -> int:
    return len(cpus.parse(kernel.allowed(containerd.pid())))


def main() -> None:
    kernel.stop_numa_balancing()
    containerd.start("rust", "systemd")
    with Helper(), Daemon(nri_socket=NRI_SOCKET, grade="quiet", housekeeping="shared-pool"), Kubelet(cgroupDriver="systemd"):
        for source in ("nri", "kubelet"):
            check.eventually(f"the daemon hears {source}", lambda name=source: product.is_heard(name), True)
        quiet_pod("first")
        quiet_pod("second")
        check.eventually("CPUs that are left to containerd", left_to_the_host, len(claims.read().pool), PATIENCE)
        for name in ("first", "second"):
            kubelet_service.remove(name)
        check.eventually("CPUs that are left to containerd", left_to_the_host, len(kernel.online()), START)


main()
