# SPDX-License-Identifier: Apache-2.0
"""What doctor finds about the parameters that a node was booted with, and what these really do; a node booted without them has none of it."""
# lab shapes: smt8 parameters8 nodebugfs8
# lab timeout: 600

import json
import os
import subprocess
from pathlib import Path

from lab import check, kernel, product
from lab.kubelet import CpuManager

_KVM = Path("/sys/kernel/debug/kvm")
_PARAMETERS = Path("/proc/cmdline").read_text().split()


def has(parameter: str) -> bool:
    return any(word.startswith(parameter) for word in _PARAMETERS)


def finding(text: str) -> bool:
    """Whether doctor says this; printed with its remedy."""
    found = json.loads(product.ctl("doctor", "--json").stdout)["checks"]
    for each in found:
        if text in each["text"] and each["level"] != "good":
            print(f"          {each['level']}: {each['text']}\n          -> {each['advice']}", flush=True)
            return True
    return False


def parameters() -> None:
    """Each finding is there exactly where its parameter is."""
    check.step("parameters of the kernel, and what doctor says of them")
    CpuManager()
    for parameter, text in (
        ("isolcpus=", "CPUs 6-7 are isolated (isolcpus)"),
        ("nohz_full=", "nohz_full covers CPUs 4-7 of the shared pool"),
        ("cgroup_disable=cpuset", "the kernel has no cpuset controller"),
        ("debugfs=off", "the node was booted with debugfs=off"),
    ):
        check.equal(f"booted with {parameter}: doctor says {text}", finding(text), has(parameter))


def isolated_cpus() -> None:
    """A thread that may use several isolated CPUs stays on one, whoever else wants that."""
    check.step("two busy threads that may use CPUs 6-7, from one CPU")
    command = "while :; do :; done"
    with subprocess.Popen(["taskset", "-c", "6-7", "sh", "-c", f"({command}) & {command}"], start_new_session=True) as busy:
        check.eventually("whether they share one CPU", lambda: len(last_cpus(busy.pid)) == 1, has("isolcpus="))
        os.killpg(busy.pid, 9)


def last_cpus(group: int) -> set[str]:
    """On which CPUs the processes of a group ran last."""
    fields = [stat.read_text().rpartition(")")[2].split() for stat in Path("/proc").glob("[0-9]*/stat")]
    return {each[36] for each in fields if each[2] == str(group)}


def by_debugfs(vmm: int, vcpus: int) -> dict[int, int]:
    """The thread of each vCPU; 0 until it has run."""
    [directory] = _KVM.glob(f"{vmm}-*")
    return {vcpu: int((directory / f"vcpu{vcpu}/pid").read_text()) for vcpu in range(vcpus)}


def lockdown() -> None:
    """At its strictest the kernel still lets vCPUs be read in KVM's debugfs, and doctor does not say otherwise."""
    modes = Path("/sys/kernel/security/lockdown").read_text().strip()
    check.step(f"a VM under lockdown: {modes}")
    check.equal("whether the kernel is locked down", "[confidentiality]" in modes, has("lockdown="))
    with subprocess.Popen(["tiny_vm"], stdout=subprocess.PIPE, text=True) as vm:
        try:
            told = {int(number): int(tid) for _, number, tid in (vm.stdout.readline().split() for _ in range(3))}
            check.eventually("threads of its vCPUs, by KVM's debugfs", lambda: by_debugfs(vm.pid, len(told)), told)
        finally:
            vm.kill()
    check.equal("whether doctor finds fault with debugfs", finding("debugfs"), False)


def main() -> None:
    print(f"          {' '.join(_PARAMETERS)}, Linux {kernel.release()}", flush=True)
    parameters()
    isolated_cpus()
    if not has("debugfs=off"):
        lockdown()


main()
