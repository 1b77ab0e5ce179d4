# SPDX-License-Identifier: Apache-2.0
"""A device that is passed through: its interrupts go to the CPUs of the vCPUs that may take them, follow these, and are given back."""
# lab shapes: iommu8
# lab timeout: 300

import subprocess
import time
from pathlib import Path

from lab import check, product
from lab.pods import RuncPod, VmPod
from lab.product import Daemon
from lab.vm import Vms, VmSpec

DEVICE = "0000:21:00.0"
_PCI = Path("/sys/bus/pci")


def give_to_vfio() -> None:
    """Takes the device from the node's own driver. The emulated IOMMU remaps no interrupts: VFIO wants to be told that this is known."""
    device = _PCI / "devices" / DEVICE
    (device / "driver_override").write_text("vfio-pci")
    if (device / "driver").exists():
        (device / "driver/unbind").write_text(DEVICE)
    for module in (["virtio_iommu"], ["vfio_iommu_type1", "allow_unsafe_interrupts=1"], ["vfio-pci"]):
        subprocess.run(["modprobe", *module], check=True)
    (_PCI / "drivers_probe").write_text(DEVICE)
    print(f"          {DEVICE}: {(device / 'driver').resolve().name}, in IOMMU group {(device / 'iommu_group').resolve().name}")


def interrupts() -> list[int]:
    """The device's interrupts by what the kernel says of all."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    return sorted(int(line.split(":")[0]) for line in lines if "vfio-" in line and f"({DEVICE})" in line)


def sent_to() -> set[str]:
    """Where the kernel sends them. Where interrupts are not remapped, they arrive there from the next one on."""
    return {Path(f"/proc/irq/{number}/smp_affinity_list").read_text().strip() for number in interrupts()}


def main() -> None:
    give_to_vfio()
    with Daemon(housekeeping="shared-pool"), Vms() as vms:
        pod = VmPod(vms, "passed", VmSpec(vcpus=3, job="idle", passed=DEVICE), extra_cpus="0-1")
        check.eventually("the guest's driver has the device use MSI-X", lambda: len(interrupts()) >= 2, True, seconds=60)
        before = sent_to()
        check.step(f"{len(interrupts())} interrupts, which the kernel may send to {before}")

        check.step("a container of 2 exclusive CPUs: they go to these")
        pod.update("pause", "0-1")
        pod.update("app", "4-5", exclusive=True)
        check.eventually("where interrupts go", sent_to, {"4-5"}, seconds=30)
        pod.update("app", "3-4", exclusive=True)
        check.eventually("where they go when one of the CPUs is on the device's node", sent_to, {"4"}, seconds=30)
        pod.update("app", "6-7", exclusive=True)
        check.eventually("where they go when both are", sent_to, {"6-7"}, seconds=30)
        check.equal("violations that verify finds", product.violations(), [])

        check.step("somebody sends one elsewhere, and it comes back")
        time.sleep(3)  # After an event the daemon looks again for two seconds, and would mend it before anyone saw it.
        Path(f"/proc/irq/{interrupts()[0]}/smp_affinity_list").write_text("1")
        check.equal("what verify finds", [each["invariant"] for each in product.violations()], ["drift"])
        check.eventually("where they go", sent_to, {"6-7"}, seconds=30)
        check.equal("drift that is counted", product.metric("kata_affinity_interrupt_drift_found_total"), 1.0)

        check.step("the container goes, and another pod comes to own one of its CPUs, which they leave with the vCPUs")
        product.call("DELETE", "/v1/sandboxes/passed/containers/app")
        other = RuncPod("other")
        other.update("all", "7", exclusive=True)
        check.eventually("where they go", sent_to, {"6"}, seconds=30)
        other.remove()

        check.step("release gives back what they had")
        check.equal("exit status", product.ctl("release", "passed").returncode, 0)
        check.equal("where they go", sent_to(), before)
        check.true("the VM runs", pod.vm.is_undisturbed())


main()
