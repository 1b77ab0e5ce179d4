# SPDX-License-Identifier: Apache-2.0
"""Busy floating vCPUs of several sandboxes: all on all CPUs of the pool, and balanced; how long they wait, and who moves when one comes."""
# lab shapes: smt8
# lab timeout: 900
# lab alone: yes

import os
import time

from lab import check, cpus, kernel
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

POOL = "2-7"
SECONDS = 15.0
ROUNDS = 3
VMS = 3  # of two vCPUs: together as many as the pool has CPUs


def vcpus(pods: list[VmPod]) -> list[int]:
    return [tid for pod in pods for tid in pod.vm.vcpu_tids().values()]


def masks(pods: list[VmPod]) -> dict[int, str]:
    return {tid: kernel.allowed(tid) for tid in vcpus(pods)}


def shared(masks_now: dict[int, str]) -> int:
    """How many more vCPUs there are than CPUs that they are bound to."""
    return len(masks_now) - len(set(masks_now.values()))


def measure(pods: list[VmPod]) -> tuple[float, float]:
    """Of the time in which they wanted to run, how much vCPUs waited: all together, and the one that waited longest; per cent."""
    before = {tid: kernel.accounting(tid) for tid in vcpus(pods)}
    time.sleep(SECONDS)
    ran = waited = 0
    worst = 0.0
    for tid, then in before.items():
        now = kernel.accounting(tid)
        mine, wait = now.ran - then.ran, now.waited - then.waited
        ran, waited, worst = ran + mine, waited + wait, max(worst, 100 * wait / max(mine + wait, 1))
    return 100 * waited / max(ran + waited, 1), worst


def start(vms: Vms, name: str) -> VmPod:
    pod = VmPod(vms, name, VmSpec(vcpus=2, firmware="spin", vhost_net=False))
    pod.update("app", POOL)
    return pod


def main() -> None:
    os.sched_setaffinity(0, kernel.online() - cpus.parse(POOL))
    results: dict[str, list[tuple[float, float]]] = {"dedicated": [], "balanced": []}
    settings = {"housekeeping": POOL}
    with Daemon(vcpu_pinning="dedicated", **settings) as daemon, Vms() as vms:
        check.step(f"{VMS} VMs of two busy vCPUs each, on CPUs {POOL}, {ROUNDS} rounds of each setting in turn")
        pods = [start(vms, f"vm-{number}") for number in range(VMS)]
        for _ in range(ROUNDS):
            for pinning, found in results.items():
                daemon.configure(vcpu_pinning=pinning, **settings)
                wanted = 0 if pinning == "balanced" else len(vcpus(pods)) - 1
                check.eventually(f"vCPUs that share a mask, {pinning}", lambda: shared(masks(pods)), wanted)
                found.append(measure(pods))
        for pinning, found in results.items():
            rounds = "; ".join(f"{together:.1f} % (most {worst:.1f} %)" for together, worst in found)
            print(f"          {pinning}: waiting to run: {rounds}", flush=True)

        check.step("an exclusive container takes two CPUs: the vCPUs on them move, and two CPUs have two")
        before = masks(pods)
        owner = VmPod(vms, "owner", VmSpec(vcpus=3, firmware="spin", vhost_net=False), extra_cpus=POOL)
        owner.update("db", "2-3", exclusive=True)
        check.eventually("vCPUs on CPUs 2-3", lambda: [tid for tid, at in masks(pods).items() if cpus.parse(at) & cpus.parse("2-3")], [])
        after = masks(pods)
        moved = sum(before[tid] != after[tid] for tid in before)
        print(f"          moved: {moved} of {len(before)} vCPUs", flush=True)
        check.true("no vCPU moved that could stay", moved <= 3)

        check.step("it goes: each vCPU has a CPU again")
        owner.remove()
        check.eventually("vCPUs that share a mask", lambda: shared(masks(pods)), 0)
        print(f"          moved: {sum(after[tid] != at for tid, at in masks(pods).items())} of {len(before)} vCPUs", flush=True)


main()
