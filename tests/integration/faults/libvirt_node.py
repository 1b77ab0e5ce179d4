# SPDX-License-Identifier: Apache-2.0
"""A node of the fault matrix whose VM is a domain of libvirt: of a libvirtd of its own, whose folders are private to it, and which
makes no cgroups. The daemon writes its plan to libvirt's record, too."""
import os
import re
import shutil
import signal
import subprocess

from nodes import ApiNode, eventually

PROGRAMS = ("libvirtd", "virsh", "unshare")
PATH = os.environ["PATH"] + ":/usr/sbin"
FOLDERS = {"run": "/run/libvirt", "var": "/var/lib/libvirt", "etc": "/etc/libvirt", "cache": "/var/cache/libvirt",
           "log": "/var/log/libvirt"}
FILES = {"passwd": "/etc/passwd", "group": "/etc/group"}
DOMAIN = """<domain type='qemu'><name>guest</name><memory unit='MiB'>64</memory><vcpu placement='static'>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>
<emulator>/usr/bin/qemu-system-x86_64</emulator><controller type='usb' model='none'/><memballoon model='none'/></devices></domain>
"""
QEMU = """user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
security_driver = "none"
stdio_handler = "file"
"""


def why_not():
    """Why there can be no such node here; empty: there can."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    if missing or os.geteuid() != 0:
        return f"needs root, and {', '.join(missing) or 'has all programs'}"
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        return "it may not make a mount namespace"
    return ""


class Libvirtd:
    """With one domain, which does not run yet."""

    def __init__(self, directory):
        self._directory, self.socket = directory, directory / "sock/libvirt-sock"
        for name in ("sock", *FOLDERS):
            (directory / name).mkdir(parents=True)
        for place in FOLDERS.values():
            os.makedirs(place, exist_ok=True)
        for name, original in FILES.items():
            shutil.copy(original, directory / name)
            with open(directory / name, "a", encoding="utf-8") as file:
                file.write("libvirt-qemu:x:64055:" + ("64055::/:/bin/false\n" if name == "passwd" else "\n"))
        (directory / "etc/qemu.conf").write_text(QEMU)
        (directory / "etc/libvirtd.conf").write_text(f'unix_sock_dir = "{directory}/sock"\nauth_unix_rw = "none"\n')
        (directory / "domain.xml").write_text(DOMAIN)
        self._process = self._run()

    def _run(self):
        mounts = "".join(f'mount --bind "{self._directory}/{name}" {place}\n' for name, place in (FOLDERS | FILES).items())
        script = f'set -e\nmount --make-rprivate /\numount -l -R /sys/fs/cgroup\n{mounts}exec libvirtd -f "$1/etc/libvirtd.conf" -p "$1/pid"'
        with open(self._directory / "libvirtd.log", "wb") as log:
            return subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", self._directory], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=os.environ | {"PATH": PATH})

    def virsh(self, *words):
        """The status, and what it said."""
        done = subprocess.run(["virsh", "-c", f"qemu:///system?socket={self.socket}", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def start_domain(self):
        assert eventually(lambda: self.virsh("list")[0] == 0), (self._directory / "libvirtd.log").read_text()
        for words in (("define", self._directory / "domain.xml"), ("start", "guest", "--paused")):
            status, text = self.virsh(*words)
            assert status == 0, text
        return int((self._directory / "run/qemu/guest.pid").read_text())

    def record(self):
        """CPUs of the vCPU and of the emulator, as libvirt has them."""
        return [line.split()[-1] for words in ("vcpupin", "emulatorpin") for line in self.virsh(words, "guest")[1].splitlines()[2:3]]

    def pin(self, cpus):
        for words in (("vcpupin", "guest", "0"), ("emulatorpin", "guest")):
            self.virsh(*words, cpus)

    def end(self):
        self._process.kill()
        self._process.wait()


class Domain:
    """In the place of a VM's process, which is a child of nobody here."""

    def __init__(self, libvirtd):
        self._libvirtd, self.pid = libvirtd, libvirtd.start_domain()

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        self._libvirtd.end()


class LibvirtNode(ApiNode):
    settings = ApiNode.settings + 'libvirt_uri = "qemu:///system?socket={0}/libvirt/sock/libvirt-sock"\nlibvirt_domains = ["guest"]\n'
    _is_pinned = False  # by somebody else

    def start(self, inject):
        self._is_pinned = False
        super().start(inject)

    def run_vm(self):
        self._libvirtd = Libvirtd(self.directory / "libvirt")
        try:
            return Domain(self._libvirtd)
        except AssertionError:
            self._libvirtd.end()
            raise

    def introduce(self):
        assert eventually(lambda: self.ctl("status", "guest")[0] == 0), self.output()
        self.ctl("container", "update", "guest", "app", "--cpus", f"{self.first},{self.last}")
        self.own_last()

    def disown_last(self):
        """What libvirt has still to do of that plan would undo the next one for a moment (docs/use/libvirt.md). Where the daemon does not
        tell it, somebody else does: the record is another one before the next plan."""
        is_disowned = super().disown_last()
        self._is_pinned = not eventually(lambda: str(self.first) not in self._libvirtd.record(), 1)
        if self._is_pinned:
            self._libvirtd.pin(f"{self.first},{self.last}")
        return is_disowned

    def trespasses(self):
        """Threads that the daemon cannot see are moved by libvirt alone, a moment after it has been told; and where somebody else had
        widened them they stay."""
        wide = super().trespasses
        return wide() and not (self._is_unseen() and (self._is_pinned or eventually(lambda: not wide(), 1)))

    def as_planned(self):
        return super().as_planned() and self._is_recorded()

    def admits(self, _call):
        """The threads are as planned, and it is said that libvirt's record may be another one; or that they cannot be seen."""
        is_said = re.search(r"^! libvirt", self.ctl("status")[1], re.MULTILINE) is not None
        return is_said and super().as_planned() or self._is_pinned and self._is_unseen()

    def _is_unseen(self):
        said = self.ctl("verify")[1]
        is_lost = re.search(r"state cannot be read: \S*/guest\.json \(", said) is not None
        return "guest: cannot read its VMM" in said or is_lost and not self.has_found_threads()

    def _is_recorded(self):
        return self._libvirtd.record() == [str(self.first)] * 2
