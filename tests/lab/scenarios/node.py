# SPDX-License-Identifier: Apache-2.0
"""The node itself: its CPUs and NUMA nodes, KVM, vhost, containerd with NRI, and a sandbox VM with all its threads."""
# lab shapes: smt8 numa16 bookworm bookworm-v1
# lab timeout: 900
# lab core: yes
# lab product: no

import subprocess
from pathlib import Path

from lab import check, cpus, kernel
from lab.cgroup import IS_V2
from lab.vm import Vm, Vms, VmSpec


def expect_topology() -> None:
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*/cpulist"))
    found = [path.read_text().strip() for path in nodes]
    wanted = ["0-3", "4-7", "8-11", "12-15"][: len(kernel.online()) // 4]
    check.equal("CPUs of each NUMA node", found, wanted)
    has_smt = len(wanted) == 2 and kernel.release() >= (6, 4)
    check.equal("hardware threads of CPU 2's core", cpus.show(kernel.siblings(2)), "2-3" if has_smt else "2")


def expect_containerd() -> None:
    if kernel.release() < (6, 4):
        print("          left out: NRI, which Debian 12's containerd 1.6 does not have")
        return
    subprocess.run(["systemctl", "start", "containerd"], check=True)
    check.eventually("NRI's socket is there", Path("/run/nri/nri.sock").exists, True)


def expect_threads(vm: Vm, vcpus: int) -> None:
    names = [kernel.comm(tid) for tid in vm.vcpu_tids().values()]
    check.equal("names of vCPU threads", sorted(names), [f"CPU {index}/KVM" for index in range(vcpus)])
    check.equal("name of the iothread", kernel.comm(vm.iothread_tids()["io1"]), "IO io1")
    check.equal("vhost workers (net and vsock)", len(vm.vhost_tids()), 2)
    in_qemu = set(vm.vhost_tids()) <= set(kernel.threads(vm.pid))
    check.equal("vhost workers are threads of QEMU", in_qemu, kernel.release() >= (6, 4))


def main() -> None:
    check.equal("cgroup v2", IS_V2, "unified_cgroup_hierarchy=0" not in Path("/proc/cmdline").read_text())
    expect_topology()
    expect_containerd()
    with Vms() as vms:
        check.step("start a VM whose guest only halts, without thread names")
        silent = vms.start("silent", VmSpec(vcpus=2), cpus="1-2")
        check.equal("names of vCPU threads", {kernel.comm(tid) for tid in silent.vcpu_tids().values()}, {"qemu-system-x86"})
        check.equal("where its vCPUs may run", silent.vcpu_cpus(), {0: "1-2", 1: "1-2"})
        check.step("start one with 3 of 4 vCPUs and thread names")
        named = vms.start("named", VmSpec(vcpus=3, max_vcpus=4, debug_threads=True))
        expect_threads(named, vcpus=3)
        if len(kernel.online()) > 8:
            print("          left out: a Linux guest, which takes minutes where 16 emulated CPUs share two")
        else:
            check.step("boot a Linux guest under KVM")
            vms.start("linux", VmSpec(vcpus=2, job="idle")).wait_for_guest("guest up: 2 vCPUs")
        check.true("the VMs run", silent.is_undisturbed() and named.is_undisturbed())


main()
