# SPDX-License-Identifier: Apache-2.0
"""Containers inside VMs: our agent, reached by vsock, keeps their processes on vCPUs that are on their CPUs, while vCPUs come and go."""
# lab shapes: smt8 bookworm
# lab timeout: 600

import json
import statistics
import time

from lab import check, cpus, kernel, product
from lab.guest import Echo, Guest, expect_notice, expect_placed, spec
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms

APP, DB, WEB = "a" * 64, "b" * 64, "c" * 64
OWN = {APP: "4-5", DB: "6", WEB: "0-1"}
LOOKS = 12
PLUGGED = [5, 4, 3, 2]
ROUNDS = 30  # even: containers have what they had before
PAUSE = 0.2  # two of them after a change, and not half a second: then the daemon looks at the VM once more


def expect_numbers(pod: VmPod, guest: Guest, wanted: dict[int, int]) -> None:
    """The guest's kernel numbers its CPUs as `wanted`, and the daemon knows."""
    check.eventually("APIC ids by the guest's numbers", guest.shell.apic_ids, wanted, seconds=60)
    check.eventually("the same, as the daemon has them", lambda: product.guest_numbers(pod.vm.id), wanted)


def numbers_of(apic_ids: list[int]) -> dict[int, int]:
    """What the guest's kernel calls CPUs that were plugged in this order: before 6.10 by that, then by APIC id."""
    return dict(enumerate(apic_ids)) if kernel.release() < (6, 10) else {each: each for each in sorted(apic_ids)}


def expect_held(guest: Guest, own: dict[str, str]) -> None:
    """By looking again and again: whatever thread of a container ran, its vCPU was on a CPU of the container.

    A thread that has slept since a vCPU was unplugged is still shown on it.
    """
    looks = guest.look(LOOKS, *own)
    ids = guest.shell.apic_ids()
    for container, cpu_list in own.items():
        ran_on = {cpu for cpu in looks.guest_cpus[container] if cpu in ids}
        seen = set().union(*(looks.host_cpus[ids[cpu]] for cpu in ran_on))
        where = f"guest CPUs {cpus.show(ran_on)}, there on CPUs {cpus.show(seen)}"
        threads = len(looks.threads[container])
        check.true(f"{container[0]}'s {threads} threads ran on {where}", bool(seen) and seen <= cpus.parse(cpu_list))
        check.true(f"threads of {container[0]} were born and ended", threads > 20)


def expect_prompt(pod: VmPod, guest: Guest, when: str) -> None:
    """From the plan to the last process placed and read again, as a ratio to a bare round trip, by the median of many.

    Told and not judged: under two levels of emulation the work of the two ends costs more than the way (docs/understand/guest.md).
    Each follows a call of the API: one that changes nothing, and one after which two containers have other vCPUs in the guest.
    """
    echo = Echo(guest, pod.vm)
    bare, placing = [], []
    for turn in range(ROUNDS):
        has, gets = ("4-5", "4") if turn % 2 == 0 else ("4", "4-5")
        time.sleep(PAUSE)
        product.put_container(pod.vm.id, APP, has, exclusive=True)
        bare.append(echo.seconds())
        time.sleep(PAUSE)
        before = product.guest(pod.vm.id).get("reaction_seconds")
        product.put_container(pod.vm.id, APP, gets, exclusive=True)
        placing += reaction_after(pod, before)
    echo.stop()
    check.true(f"the guest was in time {len(placing)} times of {ROUNDS}", len(placing) > ROUNDS / 2)
    trip, placed = statistics.median(bare), statistics.median(placing)
    text = f"{when}, medians: bare round trip {trip * 1000:.2f} ms of {len(bare)}, placed and read again {placed * 1000:.2f} ms of {len(placing)}"
    print(f"          {text}: {placed / trip:.1f} round trips")


