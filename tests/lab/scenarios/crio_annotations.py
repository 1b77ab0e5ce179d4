# SPDX-License-Identifier: Apache-2.0
"""CRI-O's annotations for CPUs, one pod with all of them: what is in force by the kernel's word, what is not and why; killed, released."""
# lab shapes: smt8
# lab timeout: 600

from pathlib import Path

from lab import check, given_back, product, reach
from lab.given_back import Masks
from lab.helper import Helper
from lab.partitions import ROOT, read
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE, owners
from lab.vm import Vms, VmSpec

LOAD, IRQS, IDLE, GOVERNOR = "cpu-load-balancing.crio.io", "irq-load-balancing.crio.io", "cpu-c-states.crio.io", "cpu-freq-governor.crio.io"
# Of the container alone, or of all of the pod's.
REQUESTS = {LOAD: "disable", f"{IRQS}/app": "disable", f"{IDLE}/app": "max_latency:40", IDLE: "disable", GOVERNOR: "performance"}
SETTINGS = {"allow_annotations": ["crio"], "allow_crio_annotations": [LOAD, IRQS, IDLE, GOVERNOR], "drift_check": 1}
OWN, FREE = "2-3", "4"
NO_GOVERNOR = "CPU 2: it has no governor performance"  # the machine's CPUs have no cpufreq


def problems() -> dict[str, str]:
    """By annotation, why it is not in force, by the daemon."""
    return {row["annotation"]: row["problem"] for row in product.call("GET", "/v1/sandboxes")["tuned"]}


def isolated() -> str:
    """The CPUs that no load balancer of the kernel's sees."""
    return read(ROOT / "cpuset.cpus.isolated")


def latency(cpu: str) -> str:
    """How long it may take a CPU to wake up, in microseconds."""
    return read(Path(f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"))


def interrupts(pod: VmPod, own: str = OWN) -> list[str]:
    """Those that could leave the container's CPUs, and masks of new ones."""
    return [str(each) for each in reach.left(own, owners(pod.vm, own)) if each.movable and "interrupt" in each.kind]


def of_new_interrupts() -> str:
    """Where interrupts that come may be handled."""
    return next(each.cpus for each in reach.for_new_ones() if "interrupt" in each.kind)


def expect_in_force(pod: VmPod) -> None:
    check.eventually("the daemon's word", problems, {LOAD: "", IRQS: "", IDLE: "", GOVERNOR: NO_GOVERNOR}, PATIENCE)
    check.eventually("CPUs without load balancing", isolated, OWN, PATIENCE)
    check.eventually("how fast CPUs 2, 3 and 4 wake up", lambda: [latency("2"), latency("3"), latency(FREE)], ["40", "40", "0"], PATIENCE)
    check.eventually("interrupts that could leave", lambda: interrupts(pod), [], PATIENCE)


def expect_given_back(before: Masks) -> None:
    check.eventually("CPUs without load balancing", isolated, "", PATIENCE)
    check.eventually("how fast CPUs 2 and 3 wake up", lambda: [latency("2"), latency("3")], ["0", "0"], PATIENCE)
    check.eventually("masks that are not as before", lambda: given_back.differs(before), {}, PATIENCE)


def keep_house(pod: VmPod) -> None:
    check.step("interrupts may stay on the container's first core, and leave its other CPU")
    product.put_sandbox(pod.vm, {**REQUESTS, f"{IRQS}/app": "housekeeping"})
    pod.update("app", f"{OWN},{FREE}", exclusive=True)
    check.eventually("where new interrupts may go", of_new_interrupts, "0-3,5-7", PATIENCE)
    check.eventually("interrupts that could leave its other CPU", lambda: interrupts(pod, FREE), [], PATIENCE)
    product.put_sandbox(pod.vm, REQUESTS)
    pod.update("app", OWN, exclusive=True)
    expect_in_force(pod)


def others_write(pod: VmPod) -> None:
    check.step("another program writes what it likes: it is repaired")
    Path("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us").write_text("7")
    Path("/proc/irq/default_smp_affinity").write_text("ff")
    check.eventually("how fast CPU 3 wakes up", lambda: latency("3"), "40", PATIENCE)
    expect_in_force(pod)


def kill(daemon: Daemon, helper: Helper, pod: VmPod) -> None:
    check.step("kill -9 of both, and restarts: all of it is in force, and what others had last is known")
    daemon.kill()
    helper.kill()
    helper.start()
    daemon.start()
    expect_in_force(pod)


def main() -> None:
    with Helper() as helper, Daemon(**SETTINGS) as daemon, Vms() as vms:
        pod = VmPod(vms, "tuned", VmSpec(vcpus=3), extra_cpus="0-1")
        before = given_back.read()
        check.step("a container that owns CPUs, in a pod with the annotations")
        product.put_sandbox(pod.vm, REQUESTS)
        pod.update("app", OWN, exclusive=True)
        expect_in_force(pod)
        kill(daemon, helper, pod)
        check.step("it gives its CPUs back: so has everybody")
        pod.update("app", "0-7")
        expect_given_back(before)
        check.step("it has them again, and another program interferes")
        pod.update("app", OWN, exclusive=True)
        expect_in_force(pod)
        keep_house(pod)
        others_write(pod)
        check.step("it is released")
        product.call("POST", f"/v1/release?id={pod.vm.id}")
        check.eventually("CPUs without load balancing", isolated, "", PATIENCE)
        check.eventually("how fast CPUs 2 and 3 wake up", lambda: [latency("2"), latency("3")], ["0", "7"], PATIENCE)


main()
