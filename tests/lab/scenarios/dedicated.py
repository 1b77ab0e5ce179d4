# SPDX-License-Identifier: Apache-2.0
"""N+1 vCPUs, Kata's default: the vCPUs of an exclusive container get a CPU each, the rest floats and stays out of the way."""
# lab shapes: smt8 bookworm
# lab timeout: 900
# lab core: yes

import subprocess
import sys

from lab import check, product
from lab.expect import expect_dedicated, expect_floating, expect_housekeeping, expect_inside, expect_vcpus
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

TURNS = 2000
# Each is a wakeup. A CPU has about 250 of its own a second: the turns have to outnumber those by far.
PROGRAM = f"import time\nfor _ in range({TURNS}): time.sleep(0.001)"


def interrupted(cpu: int) -> dict:
    return next(one for one in product.call("GET", "/v1/node")["interruptions"]["cpus"] if one["cpu"] == cpu)


def expect_interruptions_counted(cpu: int, quiet: int) -> None:
    """Others take their turns on one CPU of two that have dedicated vCPUs: by the kernel's counters, on that one."""
    before, elsewhere = interrupted(cpu), interrupted(quiet)
    subprocess.run(["taskset", "-c", str(cpu), sys.executable, "-c", PROGRAM], check=True)
    slices = interrupted(cpu)["slices"] - before["slices"]
    others = interrupted(quiet)["slices"] - elsewhere["slices"]
    print(f"interruptions counted: {slices} by {TURNS} turns of another program, {others} on a CPU without one")
    check.true("each turn is counted", slices >= TURNS)
    check.true("and time with them", interrupted(cpu)["nanoseconds"] > before["nanoseconds"])
    check.true("the other CPU has fewer", others < slices)
    check.true("noise lists them", f"\n{cpu} " in product.ctl("noise", "--counters").stdout)


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

        check.step("another program on the CPU of a dedicated vCPU is counted")
        expect_interruptions_counted(cpu=7, quiet=6)
        expect_dedicated(roomy.vm, "2-3")
        check.equal("violations that verify finds", product.violations(), [])


main()
