# SPDX-License-Identifier: Apache-2.0
"""How much isolation a container's vCPUs get: unpinned, by Kata's rule, and by us, side by side in one run."""
# lab shapes: smt8
# lab timeout: 1500
# lab alone: yes

import os
from collections.abc import Callable
from pathlib import Path

from lab import check, cpus, kernel, plot, product
from lab.cgroup import Cgroup
from lab.measure import BEYOND, REACH, Isolation, measure_round
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

PODS = "1-3"  # kubelet keeps the other CPUs of the node for the system
OWN, POOL = "2-3", "1"
CONTAINER_VCPUS = (1, 2)
NOT_PINNED, OURS = "Kata, not pinned", "kata-affinity, manage"
OUT = Path(os.environ["LAB_OUT"])


class Stage:
    """The subject, a VM whose container owns OWN, and the neighbours that burn CPU; and the rules they can be under."""

    def __init__(self, vms: Vms) -> None:
        self.subject = VmPod(vms, "subject", VmSpec(vcpus=3, job="isolation", debug_threads=True), told=False).vm
        self.subject.wait_for_guest("round 1 begins")
        self.neighbours = VmPod(vms, "neighbours", VmSpec(vcpus=2, firmware="spin", vhost_net=False), told=False).vm

    def unpinned(self) -> Isolation:
        """No CPU manager: every pod may use every CPU for pods."""
        self._as_born(PODS, PODS)
        return self._measure()

    def by_kata(self) -> Isolation:
        """The static CPU manager and Kata: the union goes to the cgroup, and 3 vCPUs on 2 CPUs are not pinned."""
        self._as_born(OWN, POOL)
        return self._measure()

    def by_kata_pinned(self) -> Isolation:
        """As before, with a sidecar in the pool: the union has as many CPUs as the VM has vCPUs, so Kata pins each to one."""
        self._as_born(PODS, POOL)
        for (_, tid), cpu in zip(sorted(self.subject.vcpu_tids().items()), sorted(cpus.parse(PODS)), strict=True):
            os.sched_setaffinity(tid, {cpu})
        return self._measure()

    def by_us(self) -> Isolation:
        """The same cpusets and the cgroup that Kata writes, with the daemon."""
        return self._with_daemon(OWN)

    def by_us_with_pool(self) -> Isolation:
        """With a cgroup that allows the shared pool, too, where the rest of the sandbox then goes."""
        return self._with_daemon(PODS, housekeeping="shared-pool")

    def _with_daemon(self, allowed: str, **settings: str) -> Isolation:
        self._as_born(allowed, POOL)
        with Daemon(**settings):
            for vm, own, exclusive in ((self.neighbours, POOL, False), (self.subject, OWN, True)):
                product.put_sandbox(vm)
                product.put_container(vm.id, "app", own, exclusive)
            wanted = [str(cpu) for cpu in sorted(cpus.parse(OWN))]
            check.eventually("where the container's vCPUs may run", self._container_cpus, wanted)
            result = self._measure()
            for vm in (self.neighbours, self.subject):
                product.remove_sandbox(vm.id)
        return result

    def _container_cpus(self) -> list[str]:
        where = self.subject.vcpu_cpus()
        return [where[index] for index in CONTAINER_VCPUS]

    def _as_born(self, allowed: str, pool: str) -> None:
        """Every thread may run wherever its cgroup allows it, as if none had ever been pinned."""
        self.subject.cgroup.set_cpus(allowed)
        self.neighbours.cgroup.set_cpus(pool)
        for tid in (*self.subject.all_tids(), *self.neighbours.all_tids()):
            os.sched_setaffinity(tid, range(os.cpu_count()))

    def _measure(self) -> Isolation:
        return measure_round(self.subject, cpus.parse(OWN))


def rows(result: Isolation) -> dict[str, float]:
    """What the table shows of one rule."""
    own = {index: result.vcpus[index] for index in CONTAINER_VCPUS}
    shown = {f"vCPU {index}: time waiting to run (%)": use.waiting_percent() for index, use in result.vcpus.items()}
    shown |= {f"vCPU {index}: time on CPUs not its container's (%)": use.foreign_percent() for index, use in own.items()}
    shown |= {f"vCPU {index}: involuntary switches (1/s)": use.involuntary_per_second() for index, use in own.items()}
    for quantile in (0.5, 0.9, 0.99, 0.999):
        shown[f"wake-up latency in the VM, p{100 * quantile:g} (us)"] = result.latency(quantile)
    return shown


def table(results: dict[str, Isolation]) -> str:
    """The numbers as Markdown."""
    columns = [rows(result) for result in results.values()]
    head = f"| | {' | '.join(results)} |\n|---|{'---:|' * len(results)}\n"
    lines = [f"| {name} | {' | '.join(in_words(column[name]) for column in columns)} |" for name in columns[0]]
    counts = f"| wake-ups measured | {' | '.join(str(result.latencies.total()) for result in results.values())} |"
    return head + "\n".join([*lines, counts]) + "\n"


def interruptions(result: Isolation) -> float:
    """How often in a second the container's vCPUs, all together, were taken off their CPUs in favour of another thread.

    Waiting tells the same on a quiet machine; on a busy one the node's CPUs themselves are late, and that looks like waiting.
    """
    return sum(result.vcpus[index].involuntary_per_second() for index in CONTAINER_VCPUS)


def in_words(value: float) -> str:
    if value == BEYOND:
        return f"> {REACH}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def picture(results: dict[str, Isolation]) -> str:
    """How long each vCPU waited, and how the latencies are distributed."""
    each = list(results.values())
    names = {index: f"vCPU {index}, {'the container' if index in CONTAINER_VCPUS else 'the rest'}" for index in each[0].vcpus}
    waiting = {name: [result.vcpus[index].waiting_percent() for result in each] for index, name in names.items()}
    panels = [
        plot.bars("time in which the vCPU's thread wanted to run and had to wait for a CPU", waiting),
        plot.later_than("wake-ups in the VM, on the container's vCPUs, that were later than", [result.latencies for result in each], REACH),
    ]
    return plot.page("A container owns CPUs 2-3; all 3 vCPUs of its VM and 2 of a neighbour are busy", list(results), panels)


def main() -> None:
    Cgroup("kubepods").set_cpus(PODS)
    with Vms() as vms:
        # What measures must not run where it measures.
        os.sched_setaffinity(0, kernel.online() - cpus.parse(PODS))
        check.step("boot the subject: 3 vCPUs, all computing; start neighbours that burn CPU on 2 more")
        stage = Stage(vms)
        variants: dict[str, Callable[[], Isolation]] = {
            "unpinned": stage.unpinned,
            NOT_PINNED: stage.by_kata,
            "Kata, pinned": stage.by_kata_pinned,
            "kata-affinity, obey": stage.by_us,
            OURS: stage.by_us_with_pool,
        }
        results = {}
        for name, measure in variants.items():
            check.step(name)
            results[name] = measure()

    (OUT / "isolation.md").write_text(table(results))
    (OUT / "isolation.svg").write_text(picture(results))
    print(table(results))
    ours, kata = results[OURS], results[NOT_PINNED]
    check.true("the container's vCPUs are interrupted less than a quarter as often with us as by Kata's rule", interruptions(ours) < interruptions(kata) / 4)
    check.equal("their time on foreign CPUs", [ours.vcpus[index].foreign_percent() for index in CONTAINER_VCPUS], [0, 0])


main()
