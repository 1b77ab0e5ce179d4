# SPDX-License-Identifier: Apache-2.0
"""A containerd of our own: root, state, sockets and logs in a directory that goes with it; no other containerd is touched."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RUNC = "io.containerd.runc.v2"
PROXY = "io.containerd.kata-affinity.v2"
IMAGE = "test.local/busybox:1"
REAL_SHIM = "containerd-shim-runc-v2"
PROXY_SHIM = "containerd-shim-kata-affinity-v2"
SHIM_SOCKETS = Path("/run/containerd/s")  # containerd 1.6 and 1.7 have no other place for them


class Skip(Exception):
    """Why nothing can be tested here."""


def eventually(holds: Callable[[], object], what: str, limit: float = 10.0) -> float:
    """Asks until it holds; the seconds that took."""
    begin = time.monotonic()
    while not holds():
        if time.monotonic() - begin > limit:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.005)
    return time.monotonic() - begin


def has_ended(pid: int) -> bool:
    """Also before its exit status was collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def write_image(path: Path) -> None:
    """An image with nothing in it but the static busybox of this machine."""
    layer_file = io.BytesIO()
    with tarfile.open(fileobj=layer_file, mode="w") as layer:
        _add(layer, "bin/busybox", Path("/bin/busybox").read_bytes(), 0o755)
        for name in ("sh", "sleep", "cat", "echo", "seq"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
    content = layer_file.getvalue()
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(content)]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, "config.json", json.dumps(config).encode())
        _add(archive, "layer.tar", content)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


class Node:
    """The containerd, and what it starts."""

    def __init__(self, programs: Path) -> None:
        """`programs`: the folder with our own shim."""
        for name in ("containerd", "ctr", "runc", REAL_SHIM, "busybox"):
            if not shutil.which(name):
                raise Skip(f"{name} is not installed")
        if os.geteuid() != 0:
            raise Skip("containers need root")
        self.dir = Path(tempfile.mkdtemp(prefix="ka-containerd."))
        self.socket = self.dir / "containerd.sock"
        self.api_socket = self.dir / "api.sock"
        self.log = self.dir / "containerd.log"
        self.settings = self.dir / "affinity.toml"
        self.kubelet_state = self.dir / "cpu_manager_state"
        self._programs = programs
        self._process: subprocess.Popen | None = None
        self._sockets_before = self.shim_sockets()
        self._write_configuration()

    def _write_configuration(self) -> None:
        (self.dir / "config.toml").write_text(
            f"""version = 2
root = "{self.dir}/root"
state = "{self.dir}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{self.socket}.ttrpc"
"""
        )
        self.settings.write_text(
            f'[affinity]\nreal_shim = "{REAL_SHIM}"\nkubelet_state = "{self.kubelet_state}"\n'
            f'nri_socket = ""\nstate_dir = "{self.dir}/daemon-state"\n'
        )

    def start(self) -> None:
        """Starts containerd, again too, and waits until it answers."""
        environment = os.environ | {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "KATA_AFFINITY_CONFIG": str(self.settings),
            "KATA_AFFINITY_SOCKET": str(self.api_socket),
        }
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                ["containerd", "-c", str(self.dir / "config.toml")],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment,
            )
        eventually(lambda: self.ctr("version", check=False).returncode == 0, "containerd answers")

    def load_image(self) -> None:
        """Makes the image and imports it."""
        write_image(self.dir / "image.tar")
        self.ctr("images", "import", str(self.dir / "image.tar"))

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Ends containerd; what it started lives on."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(timeout=20)

    def close(self) -> None:
        """Ends all that is left and removes the directory."""
        if self._process is not None and self._process.poll() is None:
            self.clean()
            self.stop()
        for mount in sorted(self._mounts(), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def clean(self) -> None:
        """Ends every container, and what a test that failed has left."""
        for container in self.ctr("containers", "ls", "-q", check=False).stdout.split():
            self.ctr("tasks", "rm", "-f", container, check=False)
            self.ctr("containers", "rm", container, check=False)
        for pid in self.shims() + self.proxies():
            os.kill(pid, signal.SIGKILL)
        for name in self.new_sockets():
            (SHIM_SOCKETS / name).unlink(missing_ok=True)

    def _mounts(self) -> list[str]:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [path for line in lines if (path := line.split()[1]).startswith(str(self.dir))]

    def ctr(self, *arguments: str, check: bool = True, stdin: str = "", limit: float = 60.0) -> subprocess.CompletedProcess:
        """Runs ctr to its end."""
        done = subprocess.run(
            ["ctr", "-a", str(self.socket), *arguments], input=stdin, capture_output=True, text=True, timeout=limit, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"ctr {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}{self.log.read_text()[-3000:]}")
        return done

    def run(self, runtime: str, name: str, *command: str, options: tuple[str, ...] = (), **more) -> subprocess.CompletedProcess:
        """`ctr run`."""
        return self.ctr("run", "--runtime", runtime, *options, IMAGE, name, *command, **more)

    def status(self, name: str) -> str:
        """ "RUNNING", "STOPPED", ...; "" where there is no such task."""
        return next((row[2] for row in self._tasks() if row[0] == name), "")

    def task_pid(self, name: str) -> int:
        """The pid of a task; 0 where there is none."""
        return next((int(row[1]) for row in self._tasks() if row[0] == name), 0)

    def _tasks(self) -> list[list[str]]:
        return [line.split() for line in self.ctr("tasks", "ls", check=False).stdout.splitlines()[1:]]

    def bundle(self, name: str) -> Path:
        """The bundle of a container."""
        return self.dir / "state/io.containerd.runtime.v2.task/default" / name

    # What this containerd started, by what /proc says.

    def proxies(self) -> list[int]:
        """Our processes that stay."""
        return self._running(PROXY_SHIM)

    def shims(self) -> list[int]:
        """The real shims."""
        return self._running(REAL_SHIM)

    def _running(self, program: str) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if Path(os.fsdecode(words[0])).name == program and os.fsencode(self.socket) in words:
                found.append(int(entry.name))
        return sorted(found)

    @staticmethod
    def shim_sockets() -> set[str]:
        """All sockets of shims on this machine."""
        return {path.name for path in SHIM_SOCKETS.iterdir()} if SHIM_SOCKETS.is_dir() else set()

    def new_sockets(self) -> set[str]:
        """Those that came since the beginning."""
        return self.shim_sockets() - self._sockets_before
