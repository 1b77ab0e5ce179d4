# SPDX-License-Identifier: Apache-2.0
"""The product's Debian packages for a node: as CPack makes them, scripts and all, in two versions.

A package is made for the release that it was built on. So that it can be installed in a node of another one, its programs are
those of the payload, which bring their libraries, and it depends on nothing.
"""

import re
import shutil
import subprocess
from pathlib import Path

from nodelab.paths import build_dir

VERSIONS = ("0.1.0-1", "0.1.0-2")
_HOOKS = ("prestart", "poststop")  # scripts that have the agent's name


def make_packages(programs: Path, to: Path, work: Path) -> None:
    """Makes `NAME_VERSION.deb` in `to` for each package and version; `programs` holds the payload's programs."""
    to.mkdir()
    for made in _pack(work):
        tree = work / "tree"
        subprocess.run(["dpkg-deb", "--raw-extract", str(made), str(tree)], check=True)
        for path in tree.rglob("*"):
            if path.is_file() and path.parent.name not in _HOOKS and (programs / path.name).exists():
                shutil.copyfile(programs / path.name, path)
        for version in VERSIONS:
            _build(tree, to, version)
        shutil.rmtree(tree)


def _pack(work: Path) -> list[Path]:
    config = build_dir() / "CPackConfig.cmake"
    made = subprocess.run(["cpack", "--config", str(config), "-B", str(work)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise SystemExit(f"lab: the packages cannot be made, build everything first: {made.stdout}{made.stderr}")
    return sorted(work.glob("*.deb"))


def _build(tree: Path, to: Path, version: str) -> None:
    control = tree / "DEBIAN/control"
    text = re.sub(r"^Depends:.*\n", "", control.read_text(), flags=re.MULTILINE)
    control.write_text(re.sub(r"^Version:.*$", f"Version: {version}", text, flags=re.MULTILINE))
    (tree / "DEBIAN/md5sums").unlink(missing_ok=True)
    name = re.search(r"^Package: (.*)$", text, re.MULTILINE)[1]
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(to / f"{name}_{version}.deb")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
