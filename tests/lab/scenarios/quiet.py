# SPDX-License-Identifier: Apache-2.0
"""grade = "quiet": the host leaves the CPUs of dedicated vCPUs, and has them back after release, the pod's end, and kills of daemon and helper."""
# lab shapes: smt8
# lab timeout: 1500

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import check, given_back, helper, product, reach
from lab.cgroup import Cgroup
from lab.expect import expect_dedicated, expect_floating, expect_housekeeping
from lab.given_back import Masks
from lab.helper import Helper
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE, expect_noisy, expect_quiet
from lab.vm import Vms, VmSpec

OWN, REST, SECOND, FLOOR = "2-3", "0-1,4-7", "6-7", "0-1"
DEFAULT = Path("/proc/irq/default_smp_affinity")


def same(before: Masks, what: str = "masks that are not as before") -> None:
    check.eventually(what, lambda: given_back.differs(before), {}, PATIENCE)


def grade(pod: VmPod) -> tuple[str, str]:
    """Its grade, and why it is not quiet."""
    told = product.call("GET", f"/v1/sandboxes/{pod.vm.id}")
    return told["grade"], told["grade_problem"]


def expect_grade(pod: VmPod, wanted: str) -> None:
    """What it is, and a reason where it is not quiet."""
    is_quiet = wanted == "quiet"
    check.eventually(f"{pod.vm.id}: its grade, and that it has no reason", lambda: (grade(pod)[0], grade(pod)[1] == ""), (wanted, is_quiet), PATIENCE)
    if wanted != "quiet":
        print(f"          {grade(pod)[1]}", flush=True)


def held() -> str:
    """The CPUs that the helper keeps the host off, by what was done to new interrupts."""
    return reach.of_mask(DEFAULT.read_text())


def run(*command: str) -> None:
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def follow(pod: VmPod) -> None:
    check.step(f"a container gets CPUs {OWN}: the host leaves them, the pod has what it had")
    pod.update("app", OWN, exclusive=True)
    expect_quiet(OWN, pod.vm)
    expect_grade(pod, "quiet")
    expect_dedicated(pod.vm, OWN)
    expect_floating(pod.vm, FLOOR, count=1)
    expect_housekeeping(pod.vm, FLOOR)
    check.true("the VM runs", pod.vm.is_undisturbed())
    check.equal("violations that verify finds", product.violations(), [])


def words(pod: VmPod) -> None:
    check.step("what the daemon says of it is what the helper says")
    own = {kind["kind"]: (kind["moved"], kind["left_total"]) for kind in helper.told()["kinds"]}
    node = product.call("GET", "/v1/node")["quiet"]
    check.equal("by the node's API", {kind["kind"]: (kind["moved"], kind["left_total"]) for kind in node["kinds"]}, own)
    for line in product.ctl("status", pod.vm.id).stdout.splitlines():
        if "grade" in line or "quiet" in line:
            print(f"          status: {line.strip()}")
    verify = product.ctl("verify")
    check.equal("verify's exit status", verify.returncode, 0)


def drift(pod: VmPod) -> None:
    check.step("other programs write some masks back, systemd reads its units again")
    DEFAULT.write_text("ff")
    (reach.CGROUPS / "system.slice/cpuset.cpus").write_text("0-7")
    expect_quiet(OWN, pod.vm)
    run("systemctl", "daemon-reload")
    expect_quiet(OWN, pod.vm)
    expect_grade(pod, "quiet")


def released(pod: VmPod, before: Masks) -> None:
    check.step("release: the node is as it was; reconcile: the host leaves again")
    product.call("POST", "/v1/release")
    same(before)
    expect_noisy(OWN)
    product.call("POST", "/v1/reconcile")
    expect_quiet(OWN, pod.vm)
    expect_grade(pod, "quiet")


