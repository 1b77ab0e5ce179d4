# SPDX-License-Identifier: Apache-2.0
"""N+1 vCPUs, Kata's default: the vCPUs of an exclusive container get a CPU each, the rest floats and stays out of the way."""
# lab shapes: smt8 bookworm
# lab timeout: 900
# lab core: yes

from lab import check, product
from lab.expect import expect_dedicated, expect_floating, expect_housekeeping, expect_inside, expect_vcpus
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec


def main() -> None:
    with Daemon(housekeeping="shared-pool"), Vms() as vms:
        check.step("2 exclusive CPUs, 3 vCPUs, a cgroup that allows the shared pool too")
        roomy = VmPod(vms, "roomy", VmSpec(vcpus=3), extra_cpus="0-1")
        roomy.update("app", "2-3", exclusive=True)
        expect_dedicated(roomy.vm, "2-3")
        expect_floating(roomy.vm, "0-1", count=1)
        expect_housekeeping(roomy.vm, "0-1")

        check.step("3 exclusive CPUs, 4 vCPUs, a cgroup that allows nothing else: the lowest CPU carries the rest too")
        tight = VmPod(vms, "tight", VmSpec(vcpus=4, debug_threads=True))
        tight.update("app", "5-7", exclusive=True)
        expect_vcpus(tight.vm, dedicated_to="5-7", rest="5")
        expect_housekeeping(tight.vm, "5")

        check.step("a shared container joins the exclusive one: what floats leaves the exclusive CPUs")
        tight.update("sidecar", "0-1,4", exclusive=False)
        expect_dedicated(tight.vm, "5-7")
        expect_floating(tight.vm, "0-1,4", count=1)
        expect_inside(tight.vm, "0-1,4-7")
        expect_dedicated(roomy.vm, "2-3")
        check.equal("violations that verify finds", product.violations(), [])


main()