def expect_measured(pod: VmPod) -> None:
    """Latencies of the dedicated vCPUs, measured in the guest while its containers run; how large they are is not judged here."""
    check.step("wake-up latencies inside the guest")
    done = product.ctl("measure", pod.vm.id, "--for", "12s", "--json")
    check.equal("exit status of measure", (done.returncode, done.stderr), (0, ""))
    measured = json.loads(done.stdout)
    dedicated = sorted(each["cpus"] for each in measured["vcpus"] if each["dedicated"])
    check.equal("CPUs of the vCPUs that were measured", dedicated, ["4", "5", "6"])
    check.true("the threads that measured were real-time threads", measured["realtime"])
    for each in measured["vcpus"]:
        check.true(f"vCPU {each['vcpu']} woke {each['samples']} times", each["samples"] > 100)
        inside = sum(count for _, count in each["histogram"])
        check.equal("of them in the histogram", inside, each["samples"])
        check.true("the percentiles ascend", each["p50_us"] <= each["p90_us"] <= each["p99_us"] <= each["max_us"])
    print(product.ctl("measure", pod.vm.id, "--for", "1s").stdout)


def reaction_after(pod: VmPod, before: float | None) -> list[float]:
    """How long the guest took, by the daemon's clock, for what was asked of it since it took `before`.

    Nothing where it was so late (by a second) that the daemon began again with it.
    """
    until = time.monotonic() + 5
    while time.monotonic() < until:
        time.sleep(PAUSE)  # who asks keeps the daemon from listening to the guest
        guest = product.guest(pod.vm.id)
        if guest["current"] and guest["reaction_seconds"] != before:
            return [guest["reaction_seconds"]]
    return []


def live(vms: Vms, cgroup: str) -> None:
    check.step(f"a guest with cgroup {cgroup}: one vCPU, then four are plugged in, the highest first")
    pod = VmPod(vms, f"guest-{cgroup}", spec(cgroup, vcpus=1, max_vcpus=6), extra_cpus="0-1")
    guest = Guest(pod.vm, cgroup)
    check.eventually("the agent answers", lambda: product.guest(pod.vm.id).get("connected"), True, seconds=60)
    check.equal("its address", product.guest(pod.vm.id)["address"], f"vsock://{pod.vm.cid}:1031")
    for count, index in enumerate(PLUGGED, start=2):
        check.equal("index that QEMU hands out", pod.vm.plug_vcpu(), index)
        # What comes while the guest is busy with another one it takes from the lowest up.
        check.eventually("vCPUs of the guest", lambda: len(guest.shell.apic_ids()), count, seconds=60)
    expect_numbers(pod, guest, numbers_of([0, *PLUGGED]))

    check.step("three containers; each counts its CPUs first")
    guest.make(*OWN)
    for container, cpu_list in OWN.items():
        pod.update(container, cpu_list, exclusive=container != WEB)
    check.eventually("containers that the guest has placed", lambda: {each[2] for each in product.in_guest(pod.vm.id).values()}, {""})
    check.equal("nproc", {each[0]: guest.first_act(each, "nproc") for each in OWN}, {"a": "2", "b": "1", "c": "2"})
    for container in OWN:
        guest.start(container, "sleep 10000")
    expect_placed(guest, OWN)
    expect_prompt(pod, guest, "while they sleep")
    for container in OWN:
        guest.start(container, "/restless")
    expect_placed(guest, OWN)
    expect_held(guest, OWN)
    expect_notice(guest, OWN, WEB)
    expect_prompt(pod, guest, "while they run")

    expect_measured(pod)

    check.step("a container ends, and Kata unplugs the vCPU that came last")
    left = {APP: OWN[APP], WEB: OWN[WEB]}
    guest.end(DB)
    pod.end(DB)
    pod.vm.unplug_vcpu("cpu-4")
    check.eventually("vCPUs of the VM", lambda: sorted(pod.vm.vcpu_tids()), sorted([0, *PLUGGED[:-1]]), seconds=60)
    expect_numbers(pod, guest, numbers_of([0, *PLUGGED[:-1]]))
    expect_placed(guest, left)
    expect_held(guest, left)
    expect_notice(guest, left, WEB)
    check.equal("violations that verify finds", product.violations(), [])
    check.true("the VM runs", pod.vm.is_undisturbed())
    pod.remove()


def main() -> None:
    with Daemon(housekeeping="shared-pool"), Vms() as vms:
        # Debian 13's kernel has no cpusets of version 1.
        live(vms, "v1" if kernel.has_cpusets_v1() else "v2")


main()
