# SPDX-License-Identifier: Apache-2.0
"""A guest with our agent: its containers, what its own kernel says of them, and a bare round trip of vsock to it."""

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab import check, cpus, kernel, product
from lab.shell import Shell
from lab.vm import Vm, VmSpec

_INITRD = Path("/run/lab-guest-initrd")
_PLAIN = "/lab/guest/initrd"
_AGENT = "/lab/bin/kata-affinity-agent"
_ECHO = "/lab/guest/echo"
_FIRST = "rdinit=/usr/bin/kata-affinity-agent"


def spec(cgroup: str, vcpus: int, max_vcpus: int) -> VmSpec:
    """A VM whose guest has our agent, put into it as an operator does, and cgroups of version `cgroup`, `v1` or `v2`."""
    if not _INITRD.exists():
        add = ["kata-affinityctl", "guest-image", "add", _PLAIN, "-o", str(_INITRD), "--agent", _AGENT]
        subprocess.run(add, check=True, stdout=subprocess.DEVNULL)
    words = f"guest.cgroup={cgroup} {_FIRST}"
    return VmSpec(vcpus, max_vcpus, job="containers", initrd=str(_INITRD), words=words, shell=True)


@dataclass
class Looks:
    """Where things were seen to run for a while."""

    guest_cpus: dict[str, set[int]]  # of each container's threads, in the guest's numbers
    threads: dict[str, set[str]]  # that each container was seen to have
    host_cpus: dict[int, set[int]]  # of each vCPU's thread, by APIC id


class Guest:
    """The inside of a VM."""

    def __init__(self, vm: Vm, cgroup: str) -> None:
        self._vm = vm
        self._containers = "/sys/fs/cgroup" + ("/cpuset" if cgroup == "v1" else "") + "/kubepods"
        self.shell = Shell(vm.directory / "shell")

    def path(self, container: str) -> str:
        """The cgroup of `container`."""
        return f"{self._containers}/{container}"

    def make(self, *containers: str) -> None:
        """Makes containers' cgroups, as kata-agent does when it creates them."""
        self.shell.run("mkdir -p " + " ".join(self.path(each) for each in containers))

    def first_act(self, container: str, program: str) -> str:
        """What `program` prints that is started in `container`."""
        return self.shell.run(f"sh -c 'echo $$ > {self.path(container)}/cgroup.procs; exec {program}'")

    def start(self, container: str, program: str) -> int:
        """The pid of `program`, started in `container`."""
        return self.shell.start(self.path(container), program)

    def end(self, container: str) -> None:
        """Ends all of `container`."""
        path = self.path(container)
        again = f"until rmdir {path} 2> /dev/null; do kill -9 $(cat {path}/cgroup.procs); sleep 0.1; done"
        self.shell.run(f"({again}) 2> /dev/null")

    def allowed(self, container: str) -> set[str]:
        """Where the threads of `container` may run."""
        path = self.path(container)
        threads = f"cat {path}/tasks 2> /dev/null || cat {path}/cgroup.threads"
        lines = self.shell.run(f"grep -hs Cpus_allowed_list $( ({threads}) | sed 's|.*|/proc/&/status|') | sort -u")
        return {line.split()[-1] for line in lines.splitlines()}

    def notice(self) -> dict:
        """The agent's report, as any client gets it."""
        return json.loads(self.shell.run("cat /run/kata-affinity/cpus.json"))

    def owned_numbers(self, cpu_list: str) -> str:
        """The guest's numbers of vCPUs that may run nowhere but on CPUs of `cpu_list`, by what both kernels say."""
        here = cpus.parse(cpu_list)
        ids = {apic_id for apic_id, tid in kernel.kvm_vcpus(self._vm.pid).items() if cpus.parse(kernel.allowed(tid)) <= here}
        return cpus.show({number for number, apic_id in self.shell.apic_ids().items() if apic_id in ids})

    def placed(self, container: str, cpu_list: str) -> tuple[int, bool, bool]:
        """How many vCPUs `container` has for itself, whether its threads may run on these alone, and whether the daemon has it so."""
        numbers = self.owned_numbers(cpu_list)
        told = product.in_guest(self._vm.id)[container]
        return len(cpus.parse(numbers)), self.allowed(container) == {numbers}, told == (numbers, 0, "")

    def look(self, times: int, *containers: str) -> Looks:
        """Looks `times` times at every thread of `containers` in the guest, and at the vCPUs' threads on the host."""
        host = _VcpuWatch(self._vm)
        looks = Looks({each: set() for each in containers}, {each: set() for each in containers}, {})
        for _ in range(times):
            # The guest is not asked to wait: a guest of an emulated machine loses a timer once in a while.
            time.sleep(0.3)
            for line in self.shell.run("/look " + " ".join(self.path(each) for each in containers)).splitlines():
                name, cpu, *threads = line.split()
                looks.guest_cpus[name].add(int(cpu))
                looks.threads[name].update(threads)
        looks.host_cpus = host.stop()
        return looks


def expect_placed(guest: Guest, own: dict[str, str]) -> None:
    """By both kernels: each container may run on the vCPUs that run on its CPUs alone."""
    for container, cpu_list in own.items():
        count = len(cpus.parse(cpu_list))
        what = f"{container[0]}'s vCPUs, whether its threads are on these alone, and known there"
        check.eventually(what, partial(guest.placed, container, cpu_list), (count, True, True))


def expect_notice(guest: Guest, own: dict[str, str], shared: str) -> None:
    """cpus.json says in the guest what is so; the container `shared` owns nothing."""
    notice = guest.notice()
    told = {each["id"]: (each["cpus"], each["dedicated"]) for each in notice["containers"]}
    check.equal("containers in cpus.json", told, {each: (guest.owned_numbers(own[each]), each != shared) for each in own})
    check.equal("APIC ids in cpus.json", {each["cpu"]: each["apic_id"] for each in notice["cpus"]}, guest.shell.apic_ids())
    check.equal("CPUs in common in cpus.json", notice["common"], guest.owned_numbers(own[shared]))


class _VcpuWatch:
    """Sees where vCPUs' threads run, until it is stopped."""

    def __init__(self, vm: Vm) -> None:
        self._tids = kernel.kvm_vcpus(vm.pid)
        self._seen: dict[int, set[int]] = {apic_id: set() for apic_id in self._tids}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            for apic_id, tid in self._tids.items():
                self._seen[apic_id].add(kernel.last_cpu(tid))
            time.sleep(0.02)

    def stop(self) -> dict[int, set[int]]:
        """The CPUs by APIC id."""
        self._stopped.set()
        self._thread.join()
        return self._seen


class Echo:
    """Bare round trips of vsock: a byte there and back, to a program that does nothing else and runs where the agent may."""

    def __init__(self, guest: Guest, vm: Vm) -> None:
        guest.shell.run(f"taskset -c {guest.notice()['common']} /echo")
        self._program = subprocess.Popen([_ECHO, str(vm.cid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self) -> float:
        """How long one takes."""
        self._program.stdin.write("\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline()) / 1e9

    def stop(self) -> None:
        """Ends the host's side."""
        self._program.stdin.close()
        self._program.wait()
