# SPDX-License-Identifier: Apache-2.0
"""Calls of containerd's task service that ctr does not have, over gRPC with messages written by hand."""

import json
from pathlib import Path

import grpc

_UPDATE = "/containerd.services.tasks.v1.Tasks/Update"
_RESOURCES = "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources"


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def update(socket: Path, container: str, resources: dict) -> None:
    """UpdateTaskRequest{1 container_id, 2 resources}: what `crictl update` and kubelet end in."""
    any_message = field(1, _RESOURCES.encode()) + field(2, json.dumps(resources).encode())
    request = field(1, container.encode()) + field(2, any_message)
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        call = channel.unary_unary(_UPDATE, request_serializer=bytes, response_deserializer=bytes)
        call(request, metadata=(("containerd-namespace", "default"),), timeout=30)
