# SPDX-License-Identifier: Apache-2.0
"""README's quick start as it is written: the node that it starts from, its six commands, and the way back."""

import re
import shutil
import subprocess
import time
from pathlib import Path

from lab import check, containerd, kata
from lab.images import import_image
from lab.manual import commands, type_in

CONFIG = Path("/etc/kata-containers/configuration.toml")
_STANDIN_CONFIG = '[hypervisor.qemu]\npath = "/usr/bin/qemu-system-x86_64"\n\n[runtime]\nenable_vcpus_pinning = true\n'
_CONTAINERD = Path("/etc/containerd/config.toml")
_DOWNLOADS = Path("/root/downloads")
# Of isolation on the host, before the demonstration and after it. The verdict also judges the guest, which has no agent of ours here.
_PROOFS = (r"each of CPUs [-\d,]+ has a vCPU bound to it", r"no other thread of the VM may run on CPUs [-\d,]+", r"none of \d+ threads of other pods may run on CPUs [-\d,]+")
# As Kata's documentation has it for containerd; the lab's part is the image and the snapshotter, because the node is an overlay and has no network.
_CONTAINERD_CONFIG = f"""version = 2

[plugins."io.containerd.nri.v1.nri"]
disable = false

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{containerd.IMAGE}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
privileged_without_host_devices = true
pod_annotations = ["io.katacontainers.*"]

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata.options]
ConfigPath = "{CONFIG}"
"""


def a_kata_node() -> None:
    """Kata, real or not, in containerd, with its own pinning on; a kubelet that is to have the static policy, and does not run."""
    if kata.is_real():
        kata.configure(kata.Cell())
        text = CONFIG.read_text()
        check.true("Kata's file turns its pinning off", "\nenable_vcpus_pinning = false\n" in text)
        CONFIG.write_text(text.replace("\nenable_vcpus_pinning = false\n", "\nenable_vcpus_pinning = true\n"))
    else:
        CONFIG.parent.mkdir(parents=True)
        CONFIG.write_text(_STANDIN_CONFIG)
    _CONTAINERD.write_text(_CONTAINERD_CONFIG)
    Path("/usr/local/bin/containerd-shim-kata-v2").symlink_to(kata.shim("go"))
    Path("/etc/hosts").touch()  # every pod gets a copy, and Debian 12's image has none
    containerd.restart()
    import_image(containerd.IMAGE, {"bin/busybox": Path("/usr/bin/busybox")}, ["/bin/busybox", "sleep", "2147483647"])
    kubelet = Path("/var/lib/kubelet/config.yaml")
    kubelet.parent.mkdir(parents=True, exist_ok=True)
    kubelet.write_text("kind: KubeletConfiguration\ncpuManagerPolicy: static\n")


def six_commands() -> None:
    """From a node with Kata to isolation that is proven. Where containerd has no NRI, the third is the one of the shim proxy."""
    typed = commands("README.md", "Quick start")
    check.equal("commands of the quick start", len(typed), 6)
    if not containerd.has_nri():
        typed[2:3] = commands("quick-start.md", "containerd without NRI")
    print(f"          {_what_it_is()}", flush=True)
    _DOWNLOADS.mkdir()
    shutil.copy("/lab/packages/kata-affinity_0.1.0-1.deb", _DOWNLOADS)
    began, own = time.monotonic(), CONFIG.read_text()
    said = ""
    for command in typed:
        # Kata's own pinning is in the way.
        said = type_in(command, (1,) if " doctor" in command else (0,), _DOWNLOADS)
        if command.startswith("apt "):
            check.true("no daemon runs", subprocess.run(["pgrep", "-x", "kata-affinityd"], check=False, stdout=subprocess.DEVNULL).returncode == 1)
    minutes = (time.monotonic() - began) / 60
    print(f"          isolated and proven after {len(typed)} commands and {minutes:.1f} minutes of an emulated node, without downloads", flush=True)
    check.true("these are less than 15 minutes", minutes < 15)
    for proof in _PROOFS:
        check.equal(f"times that the self-test says: {proof}", len(re.findall(f"ok +kernel +{proof}", said)), 2)
    check.equal("Kata's own file", CONFIG.read_text() == own, True)
    type_in("kata-affinityctl doctor")


def _what_it_is() -> str:
    """Which Kata and which containerd these commands meet."""
    version = subprocess.run(["containerd", "--version"], capture_output=True, check=True, text=True).stdout.split()[2]
    return f"{'the real Kata' if kata.is_real() else 'a stand-in for Kata'}, containerd {version}, {'with' if containerd.has_nri() else 'without'} NRI"


def undo() -> None:
    """The way back, and what is left: nothing."""
    own = CONFIG.read_text()
    for command in commands("quick-start.md", "Undo"):
        type_in(command)
    check.equal("Kata's own file", CONFIG.read_text() == own, True)
    left = [path.name for path in (CONFIG.parent / "config.d").glob("*-affinity*.toml")]
    check.equal("what setup wrote beside it", left, [])
    check.true("no daemon runs", subprocess.run(["pgrep", "-x", "kata-affinityd"], check=False, stdout=subprocess.DEVNULL).returncode == 1)
    check.equal("pods", subprocess.run(["ctr", "-n", "k8s.io", "tasks", "list", "-q"], capture_output=True, text=True, check=True).stdout, "")
