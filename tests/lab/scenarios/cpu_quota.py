# SPDX-License-Identifier: Apache-2.0
"""cpu-quota.crio.io: no CFS quota of kubelet's stops dedicated vCPUs, with cgroups of its own and with systemd's units; killed, released."""
# lab shapes: smt8
# lab timeout: 600

import subprocess
import time
from pathlib import Path

from lab import check, product
from lab.cgroup import Scope
from lab.helper import Helper
from lab.partitions import ROOT, of_process, read
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE
from lab.vm import Vms, VmSpec

ANNOTATION = "cpu-quota.crio.io"
SETTINGS = {"allow_annotations": ["crio"], "allow_crio_annotations": [ANNOTATION], "drift_check": 1, "quiet_floor": "0-1"}
OWN, LIMIT, RAISED = "2-3", "50000 100000", "70000 100000"
SLICE = "kubepods-podquota.slice"
BUSY = 2.0  # seconds


def is_limited(pod: Path) -> bool:
    """The pod's cgroup has a quota."""
    return not read(pod / "cpu.max").startswith("max")


def throttled(pod: Path) -> int:
    """In how many periods the pod was stopped."""
    return int(dict(line.split() for line in read(pod / "cpu.stat").splitlines())["nr_throttled"])


def problem() -> str | None:
    """Why the request is not in force, by the daemon."""
    rows = product.call("GET", "/v1/sandboxes")["tuned"]
    return rows[0]["problem"] if rows else None


def come(pod: VmPod, above: Path) -> None:
    check.step("a busy VM in a pod with a quota is stopped, and is not once its container owns CPUs")
    check.eventually("periods in which it was stopped", lambda: throttled(above) > 0, True)
    product.put_sandbox(pod.vm, {ANNOTATION: "disable"})
    pod.update("app", OWN, exclusive=True)
    check.eventually("its quota", lambda: is_limited(above), False, PATIENCE)
    before = throttled(above)
    time.sleep(BUSY)
    check.equal("periods in which it was stopped since", throttled(above), before)
    check.eventually("the daemon says so", problem, "", PATIENCE)


def others_write(above: Path) -> None:
    check.step("kubelet resizes the pod: its quota goes again")
    (above / "cpu.max").write_text(RAISED)
    check.eventually("its quota", lambda: is_limited(above), False, PATIENCE)


def kill(daemon: Daemon, helper: Helper, pod: VmPod, above: Path) -> None:
    check.step("kill -9 of both, restarts, release: the quota that kubelet wanted last comes back")
    daemon.kill()
    helper.kill()
    check.equal("its quota", is_limited(above), False)
    helper.start()
    daemon.start()
    check.eventually("in force", problem, "", PATIENCE)
    check.equal("its quota", is_limited(above), False)
    product.call("POST", f"/v1/release?id={pod.vm.id}")
    check.eventually("its quota", lambda: read(above / "cpu.max"), RAISED, PATIENCE)


def units(vms: Vms) -> None:
    check.step("a pod whose cgroups are units: systemd knows that it has no quota, and gives it back to the microsecond")
    pod = VmPod(vms, "unit", VmSpec(vcpus=3, firmware="spin"), extra_cpus="0-1", told=False)
    scope = Scope(SLICE, f"cri-containerd-{'0' * 64}.scope", pod.vm.pid)
    above = (ROOT / scope.path.lstrip("/")).parent
    subprocess.run(["systemctl", "set-property", "--runtime", SLICE, "CPUQuota=50%"], check=True)
    check.eventually("its quota", lambda: read(above / "cpu.max"), LIMIT)
    (above / "cpu.max").write_text("50001 100000")
    product.put_sandbox(pod.vm, {ANNOTATION: "disable"})
    product.put_container(pod.vm.id, "app", OWN, exclusive=True)
    check.eventually("its quota", lambda: is_limited(above), False, PATIENCE)
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "set-property", "--runtime", SLICE, "CPUWeight=90"], check=True)
    time.sleep(BUSY)
    check.equal("its quota after systemd wrote its cgroup again", is_limited(above), False)
    pod.remove()
    check.eventually("its quota", lambda: not above.exists() or read(above / "cpu.max") == "50001 100000", True, PATIENCE)


def main() -> None:
    with Helper() as helper, Daemon(**SETTINGS) as daemon, Vms() as vms:
        units(vms)
        pod = VmPod(vms, "own", VmSpec(vcpus=3, firmware="spin"), extra_cpus="0-1")
        above = of_process(pod.vm.pid).parent
        (above / "cpu.max").write_text(LIMIT)
        come(pod, above)
        others_write(above)
        kill(daemon, helper, pod, above)


main()
