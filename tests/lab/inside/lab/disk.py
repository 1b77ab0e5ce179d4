# SPDX-License-Identifier: Apache-2.0
"""A disk image for guests as Kata's are: a DOS partition table, and in its one partition an ext4 with systemd.

It is made from the node's own systemd, the guests' initramfs, and the units in /lab/guest-units.
"""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

_INITRD = Path("/lab/guest/initrd")
_OWN_UNITS = Path("/lab/guest-units")
_UNITS = "usr/lib/systemd/system"
_MIB = 2**20
_SIZE_MIB = 96
_BEGIN_MIB = 1
_SECTOR = 512
_LINUX = 0x83
_MERGED = ("bin", "sbin", "lib", "lib64")
_PROGRAMS = ("/usr/lib/systemd/systemd", "/usr/lib/systemd/systemd-executor", "/usr/bin/systemctl", "/usr/bin/systemd-run")
_TARGETS = (
    *("basic", "sysinit", "local-fs", "swap", "sockets", "timers", "paths", "slices", "shutdown", "umount"),
    *("emergency", "rescue"),
)


def make(image: Path) -> None:
    """Writes the image."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "root"
        _add_busybox_and_scripts(tree)
        _add_systemd(tree)
        _write(tree, image)


def _add_busybox_and_scripts(tree: Path) -> None:
    for name in _MERGED:
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for name in ("run", "var/tmp", "etc", _UNITS):
        (tree / name).mkdir(parents=True)
    (tree / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (tree / "etc/machine-id").touch()  # systemd makes one that lasts until the guest ends
    with open(_INITRD, "rb") as archive:
        subprocess.run(["busybox", "cpio", "-idm", "--quiet"], cwd=tree, stdin=archive, check=True)
    subprocess.run(["chroot", str(tree), "/bin/busybox", "--install", "-s", "/bin"], check=True)
    (tree / "kata-agent").rename(tree / "usr/bin/kata-agent")


def _add_systemd(tree: Path) -> None:
    for program in filter(os.path.exists, _PROGRAMS):
        for file in (program, *_libraries(program)):
            _copy(Path(file), tree)
    for target in _TARGETS:
        _copy(Path(f"/{_UNITS}/{target}.target"), tree)
    shutil.copytree(_OWN_UNITS, tree / _UNITS, dirs_exist_ok=True)


def _libraries(program: str) -> list[str]:
    answer = subprocess.run(["ldd", program], check=True, capture_output=True, text=True)
    return [word for word in answer.stdout.split() if word.startswith("/")]


def _copy(file: Path, tree: Path) -> None:
    """To the same place in `tree`, over what is there."""
    copy = tree / file.relative_to("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    shutil.copy(file, copy)


def _write(tree: Path, image: Path) -> None:
    sectors = _MIB // _SECTOR
    entry = struct.pack("<4xB3xII", _LINUX, _BEGIN_MIB * sectors, _SIZE_MIB * sectors)
    image.write_bytes(bytes(446) + entry.ljust(64, b"\0") + b"\x55\xaa")
    os.truncate(image, (_BEGIN_MIB + _SIZE_MIB) * _MIB)
    command = ["mkfs.ext4", "-q", "-F", "-d", str(tree), "-E", f"offset={_BEGIN_MIB * _MIB}", str(image), f"{_SIZE_MIB}M"]
    subprocess.run(command, check=True)
