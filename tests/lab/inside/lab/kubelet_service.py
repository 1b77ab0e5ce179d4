# SPDX-License-Identifier: Apache-2.0
"""kubelet itself, without an API server: pods are files in a folder. The program is a peer (see the lab's README)."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from lab.kubelet import STATE

_DIRECTORY = Path("/run/lab-kubelet")
_MANIFESTS = _DIRECTORY / "manifests"
PROGRAM = Path("/lab/peers/kubelet")
_RESERVED = "0"

_CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "staticPodPath": str(_MANIFESTS),
    "fileCheckFrequency": "5s",
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": _RESERVED,
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "registerNode": False,
    "enableServer": False,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "failSwapOn": False,
    "failCgroupV1": False,
    "makeIPTablesUtilChains": False,
    "localStorageCapacityIsolation": False,
    "resolvConf": "",
    "imageGCHighThresholdPercent": 100,
    "runtimeRequestTimeout": "5m",
    "evictionHard": {"memory.available": "1Mi"},
    # What costs an emulated node more than it is worth here.
    "nodeStatusUpdateFrequency": "5m",
    "volumeStatsAggPeriod": "-1s",
    # A container that crashes is started again at once, not after 10 s, 20 s, ...
    "featureGates": {"KubeletCrashLoopBackOffMax": True},
    "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
}

# Go's threads look for work to steal; on emulated CPUs that costs more than it gains.
_ENVIRONMENT = os.environ | {"GOMAXPROCS": "2"}


class Kubelet:
    """Runs it with `settings` over its configuration, `gates` that are switched on, and more arguments; it is ended at the end of a `with` block."""

    def __init__(self, *arguments: str, gates: tuple[str, ...] = (), **settings: object) -> None:
        enabled = _CONFIG["featureGates"] | settings.get("featureGates", {}) | dict.fromkeys(gates, True)
        self._arguments, self._settings = arguments, settings | {"featureGates": enabled}
        self._process: subprocess.Popen | None = None
        _MANIFESTS.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "Kubelet":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.copy(_DIRECTORY / "log", Path(os.environ["LAB_OUT"]) / "kubelet.log")
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self) -> None:
        """Starts it, and waits until it is well and its CPU manager has its state."""
        command = _command(self._settings)
        with open(_DIRECTORY / "log", "ab") as log:
            self._process = subprocess.Popen([*command, *self._arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_ENVIRONMENT)
        self._wait_until_up()

    def stop(self) -> None:
        """Its pods run on."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)

    def forget(self) -> None:
        """Deletes the CPU manager's state, as administrators do who change the policy."""
        STATE.unlink()

    def _wait_until_up(self, seconds: float = 600) -> None:
        until = time.monotonic() + seconds
        while not (_is_well() and STATE.exists()):
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(f"kubelet does not come up; its log:\n{(_DIRECTORY / 'log').read_text()[-4000:]}")
            time.sleep(0.2)


def install_unit(**settings: object) -> None:
    """Makes it a unit of systemd, `kubelet.service`, with `settings` over its configuration. It is not started."""
    _MANIFESTS.mkdir(parents=True, exist_ok=True)
    lines = ["[Service]", "Environment=GOMAXPROCS=2", f"ExecStart={' '.join(_command(settings))}"]
    Path("/etc/systemd/system/kubelet.service").write_text("\n".join(lines) + "\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def _command(settings: dict) -> list[str]:
    config = _DIRECTORY / "config.json"
    config.write_text(json.dumps(_CONFIG | settings))
    return [str(PROGRAM), f"--config={config}", "--v=2", "--housekeeping-interval=60s"]


def _is_well() -> bool:
    try:
        with urllib.request.urlopen("http://127.0.0.1:10248/healthz", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def put(manifest: dict) -> None:
    """Gives kubelet a pod, or the changed manifest of one that it has."""
    file = _MANIFESTS / f"{manifest['metadata']['name']}.json"
    fresh = _DIRECTORY / "fresh"
    fresh.write_text(json.dumps(manifest))
    fresh.replace(file)


def remove(name: str) -> None:
    """Takes a pod away."""
    (_MANIFESTS / f"{name}.json").unlink()
