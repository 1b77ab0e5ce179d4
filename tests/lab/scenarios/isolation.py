"""How much isolation a container's vCPUs get: unpinned, by Kata's rule, and by us, side by side in one run."""
# lab shapes: smt8
# lab timeout: 600

import os
from pathlib import Path

from lab import check, cpus, plot, product
from lab.cgroup import Cgroup
from lab.expect import expect_dedicated
from lab.measure import Isolation, measure_round
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

PODS = "0-3"  # kubelet keeps the other CPUs of the node for the system
OWN, POOL = "2-3", "0-1"
CONTAINER_VCPUS = (1, 2)
OUT = Path(os.environ["LAB_OUT"])
ROWS = {
    "time waiting to run (%)": lambda result: 100 * result.waiting_share,
    "time on foreign CPUs (%)": lambda result: 100 * result.foreign_share,
    "involuntary switches (1/s)": lambda result: result.involuntary_per_second,
    "latency in the VM, median (us, below)": lambda result: result.latency(0.5),
    "latency in the VM, 90 % (us, below)": lambda result: result.latency(0.9),
    "latency in the VM, 99 % (us, below)": lambda result: result.latency(0.99),
    "latency in the VM, 99.9 % (us, below)": lambda result: result.latency(0.999),
}


def unpinned(subject: VmPod, neighbours: VmPod) -> Isolation:
    """No CPU manager: every pod may use every CPU for pods."""
    for pod in (subject, neighbours):
        pod.vm.cgroup.set_cpus(PODS)
    return measure_round(subject.vm, CONTAINER_VCPUS, cpus.parse(OWN))


def by_kata(subject: VmPod, neighbours: VmPod) -> Isolation:
    """Kubelet's static CPU manager and Kata: the union goes to the cgroup; 3 vCPUs on 2 CPUs are never pinned."""
    neighbours.vm.cgroup.set_cpus(POOL)
    subject.vm.cgroup.set_cpus(OWN)
    return measure_round(subject.vm, CONTAINER_VCPUS, cpus.parse(OWN))


def by_us(subject: VmPod, neighbours: VmPod, extra: str, **settings: str) -> Isolation:
    """The same cpusets with the daemon; `extra`: CPUs that the sandbox's cgroup allows beside its container's."""
    with Daemon(**settings):
        for pod in (subject, neighbours):
            product.put_sandbox(pod.vm)
        subject.vm.cgroup.set_cpus(cpus.show(cpus.parse(OWN) | cpus.parse(extra)))
        neighbours.vm.cgroup.set_cpus(POOL)
        product.put_container(neighbours.vm.id, "app", POOL)
        product.put_container(subject.vm.id, "app", OWN, exclusive=True)
        expect_dedicated(subject.vm, OWN)
        return measure_round(subject.vm, CONTAINER_VCPUS, cpus.parse(OWN))


def table(results: dict[str, Isolation]) -> str:
    """The numbers as Markdown."""
    head = f"| | {' | '.join(results)} |\n|---|{'---:|' * len(results)}\n"
    rows = [f"| {name} | {' | '.join(f'{read(result):.3g}' for result in results.values())} |" for name, read in ROWS.items()]
    return head + "\n".join(rows) + "\n"


def picture(results: dict[str, Isolation]) -> str:
    """The distribution of latencies and the share of waiting as bars."""
    groups = {name.split(",")[-1].split(" (")[0].strip(): [read(each) for each in results.values()] for name, read in ROWS.items()}
    return plot.bars("Two vCPUs that own CPUs 2-3, with busy neighbours", list(results), groups, "%, 1/s, us")


def main() -> None:
    Cgroup("kubepods").set_cpus(PODS)
    with Vms() as vms:
        check.step("boot the subject: 3 vCPUs, all computing; start neighbours that burn CPU on 2 more")
        subject = VmPod(vms, "subject", VmSpec(vcpus=3, job="isolation", debug_threads=True), told=False)
        subject.vm.wait_for_guest("round 1 begins")
        neighbours = VmPod(vms, "neighbours", VmSpec(vcpus=2, firmware="spin", vhost_net=False), told=False)
        results = {}
        check.step("unpinned")
        results["unpinned"] = unpinned(subject, neighbours)
        check.step("by Kata's rule")
        results["Kata's rule"] = by_kata(subject, neighbours)
        check.step("by us, in the cgroup that Kata writes")
        results["ours, Kata's cgroup"] = by_us(subject, neighbours, extra="")
        check.step("by us, with a cgroup that allows the shared pool for housekeeping")
        results["ours, shared pool"] = by_us(subject, neighbours, extra=POOL, housekeeping="shared-pool")

    (OUT / "isolation.md").write_text(table(results))
    (OUT / "isolation.svg").write_text(picture(results))
    print(table(results))
    best, kata = results["ours, shared pool"], results["Kata's rule"]
    check.true("our vCPUs wait less than half as long as by Kata's rule", best.waiting_share < kata.waiting_share / 2)
    check.equal("time of our vCPUs on foreign CPUs", best.foreign_share, 0)


main()
