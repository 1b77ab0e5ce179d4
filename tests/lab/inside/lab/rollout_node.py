# SPDX-License-Identifier: Apache-2.0
"""One node of a rollout: what a cluster finds there, and what is seen there without the product's word for it."""

import contextlib
import os
import subprocess
from pathlib import Path

from lab import claims, containerd, cpus, far, kernel, witness
from lab.api_server import KUBECONFIG, make_a_node
from lab.kubelet_service import Kubelet
from lab.sampler import Sampler

KIT = Path("/lab/cluster")
_KATA, _UNITS, _PROGRAMS = Path("/etc/kata-containers"), Path("/etc/systemd/system"), Path("/opt/kata-affinity")
_KATA_FILE = '[hypervisor.qemu]\npath = "/usr/bin/qemu-system-x86_64"\n\n[runtime]\nenable_vcpus_pinning = false\n'
_IMAGES = Path("/var/lib/containerd")
_POD = ("db", "web")  # how the names of the pods begin that are watched
_running: dict[str, object] = {}


def prepare() -> None:
    """Kata's file; and images where overlayfs can keep them, which the node's root is not: it is one."""
    if far.is_paired():
        far.join()
    else:
        make_a_node()
    _KATA.mkdir(parents=True)
    (_KATA / "configuration.toml").write_text(_KATA_FILE)
    _IMAGES.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500M", "images", str(_IMAGES)], check=True)
    config = Path("/etc/containerd/config.toml")
    config.write_text(config.read_text().replace('snapshotter = "native"', 'snapshotter = "overlayfs"'))
    containerd.start("go", "systemd")
    subprocess.run(["ctr", "-n", "k8s.io", "images", "import", str(KIT / "images.tar")], check=True)


def kubelet() -> Kubelet:
    """It registers the node with the API server."""
    return Kubelet(f"--kubeconfig={KUBECONFIG}", f"--node-ip={far.ADDRESS}", cgroupDriver="systemd", registerNode=True, enableServer=True)


def start_kubelet(config: str) -> None:
    """With the kubeconfig `config`; it runs as long as the node does."""
    KUBECONFIG.parent.mkdir(parents=True)
    KUBECONFIG.write_text(config)
    _running["kubelet"] = kubelet()
    _running["kubelet"].start()


def pods() -> list[str]:
    """The watched pods that run, by containerd."""
    return sorted(each.name for each in _ours().values() if each.containers)


def owned() -> list[int]:
    """CPUs with an owner, by kubelet's file."""
    return sorted(claims.read().all_owned())


def own_cpus() -> list[int]:
    """CPUs of a VM's pod that have a vCPU of their own."""
    seen = witness.threads(_ours())
    return sorted(cpu for each in _ours().values() if each.is_vm for cpu in witness.own_cpus(each, claims.read(), seen))


def vcpu_masks() -> set[str]:
    """Where the kernel lets vCPUs run."""
    return {cpus.show(thread.cpus) for thread in witness.threads(_ours()) if thread.part == "vcpu"}


def wrong() -> list[str]:
    """Threads that are elsewhere than kubelet's file wants them."""
    return witness.wrong(claims.read(), _ours(), witness.threads(_ours()))


def narrow() -> dict[int, str]:
    """Threads whose mask is narrower than their cgroup: what nobody pins has all of it."""
    return {tid: mask for tid, mask in _masks().items() if mask != _cgroup_cpus(tid)}


def watch() -> None:
    """From now on, every mask is noted that a thread of these pods is seen with."""
    _running["before"] = _masks()
    _running["sampler"] = Sampler(list(_running["before"]), pause=0.02)


def moved() -> tuple[int, int, dict[int, set[str]]]:
    """Since watch(): how many threads were watched, how often, and which of them were seen with another mask than in the beginning."""
    before = _running["before"]
    seen, rounds = _running["sampler"].stop()
    return len(before), rounds, {tid: found for tid, found in seen.items() if found - {before[tid]}}


def daemon() -> tuple[str, str]:
    """By systemd, Kata's directory and the kernel: the daemon's mode, and the version that it is, by its program's directory."""
    answer = subprocess.run(["systemctl", "show", "--value", "--property=MainPID", "kata-affinityd"], capture_output=True, text=True, check=True)
    drop_in = (_KATA / "config.d/50-affinity.toml").read_text()
    mode = next(word for word in ("observe", "follow") if f'mode = "{word}"' in drop_in)
    return mode, os.readlink(f"/proc/{int(answer.stdout)}/exe").split("/")[3]


def left() -> list[str]:
    """What of the product is on the node, and of its changes."""
    found = [*_PROGRAMS.glob("*"), *_UNITS.rglob("kata-affinity*"), *(_KATA / "config.d").glob("*affinity*")]
    daemons = [f"process {pid}" for pid in kernel.processes() if _is_daemon(pid)]
    changed = [] if (_KATA / "configuration.toml").read_text() == _KATA_FILE else ["Kata's own file"]
    return [str(path) for path in found] + daemons + changed


def _is_daemon(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith("kata-affinityd")
    return False


def _ours() -> dict[str, witness.Pod]:
    return {id_: each for id_, each in witness.pods().items() if each.name.startswith(_POD)}


def _masks() -> dict[int, str]:
    return {thread.tid: cpus.show(thread.cpus) for thread in witness.threads(_ours())}


def _cgroup_cpus(tid: int) -> str:
    path = Path(f"/proc/{tid}/cgroup").read_text().strip().partition("::")[2]
    return (Path("/sys/fs/cgroup") / path.lstrip("/") / "cpuset.cpus.effective").read_text().strip()
