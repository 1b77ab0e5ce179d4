# SPDX-License-Identifier: Apache-2.0
"""An exclusive pod gets CPUs of a busy shared pod that kubelet has told nothing yet: that one leaves them first."""
# lab shapes: smt8
# lab timeout: 900

from lab import check, cpus, kernel, product
from lab.expect import expect_dedicated, expect_floating
from lab.pods import VmPod
from lab.product import Daemon
from lab.trace import MaskWrite, Switch, Trace
from lab.vm import Vms, VmSpec

SPACE = "2-7"
PLACES = ("2-3", "4-5", "6-7")
ROUNDS = 6


def place(number: int) -> str:
    """What the exclusive pod owns after round `number`."""
    return PLACES[number % len(PLACES)]


def rest(number: int) -> str:
    """What is left for the shared pod then."""
    return cpus.show(cpus.parse(SPACE) - cpus.parse(place(number)))


def take_over(shared: VmPod, exclusive: VmPod, trace: Trace, number: int) -> None:
    """One call tells of the exclusive pod's new CPUs. Both cgroups allow all of SPACE: only our masks keep the pods apart."""
    trace.mark(f"{number} begins")
    product.put_container(exclusive.vm.id, "app", place(number), exclusive=True)
    trace.mark(f"{number} is done")
    expect_dedicated(exclusive.vm, place(number))
    expect_floating(shared.vm, rest(number), count=2)


def order_of_writes(writes: list[MaskWrite], owner_of: dict[int, str], number: int) -> list[str]:
    """Whose masks were written while round `number` went on, repetitions left out."""
    order: list[str] = []
    for write in writes:
        if write.mark == f"{number} begins" and order[-1:] != [owner_of[write.tid]]:
            order.append(owner_of[write.tid])
    return order


def strangers(switches: list[Switch], owner_of: dict[int, str]) -> list[Switch]:
    """Switches to a thread of the shared pod on a CPU that the exclusive pod owned at that time, and the other way round."""
    found = []
    for switch in switches:
        number, _, phase = switch.mark.partition(" ")
        is_exclusive = owner_of[switch.tid] == "exclusive"
        if phase == "is done" and (switch.cpu in cpus.parse(place(int(number)))) != is_exclusive:
            found.append(switch)
    return found


def main() -> None:
    with Daemon(housekeeping="sandbox"), Vms() as vms:
        shared = VmPod(vms, "shared", VmSpec(vcpus=2, firmware="spin"), extra_cpus=SPACE)
        exclusive = VmPod(vms, "exclusive", VmSpec(vcpus=2, firmware="spin"), extra_cpus=SPACE)
        shared.update("app", SPACE)
        exclusive.update("app", place(0), exclusive=True)
        expect_dedicated(exclusive.vm, place(0))
        expect_floating(shared.vm, rest(0), count=2)
        owner_of = {tid: pod.vm.id for pod in (shared, exclusive) for tid in kernel.threads(pod.vm.pid)}

        check.step(f"{ROUNDS} times the exclusive pod gets other CPUs, watched by the kernel's tracepoints")
        trace = Trace(owner_of)
        trace.start()
        for number in range(1, ROUNDS + 1):
            take_over(shared, exclusive, trace, number)
        seen = trace.stop()

        print(f"          {len(seen.switches)} switches to their threads, {len(seen.mask_writes)} writes of their masks")
        check.true("the witness saw both pods run", {owner_of[switch.tid] for switch in seen.switches} == set(owner_of.values()))
        for number in range(1, ROUNDS + 1):
            order = order_of_writes(seen.mask_writes, owner_of, number)
            check.equal(f"whose masks were written in round {number}", order, ["shared", "exclusive"])
        check.equal("threads seen where they must not be", strangers(seen.switches, owner_of), [])
        check.equal("violations that verify finds", product.violations(), [])


main()
