# SPDX-License-Identifier: Apache-2.0
"""The real Kata in place of its stand-in: given as a directory, with a guest that is made here around its agent."""

import os
import shutil
import subprocess
from pathlib import Path

from nodelab.cache import cached, files_digest
from nodelab.image import add_modules, archive_with_busybox, debian_tree
from nodelab.paths import IMAGE

_VARIABLE = "KATA_AFFINITY_KATA"
_AGENT = "kata-agent"
_GO = ("bin/containerd-shim-kata-v2", "configuration.toml")
_RUST = ("runtime-rs/bin/containerd-shim-kata-v2", "runtime-rs/configuration.toml")
_CLH = ("clh/cloud-hypervisor", "clh/configuration.toml")
_VIRTIOFSD = Path("libexec/virtiofsd")
_INIT = IMAGE / "kata/init"
_MODULES = ["virtio_pci", "virtio_console", "virtio_rng", "virtio_net", "vmw_vsock_virtio_transport", "virtiofs"]


def why_not() -> str:
    """Why it cannot be had; empty where it can. Ends the program when what was given is not what it must be."""
    given = os.environ.get(_VARIABLE)
    if not given:
        return f"name a directory with the real Kata in {_VARIABLE}"
    if problem := _problem(Path(given)):
        raise SystemExit(f"lab: {_VARIABLE}={given}: {problem}; see tests/lab/README.md")
    return ""


def lay_out(suite: str, to: Path) -> None:
    """Puts the runtimes that were given over the stand-ins in `to`, with the `initrd` of their guests."""
    given = Path(os.environ[_VARIABLE])
    for name in _GO + sum((names for names in (_RUST, _CLH) if _has(given, names)), ()):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(given / name, to / name)
    if (given / _VIRTIOFSD).exists():
        shutil.copytree(given / _VIRTIOFSD.parent, to / _VIRTIOFSD.parent)
    shutil.copy(_guest(suite, given / _AGENT) / "initrd", to / "initrd")


def _problem(given: Path) -> str:
    missing = [name for name in (*_GO, _AGENT) if not (given / name).is_file()]
    if missing:
        return f"there is no {', '.join(missing)}"
    for names in (_RUST, _CLH):
        if any((given / name).exists() for name in names) and not _has(given, names):
            return f"of {' and '.join(names)} there is only one"
    linked = subprocess.run(["ldd", str(given / _AGENT)], capture_output=True, text=True, check=False)
    return f"{_AGENT} is not linked statically" if "=>" in linked.stdout else ""


def _has(given: Path, names: tuple[str, ...]) -> bool:
    return all((given / name).is_file() for name in names)


def _guest(suite: str, agent: Path) -> Path:
    tree = debian_tree(suite)
    key = files_digest([agent, _INIT], tree.name, *_MODULES)
    return cached("kata-guest", key, lambda to: _make_guest(tree, agent, to))


def _make_guest(tree: Path, agent: Path, to: Path) -> None:
    """The node's own kernel is the guest's: here are its modules."""
    archive = archive_with_busybox(tree)
    archive.add_file("init", _INIT)
    archive.add_file("usr/bin/kata-agent", agent)
    for directory in ("etc", "run", "sbin", "var"):
        archive.add_dir(directory)
    add_modules(archive, tree, _MODULES)
    (to / "initrd").write_bytes(archive.to_bytes())
