# SPDX-License-Identifier: Apache-2.0
"""dra-driver-cpu, and what a scheduler does for it: ResourceClaims get devices here, and their pods a node. The program is a peer (see the lab's README)."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lab import cpus
from lab.api_server import KUBECONFIG, ApiServer
from lab.claims import Claims

CDI = Path("/var/run/cdi")
_PROGRAM = "/lab/peers/dra-driver-cpu"
_DIRECTORY = Path("/run/lab-dra")
_ADDRESS = "127.0.0.1:8089"
_PATIENCE = 180.0  # seconds
_DRIVER = "dra.cpu"
_API = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims"
_PODS = "/api/v1/namespaces/lab/pods"
_ONLINE = Path("/sys/devices/system/cpu/online")


class Driver:
    """Runs it in the modes that its arguments name; it is ended at the end of a `with` block."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen | None = None
        _DIRECTORY.mkdir(exist_ok=True)

    def __enter__(self) -> "Driver":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.copy(_DIRECTORY / "log", Path(os.environ["LAB_OUT"]) / "dra-driver-cpu.log")
        self.stop()

    def start(self, *arguments: str) -> None:
        """Starts it, with other arguments if there are any, and waits until kubelet and containerd have it."""
        self._arguments = arguments or self._arguments
        command = [_PROGRAM, f"--kubeconfig={KUBECONFIG}", f"--bind-address={_ADDRESS}", "-v=4", *self._arguments]
        with open(_DIRECTORY / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=os.environ | {"GOMAXPROCS": "2"})
        begins = self._times_synchronized()
        until = time.monotonic() + _PATIENCE
        while not (_is_well() and self._times_synchronized() > begins):
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(f"dra-driver-cpu does not come up; its log:\n{self._log()[-4000:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        """What it prepared stays, and its containers run on."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)

    def _times_synchronized(self) -> int:
        return self._log().count("end: synchronize state with the runtime")

    @staticmethod
    def _log() -> str:
        return (_DIRECTORY / "log").read_text(errors="replace")


def _is_well() -> bool:
    try:
        with urllib.request.urlopen(f"http://{_ADDRESS}/healthz", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


@dataclass(frozen=True)
class Devices:
    """What a claim is given: devices by their names, each with so many of its CPUs (0: the device is one CPU), and the CPUs that an
    external allocator chose."""

    names: tuple[str, ...]
    count: int = 0
    chosen: str = ""


class Cluster:
    """The API server with claims and pods of the namespace `lab`. Gives kubelet pods, as lab.kubelet_service does by files."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._devices: dict[str, Devices] = {}
        self._holders: dict[str, tuple[str, str]] = {}  # by a claim's uid: its pod's uid, and a container

    def cpu_devices(self) -> dict[int, str]:
        """The names of the devices that are one CPU each, by their CPUs, as the driver has published them."""
        slices = self._api.call("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
        devices = [device for each in slices for device in each["spec"]["devices"]]
        return {device["attributes"]["dra.cpu/cpuID"]["int"]: device["name"] for device in devices if "dra.cpu/cpuID" in device["attributes"]}

    def claim(self, name: str, devices: Devices) -> str:
        """Makes a ResourceClaim, which gets these devices with its pod; its uid."""
        request = {"name": "cpus", "exactly": {"deviceClassName": _DRIVER, "count": len(devices.names)}}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        self._devices[name] = devices
        return self._api.call("POST", _API, body)["metadata"]["uid"]

    def put(self, manifest: dict) -> None:
        """Makes a pod, allocates and reserves its claims, and binds it to this node."""
        spec = manifest["spec"] | {"tolerations": [{"operator": "Exists"}]}
        made = self._api.call("POST", _PODS, manifest | {"spec": spec})["metadata"]
        for entry in manifest["spec"].get("resourceClaims", []):
            uid = self._allocate(entry["resourceClaimName"], made)
            users = [each["name"] for each in spec["containers"] if {"name": entry["name"]} in each["resources"].get("claims", [])]
            self._holders[uid] = (made["uid"], users[0])
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": made["name"]}, "target": {"kind": "Node", "name": os.uname().nodename}}
        self._api.call("POST", f"{_PODS}/{made['name']}/binding", target)

    def _allocate(self, name: str, pod: dict) -> str:
        """The claim's uid."""
        devices, claim = self._devices[name], self._api.call("GET", f"{_API}/{name}")
        result = {"request": "cpus", "driver": _DRIVER, "pool": os.uname().nodename}
        if devices.count:
            result["consumedCapacity"] = {"dra.cpu/cpu": str(devices.count)}
        results = [result | {"device": device} for device in devices.names]
        allocation = {"devices": {"results": results, "config": _chosen(devices)}}
        holder = {"resource": "pods", "name": pod["name"], "uid": pod["uid"]}
        claim["status"] = {"allocation": allocation, "reservedFor": [holder]}
        self._api.call("PUT", f"{_API}/{name}/status", claim)
        return claim["metadata"]["uid"]

    def remove(self, name: str) -> None:
        """Takes a pod away."""
        self._api.call("DELETE", f"{_PODS}/{name}")

    def read(self) -> Claims:
        """Who owns which CPUs: what the driver has prepared, for the pods that the API server has the claims reserved for."""
        owned: dict[str, dict[str, frozenset[int]]] = {}
        for uid, prepared in _prepared().items():
            pod, container = self._holders.get(uid, (uid, ""))
            mine = owned.setdefault(pod, {})
            mine[container] = mine.get(container, frozenset()) | prepared
        pool = cpus.parse(_ONLINE.read_text())
        return Claims(pool.difference(*(each for pod in owned.values() for each in pod.values())), owned)


def _chosen(devices: Devices) -> list[dict]:
    if not devices.chosen:
        return []
    parameters = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": devices.chosen}}
    return [{"source": "FromClaim", "requests": ["cpus"], "opaque": {"driver": _DRIVER, "parameters": parameters}}]


def _prepared() -> dict[str, frozenset[int]]:
    """By the claim's uid, from the driver's files."""
    found = {}
    for file in CDI.glob("dra.k8s.io-cpu_*.json"):
        try:
            device = json.loads(file.read_text())["devices"][0]
        except FileNotFoundError:
            continue  # unprepared meanwhile
        entry = device["containerEdits"]["env"][0]
        found[device["name"].removeprefix("claim-")] = cpus.parse(entry.partition("=")[2])
    return found
