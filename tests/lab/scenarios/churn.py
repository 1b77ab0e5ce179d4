# SPDX-License-Identifier: Apache-2.0
"""32 sandboxes at once, churned for two minutes: the daemon leaks neither descriptors nor memory, and verify is clean."""
# lab shapes: smt8
# lab timeout: 1500

import random
import time

from lab import check, kernel, product
from lab.expect import expect_inside
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

SANDBOXES = 32
CHURN_SECONDS = 120
# At the least, however slow the node is.
REPLACED = 12
POOL = "0-3"
EXCLUSIVE = ("4", "5", "6", "7")
TINY = VmSpec(vcpus=2, vhost_net=False, vhost_vsock=False)
ALLOWED_GROWTH_KIB = 2048


class Crowd:
    """The sandboxes of the node: some own a CPU, the others share the pool."""

    def __init__(self, vms: Vms, chance: random.Random) -> None:
        self._vms, self._chance, self._number = vms, chance, 0
        self.pods: list[tuple[VmPod, str]] = []

    def grow(self) -> None:
        """Starts one more."""
        self._number += 1
        free = [cpu for cpu in EXCLUSIVE if cpu not in {place for _, place in self.pods}]
        place = self._chance.choice(free) if free else POOL
        pod = VmPod(self._vms, f"tiny-{self._number}", TINY)
        pod.update("app", place, exclusive=place != POOL)
        self.pods.append((pod, place))

    def shrink(self) -> None:
        """Ends one."""
        pod, _ = self.pods.pop(self._chance.randrange(len(self.pods)))
        pod.remove()

    def update(self) -> None:
        """Tells a spec again that has not changed, as kubelet does every 10 seconds."""
        pod, place = self._chance.choice(self.pods)
        pod.update("app", place, exclusive=place != POOL)


def churn(crowd: Crowd, seconds: float, replacements: int, chance: random.Random) -> None:
    """Ends, starts and updates sandboxes for `seconds`, and until `replacements` have been replaced, however slow the node is."""
    replaced, updated, until = 0, 0, time.monotonic() + seconds
    while time.monotonic() < until or replaced < replacements:
        if chance.random() < 0.3:
            crowd.shrink()
            crowd.grow()
            replaced += 1
        else:
            crowd.update()
            updated += 1
    print(f"          {replaced} sandboxes replaced, {updated} specs told again")


def lasting_files(daemon: Daemon) -> int:
    """The descriptors that the daemon holds for more than a moment: those of a call or a scan come and go."""
    counts = []
    for _ in range(20):
        counts.append(kernel.open_files(daemon.pid))
        time.sleep(0.1)
    return min(counts)


def known() -> int:
    """How many sandboxes the daemon knows."""
    return len(product.call("GET", "/v1/sandboxes")["sandboxes"])


def main() -> None:
    chance = random.Random(11)
    with Daemon(housekeeping="sandbox") as daemon, Vms() as vms:
        crowd, files_alone = Crowd(vms, chance), lasting_files(daemon)
        check.step(f"start {SANDBOXES} sandboxes")
        while len(crowd.pods) < SANDBOXES:
            crowd.grow()
        check.equal("sandboxes that the daemon knows", known(), SANDBOXES)
        churn(crowd, 10, REPLACED // 3, chance)
        files, memory = lasting_files(daemon), kernel.resident_kib(daemon.pid)

        check.step(f"churn for {CHURN_SECONDS} s; the daemon holds {files} descriptors and {memory} KiB")
        churn(crowd, CHURN_SECONDS, REPLACED, chance)
        grown = kernel.resident_kib(daemon.pid) - memory
        check.true(f"memory grew by less than {ALLOWED_GROWTH_KIB} KiB (it was {grown})", grown < ALLOWED_GROWTH_KIB)
        check.eventually("descriptors of the daemon", lambda: lasting_files(daemon), files)
        check.equal("sandboxes that the daemon knows", known(), SANDBOXES)
        for pod, place in crowd.pods:
            expect_inside(pod.vm, place)
        check.equal("violations that verify finds", product.violations(), [])

        check.step("all of them end")
        while crowd.pods:
            crowd.shrink()
        check.equal("sandboxes that the daemon knows", known(), 0)
        check.eventually("descriptors of the daemon, as before the first one", lambda: lasting_files(daemon), files_alone)


main()
