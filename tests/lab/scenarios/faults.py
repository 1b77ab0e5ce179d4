# SPDX-License-Identifier: Apache-2.0
"""The daemon killed at random moments, its state damaged, containerd restarted: it converges, and no VM notices."""
# lab shapes: smt8
# lab timeout: 900

import http.client
import random
import subprocess
import threading
import time

from lab import check, product
from lab.expect import expect_dedicated, expect_inside
from lab.pods import VmPod
from lab.product import STATE, Daemon
from lab.vm import Vms, VmSpec

PLACES = ("2-3", "4-5", "6-7")
KILLS = 6


def update_until_killed(pod: VmPod, chance: random.Random) -> None:
    """Sends updates; the one that the kill cuts short fails, as it would for any client."""
    try:
        while True:
            pod.update("app", chance.choice(PLACES[:2]), exclusive=True)
    except (OSError, http.client.HTTPException):
        return


def kill_while_updating(daemon: Daemon, pod: VmPod, chance: random.Random) -> None:
    updates = threading.Thread(target=update_until_killed, args=(pod, chance))
    updates.start()
    time.sleep(chance.uniform(0.05, 1.5))
    daemon.kill()
    updates.join()


def expect_converged(moving: VmPod, resting: VmPod, place: str) -> None:
    """After the next word from the runtime everything is where it belongs."""
    moving.update("app", place, exclusive=True)
    expect_dedicated(moving.vm, place)
    expect_inside(moving.vm, place)
    expect_dedicated(resting.vm, PLACES[2])
    check.true("both VMs run", moving.vm.is_undisturbed() and resting.vm.is_undisturbed())


def damage(chance: random.Random) -> None:
    """Cuts one state file short and fills the others with noise."""
    files = sorted(path for path in STATE.rglob("*") if path.is_file())
    check.true("there are state files to damage", bool(files))
    for number, path in enumerate(files):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if number == 0 else chance.randbytes(len(content)))


def main() -> None:
    chance = random.Random(7)
    with Daemon(housekeeping="sandbox") as daemon, Vms() as vms:
        moving, resting = VmPod(vms, "moving", VmSpec(vcpus=3)), VmPod(vms, "resting", VmSpec(vcpus=2))
        resting.update("app", PLACES[2], exclusive=True)
        moving.update("app", PLACES[0], exclusive=True)
        masks = resting.vm.vcpu_cpus()

        for number in range(1, KILLS + 1):
            check.step(f"kill {number} in the middle of updates, then start again")
            kill_while_updating(daemon, moving, chance)
            check.equal("pins stay without a daemon", resting.vm.vcpu_cpus(), masks)
            daemon.start()
            expect_converged(moving, resting, PLACES[number % 2])

        check.step("masks are disturbed while no daemon runs")
        daemon.kill()
        everything = ["taskset", "--all-tasks", "--pid", "--cpu-list", "2-7", str(resting.vm.pid)]
        subprocess.run(everything, check=True, capture_output=True)
        daemon.start()
        expect_dedicated(resting.vm, PLACES[2])

        check.step("the state files are damaged while it is down; the sources tell again")
        daemon.kill()
        damage(chance)
        daemon.start()
        for pod, place in ((moving, PLACES[0]), (resting, PLACES[2])):
            product.put_sandbox(pod.vm)
            pod.update("app", place, exclusive=True)
        expect_converged(moving, resting, PLACES[1])

        check.step("containerd is restarted under it")
        subprocess.run(["systemctl", "restart", "containerd"], check=True)
        expect_converged(moving, resting, PLACES[0])
        check.equal("violations that verify finds", product.violations(), [])


main()
