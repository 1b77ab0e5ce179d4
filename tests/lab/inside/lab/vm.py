# SPDX-License-Identifier: Apache-2.0
"""Sandboxes: real VMs, started with the command line of Kata's Go runtime (pkg/govmm/qemu/qemu.go, virtcontainers/qemu.go).

`rust`: that of runtime-rs (hypervisor/src/qemu/cmdline_generator.rs), which never names threads.
"""

import os
import shutil
import socket
import subprocess
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab import kernel
from lab.cgroup import Cgroup
from lab.qmp import Qmp
from lab.shell import GuestLost

_GUEST = Path("/lab/guest")
# What Kata tells its guest's kernel (virtcontainers/qemu_amd64.go): it boots in half the time, and waits for no timer that gets lost.
_KATA_WORDS = (
    "tsc=reliable no_timer_check rcupdate.rcu_expedited=1 i8042.direct=1 i8042.dumbkbd=1 i8042.nopnp=1 i8042.noaux=1 "
    "noreplace-smp reboot=k cryptomgr.notests pci=lastbus=0"
)
_VIRTIOFSD = "/usr/libexec/virtiofsd"
_VIRTIOFSD_OF_QEMU_7 = "/usr/lib/qemu/virtiofsd"
_FIRST_CID = 100
_BOOT_SECONDS = 120
_LOST = 75  # EX_TEMPFAIL: the scenario is begun again (nodelab/machine.py)


@dataclass(frozen=True)
class VmSpec:
    """What a sandbox's VM is.

    `firmware` is all that its guest is: `halt`, or `spin`, which burns CPU on every vCPU. With a `job` (see guest/init)
    the guest is Linux instead. `passed`: a PCI device in vfio-pci's hands that it has for itself. `initrd`: the guest's own in place of
    the lab's; `disk`: an image, its first disk; `words`: more of the kernel's command line; `shell`: there is a second serial port
    (see lab/shell.py).
    """

    vcpus: int = 2
    max_vcpus: int = 0
    firmware: str = "halt"
    job: str = ""
    memory_mib: int = 0
    debug_threads: bool = False
    iothread: bool = True
    vhost_net: bool = True
    vhost_vsock: bool = True
    virtiofs: bool = False
    threads_per_core: int = 1
    rust: bool = False
    passed: str = ""
    initrd: str = str(_GUEST / "initrd")
    disk: str = ""
    words: str = ""
    shell: bool = False

    @property
    def memory(self) -> int:
        """Mebibytes of the guest."""
        return self.memory_mib or (256 if self.job else 16)


@dataclass
class Vm:
    """A running sandbox VM, in its own cgroup `kubepods/pod<id>/<id>`, with its QMP socket taken by us, the shim."""

    id: str
    spec: VmSpec
    cgroup: Cgroup
    directory: Path
    process: subprocess.Popen
    virtiofsd: subprocess.Popen | None
    qmp: Qmp
    tap: str = field(default="")

    @property
    def cid(self) -> int:
        """What vsock knows it by."""
        return _cid(self.id)

    @property
    def pid(self) -> int:
        """QEMU's process id."""
        return self.process.pid

    def vcpu_tids(self) -> dict[int, int]:
        """The thread of each vCPU, by QEMU's cpu-index."""
        answer = self.qmp.call("query-cpus-fast")
        return {cpu["cpu-index"]: cpu["thread-id"] for cpu in answer}

    def iothread_tids(self) -> dict[str, int]:
        """The thread of each iothread, by its id."""
        return {thread["id"]: thread["thread-id"] for thread in self.qmp.call("query-iothreads")}

    def vhost_tids(self) -> list[int]:
        """The vhost workers: threads of QEMU since kernel 6.4, kernel threads before."""
        name = f"vhost-{self.pid}"
        own = [tid for tid in kernel.threads(self.pid) if kernel.comm(tid) == name]
        return own or kernel.kernel_threads(name)

    def other_tids(self) -> list[int]:
        """QEMU's threads that are neither vCPU, nor iothread, nor vhost worker: the emulator's."""
        known = {*self.vcpu_tids().values(), *self.iothread_tids().values(), *self.vhost_tids()}
        return [tid for tid in kernel.threads(self.pid) if tid not in known]

    def all_tids(self) -> list[int]:
        """Every thread that works for this sandbox."""
        virtiofsd = kernel.threads(self.virtiofsd.pid) if self.virtiofsd else []
        return sorted({*kernel.threads(self.pid), *self.vhost_tids(), *virtiofsd})

    def vcpu_cpus(self) -> dict[int, str]:
        """Where each vCPU may run, by cpu-index."""
        return {index: kernel.allowed(tid) for index, tid in sorted(self.vcpu_tids().items())}

    def console(self) -> str:
        """What the guest has written to its serial console."""
        return (self.directory / "console").read_text(errors="replace")

    def plug_vcpu(self) -> int:
        """Plugs one vCPU in as Kata does, into the first free slot that QEMU lists, and returns its cpu-index.

        QEMU lists slots from the highest down (kata-containers: hotplugAddCPUs).
        """
        before = set(self.vcpu_tids())
        slots = self.qmp.call("query-hotpluggable-cpus")
        free = next(slot for slot in slots if "qom-path" not in slot)
        self.qmp.call("device_add", driver=free["type"], id=f"cpu-{len(before)}", **free["props"])
        return (set(self.vcpu_tids()) - before).pop()

    def unplug_vcpu(self, device: str) -> None:
        """Asks the guest to give vCPU `device` (`cpu-<n>`) back. It is gone when the guest has done so."""
        self.qmp.call("device_del", id=device)

    def wait_for_guest(self, text: str, seconds: float = 120) -> None:
        """Waits until the guest has written `text`."""
        if not self.guest_wrote(text, seconds):
            raise RuntimeError(f"{self.id}: the guest never wrote {text!r}; its console:\n{self.console()}")

    def guest_wrote(self, text: str, seconds: float) -> bool:
        """Whether the guest has written `text`, now or within `seconds`."""
        until = time.monotonic() + seconds
        while text not in self.console():
            if time.monotonic() > until or self.process.poll() is not None:
                return False
            time.sleep(0.2)
        return True

    def lives(self) -> bool:
        """Whether its process is there."""
        return self.process.poll() is None

    def is_undisturbed(self) -> bool:
        """Whether the VM runs: its process lives and QEMU says `running`."""
        return self.lives() and self.qmp.call("query-status")["status"] == "running"

    def stop(self) -> None:
        """Ends the VM and removes its cgroup."""
        self.qmp.close()
        for process in (self.process, self.virtiofsd):
            if process:
                process.kill()
                process.wait()
        self.cgroup.remove()


