# SPDX-License-Identifier: Apache-2.0
"""What kubelet's CPU manager says in its state file, read without the product."""

import json
import os
from dataclasses import dataclass, field

from lab import cpus
from lab.kubelet import STATE


@dataclass(frozen=True)
class Claims:
    """Who owns which CPUs, by the pod's uid and the container's name, and what is left. `written`: when, in seconds of real time."""

    pool: frozenset[int] = frozenset()
    owned: dict[str, dict[str, frozenset[int]]] = field(default_factory=dict)
    written: float = 0.0

    def of_pod(self, uid: str) -> frozenset[int]:
        """The CPUs that containers of this pod own."""
        return frozenset().union(*self.owned.get(uid, {}).values())

    def of_others(self, uid: str) -> frozenset[int]:
        """The CPUs that other pods own."""
        return frozenset().union(*(self.of_pod(each) for each in self.owned if each != uid))

    def all_owned(self) -> frozenset[int]:
        """The CPUs with an owner."""
        return self.of_others("")


def read() -> Claims:
    """The file as it is; without one no CPU has an owner."""
    try:
        with open(STATE) as file:
            written, state = os.fstat(file.fileno()).st_mtime, json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):  # kubelet writes its first one in place
        return Claims()
    entries = state.get("entries") or {}
    owned = {uid: {name: cpus.parse(text) for name, text in each.items()} for uid, each in entries.items()}
    return Claims(cpus.parse(state["defaultCpuSet"]), owned, written)
