# SPDX-License-Identifier: Apache-2.0
"""What else runs on a container's CPUs on a busy node, counted by the kernel: VM not pinned, Kata's rule, best-effort, quiet."""
# lab shapes: smt8
# lab timeout: 4800
# lab alone: yes
# lab apart: yes

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lab import check, kernel, product
from lab.busy import Busy
from lab.cgroup import Cgroup
from lab.expect import expect_dedicated
from lab.helper import Helper
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import expect_quiet
from lab.vm import Vm, Vms, VmSpec
from lab.visitors import Visitors, Visits

GIVEN = Path("/lab/noise.json")  # for a longer run, or fewer rules: `node run quiet_noise --with DIR`
OWN, POOL, HOUSEKEEPING, ALL = "2-3", "0-1,4-7", "0-1", "0-7"
CONTAINER_VCPUS = (1, 2)
ISOLATED = Path("/sys/fs/cgroup/cpuset.cpus.isolated")
PODS_EVERY = 10.0  # seconds: one goes, another comes
OUT = Path(os.environ["LAB_OUT"])
NAMES_SHOWN = 12


class Pods:
    """Pods that come and go beside the subject. `pool`: where they may run; `told`: whether there is a daemon to be told."""

    def __init__(self, vms: Vms, pool: str, told: bool) -> None:
        self._vms, self._pool, self._told = vms, pool, told
        self._number = 0
        self._pod: VmPod | None = None

    def next(self) -> None:
        """One goes, another comes."""
        self.end()
        self._number += 1
        vm = self._vms.start(f"passing-{self._number}", VmSpec(vcpus=2, vhost_net=False), self._pool)
        self._pod = vm
        if self._told:
            product.put_sandbox(vm)
            product.put_container(vm.id, "app", self._pool)

    def end(self) -> None:
        """The last one goes."""
        if self._pod:
            self._vms.stop(self._pod)
            if self._told:
                product.remove_sandbox(self._pod.id)
        self._pod = None


class Stage:
    """A busy node with the subject, a VM whose container owns OWN; the rules that it can be under."""

    def __init__(self, vms: Vms, seconds: float) -> None:
        self._vms, self._seconds = vms, seconds

    @contextlib.contextmanager
    def _subject(self, allowed: str) -> Iterator[Vm]:
        """One vCPU of the container computes, and one waits."""
        vm = self._vms.start("subject", VmSpec(vcpus=3, job="half", debug_threads=True), allowed)
        yield vm
        self._vms.stop(vm)

    def unpinned(self) -> Visits:
        """No CPU manager: every pod may use every CPU."""
        with self._subject(ALL) as vm:
            return self._count(vm, ALL, told=False)

    def by_kata(self) -> Visits:
        """The static CPU manager and Kata's defaults: the sandbox's cgroup has the container's CPUs, and other pods the rest."""
        with self._subject(OWN) as vm:
            return self._count(vm, POOL, told=False)

    def by_us(self, **settings: str) -> Visits:
        """The daemon, in a cgroup that allows the shared pool, too, where the rest of the sandbox goes."""
        with Daemon(housekeeping=HOUSEKEEPING, **settings), self._subject(ALL) as vm:
            product.put_sandbox(vm)
            product.put_container(vm.id, "app", OWN, exclusive=True)
            expect_dedicated(vm, OWN)
            if settings:
                expect_quiet(OWN, vm)
                check.eventually("CPUs of isolated partitions, by the kernel", ISOLATED.read_text, f"{OWN}\n")
            result = self._count(vm, POOL, told=True)
            product.remove_sandbox(vm.id)
        return result

    def quiet(self) -> Visits:
        """The same with grade = "quiet"."""
        with Helper():
            return self.by_us(grade="quiet")

    def _count(self, vm: Vm, pool: str, told: bool) -> Visits:
        pods = Pods(self._vms, pool, told)
        pods.next()
        visitors, until = Visitors(OWN), time.monotonic() + self._seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(PODS_EVERY, left))
            pods.next()
        tids = vm.vcpu_tids()
        owners = {tids[index] for index in CONTAINER_VCPUS}
        visits = visitors.stop(owners, set(kernel.threads(vm.pid)) - owners)
        pods.end()
        return visits


