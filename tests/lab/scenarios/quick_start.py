# SPDX-License-Identifier: Apache-2.0
"""README's quick start by the letter, with a stand-in for Kata: from a node with Kata to isolation that is proven, a pod of the node's, the way back."""
# lab shapes: smt8 bookworm
# lab timeout: 1200
# lab packages: yes

from lab import check, containerd, kernel, product
from lab.kubelet import CpuManager
from lab.manual import commands, type_in
from lab.quick_start import a_kata_node, six_commands, undo


def a_pod_of_the_node() -> None:
    """It starts while the daemon watches; then it is isolated without a restart, and released."""
    from lab.cri import Cri, CriPod  # Debian 12's node has no gRPC for Python
    from lab.within import own_cpus

    check.step("a pod of the node: watched, isolated without a restart, released")
    type_in("kata-affinityctl setup --profile watch --yes")
    kubelet = CpuManager()
    pod = CriPod(Cri(), "db", "kata")
    kubelet.admit(pod.uid, "app", "2-3")
    pod.run("app", "2-3", quota=200000)

    def masks() -> set[str]:
        return {kernel.allowed(tid) for tid in kernel.threads(pod.pid)}

    check.eventually("status has the pod", lambda: pod.id in product.ctl("status").stdout, True)
    before = masks()
    check.equal("vCPUs with a CPU of their own", own_cpus(pod), [])
    type_in("kata-affinityctl setup --profile isolated --yes")
    check.eventually("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["2", "3"])
    check.eventually("masks of the VM", masks, {"2", "3", kubelet.pool()})
    for command in commands("quick-start.md", "The pods of the node"):
        type_in(command.replace("POD", pod.id))
    without_profile(pod.id)
    type_in("kata-affinityctl release")
    check.equal("masks of the VMM's threads", masks(), before)
    pod.remove()


def without_profile(pod: str) -> None:
    """Its vCPUs are pinned, and three commands say that this is not all, and what is."""
    check.step("without a profile the same pod is degraded")
    type_in("kata-affinityctl setup --undo --yes && systemctl reload kata-affinityd")
    for command in ("verify", f"status {pod}", "doctor"):
        check.eventually(f"{command} says degraded and names the command", lambda command=command: says_degraded(command), True)
        type_in(f"kata-affinityctl {command}", (0, 1))


def says_degraded(command: str) -> bool:
    text = product.ctl(*command.split()).stdout
    return "degraded" in text and "kata-affinityctl setup --profile isolated --yes" in text


def main() -> None:
    a_kata_node()
    check.step("the six commands")
    six_commands()
    if containerd.has_nri():
        a_pod_of_the_node()
    else:
        print("          left out: a pod of the node's own: this node has no CRI client", flush=True)
    check.step("the way back")
    undo()


main()
