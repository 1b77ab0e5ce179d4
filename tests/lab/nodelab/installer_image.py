# SPDX-License-Identifier: Apache-2.0
"""The container image that installs the product on nodes, built by buildah on a base made from Debian's archive: no registry is asked."""

import os
import shutil
import subprocess
from pathlib import Path

from nodelab.cache import cached, digest
from nodelab.paths import PROJECT

RECIPE = PROJECT / "packaging/image"
NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
_BASE = "localhost/base"
# What usrmerge drags into Debian 12, and none of its official images has.
_NOT_NEEDED = (
    "usrmerge libfile-find-rule-perl libnumber-compare-perl libtext-glob-perl perl libperl5.36 perl-modules-5.36 libgdbm-compat4 libgdbm6"
)
_HOOK = (
    f'chroot "$1" dpkg --purge {_NOT_NEEDED} 2>/dev/null; '
    'find "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/info "$1"/usr/share/locale -type f ! -name copyright -delete'
)


def run(*command: object, **how: object) -> str:
    """Runs a command that must succeed; what it printed."""
    ended = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False, **how)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    return ended.stdout


def why_not() -> str:
    """Why no image can be built here; empty where one can."""
    if missing := [tool for tool in ("buildah", "mmdebstrap", "patchelf") if not shutil.which(tool)]:
        return f"there is no {', '.join(missing)} here"
    if os.geteuid() != 0:
        return "building an image needs root"
    return "" if _release().get("ID") == "debian" else "this is not Debian, and there is no base image for the programs of this build"


def base(architecture: str = NATIVE) -> Path:
    """A tree of this machine's Debian as small as its official slim image. The programs of a build need the same release."""
    suite = _release().get("VERSION_CODENAME", "")
    include = ["--include=usr-is-merged"] if suite == "bookworm" else []
    foreign = [] if architecture == NATIVE else [f"--architectures={architecture}", "--skip=check/qemu"]
    command = ["unshare", "--mount", "mmdebstrap", "--quiet", "--variant=apt", f"--customize-hook={_HOOK}", *include, *foreign, suite]
    archive = f"deb http://deb.debian.org/debian {suite} main"
    return cached("image-base", digest([" ".join(command).encode()]), lambda to: run(*command, to / "tree", archive)) / "tree"


def _release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text().splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}


class Buildah:
    """buildah with a storage of its own in a directory, `place`; the storage goes at the end of a `with` block."""

    def __init__(self, place: Path, *, user_namespace: bool = False) -> None:
        """`user_namespace`: this process is in one."""
        self.place = place
        self._options = ("--root", place / "storage", "--runroot", place / "runroot", "--storage-driver", "overlay")
        if user_namespace:  # without it, dpkg's renames of directories fail there
            self._options += ("--storage-opt", "overlay.mountopt=userxattr")

    def __call__(self, *arguments: object) -> str:
        return run("buildah", *self._options, *arguments).strip()

    def __enter__(self) -> "Buildah":
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["buildah", *map(str, self._options), "umount", "--all"], capture_output=True, check=False)
        subprocess.run(["umount", "--recursive", "--lazy", self.place / "storage/overlay"], capture_output=True, check=False)
        shutil.rmtree(self.place / "storage", ignore_errors=True)


def install_programs(build: Path, to: Path) -> None:
    """Installs what the image needs of a build tree below `to`, as its first stage does."""
    for component in ("node", "image"):
        run("cmake", "--install", build, "--component", component, env={**os.environ, "DESTDIR": str(to)})


def add_base(buildah: Buildah, target: str = NATIVE) -> None:
    """Makes the image on which build_image() builds for `target`: for that architecture, and for this machine's."""
    buildah("manifest", "create", _BASE)
    for architecture in {NATIVE, target}:
        buildah("manifest", "add", _BASE, _add_one_base(buildah, architecture))


def _add_one_base(buildah: Buildah, architecture: str) -> str:
    """Without device nodes, which a user namespace cannot make. Containers get theirs from elsewhere."""
    archive, name = buildah.place / "base.tar", f"{_BASE}-{architecture}"
    run("tar", "--create", "--file", archive, "--directory", base(architecture), "--exclude=./dev/*", ".")
    container = buildah("from", "--arch", architecture, "scratch")
    buildah("config", "--arch", architecture, container)
    buildah("add", "--quiet", container, archive, "/")
    buildah("commit", "--quiet", "--rm", container, name)
    archive.unlink()
    return name


def build_image(buildah: Buildah, tag: str, stage: Path | None, *arguments: str, target: str = NATIVE) -> None:
    """Builds the image `tag` as docs/use/cluster.md does it. `stage`: a directory that has what the recipe's first stage would leave in
    it; without one, that stage is run."""
    given = ["--build-context", f"build={stage}"] if stage else []
    platform = [] if target == NATIVE else ["--platform", f"linux/{target}", "--build-arg", f"BUILDPLATFORM=linux/{NATIVE}"]
    recipe = ["--file", RECIPE / "Containerfile", "--build-arg", f"BASE={_BASE}", "--build-arg", "COMMIT=0123abc"]
    buildah("build", "--isolation", "chroot", *platform, *recipe, *given, *arguments, "--tag", tag, PROJECT)
