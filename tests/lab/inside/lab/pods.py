# SPDX-License-Identifier: Apache-2.0
"""Pods as kubelet and Kata handle them: a container's new cpuset goes to the cgroup first, then to the listeners."""

import os
import subprocess

from lab import cpus, kernel, product
from lab.cgroup import Cgroup
from lab.vm import Vm, Vms, VmSpec


class VmPod:
    """A Kata pod: a VM and its containers' cpusets."""

    def __init__(self, vms: Vms, name: str, spec: VmSpec, extra_cpus: str = "", told: bool = True) -> None:
        """`extra_cpus`: CPUs that the sandbox's cgroup allows beside the union of its containers' cpusets.

        `told`: whether the daemon is told of it.
        """
        self._vms = vms
        self._extra = cpus.parse(extra_cpus)
        self._containers: dict[str, str] = {}
        self.vm: Vm = vms.start(name, spec)
        if told:
            product.put_sandbox(self.vm)

    def update(self, container: str, cpu_list: str, exclusive: bool = False) -> None:
        """What happens when kubelet gives `container` the CPUs `cpu_list`: Kata writes the union, then the event is told."""
        self._containers[container] = cpu_list
        self._write_union()
        product.put_container(self.vm.id, container, cpu_list, exclusive)

    def end(self, container: str) -> None:
        """What happens when `container` has ended."""
        del self._containers[container]
        self._write_union()
        product.remove_container(self.vm.id, container)

    def _write_union(self) -> None:
        union = self._extra.union(*(cpus.parse(each) for each in self._containers.values()))
        self.vm.cgroup.set_cpus(cpus.show(union))

    def remove(self) -> None:
        """Ends the pod."""
        self._vms.stop(self.vm)
        product.remove_sandbox(self.vm.id)


class RuncPod:
    """A pod that is no VM: one process in a cgroup."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cgroup = Cgroup(f"kubepods/pod-{name}/{name}")
        self._process = subprocess.Popen(["sleep", "infinity"], preexec_fn=lambda: self.cgroup.add(os.getpid()))
        product.put_runc_pod(name)

    def update(self, container: str, cpu_list: str, exclusive: bool = False) -> None:
        """What happens when kubelet gives `container` the CPUs `cpu_list`: runc writes them to the cgroup."""
        self.cgroup.set_cpus(cpu_list)
        product.put_container(self.name, container, cpu_list, exclusive)

    def allowed(self) -> str:
        """Where its process may run."""
        return kernel.allowed(self._process.pid)

    def remove(self) -> None:
        """Ends the pod."""
        self._process.kill()
        self._process.wait()
        self.cgroup.remove()
        product.remove_sandbox(self.name)
