# SPDX-License-Identifier: Apache-2.0
"""Without NRI: a stand-in for Kata's runtimes is followed by its folders and cgroups alone, then through the shim proxy."""
# lab shapes: smt8
# lab timeout: 600
# lab alone: yes


from lab import check, kernel, product
from lab.births import Births
from lab.cri import Cri, CriPod, restart_containerd, start_containerd
from lab.kubelet import CpuManager
from lab.product import Daemon
from lab.within import Times, outside, own_cpus

REAL_SHIM = "/lab/kata/runtime-rs/bin/containerd-shim-kata-v2"
NO_QUOTA = -1  # of containers that own CPUs, since kubelet 1.33
SOMEBODY = "0a1b2c3d-0000-4000-8000-000000000001"


def extent(name: str) -> str:
    """How far a source says that it sees, up to its first comma or colon."""
    return product.source(name)["text"].partition(":")[0]


def containers_of(pod: CriPod) -> list[str]:
    """The containers of a pod that the daemon knows."""
    return sorted(each["id"] for each in product.call("GET", f"/v1/sandboxes/{pod.id}")["containers"])


def shims() -> list[str]:
    """Shims of Kata's and of ours that run."""
    return sorted(name for name in map(_program, kernel.processes()) if name.startswith("containerd-shim-kata"))


def _program(pid: int) -> str:
    """The program or script that a process runs."""
    try:
        words = kernel.command_line(pid)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return next((word.rpartition("/")[2] for word in words[:3] if "/containerd-shim-" in word), "")


def watchers_alone(cri: Cri, kubelet: CpuManager) -> None:
    times = Times()
    check.step("a pod of each runtime is born while CPUs 4-5 belong to somebody")
    kubelet.admit(SOMEBODY, "app", "4-5")
    # The first one is not judged: it was seen to be lost, maybe because the daemon's program is still on the node's emulated disk.
    CriPod(cri, "first", "kata").remove()
    births = Births("qemu-system")
    go, rust = CriPod(cri, "go", "kata-go"), CriPod(cri, "rust", "kata", cpus=2)
    check.equal("what their VMMs were born with", births.stop(), ["0-3,6-7"] * 2)
    check.eventually("the Go runtime's", lambda: extent("persist.json"), "1 sandbox of Kata's Go runtime")
    check.eventually("runtime-rs's", lambda: extent("cgroup"), "1 sandbox of Kata's runtime-rs")

    check.step("containers come, and their CPUs change")
    app = go.run("app", kubelet.pool(), quota=50000)
    times.expect("the shared pod's threads", lambda: outside(go, "0-3,6-7"), [])
    check.eventually("its containers", lambda: containers_of(go), [app])
    kubelet.admit(rust.uid, "app", "2-3")
    owner = rust.run("app", "2-3", quota=200000)
    times.expect("vCPUs with a CPU of their own", lambda: own_cpus(rust), ["2", "3"])
    times.expect("the shared pod's threads", lambda: outside(go, "0-1,6-7"), [])
    check.equal("its containers", containers_of(rust), ["sandbox-mask"])
    kubelet.admit(rust.uid, "app", "6-7")
    rust.update(owner, "6-7", quota=200000)
    times.expect("vCPUs with a CPU of their own", lambda: own_cpus(rust), ["6", "7"])
    go.update(app, kubelet.pool(), quota=50000)
    times.expect("the shared pod's threads", lambda: outside(go, "0-3"), [])
    check.equal("violations that verify finds", product.violations(), [])
    for pod in (go, rust):
        pod.remove()
    kubelet.forget(rust.uid)
    check.eventually("pods that the daemon knows", lambda: product.metric("kata_affinity_pods"), 0.0)
    times.show()


def through_the_proxy(cri: Cri, kubelet: CpuManager, daemon: Daemon) -> None:
    times = Times()
    check.step("a pod behind the shim proxy is born on the shared pool, and its container is told")
    births = Births("qemu-system")
    pod = CriPod(cri, "proxied", "kata-proxied", cpus=2)
    check.equal("what its VMM was born with", births.stop(), ["0-3,6-7"])
    check.equal("shims", shims(), ["containerd-shim-kata-affinity-v2", "containerd-shim-kata-v2"])
    kubelet.admit(pod.uid, "app", "2-3")
    app = pod.run("app", "2-3", quota=NO_QUOTA)
    times.expect("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["2", "3"])
    check.eventually("its containers", lambda: containers_of(pod), [app])
    kubelet.admit(pod.uid, "app", "6-7")
    pod.update(app, "6-7", quota=NO_QUOTA)
    times.expect("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["6", "7"])

    check.step("the daemon is away while the container moves; then containerd restarts")
    daemon.stop()
    kubelet.admit(pod.uid, "app", "2-3")
    pod.update(app, "2-3", quota=NO_QUOTA)
    daemon.start()
    check.eventually("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["2", "3"])
    restart_containerd(cri)
    kubelet.admit(pod.uid, "app", "6-7")
    pod.update(app, "6-7", quota=NO_QUOTA)
    times.expect("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["6", "7"])
    check.equal("shims", shims(), ["containerd-shim-kata-affinity-v2", "containerd-shim-kata-v2"])
    check.equal("violations that verify finds", product.violations(), [])
    pod.remove()
    check.eventually("shims", shims, [])
    check.eventually("pods that the daemon knows", lambda: product.metric("kata_affinity_pods"), 0.0)
    times.show()


def main() -> None:
    cri, kubelet = start_containerd(), CpuManager()
    with Daemon(log_level="debug", nri_socket="", real_shim=REAL_SHIM) as daemon:
        watchers_alone(cri, kubelet)
        through_the_proxy(cri, kubelet, daemon)


main()
