# SPDX-License-Identifier: Apache-2.0
"""A VMM unknown to the code: a small KVM program of three vCPUs without thread names, whose vCPUs are found and placed."""
# lab shapes: smt8 bookworm
# lab timeout: 600

import subprocess

from lab import check, kernel, product
from lab.product import Daemon


def found() -> dict[int, int]:
    """The thread of each vCPU, as the daemon tells it."""
    return {thread["vcpu"]: thread["tid"] for thread in product.call("GET", "/v1/sandboxes/tiny")["threads"] if "vcpu" in thread}


def main() -> None:
    with Daemon(housekeeping="sandbox"), subprocess.Popen(["tiny_vm"], stdout=subprocess.PIPE, text=True) as vm:
        told = {}
        for _ in range(3):
            _, number, tid = vm.stdout.readline().split()
            told[int(number)] = int(tid)
        check.step("a KVM program of three vCPUs runs, and none of its threads has a name")
        product.call("PUT", "/v1/sandboxes/tiny", {"vmm_pid": vm.pid})
        check.eventually("vCPUs that the daemon finds", found, told, seconds=60)
        source = product.call("GET", "/v1/sandboxes/tiny")["vcpu_source"]
        check.true(f"they are found by KVM's debugfs ({source})", source.startswith("kvm-debugfs"))

        check.step("they are placed like those of any VM")
        product.put_container("tiny", "shared", "0-1")
        product.put_container("tiny", "app", "4-5", exclusive=True)
        check.eventually("CPUs of the vCPUs", lambda: sorted(kernel.allowed(tid) for tid in told.values()), ["0-1", "4", "5"])
        check.equal("CPUs of its first thread", kernel.allowed(vm.pid), "0-1")

        check.step("KVM's timer, a kernel thread, goes with vCPU 0")
        timers = kernel.kernel_threads(f"kvm-pit/{vm.pid}")
        check.equal("kernel threads of that name", len(timers), 1)
        check.equal("its CPUs", kernel.allowed(timers[0]), kernel.allowed(told[0]))
        product.put_container("tiny", "all", "2-3,6", exclusive=True)
        check.eventually("its CPUs, when vCPU 0 is elsewhere", lambda: kernel.allowed(timers[0]) == kernel.allowed(told[0]) != "0-1", True)
        check.equal("violations that verify finds", product.violations(), [])
        vm.kill()


main()
