# SPDX-License-Identifier: Apache-2.0
"""How soon after a CRI call's return the kernel's masks are right, and what is asked of them."""

import os
import threading
import time
from collections.abc import Callable

from lab import check, cpus, kernel
from lab.cri import CriPod

_BOUND = 0.2  # seconds from the return of a CRI call
_PATIENCE = 15.0
_TICK = 0.002


class _Metronome:
    """Sleeps again and again, and knows by how much it overslept: then the machine below the node was busy with other things."""

    def __init__(self) -> None:
        self.worst = 0.0
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(_TICK)
            self.worst = max(self.worst, time.monotonic() - before - _TICK)


class Times:
    """How long after a CRI call's return the kernel's masks were right."""

    def __init__(self) -> None:
        self._all: list[tuple[float, float, str]] = []
        self._metronome = _Metronome()

    def expect(self, what: str, read: Callable[[], object], wanted: object) -> None:
        """Fails unless `read()` becomes `wanted`, and remembers when it did."""
        start, self._metronome.worst = time.monotonic(), 0.0
        while (found := read()) != wanted and time.monotonic() - start < _PATIENCE:
            time.sleep(_TICK)
        self._all.append((time.monotonic() - start, self._metronome.worst, what))
        if found != wanted:
            raise check.Failed(f"{what}: after {_PATIENCE} s wanted {wanted}, found {found}")

    def show(self) -> None:
        """Prints the distribution."""
        times = sorted(seconds * 1000 for seconds, _, _ in self._all)
        marks = {"least": 0.0, "median": 0.5, "90 of 100": 0.9, "most": 1.0}
        text = ", ".join(f"{name} {times[int(share * (len(times) - 1))]:.1f} ms" for name, share in marks.items())
        print(f"          {len(times)} times from a CRI call's return until the masks were right: {text}", flush=True)

    def expect_bound(self) -> None:
        """Prints the distribution, and fails unless all of it lies within the bound, but for what a sleeping thread overslept too."""
        self.show()
        slowest, stalled, what = max(self._all, key=lambda each: each[0] - each[1])
        print(f"          the slowest: {what}, {slowest * 1000:.1f} ms, while a sleeping thread overslept by {stalled * 1000:.1f} ms", flush=True)
        check.true(f"all within {_BOUND} s", slowest - stalled <= _BOUND)


def own_cpus(pod: CriPod) -> list[str]:
    """CPUs on which one vCPU of a VM pod may run, and runs alone."""
    masks = [kernel.allowed(tid) for tid in kernel.kvm_vcpus(pod.pid).values()]
    return sorted(mask for mask in masks if mask.isdigit())


def outside(pod: CriPod, cpu_list: str) -> list[str]:
    """Masks of a VM pod's threads that reach beyond `cpu_list`, asked of the kernel without a detour: this is timed."""
    inside = cpus.parse(cpu_list)
    masks = [os.sched_getaffinity(tid) for tid in kernel.threads(pod.pid)]
    return [cpus.show(mask) for mask in masks if not mask <= inside]
