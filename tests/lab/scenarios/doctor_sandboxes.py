# SPDX-License-Identifier: Apache-2.0
"""What doctor finds about sandboxes that run, and its remedies: what each asks for is done, and the finding is gone."""
# lab shapes: smt8
# lab timeout: 600
# lab alone: yes

import json
from collections.abc import Callable
from pathlib import Path

from lab import check, kernel, product
from lab.guest import spec
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec


def finding(text: str) -> dict | None:
    found = json.loads(product.ctl("doctor", "--json").stdout)["checks"]
    return next((each for each in found if text in each["text"] and each["level"] != "good"), None)


def remedy(text: str, do: Callable[[], object], seconds: float = 20) -> None:
    """doctor has the finding; once its advice is followed, it has not."""
    found = finding(text)
    check.true(f"doctor says: {text}", found is not None)
    print(f"          {found['level']}: {found['text']}\n          -> {found['advice']}", flush=True)
    do()
    check.eventually(f"doctor says it no more: {text}", lambda: finding(text), None, seconds)


def folder_of(pod: VmPod) -> Path:
    """The sandbox's cgroup, whose parents hand the controllers down."""
    folder = Path("/sys/fs/cgroup") / pod.vm.cgroup.path.lstrip("/")
    for above in reversed(folder.parents):
        if str(above).startswith("/sys/fs/cgroup"):
            (above / "cgroup.subtree_control").write_text("+cpu +memory +cpuset")
    return folder


def too_few_vcpus(vms: Vms) -> None:
    check.step("a VM with fewer vCPUs than its container owns CPUs; recreated with one for each, and one more")
    pods = [VmPod(vms, "few", VmSpec(vcpus=2))]
    pods[0].update("app", "2-4", exclusive=True)

    def recreate() -> None:
        pods.pop().remove()
        pods.append(VmPod(vms, "enough", VmSpec(vcpus=4)))
        pods[0].update("app", "2-4", exclusive=True)

    remedy("sandbox few", recreate)
    check.equal("findings about vCPUs", finding("sandbox enough: 3 CPUs"), None)
    pods[0].remove()


def limits(vms: Vms) -> None:
    check.step("a CFS quota on dedicated vCPUs, which kubelet 1.33 and later does not set; a limit below the guest's memory")
    pod = VmPod(vms, "limited", VmSpec(vcpus=3, firmware="spin"))
    pod.update("app", "2-3", exclusive=True)
    folder = folder_of(pod)
    (folder / "cpu.max").write_text("150000 100000")
    check.eventually("the kernel throttles", lambda: "nr_throttled 0\n" not in (folder / "cpu.stat").read_text(), True)
    remedy("have a CFS quota of 1.5 CPUs", lambda: (folder / "cpu.max").write_text("max 100000"))
    (folder / "memory.max").write_text("16M")
    remedy("the guest has 16 MiB, but the VMM is limited to 16 MiB", lambda: (folder / "memory.max").write_text("128M"))
    pod.remove()


def far_memory(vms: Vms, daemon: Daemon) -> None:
    check.step("memory on another node than the CPUs: migrated")
    vm = vms.start("mover", VmSpec(vcpus=2, job="memory"), "4-7")
    vm.wait_for_guest("guest filled")
    product.put_sandbox(vm)
    vm.cgroup.set_cpus("0-3")
    product.put_container(vm.id, "app", "0-3", exclusive=True)
    check.eventually("doctor sees it", lambda: finding("memory: ") is not None, True, 60)
    remedy("memory: ", lambda: daemon.configure(memory="migrate"), 120)


def guest_without_agent(vms: Vms) -> None:
    check.step("a guest without an agent; recreated with ours in its image")
    text = "no agent in the guest confines containers"
    pods = [VmPod(vms, "bare", VmSpec(vcpus=3))]
    pods[0].update("app", "2-3", exclusive=True)

    def recreate() -> None:
        pods.pop().remove()
        pods.append(VmPod(vms, "confined", spec("v2", vcpus=3, max_vcpus=3)))
        pods[0].update("app", "2-3", exclusive=True)

    remedy(text, recreate, 120)
    check.true("the daemon has its agent", product.guest("confined").get("connected", False))
    pods[0].remove()


def main() -> None:
    kernel.stop_numa_balancing()
    with Daemon(housekeeping="shared-pool") as daemon, Vms() as vms:
        too_few_vcpus(vms)
        limits(vms)
        guest_without_agent(vms)
        far_memory(vms, daemon)


main()
