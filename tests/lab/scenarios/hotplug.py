# SPDX-License-Identifier: Apache-2.0
"""vCPU hot-plug in Kata's order, highest index first, then unplug, with a Linux guest that takes them and gives them back."""
# lab shapes: smt8
# lab timeout: 900

from lab import check, product
from lab.expect import dedicated, expect_dedicated, expect_inside
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec


def main() -> None:
    with Daemon(housekeeping="shared-pool"), Vms() as vms:
        pod = VmPod(vms, "growing", VmSpec(vcpus=1, max_vcpus=5, job="idle"), extra_cpus="0-1")
        vm = pod.vm
        pod.update("pause", "0-1")
        vm.wait_for_guest("guest up: 1 vCPUs")

        check.step("a container of 3 exclusive CPUs is created: Kata plugs 3 vCPUs, writes the cgroup, then the event comes")
        check.equal("indices that QEMU hands out", [vm.plug_vcpu() for _ in range(3)], [4, 3, 2])
        pod.update("app", "4-6", exclusive=True)
        expect_dedicated(vm, "4-6")
        expect_inside(vm, "0-1,4-6")
        check.true("vCPU 0 floats", 0 not in dedicated(vm))

        check.step("one more vCPU without any event: it is found, and kept off the exclusive CPUs")
        before = dedicated(vm)
        check.equal("index of the last vCPU", vm.plug_vcpu(), 1)
        # It was born with the mask that it must have, so that this alone tells nothing.
        check.eventually("vCPUs that the daemon knows", lambda: product.vcpus_known(vm.id), 5, seconds=120)
        check.eventually("the last vCPU's CPUs", lambda: vm.vcpu_cpus()[1], "0-1", seconds=40)
        check.equal("dedicated vCPUs stay where they are", dedicated(vm), before)

        check.step("the guest gives it back")
        vm.wait_for_guest("guest online: /sys/devices/system/cpu/cpu1/online")
        vm.unplug_vcpu("cpu-4")
        check.eventually("vCPUs of the VM", lambda: sorted(vm.vcpu_tids()), [0, 2, 3, 4], seconds=60)
        product.call("POST", "/v1/reconcile")
        expect_dedicated(vm, "4-6")
        check.equal("violations that verify finds", product.violations(), [])
        check.true("the VM runs", vm.is_undisturbed())


main()
