"""How well a VM's vCPUs are isolated: the scheduler's accounting of their threads, and latencies from inside the guest."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab import kernel
from lab.vm import Vm

_BUCKET = re.compile(r"^round (\d+) bucket (\d+) (\d+)\s*$", re.MULTILINE)
_STATE, _PROCESSOR = 0, 36  # of /proc/<tid>/stat, behind the name


@dataclass(frozen=True)
class Isolation:
    """What was measured of some threads. Shares are of the time in which they wanted to run."""

    waiting_share: float
    foreign_share: float
    involuntary_per_second: float
    latencies: dict[int, int]  # upper end of the bucket in microseconds -> count

    def latency(self, quantile: float) -> int:
        """The bucket below whose upper end `quantile` of all wake-ups lie, in microseconds."""
        wanted, seen = quantile * sum(self.latencies.values()), 0
        for end, count in sorted(self.latencies.items()):
            seen += count
            if seen >= wanted:
                return end
        raise ValueError("no latencies")


def measure_round(vm: Vm, vcpus: Iterable[int], own: frozenset[int]) -> Isolation:
    """Measures while the guest's next whole round of latencies goes on. `own`: the CPUs that belong to these vCPUs."""
    all_tids = vm.vcpu_tids()
    tids = [all_tids[index] for index in vcpus]
    number = max(_begun(vm), default=0) + 1
    vm.wait_for_guest(f"round {number} begins")
    before, began = {tid: kernel.accounting(tid) for tid in tids}, time.monotonic()
    foreign, looks = _watch_until(vm, f"round {number} is done", tids, own)
    seconds = time.monotonic() - began
    after = {tid: kernel.accounting(tid) for tid in tids}
    ran = sum(after[tid].ran - before[tid].ran for tid in tids)
    waited = sum(after[tid].waited - before[tid].waited for tid in tids)
    involuntary = sum(after[tid].involuntary - before[tid].involuntary for tid in tids)
    return Isolation(waited / (ran + waited), foreign / max(looks, 1), involuntary / seconds, _latencies(vm, number))


def _begun(vm: Vm) -> list[int]:
    return [int(number) for number in re.findall(r"^round (\d+) begins", vm.console(), re.MULTILINE)]


def _watch_until(vm: Vm, text: str, tids: list[int], own: frozenset[int]) -> tuple[int, int]:
    """How often a running thread was seen on a CPU that is not its own, and how often one was seen running."""
    foreign = looks = 0
    while text not in vm.console():
        for tid in tids:
            fields = Path(f"/proc/{tid}/stat").read_text().rpartition(") ")[2].split()
            if fields[_STATE] == "R":
                looks += 1
                foreign += int(fields[_PROCESSOR]) not in own
        time.sleep(0.05)
    return foreign, looks


def _latencies(vm: Vm, number: int) -> dict[int, int]:
    return {int(end): int(count) for which, end, count in _BUCKET.findall(vm.console()) if int(which) == number}
