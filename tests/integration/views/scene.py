# SPDX-License-Identifier: Apache-2.0
"""A daemon that only observes, on an invented machine of 16 CPUs, with VMs that never run a guest and pods of runc."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(os.environ["KATA_AFFINITY_BUILD"]) / "bin"
_TOPOLOGY = "synthetic:pack:2 numa:1 l3:2 core:2 pu:2"


def skip(reason: str) -> None:
    """Ends the test as one that cannot run here."""
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def eventually(what: str, holds: object, seconds: float = 20) -> None:
    """Fails unless `holds()` within that time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.1)


class _Api(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


class Scene:
    """Use it with `with`: it leaves nothing behind."""

    def __enter__(self) -> "Scene":
        if not shutil.which("qemu-system-x86_64"):
            skip("there is no qemu-system-x86_64 here")
        self._files = tempfile.TemporaryDirectory()
        self.dir = Path(self._files.name)
        self._vms: list[subprocess.Popen] = []
        self._daemon: subprocess.Popen | None = None
        (self.dir / "affinity.toml").write_text(
            f'[affinity]\nmode = "observe"\nstate_dir = "{self.dir}/state"\nnri_socket = ""\nkubelet_state = ""\n')
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._daemon, *self._vms):
            process.kill()
            process.wait()
        self._files.cleanup()

    def start(self) -> None:
        """Starts the daemon and waits until it answers."""
        with open(self.dir / "log", "ab") as log:
            self._daemon = subprocess.Popen(
                [PROGRAMS / "kata-affinityd", "--config", self.dir / "affinity.toml", "--socket", self.socket(), "--run", self.dir,
                 "--topology", _TOPOLOGY], stdout=log, stderr=log)
        eventually("the daemon answers", lambda: self.ctl("status").returncode == 0)

    def stop(self) -> None:
        """Ends the daemon."""
        self._daemon.terminate()
        self._daemon.wait()

    def socket(self) -> Path:
        return self.dir / "api.sock"

    def command(self, *words: str) -> list:
        return [PROGRAMS / "kata-affinityctl", "--socket", self.socket(), *words]

    def ctl(self, *words: str) -> subprocess.CompletedProcess:
        """kata-affinityctl against this daemon."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=30)

    def put(self, path: str, body: dict) -> None:
        """One call of the API that must succeed."""
        api = _Api(self.socket())
        api.request("PUT", path, json.dumps(body))
        answer = api.getresponse()
        text = answer.read().decode()
        api.close()
        assert answer.status == 200, text

    def add_vm(self, sandbox: str, pod: str, vcpus: int = 2) -> None:
        """A sandbox with a VM."""
        command = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-smp", str(vcpus), "-m", "64"]
        command += ["-display", "none", "-nodefaults", "-S", "-name", "test,debug-threads=on"]
        vm = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._vms.append(vm)
        names = lambda: [path.read_text() for path in Path(f"/proc/{vm.pid}/task").glob("*/comm")]
        eventually("the VM has its vCPUs", lambda: f"CPU {vcpus - 1}/TCG\n" in names())
        self.put(f"/v1/sandboxes/{sandbox}", {"vmm_pid": vm.pid, "pod_name": pod})

    def add_runc(self, pod: str, cpus: str) -> None:
        """A pod without a VM, whose container owns CPUs."""
        self.put(f"/v1/sandboxes/{pod}", {"pod_name": f"other/{pod}"})
        self.own(pod, "main", cpus)

    def own(self, sandbox: str, container: str, cpus: str) -> None:
        """CPUs become the container's own."""
        self.put(f"/v1/sandboxes/{sandbox}/containers/{container}", {"cpus": cpus, "exclusive": True, "name": container})
