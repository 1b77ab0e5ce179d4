# SPDX-License-Identifier: Apache-2.0
"""The node's containerd, driven as kubelet drives it: through the CRI, with host-network pods and images made on the spot."""

import json
import os
import subprocess
import tempfile
import uuid
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from lab import check
from lab.images import import_image

GOCODE = Path("/usr/share/gocode/src")
_API = "k8s.io/cri-api/pkg/apis/runtime/v1/api.proto"
_DESCRIPTOR = "github.com/gogo/protobuf/protobuf"  # below it lies google/protobuf/descriptor.proto
_SERVICE = "runtime.v1.RuntimeService"
_PATIENCE = 60.0
_HOST = 2  # NamespaceMode NODE


class Cri:
    """A connection to containerd's CRI. Requests and answers are dicts, with api.proto's names."""

    def __init__(self, socket: str = "/run/containerd/containerd.sock", include: Path = GOCODE) -> None:
        """`include`: below it lies api.proto with what it imports."""
        self._address = f"unix:{socket}"
        self._channel = grpc.insecure_channel(self._address)
        self._pool = _load(include)
        self._classes = message_factory.MessageFactory(self._pool)

    def call(self, method: str, request: dict) -> dict:
        """One call of the runtime service."""
        described = self._pool.FindServiceByName(_SERVICE).FindMethodByName(method)
        request_class = self._classes.GetPrototype(described.input_type)
        answer_class = self._classes.GetPrototype(described.output_type)
        invoke = self._channel.unary_unary(
            f"/{_SERVICE}/{method}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=answer_class.FromString,
        )
        answer = invoke(json_format.ParseDict(request, request_class()), timeout=_PATIENCE, wait_for_ready=True)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)

    def connect_again(self) -> None:
        """To a containerd that was started anew: a call on the old connection may meet its end."""
        self._channel.close()
        self._channel = grpc.insecure_channel(self._address)


def start_containerd() -> Cri:
    """The node's containerd, with an image that sleeps."""
    subprocess.run(["systemctl", "start", "containerd"], check=True)
    check.eventually("containerd is there", Path("/run/nri/nri.sock").exists, True)
    import_image("docker.io/lab/sleep:1", {"bin/busybox": Path("/usr/bin/busybox")}, ["/bin/busybox", "sleep", "2147483647"])
    return Cri()


def restart_containerd(cri: Cri) -> None:
    """Its pods run on."""
    subprocess.run(["systemctl", "restart", "containerd"], check=True)
    cri.connect_again()


class CriPod:
    """One pod."""

    def __init__(self, cri: Cri, name: str, handler: str = "", annotations: dict[str, str] | None = None, cpus: int = 0) -> None:
        """Runs its sandbox under the runtime handler `handler`. `cpus`: what its containers ask for, all in all."""
        self._cri, self.name, self.uid = cri, name, str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self._config = {
            "metadata": {"name": name, "uid": self.uid, "namespace": "lab", "attempt": 0},
            "annotations": annotations or {},
            "log_directory": "/run/lab-pods",
            "linux": {
                "cgroup_parent": f"/kubepods/pod{self.uid}",
                "security_context": {"namespace_options": {"network": _HOST}},
            },
        }
        if cpus:
            self._config["linux"]["resources"] = {"cpu_quota": cpus * 100000, "cpu_period": 100000}
        answer = cri.call("RunPodSandbox", {"config": self._config, "runtime_handler": handler})
        self.id = answer["pod_sandbox_id"]
        self.pid = self._read_pid()

    def create(self, name: str, cpus: str, quota: int = 0, memory: int = 0) -> str:
        """Creates a container with the cpuset `cpus` and a limit of `memory` bytes; its id. It does not run yet."""
        config = {
            "metadata": {"name": name, "attempt": 0},
            "image": {"image": "lab/sleep:1"},
            "log_path": f"{self.id}-{name}.log",
            "linux": {"resources": _resources(cpus, quota) | ({"memory_limit_in_bytes": memory} if memory else {})},
        }
        request = {"pod_sandbox_id": self.id, "config": config, "sandbox_config": self._config}
        return self._cri.call("CreateContainer", request)["container_id"]

    def start(self, container: str) -> None:
        """Starts a container."""
        self._cri.call("StartContainer", {"container_id": container})

    def run(self, name: str, cpus: str, quota: int = 0, memory: int = 0) -> str:
        """Creates and starts a container; its id."""
        container = self.create(name, cpus, quota, memory)
        self.start(container)
        return container

    def update(self, container: str, cpus: str, quota: int = 0) -> None:
        """What kubelet's CPU manager does when a container's CPUs change."""
        self._cri.call("UpdateContainerResources", {"container_id": container, "linux": _resources(cpus, quota)})

    def stop(self, container: str) -> None:
        """Ends a container; it stays known."""
        self._cri.call("StopContainer", {"container_id": container, "timeout": 0})

    def remove_container(self, container: str) -> None:
        """Ends and forgets a container."""
        self._cri.call("RemoveContainer", {"container_id": container})

    def _read_pid(self) -> int:
        """The process of its sandbox."""
        answer = self._cri.call("PodSandboxStatus", {"pod_sandbox_id": self.id, "verbose": True})
        return json.loads(answer["info"]["info"])["pid"]

    def remove(self) -> None:
        """Ends and forgets the pod."""
        self._cri.call("StopPodSandbox", {"pod_sandbox_id": self.id})
        self._cri.call("RemovePodSandbox", {"pod_sandbox_id": self.id})


def _resources(cpus: str, quota: int) -> dict:
    return {"cpuset_cpus": cpus, "cpu_shares": 1024} | ({"cpu_quota": quota, "cpu_period": 100000} if quota else {})


def _load(include: Path) -> descriptor_pool.DescriptorPool:
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, "api.binpb")
        command = ["protoc", f"-I{include}", f"-I{include / _DESCRIPTOR}", "--include_imports"]
        subprocess.run([*command, f"--descriptor_set_out={output}", str(include / _API)], check=True)
        described = descriptor_pb2.FileDescriptorSet.FromString(Path(output).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    return pool
