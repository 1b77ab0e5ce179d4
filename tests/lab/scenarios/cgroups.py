# SPDX-License-Identifier: Apache-2.0
"""cgroup = "manage": the cgroup follows the plan, whoever else writes it, through systemd where it is a scope, on kernels that forget pins too."""
# lab shapes: smt8 bookworm
# lab timeout: 900

import subprocess
import time
from pathlib import Path

from lab import check, cpus, kernel, product
from lab.expect import expect_housekeeping, expect_inside, expect_vcpus
from lab.pods import RuncPod, VmPod
from lab.product import Daemon
from lab.sampler import Sampler
from lab.vm import Vms, VmSpec

OWN = "2-3"
MOST_WRITES = 100


def expect_cpus(pod: VmPod, wanted: str, seconds: float = 20) -> None:
    check.eventually(f"{pod.vm.id}: CPUs of its cgroup", pod.vm.cgroup.effective_cpus, wanted, seconds)


def problem(pod: VmPod) -> str:
    return product.call("GET", f"/v1/sandboxes/{pod.vm.id}")["cgroup_problem"]


def expect_places(pod: VmPod, pool: str) -> None:
    expect_vcpus(pod.vm, dedicated_to=OWN, rest=pool)
    expect_housekeeping(pod.vm, pool)


def follow_kata(pod: VmPod) -> None:
    check.step(f"Kata's cgroup allows {OWN}, and housekeeping is to be in the shared pool")
    pod.update("app", OWN, exclusive=True)
    expect_cpus(pod, "0-7")
    expect_places(pod, "0-1,4-7")

    check.step("Kata writes it again: answered, and nothing of it is left to see in the threads")
    pod.vm.cgroup.set_cpus(OWN)
    expect_cpus(pod, "0-7")
    expect_places(pod, "0-1,4-7")

    check.step("CPUs 6-7 come to belong to a runc pod, while kubelet's last word to Kata still has them")
    other = RuncPod("other")
    other.update("app", "6-7", exclusive=True)
    expect_cpus(pod, "0-5")
    pod.vm.cgroup.set_cpus("2-7")
    expect_cpus(pod, "0-5")
    expect_places(pod, "0-1,4-5")


def fight(pod: VmPod) -> None:
    check.step(f"somebody writes {OWN} again and again: no thread is ever on 6-7, and it is left to him after a while")
    sampler, writes = Sampler(pod.vm.all_tids()), 0
    while "keeps writing" not in problem(pod) and writes < MOST_WRITES:
        pod.vm.cgroup.set_cpus(OWN)
        writes += 1
        time.sleep(0.2)
    seen, rounds = sampler.stop()
    strays = {tid: sets for tid, sets in seen.items() if any(cpus.parse(each) & cpus.parse("6-7") for each in sets)}
    check.equal(f"threads with CPUs 6-7 in {rounds} looks", strays, {})
    check.true(f"after {writes} writes the sandbox's status says so", writes < MOST_WRITES)
    expect_inside(pod.vm, OWN)

    check.step("when he rests, it is answered")
    expect_cpus(pod, "0-5", seconds=120)
    expect_places(pod, "0-1,4-5")
    check.equal("violations that verify finds", product.violations(), [])


def give_back(pod: VmPod) -> None:
    check.step("release gives back what he wrote, and reconcile takes it again")
    product.call("POST", f"/v1/release?id={pod.vm.id}")
    expect_cpus(pod, OWN)
    expect_inside(pod.vm, OWN)
    product.call("POST", f"/v1/reconcile?id={pod.vm.id}")
    expect_cpus(pod, "0-5")


def start_scope(name: str, allowed: str) -> tuple[subprocess.Popen, Path]:
    """A systemd scope with a process that sleeps, and its cgroup."""
    command = ["systemd-run", "--quiet", "--scope", f"--unit={name}", "-p", f"AllowedCPUs={allowed}", "sleep", "infinity"]
    process = subprocess.Popen(command)
    unit = f"{name}.scope"

    def cgroup() -> str:
        return Path(f"/proc/{process.pid}/cgroup").read_text().strip().rpartition(":")[2]

    check.eventually("the process is in its scope", lambda: cgroup().endswith(unit), True)
    return process, Path("/sys/fs/cgroup") / cgroup().lstrip("/")


def scope(vms: Vms) -> None:
    check.step("a cgroup that is a systemd scope is written through systemd, which keeps it")
    sleeper, directory = start_scope("cri-containerd-scoped", "2-3")
    vm = vms.start("scoped", VmSpec(vcpus=3))
    (directory / "cgroup.procs").write_text(str(vm.pid))
    product.put_sandbox(vm)
    product.put_container("scoped", "app", "4-5", exclusive=True)

    def effective() -> str:
        return (directory / "cpuset.cpus.effective").read_text().strip()

    def told() -> str:
        command = ["systemctl", "show", "--value", "-p", "AllowedCPUs", "cri-containerd-scoped.scope"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    check.eventually("CPUs of the scope", effective, "0-5")
    check.equal("CPUs of the scope by systemd's word", cpus.show(cpus.parse(told().replace(" ", ","))), "0-5")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    time.sleep(2)
    check.equal("CPUs of the scope after systemd read its units again", effective(), "0-5")
    expect_vcpus(vm, dedicated_to="4-5", rest="0-3")
    sleeper.kill()
    sleeper.wait()


def main() -> None:
    with Daemon(cgroup="manage", housekeeping="shared-pool") as daemon, Vms() as vms:
        pod = VmPod(vms, "managed", VmSpec(vcpus=3, debug_threads=True))
        follow_kata(pod)
        fight(pod)
        check.step("a daemon that was killed knows its cgroups again")
        daemon.kill()
        daemon.start()
        give_back(pod)
        pod.remove()
        scope(vms)
        print(f"          kernel {kernel.release()}: {product.metric('kata_affinity_cgroup_writes_total'):.0f} writes of cgroups", flush=True)


main()