class Vms:
    """Starts VMs, and ends those that are left at the end of a `with` block."""

    def __init__(self) -> None:
        self._running: list[Vm] = []

    def __enter__(self) -> "Vms":
        return self

    def __exit__(self, _: object, failure: BaseException | None, trace: object) -> None:
        if failure:
            for vm in self._running:
                _keep(vm)
            self._give_up_where_one_is_lost(failure)
        for vm in list(self._running):
            self.stop(vm)

    def _give_up_where_one_is_lost(self, failure: BaseException) -> None:
        """Leaves what is left to the node's end: such a VM may hang in the node's kernel, and who waits for it hangs as well."""
        if isinstance(failure, GuestLost) or any(vm.spec.job and not vm.lives() for vm in self._running):
            traceback.print_exception(failure)
            print("a guest hangs, or its VM ended by itself", flush=True)
            raise SystemExit(_LOST)

    def start(self, sandbox: str, spec: VmSpec, cpus: str = "") -> Vm:
        """Starts sandbox `sandbox`, born in a cgroup that allows `cpus` (all when empty). Where its guest is Linux, that is up."""
        vm = self._start(sandbox, spec, cpus)
        if not spec.job or vm.guest_wrote("guest up", _BOOT_SECONDS):
            return vm
        # An emulated CPU loses a timer once in a while, under a guest as under the node itself: nothing ever goes on then.
        print(f"{sandbox}: the guest hangs while it boots, and is started again; its console:\n{vm.console()}")
        self.stop(vm)
        return self._start(sandbox, spec, cpus)

    def _start(self, sandbox: str, spec: VmSpec, cpus: str) -> Vm:
        vm = _start(sandbox, spec, cpus)
        self._running.append(vm)
        return vm

    def stop(self, vm: Vm) -> None:
        """Ends `vm`."""
        self._running.remove(vm)
        vm.stop()


def _keep(vm: Vm) -> None:
    for name in ("console", "stderr"):
        shutil.copy(vm.directory / name, Path(os.environ["LAB_OUT"]) / f"{vm.id}.{name}")


def _start(sandbox: str, spec: VmSpec, cpus: str) -> Vm:
    directory = Path("/run/vc/vm") / sandbox
    directory.mkdir(parents=True, exist_ok=True)
    cgroup = Cgroup(f"kubepods/pod-{sandbox}/{sandbox}")
    if cpus:
        cgroup.set_cpus(cpus)
    return launch(sandbox, spec, cgroup, directory, directory / "qmp.sock", lambda: cgroup.add(os.getpid()))


def launch(sandbox: str, spec: VmSpec, cgroup: Cgroup, directory: Path, qmp_socket: Path, enter: Callable | None = None) -> Vm:
    """Starts a VM with its files in `directory`. Each of its processes calls `enter` first; without it is born where its parent is."""
    virtiofsd = _start_virtiofsd(directory, enter) if spec.virtiofs else None
    listener = _listen(qmp_socket)
    command = _command(sandbox, spec, directory, listener.fileno())
    with open(directory / "stderr", "wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=[listener.fileno()],
            preexec_fn=enter,
        )
    listener.close()
    try:
        qmp = Qmp(str(qmp_socket))
    except RuntimeError as error:
        raise RuntimeError(f"{sandbox}: {(directory / 'stderr').read_text()}") from error
    return Vm(sandbox, spec, cgroup, directory, process, virtiofsd, qmp)


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    return listener


