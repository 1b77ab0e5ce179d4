# SPDX-License-Identifier: Apache-2.0
"""docs/use/quick-start.md by the letter: from a node with Kata to a pod on CPUs of its own, and the way back."""
# lab shapes: smt8
# lab timeout: 600
# lab packages: yes

import subprocess
import time
from pathlib import Path

from lab import check, kernel, product
from lab.cri import CriPod, start_containerd
from lab.kubelet import CpuManager
from lab.within import own_cpus

KATA = Path("/etc/kata-containers")
KATA_CONFIG = '[hypervisor.qemu]\npath = "/usr/bin/qemu-system-x86_64"\n\n[runtime]\nenable_vcpus_pinning = true\n'


def type_in(command: str, status: int = 0) -> str:
    """Runs a line of the manual, and shows what its reader sees. `status`: the exit status that the manual speaks of."""
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    print(f"        $ {command}")
    print("".join(f"          | {line}\n" for line in (ended.stdout + ended.stderr).splitlines()), end="")
    check.equal(f"exit status of {command}", ended.returncode, status)
    return ended.stdout


def a_kata_node() -> None:
    """What the manual starts from: Kata's configuration, a kubelet with the static policy."""
    KATA.mkdir(parents=True)
    (KATA / "configuration.toml").write_text(KATA_CONFIG)
    kubelet = Path("/var/lib/kubelet/config.yaml")
    kubelet.parent.mkdir(parents=True, exist_ok=True)
    kubelet.write_text("kind: KubeletConfiguration\ncpuManagerPolicy: static\n")


def install() -> None:
    check.step("1. install: nothing starts")
    type_in("dpkg --install /lab/packages/kata-affinity_0.1.0-1.deb")
    check.true("no daemon runs", subprocess.run(["pgrep", "-x", "kata-affinityd"], check=False, stdout=subprocess.DEVNULL).returncode == 1)


def set_up() -> None:
    check.step("2. doctor: what is in the way; Kata's own pinning is")
    check.true("doctor names Kata's pinning", "enable_vcpus_pinning" in type_in("kata-affinityctl doctor", status=1))
    check.step("3. watch first")
    type_in("kata-affinityctl setup --profile watch")
    check.true("setup by itself writes nothing", not (KATA / "config.d").exists())
    type_in("kata-affinityctl setup --profile watch --yes")
    type_in("systemctl enable --now kata-affinityd")


def start_pod(kubelet: CpuManager) -> CriPod:
    cri = start_containerd()
    pod = CriPod(cri, "db", "kata-go")
    kubelet.admit(pod.uid, "app", "2-3")
    pod.run("app", "2-3", quota=200000)
    return pod


def masks(pod: CriPod) -> set[str]:
    return {kernel.allowed(tid) for tid in kernel.threads(pod.pid)}


def main() -> None:
    began = time.monotonic()
    a_kata_node()
    kubelet = CpuManager()
    install()
    set_up()

    check.step("4. see what it would do: nothing is written")
    pod = start_pod(kubelet)
    check.eventually("status has the pod", lambda: pod.id in product.ctl("status").stdout, True)
    before = masks(pod)
    check.equal("vCPUs with a CPU of their own", own_cpus(pod), [])
    type_in("kata-affinityctl status")
    type_in(f"kata-affinityctl explain {pod.id}")

    check.step("5. isolate: the pod's vCPUs have its CPUs, all other threads are in the shared pool")
    type_in("kata-affinityctl setup --profile isolated --yes")
    check.eventually("vCPUs with a CPU of their own", lambda: own_cpus(pod), ["2", "3"])
    check.eventually("masks of the VM", lambda: masks(pod), {"2", "3", kubelet.pool()})
    type_in("kata-affinityctl verify")
    print(f"          a pinned pod after {time.monotonic() - began:.0f} s of an emulated node, the package's build not counted")

    check.step("the way back")
    type_in("kata-affinityctl release")
    check.equal("masks of the VMM's threads", masks(pod), before)
    type_in("kata-affinityctl setup --undo --yes")
    check.equal("Kata's own file", (KATA / "configuration.toml").read_text(), KATA_CONFIG)
    pod.remove()


main()