def per_minute(counts: Counter[str], seconds: float) -> str:
    """All of them together."""
    return f"{counts.total() * 60 / seconds:.1f}".removesuffix(".0")


def family(name: str) -> str:
    """`kworker/2:1` and `kworker/3:0H` are the same to a reader."""
    return name.split(":")[0].rstrip("0123456789") if "/" in name else name


def by_name(counts: Counter[str], seconds: float) -> str:
    """The most frequent of them."""
    families: Counter[str] = Counter()
    for name, count in counts.items():
        families[family(name)] += count
    shown = [f"{name.strip()} {count * 60 / seconds:.3g}" for name, count in families.most_common(NAMES_SHOWN) if count]
    return ", ".join(shown) + (", …" if len(families) > NAMES_SHOWN else "") or "none"


def table(results: dict[str, Visits], seconds: float) -> str:
    """Markdown: counts a minute, of all of OWN together."""
    rows: dict[str, Callable[[Visits], Counter[str]]] = {
        "switches to tasks that can be moved": lambda visits: visits.movable,
        "switches to per-CPU kernel threads": lambda visits: visits.bound,
        "interrupts that can be moved": lambda visits: visits.interrupts,
        "interrupts that the kernel keeps there": lambda visits: visits.fixed_interrupts,
        "of the CPUs themselves: timer, rescheduling, function calls": lambda visits: visits.vectors,
    }
    head = f"| per minute, on CPUs {OWN} together | {' | '.join(results)} |\n|---|{'---:|' * len(results)}\n"
    lines = [f"| {name} | {' | '.join(per_minute(of(visits), seconds) for visits in results.values())} |" for name, of in rows.items()]
    return head + "\n".join(lines) + "\n"


def names(results: dict[str, Visits], seconds: float) -> str:
    """Who that was."""
    text = ""
    for rule, visits in results.items():
        text += f"\n{rule}:\n\n| | per minute |\n|---|---|\n"
        for name in ("movable", "bound", "work", "interrupts", "fixed_interrupts", "vectors", "softirqs"):
            text += f"| {name.replace('_', ' ')} | {by_name(getattr(visits, name), seconds)} |\n"
    return text


def main() -> None:
    settings = {"seconds": 150, "rules": ["unpinned", "by_kata", "by_us", "quiet"]} | (json.loads(GIVEN.read_text()) if GIVEN.exists() else {})
    called = {"unpinned": "not pinned", "by_kata": "Kata's rule", "by_us": "best-effort", "quiet": "quiet"}
    Cgroup("kubepods")
    results, seconds = {}, settings["seconds"]
    check.step("services, a disk, a network, timers, devices")
    busy = Busy()
    with Vms() as vms:
        stage = Stage(vms, seconds)
        for rule in settings["rules"]:
            check.step(f"{called[rule]}, {seconds} s")
            busy.interrupt(OWN)
            visits = getattr(stage, rule)()
            results[called[rule]] = visits
            check.equal("events that were lost", visits.lost, 0)
            check.true("switches to the container's vCPUs were seen, unless they may run elsewhere", visits.own > 0 or rule == "unpinned")
            print(names({called[rule]: visits}, seconds), flush=True)
    busy.stop()
    text = f"{table(results, seconds)}\n{seconds} s for each rule.\n{names(results, seconds)}"
    (OUT / "quiet_noise.md").write_text(text)
    print(text)
    if "quiet" in results:
        check.equal("tasks that could be moved, under quiet", dict(results["quiet"].movable), {})
        check.equal("interrupts that could be moved, under quiet", dict(results["quiet"].interrupts), {})


main()
