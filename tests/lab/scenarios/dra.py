# SPDX-License-Identifier: Apache-2.0
"""CPUs by ResourceClaims: the real dra-driver-cpu, kubelet without a CPU manager, an API server and containerd 2, which reads the CDI files itself."""
# lab shapes: containerd2
# lab timeout: 1500
# lab alone: yes
# lab peers: dra-driver-cpu kubelet kube-apiserver etcd cni-bridge cni-host-local cni-loopback

import json
import os
import signal
from pathlib import Path

from lab import check, containerd, cpus, kernel, product, witness
from lab.api_server import KUBECONFIG, ApiServer, make_a_node
from lab.claim_pods import ClaimPods, forger, holder
from lab.dra import Cluster, Devices, Driver
from lab.kubelet_service import Kubelet
from lab.manifests import burstable, pod
from lab.product import NRI_SOCKET, Daemon

GATE = "DRAConsumableCapacity"  # a device may have several claims, each on so many of its CPUs
_BUNDLES = Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io")


def spec(name: str) -> dict:
    """What containerd gave the runtime for the container `app` of a pod."""
    of = next(each for each in witness.pods().values() if each.name == name)
    return json.loads((_BUNDLES / of.containers["app"] / "config.json").read_text())


def running() -> set[str]:
    """The pods with a container."""
    return {each.name for each in witness.pods().values() if each.containers}


def entries(name: str) -> dict[str, str]:
    """The claims that the environment of a pod's container names."""
    pairs = [each.partition("=") for each in spec(name)["process"]["env"] if each.startswith("DRA_CPUSET_")]
    return {key.removeprefix("DRA_CPUSET_"): value for key, _, value in pairs}


def refused() -> list[str]:
    """The pods of which `verify` says that they name claims which are not theirs."""
    findings = product.call("POST", "/v1/verify")["findings"]
    return sorted(each["text"].split()[4].removeprefix("lab/") for each in findings if each["reason"] == "claim-refused")


