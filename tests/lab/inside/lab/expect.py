# SPDX-License-Identifier: Apache-2.0
"""What scenarios expect of a sandbox's threads, asked of the kernel alone."""

from lab import check, cpus, kernel
from lab.vm import Vm


def dedicated(vm: Vm) -> dict[int, str]:
    """The vCPUs that may run on one CPU only, by cpu-index."""
    return {index: where for index, where in vm.vcpu_cpus().items() if where.isdigit()}


def expect_dedicated(vm: Vm, cpu_list: str) -> None:
    """Each CPU of `cpu_list` has one vCPU of `vm` that runs there alone, and no other CPU has."""
    wanted = sorted(cpus.parse(cpu_list))
    check.eventually(f"{vm.id}: CPUs with a vCPU of their own", lambda: sorted(map(int, dedicated(vm).values())), wanted)


def expect_vcpus(vm: Vm, dedicated_to: str, rest: str) -> None:
    """Each CPU of `dedicated_to` has a vCPU, and the other vCPUs may run on `rest`, which may be a single CPU of those."""
    own = [str(cpu) for cpu in cpus.parse(dedicated_to)]
    wanted = sorted(own + [rest] * (vm.spec.vcpus - len(own)))
    check.eventually(f"{vm.id}: vCPUs' CPUs", lambda: sorted(vm.vcpu_cpus().values()), wanted)


def expect_floating(vm: Vm, cpu_list: str, count: int) -> None:
    """`count` vCPUs of `vm` may run on all of `cpu_list`."""
    check.eventually(f"{vm.id}: sets of floating vCPUs", lambda: _floating(vm), [cpu_list] * count)


def expect_emulator(vm: Vm, cpu_list: str) -> None:
    """Every emulator thread of `vm` may run on `cpu_list`."""
    _expect_all(vm, "emulator", vm.other_tids, cpu_list)


def expect_iothreads(vm: Vm, cpu_list: str) -> None:
    """Every iothread of `vm` may run on `cpu_list`."""
    _expect_all(vm, "iothread", lambda: list(vm.iothread_tids().values()), cpu_list)


def expect_vhost(vm: Vm, cpu_list: str) -> None:
    """Every vhost worker of `vm` may run on `cpu_list`."""
    _expect_all(vm, "vhost", vm.vhost_tids, cpu_list)


def expect_virtiofsd(vm: Vm, cpu_list: str) -> None:
    """Every thread of virtiofsd may run on `cpu_list`."""
    _expect_all(vm, "virtiofsd", lambda: kernel.threads(vm.virtiofsd.pid), cpu_list)


def expect_housekeeping(vm: Vm, cpu_list: str) -> None:
    """Everything but vCPUs of `vm` may run on `cpu_list`."""
    for expect in (expect_emulator, expect_iothreads, expect_vhost):
        expect(vm, cpu_list)
    if vm.virtiofsd:
        expect_virtiofsd(vm, cpu_list)


def expect_inside(vm: Vm, cpu_list: str) -> None:
    """No thread of `vm` may run outside `cpu_list`."""
    check.eventually(f"{vm.id}: no thread may leave {cpu_list}", lambda: _outside(vm, cpu_list), {})


def _expect_all(vm: Vm, what: str, tids: object, cpu_list: str) -> None:
    check.eventually(f"{vm.id}: {what} threads' CPUs", lambda: {kernel.allowed(tid) for tid in tids()}, {cpu_list})


def _floating(vm: Vm) -> list[str]:
    return [where for where in vm.vcpu_cpus().values() if not where.isdigit()]


def _outside(vm: Vm, cpu_list: str) -> dict[int, str]:
    inside = cpus.parse(cpu_list)
    masks = {tid: kernel.allowed(tid) for tid in vm.all_tids()}
    return {tid: mask for tid, mask in masks.items() if not cpus.parse(mask) <= inside}
