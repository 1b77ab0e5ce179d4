# SPDX-License-Identifier: Apache-2.0
"""vhost workers, iothreads, emulator and virtiofsd go where each value of `housekeeping` says, on both kinds of kernel."""
# lab shapes: smt8 bookworm bookworm-v1
# lab timeout: 900
# lab core: yes

from lab import check, cpus, kernel
from lab.expect import (
    expect_dedicated,
    expect_emulator,
    expect_floating,
    expect_housekeeping,
    expect_iothreads,
    expect_vcpus,
    expect_vhost,
    expect_virtiofsd,
)
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vm, Vms, VmSpec

OWN = "2-5"
POOL = "0-1,6-7"


def expect_everything(vm: Vm, cpu_list: str) -> None:
    expect_housekeeping(vm, cpu_list)
    expect_floating(vm, cpu_list, count=1)


def core_of(cpu: int) -> str:
    return cpus.show(kernel.siblings(cpu) & cpus.parse(OWN))


def main() -> None:
    with Daemon(housekeeping="sandbox") as daemon, Vms() as vms:
        # Without thread names nothing but QMP, which Kata keeps to itself, tells an iothread from the emulator.
        spec = VmSpec(vcpus=5, virtiofs=True, debug_threads=True)
        pod = VmPod(vms, "all-roles", spec, extra_cpus="0-7")

        check.step(f"sandbox: container owns {OWN}, all are dedicated, so the lowest core carries the rest")
        pod.update("app", OWN, exclusive=True)
        expect_vcpus(pod.vm, dedicated_to=OWN, rest=core_of(2))
        expect_housekeeping(pod.vm, core_of(2))

        check.step("shared-pool")
        daemon.configure(housekeeping="shared-pool")
        expect_everything(pod.vm, POOL)
        expect_dedicated(pod.vm, OWN)

        check.step("a cpuset")
        daemon.configure(housekeeping="6-7")
        expect_everything(pod.vm, "6-7")

        check.step("isolate: one own core is set aside, the dedicated vCPUs get the others")
        daemon.configure(housekeeping="isolate")
        aside = cpus.parse(kernel.allowed(pod.vm.other_tids()[0]))
        check.true("a core of the sandbox's own is set aside", cpus.show(aside) in {core_of(cpu) for cpu in cpus.parse(OWN)})
        expect_housekeeping(pod.vm, cpus.show(aside))
        expect_vcpus(pod.vm, dedicated_to=cpus.show(cpus.parse(OWN) - aside), rest=cpus.show(aside))

        check.step("a set of its own for some roles")
        daemon.configure(housekeeping="shared-pool", emulator="0-1", vhost="6-7", virtiofsd="0,6")
        expect_emulator(pod.vm, "0-1")
        expect_vhost(pod.vm, "6-7")
        expect_virtiofsd(pod.vm, "0,6")
        expect_iothreads(pod.vm, POOL)
        check.true("the VM runs", pod.vm.is_undisturbed())


main()
