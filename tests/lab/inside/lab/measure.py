# SPDX-License-Identifier: Apache-2.0
"""How well a VM's vCPUs are isolated: the scheduler's accounting of their threads, and latencies from inside the guest."""

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lab import kernel
from lab.vm import Vm

_BUCKET = re.compile(r"^round (\d+) bucket (\d+) (\d+)\s*$", re.MULTILINE)
BEYOND = 1_000_000  # the bucket of what was later than the guest's histogram reaches, which is REACH
REACH = 60_000
_STATE, _PROCESSOR = 0, 36  # of /proc/<tid>/stat, behind the name


@dataclass
class Use:
    """What one thread had of the CPUs, times in nanoseconds. `looks`: how often it was seen running or queued."""

    ran: int = 0
    waited: int = 0
    involuntary: int = 0
    seconds: float = 0
    looks: int = 0
    foreign_looks: int = 0

    def waiting_percent(self) -> float:
        """Of the time in which it wanted to run, how much it waited for a CPU."""
        return 100 * self.waited / max(self.ran + self.waited, 1)

    def foreign_percent(self) -> float:
        """Of the looks, how many found it on a CPU that is not its own."""
        return 100 * self.foreign_looks / max(self.looks, 1)

    def involuntary_per_second(self) -> float:
        """How often it was interrupted in favour of another thread."""
        return self.involuntary / self.seconds


@dataclass
class Isolation:
    """All that was measured of a VM under one rule."""

    vcpus: dict[int, Use]
    latencies: Counter[int]  # upper end of the bucket in microseconds -> count

    def latency(self, quantile: float) -> int:
        """The upper end of the bucket up to which `quantile` of all wake-ups lie, in microseconds; it may be BEYOND."""
        wanted, seen = quantile * self.latencies.total(), 0
        for end, count in sorted(self.latencies.items()):
            seen += count
            if seen >= wanted:
                return end
        raise ValueError("no latencies")


def measure_round(vm: Vm, own: frozenset[int]) -> Isolation:
    """Measures while the guest's next whole round of latencies goes on.

    `own`: the CPUs that belong to the container; other vCPUs than its own are looked at in the same way.
    """
    tids = vm.vcpu_tids()
    number = max(_begun(vm), default=0) + 1
    vm.wait_for_guest(f"round {number} begins")
    before, began = {tid: kernel.accounting(tid) for tid in tids.values()}, time.monotonic()
    uses = {index: Use() for index in tids}
    while f"round {number} is over" not in vm.console():
        for index, tid in tids.items():
            _look(tid, own, uses[index])
        time.sleep(0.05)
    for index, tid in tids.items():
        _add(uses[index], before[tid], kernel.accounting(tid), time.monotonic() - began)
    vm.wait_for_guest(f"round {number} is told")
    return Isolation(uses, _latencies(vm, number))


def _begun(vm: Vm) -> list[int]:
    return [int(number) for number in re.findall(r"^round (\d+) begins", vm.console(), re.MULTILINE)]


def _look(tid: int, own: frozenset[int], use: Use) -> None:
    fields = Path(f"/proc/{tid}/stat").read_text().rpartition(") ")[2].split()
    if fields[_STATE] == "R":
        use.looks += 1
        use.foreign_looks += int(fields[_PROCESSOR]) not in own


def _add(use: Use, before: kernel.Accounting, after: kernel.Accounting, seconds: float) -> None:
    use.ran += after.ran - before.ran
    use.waited += after.waited - before.waited
    use.involuntary += after.involuntary - before.involuntary
    use.seconds += seconds


def _latencies(vm: Vm, number: int) -> Counter[int]:
    return Counter({int(end): int(count) for which, end, count in _BUCKET.findall(vm.console()) if int(which) == number})