def second(vms: Vms, pod: VmPod) -> None:
    check.step(f"a second pod with CPUs {SECOND}: both are quiet; it ends: the host has its CPUs again")
    other = VmPod(vms, "second", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
    other.update("app", SECOND, exclusive=True)
    expect_quiet("2-3,6-7", pod.vm, other.vm)
    expect_grade(other, "quiet")
    expect_grade(pod, "quiet")
    other.remove()
    expect_noisy(SECOND)
    expect_quiet(OWN, pod.vm)


def floor(vms: Vms, pod: VmPod) -> None:
    check.step(f"a pod that takes some of quiet_floor, {FLOOR}: it is best-effort, and the other one stays quiet")
    greedy = VmPod(vms, "greedy", VmSpec(vcpus=2, debug_threads=True))
    greedy.update("app", "1,4", exclusive=True)
    expect_grade(greedy, "best-effort")
    expect_dedicated(greedy.vm, "1,4")
    check.true("CPU 1 is the host's", 1 in reach.cpus.parse(held()))
    expect_grade(pod, "quiet")
    greedy.remove()
    expect_quiet(OWN, pod.vm)


def moved(pod: VmPod) -> None:
    check.step("the container gets other CPUs, and gets its own again: the host follows")
    pod.update("app", "4-5", exclusive=True)
    expect_quiet("4-5", pod.vm)
    expect_noisy(OWN)
    pod.update("app", OWN, exclusive=True)
    expect_quiet(OWN, pod.vm)
    expect_noisy("4-5")


def unplugged(pod: VmPod) -> None:
    check.step("one of its CPUs goes offline, and comes back: the host does not return with it")
    online = Path("/sys/devices/system/cpu/cpu3/online")
    online.write_text("0")
    time.sleep(3)
    online.write_text("1")
    expect_quiet(OWN, pod.vm)
    expect_grade(pod, "quiet")
    expect_dedicated(pod.vm, OWN)


def dead(pod: VmPod, daemon: Daemon, program: Helper) -> None:
    check.step("the daemon is killed: the host stays away, and nobody asks for anything else when it is back")
    daemon.kill()
    time.sleep(2)
    check.equal("CPUs of new interrupts", held(), REST)
    daemon.start()
    expect_quiet(OWN, pod.vm)
    expect_grade(pod, "quiet")
    check.step("the helper is killed: the host stays away, the pod is best-effort and says why, until the helper is back")
    program.kill()
    expect_grade(pod, "best-effort")
    check.equal("CPUs of new interrupts", held(), REST)
    print(f"          {product.ctl('verify').stdout.strip()}")
    expect_dedicated(pod.vm, OWN)
    program.start()
    expect_grade(pod, "quiet")
    expect_quiet(OWN, pod.vm)
    check.step("both are killed, and others write meanwhile")
    for first, last in ((daemon, program), (program, daemon)):
        daemon.kill()
        program.kill()
        DEFAULT.write_text("ff")
        first.start()
        time.sleep(2)
        last.start()
        expect_quiet(OWN, pod.vm)
        expect_grade(pod, "quiet")


def killed_within(pod: VmPod, daemon: Daemon, program: Helper, before: Masks) -> None:
    """At moments of a container's update and its end."""
    victims: tuple[tuple[str, Callable[[], None]], ...] = (
        ("the daemon", lambda: (daemon.kill(), daemon.start())),
        ("the helper", lambda: (program.kill(), program.start())),
        ("both", lambda: (daemon.kill(), program.kill(), program.start(), daemon.start())),
    )
    for after in (0.0, 0.15, 0.3):
        for name, kill in victims:
            check.step(f"{name} killed {after * 1000:.0f} ms after the container's CPUs came, and after they went")
            for own, exclusive in ((REST, False), (OWN, True)):
                pod.update("app", own, exclusive)
                time.sleep(after)
                kill()
                if exclusive:
                    expect_quiet(OWN, pod.vm)
                    expect_grade(pod, "quiet")
                else:
                    same(before)


def ended(vms: Vms, pod: VmPod, daemon: Daemon, before: Masks) -> VmPod:
    check.step("the pod ends while the daemon is dead: the host has its CPUs when that is back")
    daemon.kill()
    vms.stop(pod.vm)
    check.equal("CPUs of new interrupts", held(), REST)
    daemon.start()
    product.remove_sandbox(pod.vm.id)
    same(before)
    expect_noisy(OWN)
    check.step("another pod comes and ends")
    other = VmPod(vms, "other", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
    other.update("app", OWN, exclusive=True)
    expect_quiet(OWN, other.vm)
    other.remove()
    same(before)
    last = VmPod(vms, "last", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
    last.update("app", OWN, exclusive=True)
    expect_quiet(OWN, last.vm)
    return last


def main() -> None:
    Cgroup("kubepods")  # as kubelet does, which enables the cpuset controller
    before = given_back.read()
    with Helper() as program, Daemon(grade="quiet", quiet_floor=FLOOR, housekeeping="shared-pool", drift_check=1) as daemon, Vms() as vms:
        same(before, "without a pod: masks that are not as before")
        pod = VmPod(vms, "silent", VmSpec(vcpus=3, debug_threads=True), extra_cpus=FLOOR)
        follow(pod)
        words(pod)
        drift(pod)
        released(pod, before)
        moved(pod)
        second(vms, pod)
        floor(vms, pod)
        unplugged(pod)
        dead(pod, daemon, program)
        killed_within(pod, daemon, program, before)
        last = ended(vms, pod, daemon, before)
        check.step("grade = best-effort: the host has its CPUs again")
        daemon.configure(grade="best-effort", housekeeping="shared-pool")
        same(before)
        expect_dedicated(last.vm, OWN)
        check.equal("what the helper still holds", (helper.told()["cpus"], list(helper.STATE.glob("*.json"))), ("", []))


main()
