# SPDX-License-Identifier: Apache-2.0
"""Manifests of static pods: ended within a second, from the one image that the node has."""

from lab import kata
from lab.containerd import IMAGE, WANTS_VM

_FOR_A_WHILE = ["/bin/busybox", "sh", "-c", "/bin/busybox sleep $LAB_SECONDS; exit $LAB_STATUS"]
# In a cgroup of the pod alone, a real guest needs more than its containers do.
_MEMORY = "512Mi" if kata.is_real() else "256Mi"


def container(name: str = "app", cpu: str = "", **more: object) -> dict:
    """A container that runs for ever. `cpu`: request and limit; without, it has neither."""
    resources = {"requests": {"memory": _MEMORY}, "limits": {"memory": _MEMORY}}
    if cpu:
        resources["requests"]["cpu"] = resources["limits"]["cpu"] = cpu
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "resources": resources, **more}


def burstable(name: str = "app") -> dict:
    """A container that owns nothing: it asks for no CPU, so that there is room for it on a full node."""
    resources = {"requests": {"cpu": "0", "memory": "16Mi"}, "limits": {"cpu": "500m", "memory": _MEMORY}}
    return container(name) | {"resources": resources}


def ending(spec: dict, seconds: int, status: int = 0) -> dict:
    """The container `spec`, which ends after `seconds` with `status`."""
    variables = [{"name": "LAB_SECONDS", "value": str(seconds)}, {"name": "LAB_STATUS", "value": str(status)}]
    return spec | {"command": _FOR_A_WHILE, "env": variables}


def sidecar(spec: dict) -> dict:
    """The container `spec` as an init container that stays."""
    return spec | {"restartPolicy": "Always"}


def pod(name: str, *containers: dict, init: tuple[dict, ...] = (), vm: bool = False) -> dict:
    """A pod of these containers, in a VM if `vm`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "lab", "annotations": WANTS_VM if vm else {}},
        "spec": {
            "hostNetwork": not vm,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "initContainers": list(init),
            "containers": list(containers),
        },
    }
