# SPDX-License-Identifier: Apache-2.0
"""The static CPU manager's life of a node: the shared pool shrinks and grows as exclusive pods, runc and VM, come and go."""
# lab shapes: smt8 numa16 bookworm-v1
# lab timeout: 900
# lab core: yes

from lab import check, cpus, kernel, product
from lab.expect import expect_dedicated, expect_floating, expect_inside, expect_vcpus
from lab.pods import RuncPod, VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec


class Node:
    """What kubelet keeps: the shared pods, and which CPUs are left for them."""

    def __init__(self, shared: list) -> None:
        self._shared = shared
        self._taken: set[int] = set()

    def take(self, pod: VmPod | RuncPod, cpu_list: str) -> None:
        """Admits an exclusive pod: its CPUs leave the pool first, as kubelet does it, then the pod gets them."""
        self._taken |= cpus.parse(cpu_list)
        self._rewrite_shared()
        pod.update("app", cpu_list, exclusive=True)

    def give_back(self, pod: VmPod | RuncPod, cpu_list: str) -> None:
        """Ends an exclusive pod: its CPUs return to the pool."""
        pod.remove()
        self._taken -= cpus.parse(cpu_list)
        self._rewrite_shared()

    def pool(self) -> str:
        """The shared pool."""
        return cpus.show(kernel.online() - self._taken)

    def _rewrite_shared(self) -> None:
        for pod in self._shared:
            pod.update("app", self.pool())


def main() -> None:
    with Daemon(), Vms() as vms:
        shared_vm, shared_runc = VmPod(vms, "shared-vm", VmSpec(vcpus=2)), RuncPod("shared-runc")
        node = Node([shared_vm, shared_runc])

        def expect_pool_without(taken: str) -> None:
            pool = cpus.show(kernel.online() - cpus.parse(taken))
            check.equal("shared pool", node.pool(), pool)
            expect_floating(shared_vm.vm, pool, count=2)
            expect_inside(shared_vm.vm, pool)
            check.equal("shared runc pod's CPUs", shared_runc.allowed(), pool)

        check.step("an exclusive VM pod takes 2-3, an exclusive runc pod takes 4")
        first = VmPod(vms, "first", VmSpec(vcpus=3, debug_threads=True))
        node.take(first, "2-3")
        expect_vcpus(first.vm, dedicated_to="2-3", rest=cpus.show(kernel.siblings(2)))
        runc = RuncPod("runc")
        node.take(runc, "4")
        expect_pool_without("2-4")

        check.step("another exclusive VM pod takes 6-7; the first one keeps what it has")
        before = first.vm.vcpu_cpus()
        second = VmPod(vms, "second", VmSpec(vcpus=2))
        node.take(second, "6-7")
        expect_dedicated(second.vm, "6-7")
        expect_pool_without("2-4,6-7")
        check.equal("first pod's vCPUs", first.vm.vcpu_cpus(), before)

        check.step("the runc pod and the first VM pod go: the pool grows, the second one keeps what it has")
        node.give_back(runc, "4")
        node.give_back(first, "2-3")
        expect_pool_without("6-7")
        expect_dedicated(second.vm, "6-7")
        check.equal("violations that verify finds", product.violations(), [])
        check.true("the VMs run", shared_vm.vm.is_undisturbed() and second.vm.is_undisturbed())


main()
