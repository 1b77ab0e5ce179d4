# SPDX-License-Identifier: Apache-2.0
"""A machine of 8 CPUs that is made of files, and the helper on it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

CPUS = 8
PATIENCE = 30  # seconds


def skip(why: str) -> NoReturn:
    print(f"skipped: {why}")
    sys.exit(77)


def require(what: str, holds: bool, more: str = "") -> None:
    if not holds:
        raise AssertionError(f"{what} {more}")


def eventually(what: str, holds: Callable[[], bool], more: Callable[[], str]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        require(what, time.monotonic() < until, more())
        time.sleep(0.05)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


class Machine:
    """Two packages of four CPUs, each with a cache of its own, and two interrupts."""

    def __init__(self, root: Path) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        cpus = self.sys / "devices/system/cpu"
        for name in ("online", "possible", "present"):
            write(cpus / name, f"0-{CPUS - 1}")
        for cpu in range(CPUS):
            self._add_cpu(cpus / f"cpu{cpu}", cpu // 4)
        node = self.sys / "devices/system/node"
        for name in ("online", "possible", "has_cpu"):
            write(node / name, "0")
        write(node / "node0/cpumap", "ff")
        write(node / "node0/cpulist", f"0-{CPUS - 1}")
        self._add_interrupts()
        write(self.proc / "sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555")
        write(self.proc / "self/mountinfo", "")
        write(self.sys / "devices/virtual/workqueue/cpumask", "ff")
        write(self.sys / "class/net/eth0/queues/rx-0/rps_cpus", "f0")
        write(self.sys / "class/net/eth0/queues/tx-0/xps_cpus", "ff")

    def _add_cpu(self, cpu: Path, package: int) -> None:
        siblings = "0f" if package == 0 else "f0"
        write(cpu / "online", "1")
        write(cpu / "power/pm_qos_resume_latency_us", "0")
        write(cpu / "cpufreq/scaling_available_governors", "performance powersave")
        write(cpu / "cpufreq/scaling_governor", "powersave")
        write(cpu / "cpufreq/affected_cpus", cpu.name[3:])
        write(cpu / "topology/physical_package_id", str(package))
        for name in ("core_siblings", "package_cpus"):
            write(cpu / "topology" / name, siblings)
        for index in range(4):
            write(cpu / f"cache/index{index}/shared_cpu_map", siblings)

    def _add_interrupts(self) -> None:
        lines = ["".join(f"{'CPU' + str(cpu):>12}" for cpu in range(CPUS))]
        for number, name in ((24, "nvme0q1"), (25, "eth0")):
            lines.append(f"{number:4}:" + f"{1000:12}" * CPUS + f"   PCI-MSI 1-edge      {name}")
            write(self.proc / f"irq/{number}/smp_affinity_list", f"0-{CPUS - 1}")
            write(self.proc / f"irq/{number}/smp_affinity", "ff")
            write(self.sys / f"kernel/irq/{number}/actions", name)
        write(self.proc / "irq/default_smp_affinity", "ff")
        write(self.proc / "interrupts", "\n".join(lines))
        lines = [f"cpu{cpu} 1000 0 1000 1000 0 100 100 0 0 0" for cpu in range(CPUS)]
        write(self.proc / "stat", "\n".join(["cpu 8000 0 8000 8000 0 800 800 0 0 0", *lines]))

    def files(self) -> dict[Path, str]:
        """All of them, with what is in each."""
        return {file: file.read_text() for top in (self.proc, self.sys) for file in top.rglob("*") if file.is_file()}

    def refill(self, files: dict[Path, str]) -> None:
        """What was opened and not written has what it had: the kernel empties no file of its own when it is opened."""
        for file, text in files.items():
            if file.read_text() == "":
                file.write_text(text)


class Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


class Helper:
    """Of this build."""

    def __init__(self, root: Path, machine: Machine) -> None:
        """It is not started yet."""
        self._socket = root / "helper.sock"
        write(root / "configuration.toml", "[affinity]")
        build = Path(os.environ["KATA_AFFINITY_BUILD"]).absolute()
        self._command = [
            build / "bin/kata-affinity-helper", "--config", root / "configuration.toml", "--state", root / "state",
            "--topology", "synthetic:pack:2 core:4 pu:1", "--proc", machine.proc, "--sys", machine.sys,
        ]  # fmt: skip

    def start(self, *under: str) -> None:
        """`under`: a program that starts it, and may end it at once."""
        self._process = subprocess.Popen([*under, *self._command, "--socket", self._socket])

        def is_over() -> bool:
            require("the helper runs", bool(under) or self._process.poll() is None)
            return self._responds() or self._process.poll() is not None

        eventually("the helper responds", is_over, lambda: "")

    def kill(self) -> None:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in [*children.read_text().split(), str(self._process.pid)]:
            os.kill(int(pid), signal.SIGKILL)
        self._process.wait()

    def restore(self) -> None:
        subprocess.run([*self._command, "--restore"], check=True, timeout=2 * PATIENCE)

    def has_ended(self) -> bool:
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return True

    def keep_off(self, cpus: str) -> None:
        self._call("POST", "/v1/quiet", json.dumps({"cpus": cpus}))

    def power(self, requests: list[dict[str, str]]) -> None:
        self._call("POST", "/v1/power", json.dumps({"cpus": requests}))

    def balancers(self) -> dict:
        """What it says of irqbalance, after another look."""
        kinds = {kind["kind"]: kind for kind in self._call("GET", "/v1/quiet")["kinds"]}
        return kinds["irqbalance"]

    def expect_nothing_left(self) -> None:
        def is_done() -> bool:
            now = self.balancers()
            return now["found"] == 1 and now["left"] == [] and now["problem"] == ""

        eventually("the helper sees the ban", is_done, lambda: str(self.balancers()))

    def _responds(self) -> bool:
        try:
            return bool(self._call("GET", "/v1/partitions"))
        except OSError:
            return False

    def _call(self, method: str, path: str, body: str | None = None) -> dict:
        connection = Connection(self._socket)
        connection.request(method, path, body)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        require(f"{method} {path}", response.status == 200, text)
        return json.loads(text)
