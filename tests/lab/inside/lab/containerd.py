# SPDX-License-Identifier: Apache-2.0
"""The node's containerd as kubelet finds it: kubelet's driver of cgroups, a network, the image of all pods, and the runtime of pods that ask for a VM."""

import json
import subprocess
from pathlib import Path

from lab import check, kata
from lab.images import import_image
from lab.product import NRI_SOCKET

IMAGE = "docker.io/lab/sleep:1"
# Without an API server there is no RuntimeClass; containerd 1.7 has this annotation of its own, and a runtime of this name for it.
WANTS_VM = {"io.kubernetes.cri.untrusted-workload": "true"}
PROGRAM, RUNC_SHIM = Path("/usr/bin/containerd"), Path("/usr/bin/containerd-shim-runc-v2")
_CONFIG = Path("/etc/containerd/config.toml")
_RUNTIMES = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes'
_PROXY = "/lab/bin/containerd-shim-kata-affinity-v2"

_PEERS = Path("/lab/peers")
_CNI = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))  # where the containerds of Debian 13 and of Debian 12 look
_NETWORK = {
    "cniVersion": "1.0.0",
    "name": "lab",
    "plugins": [{"type": "bridge", "bridge": "lab0", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]}}],
}


def start(vms: str, driver: str, proxy: bool = False, nri: bool = True) -> None:
    """`vms`: which of Kata's runtimes runs the VM pods, `go` or `rust`; `driver`: who makes cgroups, `systemd` or `cgroupfs`; `proxy`: VM
    pods run behind the shim proxy."""
    _install_network()
    program, kind = (_PROXY, "kata-affinity") if proxy else (str(kata.shim(vms)), "kata")
    _install_shim(program)
    if not nri:
        _CONFIG.write_text(_CONFIG.read_text().replace("disable = false", "disable = true"))
    with open(_CONFIG, "a") as config:
        config.write(f"\n[{_RUNTIMES}.runc.options]\nSystemdCgroup = {str(driver == 'systemd').lower()}\n")
        config.write(f'\n[{_RUNTIMES}.untrusted]\nruntime_type = "io.containerd.{kind}.v2"\n')
        config.write('pod_annotations = ["io.katacontainers.*"]\n')
    subprocess.run(["systemctl", "start", "containerd"], check=True)
    _wait_for_it()
    import_image(IMAGE, {"bin/busybox": Path("/usr/bin/busybox")}, ["/bin/busybox", "sleep", "2147483647"])


def _install_network() -> None:
    """containerd lets no such pod onto the host's network."""
    for place in _CNI:
        place.mkdir(parents=True, exist_ok=True)
        for plugin in ("bridge", "host-local", "loopback"):
            (place / plugin).symlink_to(_PEERS / f"cni-{plugin}")
    folder = Path("/etc/cni/net.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "10-lab.conflist").write_text(json.dumps(_NETWORK))
    Path("/etc/hosts").touch()  # every pod gets a copy, and Debian 12's image has none


def _install_shim(program: str) -> None:
    """Where containerd looks for it: Debian 12's takes no other place."""
    (Path("/usr/local/bin") / Path(program).name).symlink_to(program)


def restart() -> None:
    """Its pods run on."""
    subprocess.run(["systemctl", "restart", "containerd"], check=True)
    _wait_for_it()


def pid() -> int:
    """Its process id."""
    return int(subprocess.run(["systemctl", "show", "--property=MainPID", "--value", "containerd"], capture_output=True, check=True, text=True).stdout)


def _wait_for_it() -> None:
    check.eventually("containerd is there", lambda: subprocess.run(["ctr", "version"], capture_output=True, check=False).returncode, 0)
    if has_nri():
        check.eventually("its NRI", Path(NRI_SOCKET).exists, True)


def has_nri() -> bool:
    """Debian 12's containerd 1.6 has none, and a scenario may want none."""
    if "disable = true" in _CONFIG.read_text():
        return False
    version = subprocess.run(["containerd", "--version"], capture_output=True, check=True, text=True).stdout
    return " 1.6." not in version
