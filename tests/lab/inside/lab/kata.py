# SPDX-License-Identifier: Apache-2.0
"""The real Kata, where the lab was given one: its configuration on this node. Without one there are the stand-ins in its place."""

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path("/lab/kata")
SANDBOXES = {"go": Path("/run/vc/sbs"), "rust": Path("/run/kata")}  # a folder for each sandbox
_CLH = FOLDER / "clh/cloud-hypervisor"
_ETC = Path("/etc/kata-containers")
_CONFIGURATION = "configuration.toml"
_GUEST_MIB = 256
_BOOT_SECONDS = 120  # of a guest, in emulation
_CREATE_SECONDS = 240  # a container, its sandbox included
# How the guest's kernel boots in half the time (see lab/vm.py), beside Kata's own words.
_WORDS = "cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1 mitigations=off nokaslr"


@dataclass(frozen=True)
class Cell:
    """One way to run Kata and the product together.

    `runtime`: `go` or `rust`; `hypervisor`: `qemu` or, of the Go runtime, `clh`; `driver`: who makes cgroups; `kata`: settings in Kata's
    [runtime]; `affinity`: in ours; `kubelet`: in kubelet's; `guest_agent`: ours is in the guest beside kata-agent; `proxy`: containers come
    through the shim proxy, and without NRI unless `nri`; `steps`: which list of steps.
    """

    runtime: str = "go"
    hypervisor: str = "qemu"
    driver: str = "systemd"
    kata: dict = field(default_factory=dict)
    affinity: dict = field(default_factory=dict)
    kubelet: dict = field(default_factory=dict)
    guest_agent: bool = False
    proxy: bool = False
    nri: bool | None = None
    steps: str = "main"

    @property
    def wants_nri(self) -> bool:
        """Whether containerd is to have it, where it can."""
        return not self.proxy if self.nri is None else self.nri

    def __str__(self) -> str:
        switches = {**self.kata, **self.affinity, **self.kubelet, "guest agent": self.guest_agent, "proxy": self.proxy, "NRI": self.wants_nri}
        return f"{self.runtime}, {self.hypervisor}, {self.driver}: " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in switches.items())


def is_real() -> bool:
    """Whether this node has the real one."""
    return (FOLDER / "initrd").exists()


def shim(runtime: str) -> Path:
    """The program that containerd starts, real or not."""
    return _of(runtime, FOLDER) / "bin/containerd-shim-kata-v2"


def configure(cell: Cell) -> None:
    """Gives Kata its own configuration, and beside it what is this node's and the cell's."""
    given = _of(cell.runtime, FOLDER) if cell.hypervisor == "qemu" else FOLDER / cell.hypervisor
    if not shim(cell.runtime).exists() or not (given / _CONFIGURATION).exists():
        raise SystemExit(f"the directory with Kata has no {cell.runtime} runtime with {cell.hypervisor}")
    etc = _of(cell.runtime, _ETC)
    (etc / "config.d").mkdir(parents=True)
    shutil.copy(given / _CONFIGURATION, etc)
    (etc / "config.d/50-lab.toml").write_text(_drop_in(cell))
    if cell.guest_agent:
        _add_agent(etc / _CONFIGURATION)


def _of(runtime: str, folder: Path) -> Path:
    return folder if runtime == "go" else folder / "runtime-rs"


def _virtiofsd() -> str:
    """The one beside Kata, as its releases bring it; Debian 12 has none that it can use."""
    given = FOLDER / "libexec/virtiofsd"
    return str(given) if given.exists() else "/usr/libexec/virtiofsd"


def _drop_in(cell: Cell) -> str:
    patience = {"dial_timeout": _BOOT_SECONDS} if cell.runtime == "go" else {"reconnect_timeout_ms": _BOOT_SECONDS * 1000}
    vmm = "/usr/bin/qemu-system-x86_64" if cell.hypervisor == "qemu" else str(_CLH)
    tables = {
        f"hypervisor.{cell.hypervisor}": {
            "path": vmm,
            "valid_hypervisor_paths": [vmm],
            "kernel": "/lab/guest/vmlinuz",
            "image": "",
            "initrd": str(FOLDER / "initrd"),
            "kernel_params": _WORDS,
            "default_memory": _GUEST_MIB,
            "virtio_fs_daemon": _virtiofsd(),
            "valid_virtio_fs_daemon_paths": [_virtiofsd()],
        },
        "agent.kata": patience,
        "runtime": {"create_container_timeout": _CREATE_SECONDS, **cell.kata},
    }
    return "".join(f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()) for name, table in tables.items())


def _add_agent(configuration: Path) -> None:
    """As an operator does it."""
    command = ["kata-affinityctl", "guest-image", "add", str(FOLDER / "initrd"), "-o", "/run/lab-initrd"]
    subprocess.run([*command, "--agent", "/lab/bin/kata-affinity-agent", "--kata-config", str(configuration)], check=True)
