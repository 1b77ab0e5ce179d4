# SPDX-License-Identifier: Apache-2.0
"""A VM with a shell in its guest, a daemon, and what both of them say."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab/inside"))

from lab.shell import Shell  # noqa: E402

PATIENCE = float(os.environ.get("KATA_AFFINITY_VM_PATIENCE", "180"))


def eventually(what, ask, wanted, seconds=30):
    """Asks until the answer is as wanted; fails with the last one."""
    until = time.monotonic() + seconds
    while (answer := ask()) != wanted:
        if time.monotonic() > until:
            sys.exit(f"{what}: {answer!r}, and {wanted!r} would have been right")
        time.sleep(0.1)
    print(f"good: {what}: {answer!r}", flush=True)


def broken(daemon):
    """What verify finds broken, or could not read."""
    findings = json.loads(daemon.ctl("verify", "--json", check=False).stdout)["findings"]
    return [finding for finding in findings if finding["severity"] in ("violated", "unknown")]


def equal(what, answer, wanted):
    """Fails when it is not so."""
    eventually(what, lambda: answer, wanted, seconds=0)


class Daemon:
    """kata-affinityd with a directory of its own; it is told of nothing by this machine."""

    def __init__(self, programs, directory, settings=""):
        self._programs = Path(programs)
        self._directory = Path(directory)
        self._directory.mkdir(parents=True)
        self.socket = self._directory / "api.sock"
        lines = ["[affinity]", f'state_dir = "{self._directory}/state"', 'nri_socket = ""', 'kubelet_state = ""', settings]
        (self._directory / "affinity.toml").write_text("\n".join(lines) + "\n")
        self._log = open(self._directory / "log", "ab")
        command = [self._programs / "kata-affinityd", "--config", self._directory / "affinity.toml", "--socket", self.socket]
        self.process = subprocess.Popen(command, stderr=self._log)
        until = time.monotonic() + 20
        while self.ctl("status", check=False).returncode != 0:
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("the daemon does not answer: " + self.log())
            time.sleep(0.1)

    def log(self):
        return (self._directory / "log").read_text(errors="replace")

    def ctl(self, *arguments, check=True):
        command = [self._programs / "kata-affinityctl", *arguments, "--socket", self.socket]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
        if check and answer.returncode != 0:
            sys.exit(f"kata-affinityctl {arguments}: {answer.stdout}{answer.stderr}")
        return answer

    def sandbox(self, name):
        return json.loads(self.ctl("status", name, "--json").stdout)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Vm:
    """QEMU with our virtio-serial port, a monitor for the daemon, and a shell inside."""

    def __init__(self, arguments, directory, vcpus, cgroup):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        path = self.directory
        self.agent = path / "agent.sock"
        command = ["qemu-system-x86_64", "-name", f"sandbox-{path.name},debug-threads=on", "-nodefaults", "-no-user-config"]
        command += ["-display", "none", "-no-reboot", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256"]
        command += [*vcpus, "-kernel", arguments.kernel, "-initrd", arguments.initrd]
        command += ["-append", f"console=ttyS0 panic=-1 mitigations=off guest.cgroup={cgroup} rdinit=/usr/bin/kata-affinity-agent"]
        command += ["-serial", f"file:{path}/console", "-serial", f"unix:{path}/shell,server=on,wait=off"]
        command += ["-qmp", f"unix:{path}/qmp,server=on,wait=off"]
        command += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={self.agent},server=on,wait=off"]
        command += ["-device", "virtserialport,chardev=agent,name=org.kata-affinity.agent.0"]
        self._log = open(path / "qemu.log", "wb")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        self._wait_for_guest()
        self.shell = Shell(path / "shell")

    def _wait_for_guest(self):
        until = time.monotonic() + PATIENCE
        console = self.directory / "console"
        while not console.exists() or "guest up" not in console.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > until:
                text = console.read_text(errors="replace")[-2000:] if console.exists() else ""
                self.process.kill()
                sys.exit("the guest does not come up: " + text)
            time.sleep(0.2)

    def inside(self, command):
        """Runs a line of shell in the guest and returns what it prints."""
        return self.shell.run(command)

    def stop(self):
        self.process.kill()
        self.process.wait()
