# SPDX-License-Identifier: Apache-2.0
"""What the daemon has on disk of the CPUs that it gave to containers, in the form of kubelet's claims."""

import json

from lab import cpus, kernel, product
from lab.claims import Claims

_FILE = product.STATE / "allocations"


def read() -> Claims:
    """Containers that are bound to shared CPUs count as owners here: each is to run on its CPUs and nowhere else."""
    owned: dict[str, dict[str, frozenset[int]]] = {}
    taken: frozenset[int] = frozenset()
    for each in _containers():
        if each["ended"] or each["class"] == "none":
            continue
        mine = cpus.parse(each["cpus"])
        owned.setdefault(each["pod_uid"], {})[each["name"]] = mine
        if each["class"] == "exclusive":
            taken |= mine
    return Claims(kernel.online() - taken, owned)


def overlaps() -> list[str]:
    """Exclusive containers with a CPU that another one has, too."""
    mine = [(each["name"], cpus.parse(each["cpus"])) for each in _containers() if each["class"] == "exclusive"]
    return [f"{a} and {b}" for i, (a, left) in enumerate(mine) for b, right in mine[:i] if left & right]


def memory() -> dict[tuple[str, str], str]:
    """Nodes that a container's memory is bound to, by its pod's uid and its name."""
    return {(each["pod_uid"], each["name"]): each["mems"] for each in _containers() if not each["ended"] and "mems" in each}


def problems() -> int:
    """Containers that have not the class that was asked for."""
    return sum("problem" in each for each in _containers())


def _containers() -> list[dict]:
    return json.loads(_FILE.read_text())["containers"] if _FILE.exists() else []
