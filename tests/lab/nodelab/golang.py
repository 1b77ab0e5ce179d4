# SPDX-License-Identifier: Apache-2.0
"""Programs in Go, for tests against what is written in Go: built with Debian 13's compiler and libraries, from packages alone."""

import os
import shutil
import subprocess
from pathlib import Path

from nodelab.cache import cached, files_digest

_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LIBRARIES = Path("usr/share/gocode")
_COMPILER = "golang-go"


def why_not(package: str, folder: str) -> str:
    """Why no program can be built with the Go library of `package`; empty where it can. `folder`: the library's, below Go's sources."""
    if _is_installed(folder):
        return ""
    if os.geteuid() != 0:
        return f"neither {_COMPILER} and {package} are installed, nor is this root, to unpack them aside"
    if shutil.which("mmdebstrap") is None:
        return f"neither {_COMPILER} and {package} are installed, nor is mmdebstrap, to unpack them aside"
    return ""


def build(source: Path, package: str, folder: str) -> Path:
    """The static program made from `source`. Needs what why_not() says, and Debian's archive where nothing is installed."""
    if _is_installed(folder):
        version = subprocess.run(["go", "version"], capture_output=True, check=True, text=True).stdout
        return cached("go", files_digest([source], version), lambda to: _build_here(source, to)) / "program"
    tree = cached("tree-go", files_digest([], _COMPILER, package), lambda to: _unpack(package, to))
    return cached("go", files_digest([source], tree.name), lambda to: _build_in(tree, source, to)) / "program"


def _is_installed(folder: str) -> bool:
    return shutil.which("go") is not None and (Path("/") / _LIBRARIES / "src" / folder).is_dir()


def _environment(libraries: Path, work: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin:/usr/sbin",
        "HOME": str(work),
        "GO111MODULE": "off",
        "GOROOT": "/usr/lib/go",  # where there is no /proc, Go does not find itself
        "GOPATH": str(libraries),
        "GOCACHE": str(work / "cache"),
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }


def _build_here(source: Path, to: Path) -> None:
    command = ["nice", "go", "build", "-o", str(to / "program"), str(source)]
    subprocess.run(command, check=True, env=_environment(Path("/") / _LIBRARIES, to))
    shutil.rmtree(to / "cache")


def _unpack(package: str, to: Path) -> None:
    command = ["nice", "mmdebstrap", "--quiet", "--variant=essential", f"--keyring={_KEYRING}"]
    command += [f"--include={_COMPILER},{package}", "trixie", str(to), _MIRROR]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _build_in(tree: Path, source: Path, to: Path) -> None:
    work = tree / "tmp" / to.name
    work.mkdir(mode=0o700)
    try:
        shutil.copyfile(source, work / "main.go")
        here = Path("/tmp") / to.name
        command = ["nice", "chroot", str(tree), "go", "build", "-o", str(here / "program"), str(here / "main.go")]
        subprocess.run(command, check=True, env=_environment(Path("/") / _LIBRARIES, here))
        shutil.copy(work / "program", to / "program")
    finally:
        shutil.rmtree(work)
