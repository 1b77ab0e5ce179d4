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


def qemu(shape: Shape, ground: Path, payload: Path, log: Path, out: Path) -> list[str]:
    """The command of a node of `shape` with its disks, and the files that take what it writes to its ports `lab.log` and `lab.out`.

    One that goes on where another stood must have the same, but for what the files hold.
    """
    tree, image = debian_tree(QEMU_SUITE), node_image(shape.suite)
    share = tree / "usr/share"
    command = ["nice", "-n5", *in_tree(tree, str(tree / "usr/bin/qemu-system-x86_64"))]
    command += ["-L", str(share / "qemu"), "-L", str(share / "seabios"), "-no-reboot", "-nodefaults", "-display", "none"]
    command += ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", _CPU, "-smp", shape.smp]
    command += ["-m", f"{shape.memory_mib}M", *_numa(shape)]
    command += ["-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd")]
    command += ["-append", " ".join([*_KERNEL_ARGS, *shape.kernel_args])]
    command += _disk(image / "root.img") + _disk(ground) + _disk(payload) + ["-device", "virtio-serial-pci"]
    return command + _port("log", log) + _port("out", out)


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


def _disk(image: Path) -> list[str]:
    return ["-drive", f"file={image},format=raw,if=virtio,readonly=on"]


def _port(name: str, file: Path) -> list[str]:
    return ["-chardev", f"file,id={name},path={file}", "-device", f"virtserialport,chardev={name},name=lab.{name}"]
