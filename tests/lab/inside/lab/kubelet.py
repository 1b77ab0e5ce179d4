# SPDX-License-Identifier: Apache-2.0
"""kubelet's CPU manager, as far as others see it: its state file, replaced at each admission before the runtime is asked."""

import json
import os
from pathlib import Path

from lab import cpus, kernel

STATE = Path("/var/lib/kubelet/cpu_manager_state")


class CpuManager:
    """The static policy: who owns which CPUs, by pod and container; the rest is the shared pool."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, str]] = {}
        self._write()

    def admit(self, pod: str, container: str, cpu_list: str) -> None:
        """Gives `cpu_list` to a container of the pod with uid `pod` alone."""
        self._owned.setdefault(pod, {})[container] = cpu_list
        self._write()

    def forget(self, pod: str) -> None:
        """Takes back what a pod owned."""
        del self._owned[pod]
        self._write()

    def pool(self) -> str:
        """The shared pool."""
        owned = [cpus.parse(each) for containers in self._owned.values() for each in containers.values()]
        return cpus.show(kernel.online().difference(*owned))

    def _write(self) -> None:
        """Version 2 of the file; checksum 0 is kubelet's word for none."""
        state = {"policyName": "static", "defaultCpuSet": self.pool(), "entries": self._owned, "checksum": 0}
        STATE.parent.mkdir(parents=True, exist_ok=True)
        fresh = STATE.with_name(".fresh")
        fresh.write_text(json.dumps(state))
        os.replace(fresh, STATE)
