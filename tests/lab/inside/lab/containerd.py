# SPDX-License-Identifier: Apache-2.0
"""The node's containerd as kubelet finds it: systemd's cgroups, a network, the image of all pods, and the runtime of pods that ask for a VM."""

import json
import subprocess
from pathlib import Path

from lab import check
from lab.cri import import_image

IMAGE = "docker.io/lab/sleep:1"
# Without an API server there is no RuntimeClass; containerd 1.7 has this annotation of its own, and a runtime of this name for it.
WANTS_VM = {"io.kubernetes.cri.untrusted-workload": "true"}
_CONFIG = Path("/etc/containerd/config.toml")
_RUNTIMES = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes'
_SHIMS = {"go": "/lab/kata/bin/containerd-shim-kata-v2", "rust": "/lab/kata/runtime-rs/bin/containerd-shim-kata-v2"}


_PEERS = Path("/lab/peers")
_CNI = Path("/usr/lib/cni")  # where Debian's containerd looks
_NETWORK = {
    "cniVersion": "1.0.0",
    "name": "lab",
    "plugins": [{"type": "bridge", "bridge": "lab0", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]}}],
}


def start(vms: str) -> None:
    """`vms`: which of Kata's runtimes runs the VM pods, `go` or `rust`."""
    _install_network()
    with open(_CONFIG, "a") as config:
        config.write(f"\n[{_RUNTIMES}.runc.options]\nSystemdCgroup = true\n")
        config.write(f'\n[{_RUNTIMES}.untrusted]\nruntime_type = "io.containerd.kata.v2"\nruntime_path = "{_SHIMS[vms]}"\n')
    subprocess.run(["systemctl", "start", "containerd"], check=True)
    check.eventually("containerd is there", Path("/run/nri/nri.sock").exists, True)
    import_image(IMAGE, {"bin/busybox": Path("/usr/bin/busybox")}, ["/bin/busybox", "sleep", "2147483647"])


def _install_network() -> None:
    """containerd lets no such pod onto the host's network."""
    _CNI.mkdir(parents=True, exist_ok=True)
    for plugin in ("bridge", "host-local", "loopback"):
        (_CNI / plugin).symlink_to(_PEERS / f"cni-{plugin}")
    folder = Path("/etc/cni/net.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "10-lab.conflist").write_text(json.dumps(_NETWORK))


def restart() -> None:
    """Its pods run on."""
    subprocess.run(["systemctl", "restart", "containerd"], check=True)
    check.eventually("containerd is there", Path("/run/nri/nri.sock").exists, True)
