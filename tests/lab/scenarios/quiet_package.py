# SPDX-License-Identifier: Apache-2.0
"""Grades as they are installed: daemon and helper in their units, the helper started by its socket; kills, an upgrade, realtime, and removal."""
# lab shapes: smt8
# lab timeout: 900
# lab packages: yes

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from lab import check, given_back, kernel, product, quiet, reach
from lab.cgroup import Cgroup
from lab.expect import expect_dedicated
from lab.given_back import Masks
from lab.pods import VmPod
from lab.quiet import PATIENCE, expect_quiet
from lab.vm import Vms, VmSpec

PACKAGES = Path("/lab/packages")
SOCKET, HELPER, DAEMON = "kata-affinity-helper.socket", "kata-affinity-helper.service", "kata-affinityd.service"
KATA = Path("/etc/kata-containers")
OWN, REST, FLOOR = "2-3", "0-1,4-7", "0-1"
SETTINGS = '[affinity]\ngrade = "{}"\nquiet_floor = "{}"\nhousekeeping = "shared-pool"\n'
FIFO, OTHER = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.SCHED_OTHER


def run(*command: str) -> str:
    """Runs a command that must succeed; what it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise check.Failed(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout.strip()


def dpkg(*arguments: str) -> None:
    """Its scripts complain of nothing: of threads that cannot be given back, or CPUs that the host stays off."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    ended = subprocess.run(["dpkg", *arguments], capture_output=True, text=True, check=False, env=environment)
    lines = (ended.stdout + ended.stderr).splitlines()
    print("".join(f"          | {line}\n" for line in lines), end="", flush=True)
    check.equal("exit status of dpkg", ended.returncode, 0)
    check.equal("complaints", [line for line in lines if re.search("cannot|could not|stays off", line)], [])


def state(unit: str) -> str:
    """`active`, `inactive`, `failed`, ..."""
    return subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True, check=False).stdout.strip()


def main_pid(unit: str) -> int:
    return int(run("systemctl", "show", "--value", "--property=MainPID", unit))


def held() -> str:
    """Where new interrupts go."""
    return reach.of_mask(Path("/proc/irq/default_smp_affinity").read_text())


def answers() -> bool:
    try:
        product.call("GET", "/v1/sandboxes")
        return True
    except (OSError, product.Refused):
        return False


def same(before: Masks) -> None:
    check.eventually("masks that are not as before", lambda: given_back.differs(before), {}, PATIENCE)


def configure(grade: str) -> None:
    (KATA / "configuration.toml").write_text(SETTINGS.format(grade, FLOOR))


def expect_policies(pod: VmPod, dedicated: set[int], policy: int) -> None:
    """The dedicated vCPUs have this one, and no other thread of the VM has another than usual."""

    def policies() -> tuple[set[int], set[int]]:
        others = set(kernel.threads(pod.vm.pid)) - dedicated
        return {os.sched_getscheduler(tid) for tid in dedicated}, {os.sched_getscheduler(tid) for tid in others}

    check.eventually("policies of dedicated vCPUs, and of all other threads", policies, ({policy}, {OTHER}), PATIENCE)


def stays(pod: VmPod, grade: str = "quiet") -> None:
    """All is as it must be, and no unit failed."""
    check.eventually("the daemon answers", answers, True, PATIENCE)
    expect_quiet(OWN, pod.vm)
    expect_dedicated(pod.vm, OWN)
    check.eventually("its grade", lambda: product.call("GET", f"/v1/sandboxes/{pod.vm.id}")["grade"], grade, PATIENCE)
    check.equal("units", [state(unit) for unit in (SOCKET, HELPER, DAEMON)], ["active"] * 3)


def install(before: Masks) -> None:
    check.step("install: neither unit starts")
    KATA.mkdir(parents=True)
    configure("quiet")
    dpkg("--install", str(PACKAGES / "kata-affinity_0.1.0-1.deb"))
    check.equal("units", [state(unit) for unit in (SOCKET, HELPER, DAEMON)], ["inactive"] * 3)
    check.step("the daemon without the helper's socket: doctor says what to do")
    run("systemctl", "enable", "--now", DAEMON)
    print("".join(f"          | {line}\n" for line in product.ctl("doctor").stdout.splitlines() if "helper" in line), end="")
    run("systemctl", "enable", "--now", SOCKET)
    print(f"          {run('systemd-analyze', 'security', '--no-pager', '--threshold=60', HELPER).splitlines()[-1]}")
    same(before)


def killed(pod: VmPod) -> None:
    for name, units in {"the helper": [HELPER], "the daemon": [DAEMON], "both": [HELPER, DAEMON]}.items():
        check.step(f"{name} killed")
        for unit in units:
            os.kill(main_pid(unit), signal.SIGKILL)
        time.sleep(2)
        check.equal("CPUs of new interrupts", held(), REST)
        stays(pod)
    check.step("the helper is stopped: its socket starts it again")
    run("systemctl", "stop", HELPER)
    check.equal("CPUs of new interrupts", held(), REST)
    stays(pod)


def realtime(pod: VmPod, dedicated: set[int]) -> None:
    check.step("grade = realtime, by a reload; helper and daemon killed")
    expect_policies(pod, dedicated, OTHER)
    configure("realtime")
    run("systemctl", "reload", DAEMON)
    stays(pod, "realtime")
    expect_policies(pod, dedicated, FIFO)
    for unit in (HELPER, DAEMON):
        os.kill(main_pid(unit), signal.SIGKILL)
        time.sleep(2)
        stays(pod, "realtime")
        expect_policies(pod, dedicated, FIFO)


def main() -> None:
    Cgroup("kubepods")  # as kubelet does, which enables the cpuset controller
    before = given_back.read()
    install(before)
    with Vms() as vms:
        check.step(f"a pod with CPUs {OWN}")
        pod = VmPod(vms, "silent", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
        pod.update("app", OWN, exclusive=True)
        stays(pod)
        killed(pod)
        check.step("upgrade")
        dpkg("--install", str(PACKAGES / "kata-affinity_0.1.0-2.deb"))
        stays(pod)
        check.step("the daemon restarts: the host stays away")
        run("systemctl", "restart", DAEMON)
        stays(pod)
        dedicated = quiet.owners(pod.vm, OWN)
        realtime(pod, dedicated)
        run("systemctl", "stop", DAEMON)
        check.equal("CPUs of new interrupts", held(), REST)
        check.step("remove: the host has its CPUs again, and the pod runs")
        dpkg("--remove", "kata-affinity")
        same(before)
        expect_policies(pod, dedicated, OTHER)
        check.true("the VM runs", pod.vm.is_undisturbed())
        dpkg("--purge", "kata-affinity")
        check.true("nothing is left in /run", not Path("/run/kata-affinity").exists())


main()
