# SPDX-License-Identifier: Apache-2.0
"""The product under test: its daemon, started and killed as a scenario likes, and its API."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from lab.vm import Vm

_DIRECTORY = Path("/run/lab-daemon")
_SOCKET = "/run/kata-affinity/api.sock"
PROGRAM = Path("/lab/bin/kata-affinityd")
NRI_SOCKET = "/run/nri/nri.sock"
STATE = Path("/run/kata-affinity/state")


class Refused(Exception):
    """The API answered with an error; `status` is HTTP's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def call(method: str, path: str, body: object = None, timeout: float = 60, socket_path: str = _SOCKET) -> object:
    """One call of the API of the daemon, or of who else listens at `socket_path`; the JSON that it answers."""
    text = _request(method, path, body, timeout, socket_path)
    return json.loads(text) if text else None


def _request(method: str, path: str, body: object, timeout: float, socket_path: str = _SOCKET) -> str:
    connection = _UnixConnection(socket_path, timeout)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status >= 400:
        raise Refused(answer.status, text)
    return text


def put_container(sandbox: str, container: str, cpus: str, exclusive: bool = False) -> None:
    """Tells a container's spec, as an UpdateContainer does."""
    call("PUT", f"/v1/sandboxes/{sandbox}/containers/{container}", {"cpus": cpus, "exclusive": exclusive, "name": container})


def remove_container(sandbox: str, container: str) -> None:
    """Tells that a container is gone."""
    call("DELETE", f"/v1/sandboxes/{sandbox}/containers/{container}")


def put_sandbox(vm: Vm, annotations: dict[str, str] | None = None) -> None:
    """Tells that `vm` is there, and of its pod's annotations."""
    call("PUT", f"/v1/sandboxes/{vm.id}", {"vmm_pid": vm.pid, "pod_uid": f"uid-{vm.id}", "annotations": annotations or {}})


def put_runc_pod(sandbox: str) -> None:
    """Tells of a pod that is no VM."""
    call("PUT", f"/v1/sandboxes/{sandbox}", {"pod_uid": f"uid-{sandbox}"})


def remove_sandbox(sandbox: str) -> None:
    """Tells that a pod is gone. The daemon may have noticed by itself that the VM has ended."""
    try:
        call("DELETE", f"/v1/sandboxes/{sandbox}")
    except Refused as refused:
        if refused.status != 404:
            raise


def metric(name: str) -> float:
    """The value of a metric without labels."""
    page = _request("GET", "/metrics", None, 60)
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} "))


def show_times() -> None:
    """Prints what the daemon, since its start, has counted of its own part: means by whose word it acted on, and how long runtimes waited for it."""
    page = _request("GET", "/metrics", None, 60)
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    for name in ("foreign_cpus_seconds", "reaction_seconds", "answer_seconds", "shim_narrowed_seconds"):
        for key, count in values.items():
            if key.startswith(f"kata_affinity_{name}_count") and float(count) > 0:
                total = float(values[key.replace("_count", "_sum", 1)])
                print(f"          by the daemon: {key.replace('_count', '', 1)}: {count} times, mean {total / float(count) * 1000:.1f} ms")


def owned() -> str:
    """What the daemon takes for exclusive."""
    return call("GET", "/v1/node")["exclusive"]


def source(name: str) -> dict:
    """How a source of container specs stands: `up`, and a `text`."""
    return next(each for each in call("GET", "/v1/node")["sources"] if each["source"] == name)


def is_heard(name: str) -> bool:
    """Whether the daemon says that it hears a source."""
    return source(name)["up"]


def ctl(*arguments: str) -> subprocess.CompletedProcess:
    """Runs kata-affinityctl."""
    return subprocess.run(["kata-affinityctl", *arguments], capture_output=True, text=True, check=False)


def _settings_of(settings: dict) -> dict:
    return {"nri_socket": "", **settings}


class Daemon:
    """kata-affinityd with `settings` in its [affinity] table. It is ended at the end of a `with` block.

    Without containerd's NRI unless `nri_socket` is given: a source that never speaks is waited for at each start."""

    def __init__(self, **settings: object) -> None:
        self._settings = _settings_of(settings)
        self._process: subprocess.Popen | None = None
        _DIRECTORY.mkdir(exist_ok=True)

    def __enter__(self) -> "Daemon":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.copy(_DIRECTORY / "log", Path(os.environ["LAB_OUT"]) / "daemon.log")
        if self._process and self._process.poll() is None:
            self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self) -> None:
        """Starts it and waits until its API answers."""
        config = _DIRECTORY / "configuration.toml"
        config.write_text("[affinity]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in self._settings.items()))
        with open(_DIRECTORY / "log", "ab") as log:
            command = [PROGRAM, "--config", str(config), "--socket", _SOCKET]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait_until_up()

    def configure(self, **settings: object) -> None:
        """Restarts it with other settings, as an operator does. It takes up again what it knew."""
        self.stop()
        self._settings = _settings_of(settings)
        self.start()

    def stop(self) -> None:
        """Ends it as systemd does."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def kill(self) -> None:
        """Ends it without a chance to do anything."""
        self._process.kill()
        self._process.wait()

    def _wait_until_up(self, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                call("GET", "/v1/sandboxes")
                return
            except OSError as error:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise RuntimeError(f"the daemon does not answer; its log:\n{_log()}") from error
                time.sleep(0.1)


def vcpus_known(sandbox: str) -> int:
    """How many vCPUs the daemon has found in `sandbox`."""
    return len(call("GET", f"/v1/sandboxes/{sandbox}")["vcpus"])


def guest(sandbox: str) -> dict:
    """How the guest of `sandbox` stands: what the daemon has of its agent."""
    return call("GET", f"/v1/sandboxes/{sandbox}")["guest"] or {}


def guest_numbers(sandbox: str) -> dict[int, int]:
    """The APIC ids of vCPUs that are online in the guest, by the guest's numbers, as the daemon has them."""
    vcpus = call("GET", f"/v1/sandboxes/{sandbox}")["vcpus"]
    return {each["guest_cpu"]: each["apic_id"] for each in vcpus if "guest_cpu" in each}


def in_guest(sandbox: str) -> dict[str, tuple[str, int, str]]:
    """By container, what the guest tells of it: the CPUs that its kernel gives it, how many threads are elsewhere, what is wrong."""
    containers = call("GET", f"/v1/sandboxes/{sandbox}")["containers"]
    told = {each["id"]: each["guest"] for each in containers if each["guest"]}
    return {container: (guest["actual"], guest["outside"], guest["problem"]) for container, guest in told.items()}


def verify() -> dict:
    """What `verify` answers, verdict and findings."""
    return call("POST", "/v1/verify")


def broken(report: dict) -> list:
    """Of what `verify` answered, what is broken, or could not be read."""
    return [finding for finding in report["findings"] if finding["severity"] in ("violated", "unknown")]


def violations() -> list:
    """What `verify` finds broken, or could not read."""
    return broken(verify())


def _log() -> str:
    return (_DIRECTORY / "log").read_text(errors="replace")[-4000:]
