# SPDX-License-Identifier: Apache-2.0
"""The machine that a node is: QEMU's software emulation of one shape, as a command line."""

from pathlib import Path

from nodelab.image import debian_tree, in_tree, node_image
from nodelab.shapes import Shape

# Debian 12's QEMU 7.2 double-faults the 6.12 kernel when it emulates SMT, so Debian 13's runs every shape.
QEMU_SUITE = "trixie"
_KERNEL_ARGS = (
    *("console=ttyS0", "panic=-1", "mitigations=off", "audit=0", "lsm=capability", "systemd.unit=lab.target"),
    # All emulated CPUs read one clock. On a busy machine the kernel's check of its timer, and its watchdogs, fail for no reason.
    *("tsc=reliable", "no_timer_check", "nowatchdog"),
)
# What software emulation lacks is named, lest QEMU warns of each on each CPU.
_LACKING = ("fxsr-opt", "misalignsse", "osvw", "topoext", "nrip-save", "xsavec")
_CPU = ",".join(["EPYC,+svm,+npt,+x2apic", *(f"{feature}=off" for feature in _LACKING)])

# The node's own disks are not behind the IOMMU: behind one, no interrupt of theirs arrives in a node that goes on from where it was kept.
_BYPASS = ",default_bus_bypass_iommu=on"
# A device for a VM inside, whose kernel has the driver built in: a console without ports, near the second node, as 0000:21:00.0.
# It comes last, lest the node's own take its ports.
_PASSABLE = (
    *("-device", "virtio-iommu-pci"),
    *("-device", "pxb-pcie,id=far,bus_nr=32,numa_node=1"),
    *("-device", "pcie-root-port,id=gate,bus=far,chassis=1"),
    *("-device", "virtio-serial-pci,bus=gate,max_ports=1,iommu_platform=on"),
)


def qemu(shape: Shape, ground: Path, payload: Path, log: Path, out: Path, wire: tuple[Path, Path] | None = None) -> list[str]:
    """The command of a node of `shape` with its disks, and the files that take what it writes to its ports `lab.log` and `lab.out`.
    `wire`: the sockets of this node's end and of the other's.

    One that goes on where another stood must have the same, but for what the files hold, and for where the wire leads.
    """
    tree, image = debian_tree(QEMU_SUITE), node_image(shape.suite, shape.newer)
    share = tree / "usr/share"
    command = ["nice", "-n5", *in_tree(tree, str(tree / "usr/bin/qemu-system-x86_64"))]
    command += ["-L", str(share / "qemu"), "-L", str(share / "seabios"), "-no-reboot", "-nodefaults", "-display", "none"]
    command += ["-machine", "q35" + (_BYPASS if shape.iommu else ""), "-accel", "tcg,thread=multi", "-cpu", _CPU, "-smp", shape.smp]
    command += ["-m", f"{shape.memory_mib}M", *_numa(shape)]
    command += ["-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd")]
    command += ["-append", " ".join([*_KERNEL_ARGS, *shape.kernel_args])]
    command += _disk("root", image / "root.img") + _disk("ground", ground) + _disk("payload", payload) + ["-device", "virtio-serial-pci"]
    command += _port("log", log) + _port("out", out)
    command += _card(wire) if shape.wired else []
    return [*command, *(_PASSABLE if shape.iommu else ())]


def _numa(shape: Shape) -> list[str]:
    each = shape.memory_mib // len(shape.node_cpus)
    arguments = []
    for node, cpus in enumerate(shape.node_cpus):
        arguments += ["-object", f"memory-backend-ram,id=node{node},size={each}M"]
        arguments += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=node{node}"]
    for source, row in enumerate(shape.distances):
        for target, distance in enumerate(row):
            arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return arguments


def _card(wire: tuple[Path, Path] | None) -> list[str]:
    """Without a wire it leads nowhere."""
    end = "dgram,local.type=unix,local.path={},remote.type=unix,remote.path={}".format(*wire) if wire else "hubport,hubid=0"
    return ["-netdev", f"{end},id=wire", "-device", "virtio-net-pci,netdev=wire,romfile="]


def _disk(name: str, image: Path) -> list[str]:
    drive = f"id={name},file={image},format=raw,if=none,readonly=on"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name}"]


def _port(name: str, file: Path) -> list[str]:
    return ["-chardev", f"file,id={name},path={file}", "-device", f"virtserialport,chardev={name},name=lab.{name}"]
