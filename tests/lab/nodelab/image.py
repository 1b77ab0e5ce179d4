# SPDX-License-Identifier: Apache-2.0
"""Making what a node boots from: Debian's packages as a tree, a disk image, a kernel and an initramfs."""

import os
import shutil
import subprocess
from pathlib import Path

from nodelab.cache import cached, files_digest
from nodelab.cpio import Initramfs
from nodelab.modules import ModuleTree
from nodelab.paths import GUEST, IMAGE

_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_NOT_NEEDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/icons/*")
_BOOT_MODULES = ["virtio_pci", "virtio_blk", "virtio_console", "ext4", "overlay"]
_GUEST_MODULES = ["virtio_pci", "vmw_vsock_virtio_transport", "virtio_blk"]
_GUEST_SCRIPTS = ("init", "containers", "kata-agent", "look", "shell")
_UNPACK = (
    'cd "$1/tmp" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get download {} && '
    'for each in *.deb; do dpkg -x "$each" "$1"; done && rm -- *.deb'
)
_PROBE = "usr/bin/cyclictest"
_NEWER = "sid"
_PIN = "Package: *\\nPin: release n=%s\\nPin-Priority: 100\\n\\nPackage: %s\\nPin: release n=%s\\nPin-Priority: 900\\n"


def packages_of(suite: str, file: str = "packages") -> list[str]:
    """The packages of image/packages, or of another such file, that `suite` gets."""
    lines = (line.strip() for line in (IMAGE / file).read_text().splitlines())
    entries = [line.partition("@") for line in lines if line and not line.startswith("#")]
    return [name for name, _, only in entries if only in ("", suite)]


def debian_tree(suite: str, newer: tuple[str, ...] = ()) -> Path:
    """A directory with an installed Debian `suite`, with the packages `newer` from Debian sid. Needs root and Debian's archive."""
    packages, unpacked = packages_of(suite), packages_of(suite, "unpacked")
    key = files_digest([], *packages, *unpacked, *_NOT_NEEDED, *(f"{name}@{_NEWER}" for name in newer))
    return cached(f"tree-{suite}", key, lambda to: _install(suite, packages, unpacked, newer, to))


def _install(suite: str, packages: list[str], unpacked: list[str], newer: tuple[str, ...], to: Path) -> None:
    if os.geteuid() != 0:
        raise SystemExit("lab: making the node image needs root (mmdebstrap installs packages in a chroot)")
    command = ["nice", "unshare", "--mount", "mmdebstrap", "--quiet", "--variant=minbase", f"--keyring={_KEYRING}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_NEEDED]
    if unpacked:
        command.append(f"--customize-hook={_UNPACK.format(' '.join(unpacked))}")
    if newer:
        command += [f"--setup-hook={_prefer(newer)}", "--aptopt=Acquire::Check-Valid-Until no"]  # a mirror may lag behind sid by weeks
    suites = (suite, _NEWER) if newer else (suite,)
    command += [f"--include={','.join(packages)}", suite, str(to), *(f"deb {_MIRROR} {each} main" for each in suites)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _prefer(newer: tuple[str, ...]) -> str:
    """The command that lets apt take these packages from the newer suite, and others only where these need them."""
    pin = _PIN % (_NEWER, " ".join(newer), _NEWER)
    return f'mkdir -p "$1/etc/apt/preferences.d" && printf "{pin}" > "$1/etc/apt/preferences.d/newer"'


def node_image(suite: str, newer: tuple[str, ...] = ()) -> Path:
    """A directory with `root.img`, `vmlinuz` and `initrd` of a node of `suite`, with the packages `newer` from Debian sid."""
    tree = debian_tree(suite, newer)
    key = files_digest([IMAGE / "init"], tree.name, *_BOOT_MODULES)
    return cached(f"node-{suite}", key, lambda to: _assemble_node(tree, to))


def _assemble_node(tree: Path, to: Path) -> None:
    _write_disk(tree, to / "root.img", spare_mib=64)
    shutil.copyfile(kernel_of(tree), to / "vmlinuz")
    archive = archive_with_busybox(tree)
    archive.add_file("init", IMAGE / "init")
    add_modules(archive, tree, _BOOT_MODULES)
    (to / "initrd").write_bytes(archive.to_bytes())


def add_modules(archive: Initramfs, tree: Path, names: list[str]) -> None:
    """Puts modules of `tree` into `modules/`, with the order in which they are to be loaded."""
    modules = ModuleTree(tree)
    order = modules.load_order(names)
    for path in order:
        archive.add_bytes(f"modules/{Path(path).name}", modules.read(path))
    archive.add_bytes("modules/order", "".join(f"{Path(path).name}\n" for path in order).encode())


def guest_image(suite: str) -> Path:
    """What the VMs inside a node of `suite` run: `vmlinuz`, `initrd`, and by their sources' names the firmwares and the programs.

    The programs are in the initramfs too.
    """
    tree = debian_tree(suite)
    key = files_digest(GUEST.iterdir(), tree.name, *_GUEST_MODULES, *_GUEST_SCRIPTS)
    return cached(f"guest-{suite}", key, lambda to: _assemble_guest(tree, to))


def _assemble_guest(tree: Path, to: Path) -> None:
    shutil.copyfile(kernel_of(tree), to / "vmlinuz")
    archive = archive_with_busybox(tree)
    for script in _GUEST_SCRIPTS:
        archive.add_file(script, GUEST / script)
    for library in (_PROBE, *_libraries(tree, _PROBE)):
        archive.add_file(library, tree / library)
    for source in GUEST.glob("*.cpp"):
        _compile(source, to / source.stem)
        archive.add_file(source.stem, to / source.stem)
    add_modules(archive, tree, _GUEST_MODULES)
    (to / "initrd").write_bytes(archive.to_bytes())
    for source in GUEST.glob("*.S"):
        _assemble_firmware(source, to / f"{source.stem}.bin")


def _assemble_firmware(source: Path, to: Path) -> None:
    build = to.with_suffix(".o")
    subprocess.run(["as", "--32", str(source), "-o", str(build)], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", str(build), str(to)], check=True)
    build.unlink()


def _compile(source: Path, to: Path) -> None:
    """Static: the guest has no libraries for it."""
    subprocess.run(["c++", "-std=c++20", "-O2", "-static", "-s", str(source), "-o", str(to)], check=True)


def archive_with_busybox(tree: Path) -> Initramfs:
    """An initramfs with busybox of `tree` and the usual empty directories."""
    archive = Initramfs()
    archive.add_file("bin/busybox", tree / "usr/bin/busybox")
    for directory in ("proc", "sys", "dev", "tmp"):
        archive.add_dir(directory)
    return archive


def _libraries(tree: Path, program: str) -> list[str]:
    """The shared libraries and the loader of `program`, as paths inside `tree`."""
    answer = subprocess.run([*in_tree(tree, "--list"), str(tree / program)], check=True, capture_output=True, text=True)
    words = [word for word in answer.stdout.split() if word.startswith("/")]
    return ["lib64/ld-linux-x86-64.so.2"] + [str(Path(word).relative_to(tree)) for word in words if f"{tree}/usr/lib/" in word]


def in_tree(tree: Path, *arguments: str) -> list[str]:
    """The start of a command line that runs a program of `tree` on this machine with that tree's own C library."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    return [str(tree / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", str(libraries), *arguments]


def kernel_of(tree: Path) -> Path:
    """The one kernel that is installed in `tree`."""
    return next((tree / "boot").glob("vmlinuz-*"))


def _write_disk(tree: Path, image: Path, spare_mib: int) -> None:
    used = subprocess.run(["du", "-sm", str(tree)], check=True, capture_output=True, text=True)
    size_mib = int(int(used.stdout.split()[0]) * 1.15) + spare_mib
    make_ext4(tree, image, size_mib)


def make_ext4(directory: Path, image: Path, size_mib: int) -> None:
    """An ext4 image of `directory`, to be mounted read-only."""
    command = ["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", "-d", str(directory), str(image), f"{size_mib}M"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