class Day:
    """What happens on the node."""

    def __init__(self, cluster: Cluster, driver: Driver, kubelet: Kubelet, daemon: Daemon) -> None:
        self._cluster, self._driver, self._kubelet, self._daemon = cluster, driver, kubelet, daemon
        self.pods = ClaimPods(cluster)

    def devices(self, cpu_list: str) -> Devices:
        """One device for each CPU."""
        names = self._cluster.cpu_devices()
        return Devices(tuple(names[cpu] for cpu in sorted(cpus.parse(cpu_list))))

    def individual_devices(self) -> str:
        """Devices by their ids, in a VM and in runc. The uid of the VM's claim."""
        check.step("two pods that share, a VM pod with a claim, a runc pod with two")
        self.pods.put(pod("shared", burstable()), pod("shared-vm", burstable(), vm=True))
        self.pods.settle("those that share")
        check.eventually("the driver has published its CPUs", lambda: sorted(self._cluster.cpu_devices()), list(range(8)), seconds=120)
        uid = self._cluster.claim("pair", self.devices("4-5"))
        others = [self._cluster.claim(f"one-{cpu}", self.devices(cpu)) for cpu in ("1", "3")]
        self.pods.put(holder("own-vm", "pair", vm=True))
        self.pods.settle("the VM pod's claim")
        self.pods.put(holder("own", "one-1", "one-3"))
        self.pods.settle("the runc pod's claims")
        check.equal("what containerd put into the VM container's environment", entries("own-vm"), {uid: "4-5"})
        check.equal("and into the other's", entries("own"), dict(zip(others, ("1", "3"), strict=True)))
        check.true("neither has a quota", all(spec(name)["linux"]["resources"]["cpu"].get("quota", -1) <= 0 for name in ("own-vm", "own")))
        print(product.ctl("explain", "--cpu", "4").stdout, flush=True)
        check.equal("what verify refuses", refused(), [])
        return uid

    def restarts(self) -> None:
        """Everyone goes on from what is on disk."""
        check.step("the daemon restarts, then containerd and with it the driver")
        self._daemon.kill()
        self._daemon.start()
        self.pods.settle("after the daemon's restart")
        containerd.restart()
        self._driver.stop()
        self._driver.start()
        self.pods.settle("after containerd's restart")

    def stopped_container(self) -> None:
        """A claim outlives its container."""
        check.step("kubelet stops, a container of a claim is killed: its CPUs stay exclusive")
        self._kubelet.stop()
        [tid] = {each.tid for each in witness.threads(witness.pods()) if each.part == "app" and each.cpus == cpus.parse("1,3")}
        os.kill(tid, signal.SIGKILL)
        check.eventually("it is gone", lambda: Path(f"/proc/{tid}").exists(), False)
        check.equal("exclusive CPUs", product.owned(), "1,3-5")
        self._kubelet.start()
        self.pods.settle("kubelet has started it again")

    def forgeries(self, uid: str) -> None:
        """Whoever writes the entry of another pod's claim shares."""
        check.step("the driver is away; two pods name the VM pod's claim, one with its CPUs and one with more")
        self._driver.stop()
        self.pods.put(forger("shared-copy-vm", uid, "4-5", vm=True), forger("shared-more", uid, "4-7"))
        check.eventually("the forgers are there", lambda: {"shared-copy-vm", "shared-more"} <= running(), True, seconds=240)
        check.equal("their environments", [entries(name) for name in ("shared-copy-vm", "shared-more")], [{uid: "4-5"}, {uid: "4-7"}])
        check.eventually("what verify refuses", refused, ["shared-copy-vm", "shared-more"], seconds=60)
        check.equal("refused claims that are counted", product.metric("kata_affinity_claims_refused"), 2.0)
        check.equal("exclusive CPUs", product.owned(), "1,3-5")
        copy = {id_: each for id_, each in witness.pods().items() if each.name == "shared-copy-vm"}
        allowed = frozenset().union(*(each.cpus for each in witness.threads(copy)))
        check.true("no thread of the forger's VM may use CPUs of claims", not allowed & cpus.parse("1,3-5"))
        self.pods.remove("shared-copy-vm", "shared-more")
        self._driver.start()
        self.pods.settle("they are gone")

    def unprepare(self) -> None:
        """The claim's end."""
        check.step("the VM pod goes: its claim is unprepared")
        self.pods.remove("own-vm")
        self.pods.settle("its CPUs are shared")
        check.equal("exclusive CPUs", product.owned(), "1,3")

    def grouped_devices(self) -> None:
        """Counts of a NUMA node's CPUs, and CPUs that an external allocator chose."""
        check.step("grouped devices: two CPUs of a NUMA node; then CPUs that an external allocator chose")
        self._driver.stop()
        self._driver.start("--cpu-device-mode=grouped", "--group-by=numanode")
        self._cluster.claim("near", Devices(("cpudevnuma001",), count=2))
        self.pods.put(holder("near-vm", "near", vm=True))
        self.pods.settle("the VM pod with two CPUs of the second node")
        self._driver.stop()
        self._driver.start("--cpu-device-mode=grouped", "--group-by=machine")
        free = cpus.show(sorted(cpus.parse("2,4-7") & self._cluster.read().pool)[:2])
        self._cluster.claim("chosen", Devices(("cpudevmachine",), count=2, chosen=free))
        self.pods.put(holder("chosen-vm", "chosen", vm=True))
        self.pods.settle(f"the VM pod with CPUs {free}")
        check.equal("its environment", list(entries("chosen-vm").values()), [free])
        self.pods.remove("near-vm", "chosen-vm", "own", "shared", "shared-vm")
        self.pods.settle("an empty node")
        check.equal("exclusive CPUs", product.owned(), "")


def main() -> None:
    kernel.stop_numa_balancing()
    make_a_node()
    containerd.start("go", "systemd")
    kubelet = Kubelet(f"--kubeconfig={KUBECONFIG}", gates=(GATE,), cgroupDriver="systemd", registerNode=True, cpuManagerPolicy="none")
    with ApiServer(f"--feature-gates={GATE}=true") as api, Daemon(nri_socket=NRI_SOCKET, log_level="debug") as daemon, kubelet:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        with Driver("--cpu-device-mode=individual") as driver:
            day = Day(Cluster(api), driver, kubelet, daemon)
            uid = day.individual_devices()
            day.restarts()
            day.stopped_container()
            day.forgeries(uid)
            day.unprepare()
            day.grouped_devices()
            check.equal("steps after which something did not hold", day.pods.failures, [])


main()
