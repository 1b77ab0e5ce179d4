# SPDX-License-Identifier: Apache-2.0
"""Where the lab's own files, the project's build and the cache are."""

import os
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
PROJECT = LAB.parent.parent
IMAGE = LAB / "image"
INSIDE = LAB / "inside"
GUEST = LAB / "guest"
SCENARIOS = LAB / "scenarios"


def cache_root() -> Path:
    """The directory of everything that is slow to make. It may be deleted at any time between runs."""
    default = Path.home() / ".cache" / "kata-affinity"
    return Path(os.environ.get("KATA_AFFINITY_CACHE", default)) / "node-lab"


def build_dir() -> Path:
    """The CMake build tree whose programs are brought into the node."""
    return Path(os.environ.get("KATA_AFFINITY_BUILD", PROJECT / "build" / "debug"))
