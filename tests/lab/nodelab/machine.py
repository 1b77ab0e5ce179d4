"""The machine that a node is: QEMU's software emulation of one shape, with its log and its results brought out."""

import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nodelab.image import debian_tree, guest_image, in_tree, node_image
from nodelab.payload import write_payload
from nodelab.scenarios import Scenario
from nodelab.shapes import Shape

# Debian 12's QEMU 7.2 double-faults the 6.12 kernel when it emulates SMT, so Debian 13's runs every shape.
_QEMU_SUITE = "trixie"
_KERNEL_ARGS = (
    *("console=ttyS0", "panic=-1", "mitigations=off", "audit=0", "lsm=capability", "systemd.unit=lab.target"),
    # All emulated CPUs read one clock. On a busy machine the kernel's check of its timer, and its watchdogs, fail for no reason.
    *("tsc=reliable", "no_timer_check", "nowatchdog"),
)
# What software emulation lacks is named, lest QEMU warns of each on each CPU.
_LACKING = ("fxsr-opt", "misalignsse", "osvw", "topoext", "nrip-save", "xsavec")
_CPU = ",".join(["EPYC,+svm,+npt,+x2apic", *(f"{feature}=off" for feature in _LACKING)])
_UP = "node up"
# A machine takes half a minute, on a busy one three times as long. Once in a while an emulated CPU loses its timer while the kernel
# boots, and nothing ever goes on, nor is anything printed: such a node is ended, and booted again.
_BOOT_SECONDS = 240
_SILENT_SECONDS = 60
_BOOTS = 2


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `status` is the scenario's exit status, None when it gave none; `problem` says why then."""

    status: int | None
    seconds: float
    problem: str = ""


def prepare(shape: Shape) -> None:
    """Makes whatever `shape` needs and the cache does not have."""
    debian_tree(_QEMU_SUITE)
    node_image(shape.suite)
    guest_image(shape.suite)


def run_scenario(shape: Shape, scenario: Scenario, timeout: float, out: Path) -> Outcome:
    """Boots a node, runs `scenario` in it, and leaves `log`, `console` and what the scenario kept in directory `out`."""
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="node-lab-") as directory:
        work = Path(directory)
        command = _command(shape, work, f"lab.scenario={scenario.name}", scenario.packages)
        command += ["-display", "none", "-monitor", "none", "-serial", f"file:{out / 'console'}"]
        command += _port("log", out / "log") + _port("out", work / "out.tar")
        for _ in range(_BOOTS):
            (out / "log").unlink(missing_ok=True)
            ended = _run_for(command, timeout, out)
            if ended or _was_up(out):
                break
            print(f"{scenario.name}: the node hangs while it boots", flush=True)
            (out / "console").replace(out / "console.hung")
        status = _unpack(work / "out.tar", out)
    seconds = time.monotonic() - began
    return Outcome(status, seconds, "" if status is not None else _problem(out, ended, timeout))


def run_shell(shape: Shape) -> int:
    """Boots a node with its console on this terminal. It ends with `poweroff`, or with QEMU's Ctrl-A x."""
    with tempfile.TemporaryDirectory(prefix="node-lab-") as directory:
        command = _command(shape, Path(directory), "lab.shell")
        return subprocess.run([*command, "-display", "none", "-serial", "mon:stdio"], check=False).returncode


def _command(shape: Shape, work: Path, argument: str, packages: bool = False) -> list[str]:
    qemu, image, payload = debian_tree(_QEMU_SUITE), node_image(shape.suite), work / "payload.img"
    write_payload(shape.suite, payload, work, packages)
    share = qemu / "usr/share"
    command = ["nice", "-n5", *in_tree(qemu, str(qemu / "usr/bin/qemu-system-x86_64"))]
    command += ["-L", str(share / "qemu"), "-L", str(share / "seabios"), "-no-reboot", "-nodefaults"]
    command += ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", _CPU, "-smp", shape.smp]
    command += ["-m", f"{shape.memory_mib}M", *_numa(shape)]
    command += ["-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd")]
    command += ["-append", " ".join([*_KERNEL_ARGS, *shape.kernel_args, argument])]
    command += _disk(image / "root.img") + _disk(payload) + ["-device", "virtio-serial-pci"]
    return command


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


def _run_for(command: list[str], timeout: float, out: Path) -> bool:
    """Whether the machine booted and ended by itself within `timeout` seconds; else it is ended. QEMU's own words go to `qemu`."""
    with open(out / "qemu", "wb") as to, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=to) as machine:
        try:
            _wait_until_up(machine, out)
            machine.wait(timeout if _was_up(out) else 0)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            machine.kill()


def _wait_until_up(machine: subprocess.Popen, out: Path) -> None:
    """Returns when the node is up, has ended, hangs, or has had its time."""
    deadline = time.monotonic() + _BOOT_SECONDS
    printed, silent_since = 0, time.monotonic()
    while machine.poll() is None and not _was_up(out) and time.monotonic() < min(deadline, silent_since + _SILENT_SECONDS):
        time.sleep(0.5)
        if (now := _size(out / "console")) != printed:
            printed, silent_since = now, time.monotonic()


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _was_up(out: Path) -> bool:
    log = out / "log"
    return log.exists() and _UP in log.read_text(errors="replace")


def _unpack(archive: Path, out: Path) -> int | None:
    """Unpacks what the node sent as its last act into `out`, and returns the exit status that is part of it."""
    if not archive.exists() or not tarfile.is_tarfile(archive):
        return None
    with tarfile.open(archive) as content:
        content.extractall(out, filter="data")
    return int((out / "status").read_text())


def _problem(out: Path, ended: bool, timeout: float) -> str:
    if not _was_up(out):
        return f"the node had not booted: see {out}"
    how = "ended" if ended else f"was ended after {timeout:.0f} s"
    return f"the node {how} before the scenario did"
