# SPDX-License-Identifier: Apache-2.0
"""Pods of a stand-in for Kata, as both of its runtimes, beside runc pods: containerd by the CRI, restarts on both sides, vCPUs plugged in, containers
that are told where they run."""
# lab shapes: smt8
# lab timeout: 600
# lab alone: yes

import json
from pathlib import Path

from lab import check, kernel, product
from lab.cri import CriPod, restart_containerd, start_containerd
from lab.kubelet import CpuManager
from lab.product import NRI_SOCKET, Daemon
from lab.within import Times, outside, own_cpus

ROUNDS = 6
TASKS = Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io")
FILES = Path("/run/kata-affinity/containers")
TELL = {"kata-affinity.io/environment": "true"}


def told(container: str) -> tuple[list[str], list[str]]:
    """What containerd was given for a container to read where it runs: folders of the host, and variables."""
    spec = json.loads((TASKS / container / "config.json").read_text())
    folders = [mount["source"] for mount in spec["mounts"] if mount["destination"] == "/run/kata-affinity"]
    return folders, [text for text in spec["process"]["env"] if text.startswith("KATA_AFFINITY_HOST")]


def main() -> None:
    cri, kubelet, times = start_containerd(), CpuManager(), Times()
    with Daemon(nri_socket=NRI_SOCKET, log_level="debug", allow_annotations=["environment"]) as daemon:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)

        check.step("a pod of the Go runtime that shares; a runc pod and one of runtime-rs that own CPUs")
        go = CriPod(cri, "go", "kata-go", annotations=TELL)
        shared = go.run("app", kubelet.pool(), quota=50000)
        times.expect("the shared pod's threads", lambda: outside(go, "0-7"), [])
        runc = CriPod(cri, "runc", annotations=TELL)
        kubelet.admit(runc.uid, "app", "4-5")
        check.eventually("admitted, before any container is there", lambda: outside(go, "0-3,6-7"), [])
        check.equal("what a runc container is told", told(runc.run("app", "4-5", quota=200000)), ([], []))
        rust = CriPod(cri, "rust", "kata", cpus=2)
        check.equal("vCPUs of the pod of runtime-rs", sorted(kernel.kvm_vcpus(rust.pid)), [0, 1, 2])
        kubelet.admit(rust.uid, "app", "2-3")
        owner = rust.run("app", "2-3", quota=200000)
        times.expect("vCPUs with a CPU of their own", lambda: own_cpus(rust), ["2", "3"])
        times.expect("the shared pod's threads", lambda: outside(go, "0-1,6-7"), [])
        go.update(shared, kubelet.pool(), quota=50000)

        check.step("containers' CPUs change, again and again, of both runtimes and of runc")
        for turn in range(ROUNDS):
            mine, pool = ("6-7", "0-3") if turn % 2 == 0 else ("2-3", "0-1,6-7")
            kubelet.admit(rust.uid, "app", mine)
            rust.update(owner, mine, quota=200000)
            times.expect("the owner's threads", lambda here=mine: outside(rust, here), [])
            times.expect("the shared pod's threads", lambda here=pool: outside(go, here), [])
            go.update(shared, kubelet.pool(), quota=50000)
            times.expect("the shared pod, updated", lambda here=pool: outside(go, here), [])

        check.step("a container joins the pod of the Go runtime, which plugs vCPUs in from the highest down")
        kubelet.admit(go.uid, "second", "0-1")
        second = go.run("second", "0-1", quota=200000)
        times.expect("vCPUs with a CPU of their own", lambda: own_cpus(go), ["0", "1"])
        check.equal("its vCPUs", sorted(kernel.kvm_vcpus(go.pid)), [0, 5, 6, 7])
        folder = FILES / go.id / second
        check.equal("what it is told", told(second), ([str(folder)], ["KATA_AFFINITY_HOST_CPUS=0-1", "KATA_AFFINITY_HOST_NODES=0"]))
        check.equal("its files", sorted(each.name for each in folder.iterdir()), ["cpus.json", "environment"])
        go.stop(second)
        go.remove_container(second)
        check.eventually("its folder is there", folder.exists, False)
        kubelet.forget(go.uid)
        times.expect("the pod is a shared one again", lambda: own_cpus(go), [])

        check.step("the daemon restarts while a container moves")
        daemon.stop()
        kubelet.admit(rust.uid, "app", "6-7")
        rust.update(owner, "6-7", quota=200000)
        daemon.start()
        check.eventually("vCPUs with a CPU of their own", lambda: own_cpus(rust), ["6", "7"], seconds=5)
        check.eventually("the shared pod's threads", lambda: outside(go, "0-3"), [], seconds=5)

        check.step("containerd restarts, and finds the pods again")
        restart_containerd(cri)
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        kubelet.admit(rust.uid, "app", "2-3")
        rust.update(owner, "2-3", quota=200000)
        times.expect("vCPUs with a CPU of their own", lambda: own_cpus(rust), ["2", "3"])
        go.update(shared, kubelet.pool(), quota=50000)
        times.expect("the shared pod, updated", lambda: outside(go, "0-1,6-7"), [])

        check.equal("violations that verify finds", product.violations(), [])
        for pod in (go, rust, runc):
            pod.remove()
        kubelet.forget(rust.uid)
        kubelet.forget(runc.uid)
        check.eventually("pods that the daemon knows", lambda: product.metric("kata_affinity_pods"), 0.0)
        check.equal("folders of containers", list(FILES.iterdir()), [])
        times.expect_bound()


main()
