# SPDX-License-Identifier: Apache-2.0
"""Resource classes: nice of the vCPUs of one container, also of one plugged later, and io.weight of cgroups and of systemd's scopes; given back."""
# lab shapes: smt8
# lab timeout: 900

import os
import subprocess
from pathlib import Path

from lab import check, product
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vm, Vms, VmSpec

SETTINGS = {
    "allow_annotations": ["scheduling-class", "blockioclass"],
    "housekeeping": "shared-pool",
    "drift_check": 1,
    "classes.gold.nice": -5,
    "classes.gold.io_weight": 300,
}
ANNOTATIONS = {"scheduling-class.resource-policy.nri.io/container.app": "gold", "blockioclass.resource-policy.nri.io": "gold"}
MOUNT = Path("/sys/fs/cgroup")
SCOPE = "cri-containerd-scoped"


def nices(vm: Vm) -> list[int]:
    """By vCPU index."""
    return [os.getpriority(os.PRIO_PROCESS, tid) for _, tid in sorted(vm.vcpu_tids().items())]


def weight(directory: Path) -> str:
    """The first line of io.weight."""
    file = directory / "io.weight"
    return file.read_text().splitlines()[0] if file.exists() else "none"


def weight_problem(vm: Vm) -> str:
    return product.call("GET", f"/v1/sandboxes/{vm.id}")["classes"]["io_weight"].get("problem", "")


def plain(vms: Vms) -> Vm:
    check.step("a container of two vCPUs, of which one is plugged later, in a cgroup without the io controller")
    pod = VmPod(vms, "plain", VmSpec(vcpus=2, max_vcpus=3, job="idle"), extra_cpus="0-1")
    pod.vm.wait_for_guest("guest up: 2 vCPUs")
    product.put_sandbox(pod.vm, ANNOTATIONS)
    pod.update("app", "4", exclusive=True)
    check.eventually("nice of its vCPUs", lambda: sorted(nices(pod.vm)), [-5, 0])
    check.equal("why it has no weight", weight_problem(pod.vm), "the io controller is not enabled for its cgroup")
    pod.vm.plug_vcpu()
    pod.update("app", "4-5", exclusive=True)
    check.eventually("nice of its vCPUs", lambda: sorted(nices(pod.vm)), [-5, -5, 0])

    check.step("the io controller is enabled above its cgroup: reconcile writes the weight")
    directory = MOUNT / pod.vm.cgroup.path.lstrip("/")
    for above in reversed(list(directory.parents)[: len(directory.parents) - len(MOUNT.parents)]):
        (above / "cgroup.subtree_control").write_text("+io")
    check.equal("weight before", weight(directory), "default 100")
    product.call("POST", f"/v1/reconcile?id={pod.vm.id}")
    check.equal("weight", weight(directory), "default 300")

    check.step("another program changes both: they are written again")
    os.setpriority(os.PRIO_PROCESS, max(pod.vm.vcpu_tids().values()), 3)
    (directory / "io.weight").write_text("55")
    check.eventually("nice", lambda: sorted(nices(pod.vm)), [-5, -5, 0])
    check.eventually("weight", lambda: weight(directory), "default 300")
    check.equal("violations that verify finds", product.violations(), [])
    return pod.vm


def give_back(daemon: Daemon, vm: Vm) -> None:
    check.step("kill -9, a restart, release: what was there comes back")
    directory = MOUNT / vm.cgroup.path.lstrip("/")
    daemon.kill()
    check.equal("nice without a daemon", sorted(nices(vm)), [-5, -5, 0])
    daemon.start()
    check.equal("nice with the next one", sorted(nices(vm)), [-5, -5, 0])
    product.call("POST", f"/v1/release?id={vm.id}")
    check.equal("nice", nices(vm), [0, 0, 0])
    check.equal("weight", weight(directory), "default 100")


def scope(vms: Vms) -> None:
    check.step("a sandbox whose cgroup is a systemd scope gets its weight from systemd, which keeps it")
    command = ["systemd-run", "--quiet", "--scope", f"--unit={SCOPE}", "-p", "AllowedCPUs=2-3", "sleep", "infinity"]
    sleeper = subprocess.Popen(command)

    def path() -> str:
        return Path(f"/proc/{sleeper.pid}/cgroup").read_text().strip().rpartition(":")[2]

    check.eventually("the process is in its scope", lambda: path().endswith(f"{SCOPE}.scope"), True)
    directory = MOUNT / path().lstrip("/")
    vm = vms.start("scoped", VmSpec(vcpus=3))
    (directory / "cgroup.procs").write_text(str(vm.pid))
    # A cgroup with a process of others is not the sandbox's own.
    sleeper.kill()
    sleeper.wait()
    product.put_sandbox(vm, ANNOTATIONS)
    product.put_container("scoped", "app", "2-3", exclusive=True)
    check.eventually("weight", lambda: weight(directory), "default 300")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    check.equal("weight after systemd read its units again", weight(directory), "default 300")
    product.call("POST", "/v1/release?id=scoped")
    check.eventually("weight that is left", lambda: weight(directory) in ("default 100", "none"), True)


def main() -> None:
    with Daemon(**SETTINGS) as daemon, Vms() as vms:
        scope(vms)
        give_back(daemon, plain(vms))


main()
