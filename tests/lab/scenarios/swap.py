# SPDX-License-Identifier: Apache-2.0
"""Two busy sandboxes swap their CPUs again and again: no thread ever runs on a CPU that belongs to the other one."""
# lab shapes: smt8
# lab timeout: 900

from lab import check, cpus, kernel, product
from lab.expect import expect_dedicated
from lab.pods import VmPod
from lab.product import Daemon
from lab.sampler import Sampler
from lab.trace import Switch, Trace
from lab.vm import Vms, VmSpec

LOW, HIGH = "2-3", "4-5"
ROUNDS = 6


def swap(left: VmPod, right: VmPod, trace: Trace, number: int) -> None:
    """`left` gets what `right` has and the other way round. The cgroups allow all of it: only our masks keep them apart."""
    ours, theirs = place_of_left(number), place_of_left(number + 1)
    trace.mark(f"{number} begins")
    product.put_container(left.vm.id, "app", ours, exclusive=True)
    trace.mark(f"{number} is contested")
    poke(left, right)
    trace.mark(f"{number} ends")
    product.put_container(right.vm.id, "app", theirs, exclusive=True)
    trace.mark(f"{number} is done")
    expect_dedicated(left.vm, ours)
    expect_dedicated(right.vm, theirs)
    poke(left, right)


def place_of_left(number: int) -> str:
    """Where `left` is after swap `number`, and `right` before it: the CPUs that both claim in between."""
    return LOW if number % 2 else HIGH


def poke(*pods: VmPod) -> None:
    """Makes the emulator threads run, too."""
    for pod in pods:
        pod.vm.is_undisturbed()


def owners_in_order(switches: list[Switch], owner_of: dict[int, str], cpu: int, number: int) -> list[str]:
    """Whose threads ran on `cpu` while swap `number` went on, repetitions left out."""
    order: list[str] = []
    for switch in switches:
        owner = owner_of[switch.tid]
        if switch.cpu == cpu and switch.mark.startswith(f"{number} ") and order[-1:] != [owner]:
            order.append(owner)
    return order


def expect_clean_handover(switches: list[Switch], owner_of: dict[int, str]) -> None:
    """A CPU that both claim for a while goes from `right` to `left` once: had both been allowed there, it would go back."""
    orders = [
        owners_in_order(switches, owner_of, cpu, number)
        for number in range(1, ROUNDS + 1)
        for cpu in sorted(cpus.parse(place_of_left(number)))
    ]
    unclean = [order for order in orders if order not in ([], ["right"], ["left"], ["right", "left"])]
    check.equal("CPUs that went back and forth within a swap", unclean, [])
    check.true("CPUs changed hands in the trace", any("left" in order for order in orders))


def strangers(switches: list[Switch], owner_of: dict[int, str]) -> list[Switch]:
    """Switches to a thread on a CPU that is the other pod's, or that both claim."""
    found = []
    for switch in switches:
        number, _, phase = switch.mark.partition(" ")
        on_left_cpu = switch.cpu in cpus.parse(place_of_left(int(number or 0)))
        if phase == "is done" and on_left_cpu != (owner_of[switch.tid] == "left"):
            found.append(switch)
        if phase == "is contested" and on_left_cpu:
            found.append(switch)
    return found


def main() -> None:
    with Daemon(housekeeping="sandbox"), Vms() as vms:
        left = VmPod(vms, "left", VmSpec(vcpus=2, firmware="spin"), extra_cpus=f"{LOW},{HIGH}")
        right = VmPod(vms, "right", VmSpec(vcpus=2, firmware="spin"), extra_cpus=f"{LOW},{HIGH}")
        left.update("app", HIGH, exclusive=True)
        right.update("app", LOW, exclusive=True)
        expect_dedicated(left.vm, HIGH)
        owner_of = {tid: pod.vm.id for pod in (left, right) for tid in kernel.threads(pod.vm.pid)}

        check.step(f"{ROUNDS} swaps, watched by the scheduler's tracepoint and a sampler of masks")
        trace, sampler = Trace(owner_of), Sampler(sorted(owner_of))
        trace.start()
        for number in range(1, ROUNDS + 1):
            swap(left, right, trace, number)
        switches = trace.stop().switches
        masks, rounds = sampler.stop()

        watched = [switch for switch in switches if switch.tid in owner_of]
        print(f"          {len(watched)} switches to their threads, {rounds} looks at {len(owner_of)} threads")
        check.true("the witness saw the sandboxes run", len(watched) > ROUNDS)
        expect_clean_handover(watched, owner_of)
        check.equal("threads seen where they must not be", strangers(watched, owner_of), [])
        both = {tid: seen for tid, seen in masks.items() if any(spans_both(mask) for mask in seen)}
        check.equal("threads whose mask ever held CPUs of both pods", both, {})
        check.equal("violations that verify finds", product.violations(), [])


def spans_both(mask: str) -> bool:
    allowed = cpus.parse(mask)
    return bool(allowed & cpus.parse(LOW)) and bool(allowed & cpus.parse(HIGH))


main()
