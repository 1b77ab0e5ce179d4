# SPDX-License-Identifier: Apache-2.0
"""Components that run beside the product and are no part of it, kubelet first of all: given as a folder, unpacked into the cache."""

import os
import subprocess
from pathlib import Path

from nodelab.cache import cached, files_digest
from nodelab.paths import PROJECT


def peers_dir() -> Path:
    """Where they are given: `NAME.xz` for each, and `unpack DIR NAME...`."""
    return Path(os.environ.get("KATA_AFFINITY_PEERS", PROJECT.parent / "shared" / "peers"))


def why_not(names: tuple[str, ...]) -> str:
    """Why `names` cannot be had; empty where they can."""
    missing = [file.name for file in _files(names) if not file.exists()] if names else []
    return f"{peers_dir()} has no {', '.join(missing)}: name their folder in KATA_AFFINITY_PEERS" if missing else ""


def unpacked(names: tuple[str, ...]) -> Path:
    """A directory with the programs `names`."""
    return cached("peers", files_digest(_files(names)), lambda to: _unpack(names, to))


def _files(names: tuple[str, ...]) -> list[Path]:
    return [peers_dir() / "unpack", *(peers_dir() / f"{name}.xz" for name in names)]


def _unpack(names: tuple[str, ...], to: Path) -> None:
    subprocess.run([str(peers_dir() / "unpack"), str(to), *names], check=True)