def _start_virtiofsd(directory: Path, enter: Callable | None) -> subprocess.Popen:
    shared = directory / "shared"
    shared.mkdir(exist_ok=True)
    path = directory / "vhost-fs.sock"
    command = [*_virtiofsd(shared), f"--socket-path={path}", "--thread-pool-size=1"]
    with open(directory / "virtiofsd.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=enter)
    while not path.exists():
        if process.poll() is not None:
            raise RuntimeError(f"{directory.name}: virtiofsd: {(directory / 'virtiofsd.log').read_text()}")
        time.sleep(0.05)
    return process


def _virtiofsd(shared: Path) -> list[str]:
    """The start of virtiofsd's command line. Debian 12 has the one that was part of QEMU, with other options."""
    if Path(_VIRTIOFSD).exists():
        return [_VIRTIOFSD, f"--shared-dir={shared}", "--sandbox=none"]
    return [_VIRTIOFSD_OF_QEMU_7, "-o", f"source={shared},sandbox=chroot"]


def _command(sandbox: str, spec: VmSpec, directory: Path, qmp_fd: int) -> list[str]:
    name = f"sandbox-{sandbox}" + (",debug-threads=on" if spec.debug_threads else "")
    command = ["/usr/bin/qemu-system-x86_64", "-name", name, "-machine", "q35,accel=kvm", "-cpu", "host,pmu=off"]
    command += ["-qmp", f"unix:fd={qmp_fd},server=on,wait=off", "-smp", _processors(spec)]
    command += [] if spec.rust else ["-pidfile", str(directory / "pid")]
    command += ["-no-user-config", "-nodefaults", "-nographic", "-no-reboot", "-serial", f"file:{directory / 'console'}"]
    command += ["-serial", f"unix:{directory / 'shell'},server=on,wait=off"] if spec.shell else []
    return command + _memory(spec) + _devices(sandbox, spec, directory) + _guest(spec)


def _processors(spec: VmSpec) -> str:
    most = max(spec.max_vcpus, spec.vcpus)
    if spec.rust:
        return f"{spec.vcpus},maxcpus={most}" if most > spec.vcpus else f"{spec.vcpus}"
    return f"{spec.vcpus},sockets={most // spec.threads_per_core},cores=1,threads={spec.threads_per_core},maxcpus={most}"


def _memory(spec: VmSpec) -> list[str]:
    if not spec.virtiofs:
        return ["-m", f"{spec.memory}M"]
    backend = f"memory-backend-memfd,id=dimm1,size={spec.memory}M,share=on"
    return ["-m", f"{spec.memory}M", "-object", backend, "-numa", "node,memdev=dimm1"]


def _cid(sandbox: str) -> int:
    return _FIRST_CID + _number(sandbox) % 2**30


def _number(sandbox: str) -> int:
    return zlib.crc32(sandbox.encode())


def _devices(sandbox: str, spec: VmSpec, directory: Path) -> list[str]:
    arguments: list[str] = []
    if spec.iothread:
        arguments += ["-object", "iothread,id=io1"]
    if spec.vhost_net:
        tap = f"tap,id=network-0,ifname=tap{_number(sandbox):x},script=no,downscript=no,vhost=on"
        arguments += ["-netdev", tap, "-device", "virtio-net-pci,netdev=network-0"]
    if spec.vhost_vsock:
        arguments += ["-device", f"vhost-vsock-pci,guest-cid={_cid(sandbox)}"]
    if spec.virtiofs:
        arguments += ["-chardev", f"socket,id=char-fs,path={directory / 'vhost-fs.sock'}"]
        arguments += ["-device", "vhost-user-fs-pci,chardev=char-fs,tag=kataShared"]
    if spec.disk:
        arguments += ["-drive", f"id=image,file={spec.disk},format=raw,if=none,readonly=on"]
        arguments += ["-device", "virtio-blk-pci,drive=image,share-rw=on"]
    if spec.passed:
        arguments += ["-device", f"vfio-pci,host={spec.passed}"]
    return arguments


def _guest(spec: VmSpec) -> list[str]:
    if not spec.job:
        return ["-bios", str(_GUEST / f"{spec.firmware}.bin")]
    words = f"console=ttyS0 quiet panic=1 mitigations=off nokaslr {_KATA_WORDS} lab.job={spec.job} {spec.words}"
    return ["-kernel", str(_GUEST / "vmlinuz"), "-initrd", spec.initrd, "-append", words]
