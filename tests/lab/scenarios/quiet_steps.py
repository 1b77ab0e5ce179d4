# SPDX-License-Identifier: Apache-2.0
"""grade = "realtime": how long each kind of mask takes to leave a container's CPUs, and to return, and what the grade adds; by the kernel's word."""
# lab shapes: smt8
# lab timeout: 900
# lab alone: yes

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from lab import check, cpus, product, quiet, reach
from lab.cgroup import Cgroup
from lab.helper import Helper
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE, expect_noisy, expect_quiet
from lab.vm import Vm, Vms, VmSpec

OWN, REST, FLOOR = "2-3", "0-1,4-7", "0-1"
ON = cpus.parse(OWN)
ROUNDS = 40
LIMIT = 20.0  # seconds; no step may wait for a timer: the shortest is the helper's next look, after 10 s
TIMER = 9.0
RPS = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")
ISOLATED = Path("/sys/fs/cgroup/cpuset.cpus.isolated")

# What is read for a step: whether each of its masks has CPUs of the container; of what the grade adds, whether it is as without.
Step = Callable[[], list[bool]]


def has(cpu_list: str) -> bool:
    return bool(cpus.parse(cpu_list) & ON)


def of_files(files: list[Path], read: Callable[[str], str]) -> Step:
    return lambda: [has(read(file.read_text().strip())) for file in files]


def of_threads(tids: list[int]) -> Step:
    return lambda: [bool(os.sched_getaffinity(tid) & ON) for tid in tids]


def as_list(text: str) -> str:
    return text


def interrupts() -> dict[Path, str]:
    """By its file: the CPUs of each."""
    files = [irq / "smp_affinity_list" for irq in Path("/proc/irq").iterdir() if irq.name.isdigit()]
    return {file: file.read_text().strip() for file in files}


def kernel_threads() -> dict[int, str]:
    """By number: the CPUs of each, but for a VM's own and for workers: those of a mask that is no longer wanted end when they are idle."""
    named = {name.rpartition(", started")[0]: mask for name, mask in reach.kernel_threads().items()}
    return {int(name.split()[-1]): mask for name, mask in named.items() if not name.startswith(("kworker/", "vhost-", "kvm-"))}


def of_grade(vm: Vm) -> dict[str, Step]:
    """The partition of the dedicated vCPUs, their policy, and how long their CPUs may take to wake up."""
    dedicated = quiet.owners(vm, OWN)
    check.equal("dedicated vCPUs", len(dedicated), len(ON))
    latencies = [Path(f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us") for cpu in ON]
    return {
        "partition": lambda: [not has(ISOLATED.read_text().strip())],
        "real-time vCPUs": lambda: [os.sched_getscheduler(tid) == os.SCHED_OTHER for tid in dedicated],
        "idle states": lambda: [file.read_text().strip() != "n/a" for file in latencies],
    }


class Steps:
    """What each step changes. Of interrupts and kernel threads those that can be moved: they left when the host was kept off."""

    def __init__(self) -> None:
        self._irqs, self._threads = interrupts(), kernel_threads()

    def all(self, vm: Vm) -> dict[str, Step]:
        """To be read while the host is kept off, and the grade is in force."""
        irqs, threads = interrupts(), kernel_threads()
        units = [reach.CGROUPS / unit / "cpuset.cpus.effective" for unit in reach.UNITS]
        return {
            "units": of_files([unit for unit in units if unit.exists()], as_list),
            "new interrupts": of_files([Path("/proc/irq/default_smp_affinity")], reach.of_mask),
            "interrupts": of_files([file for file, was in self._irqs.items() if has(was) and not has(irqs.get(file, OWN))], as_list),
            "workqueues": of_files([Path("/sys/devices/virtual/workqueue/cpumask")], reach.of_mask),
            "kernel threads": of_threads([tid for tid, was in self._threads.items() if has(was) and not has(threads.get(tid, OWN))]),
            "receive queue": of_files([RPS], reach.of_mask),
        } | of_grade(vm)


def watch(pending: dict[str, Step], wanted: bool, change: Callable[[], None]) -> dict[str, float]:
    """Seconds from the change until all masks of each step have CPUs of the container (`wanted`), or none."""
    pending, took, began = dict(pending), {}, time.monotonic()
    change()
    while pending:
        for name in list(pending):
            if all(each == wanted for each in pending[name]()):
                took[name] = time.monotonic() - began
                del pending[name]
        if time.monotonic() - began > LIMIT:
            check.equal("steps that are not done", sorted(pending), [])
    return took


def row(name: str, times: list[float]) -> str:
    hundredths = statistics.quantiles(times, n=100, method="inclusive")
    return f"| {name} | " + " | ".join(f"{seconds * 1000:.0f}" for seconds in (hundredths[49], hundredths[98], max(times))) + " |"


def show(title: str, rounds: list[dict[str, float]]) -> None:
    print(f"| {title}, ms | p50 | p99 | max |\n|---|---:|---:|---:|", flush=True)
    for name in rounds[0]:
        print(row(name, [each[name] for each in rounds]), flush=True)
    print(row("all", [max(each.values()) for each in rounds]), flush=True)
    slowest = max(max(each.values()) for each in rounds)
    check.true(f"no step waited for a timer (the longest took {slowest:.2f} s)", slowest < TIMER)


def measure(pod: VmPod) -> None:
    check.step(f"{ROUNDS} times: a container gets CPUs {OWN}, and loses them")
    steps = Steps()
    pod.update("app", OWN, exclusive=True)
    expect_quiet(OWN, pod.vm)
    check.eventually("its grade", lambda: product.call("GET", f"/v1/sandboxes/{pod.vm.id}")["grade"], "realtime", PATIENCE)
    every = steps.all(pod.vm)
    left, back = [], []
    for _ in range(ROUNDS):
        back.append(watch(every, wanted=True, change=lambda: pod.update("app", REST, exclusive=False)))
        left.append(watch(every, wanted=False, change=lambda: pod.update("app", OWN, exclusive=True)))
        print(f"          back after {max(back[-1].values()):.2f} s, left after {max(left[-1].values()):.2f} s", flush=True)
    show("the host leaves", left)
    show("the host has its CPUs again", back)
    (Path(os.environ["LAB_OUT"]) / "steps.json").write_text(json.dumps({"left": left, "back": back}))
    expect_quiet(OWN, pod.vm, seconds=PATIENCE)


def main() -> None:
    Cgroup("kubepods")  # as kubelet does, which enables the cpuset controller
    RPS.write_text("ff")
    with Helper(), Daemon(grade="realtime", quiet_floor=FLOOR, housekeeping="shared-pool"), Vms() as vms:
        pod = VmPod(vms, "timed", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
        measure(pod)
        pod.remove()
        expect_noisy(OWN)


main()
