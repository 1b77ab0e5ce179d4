# SPDX-License-Identifier: Apache-2.0
"""The command line of a stand-in for Kata's shim: `start`, `delete`, `-info`, `--version`, and the shim itself.

It behaves to the outside as Kata's two runtimes do (kata-containers 4.1: src/runtime, src/runtime-rs): which files it keeps
where, which processes it starts, which cgroups it writes, in which order. Inside its VM there is nobody: containers run nothing.
"""

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from standin import wire

_SOCKETS = Path("/run/containerd/s")
_LISTENER = "KATA_RUNTIME_BIND_FD"  # which descriptor a shim is born with
_KILLED = 128 + 9
# What a shim is started with, in the order of each runtime.
_GO_WORDS = ("namespace", "address", "publish-binary", "id")
_RUST_WORDS = ("id", "namespace", "address", "publish-binary")
_LOG = "/run/lab-standin.log"


def main(rust: bool) -> None:
    """`rust`: as runtime-rs, else as the Go runtime."""
    words = sys.argv[1:]
    if words == ["-info"]:
        sys.stdout.buffer.write(wire.encode((1, "io.containerd.kata.v2"), (2, wire.encode((1, "4.1.0")))))
    elif words in (["--version"], ["-v"]):
        print("Kata Containers containerd shim: a stand-in")
    elif words[-1:] == ["start"]:
        _start(_options(words[:-1]), rust)
    elif words[-1:] == ["delete"]:
        _delete(_options(words[:-1]), rust)
    else:
        _serve(_options(words), rust)


def _options(words: list[str]) -> dict[str, str]:
    """`-name value`; `-debug` has no value."""
    given, rest = {}, iter(words)
    for word in rest:
        given[word.lstrip("-")] = "" if word == "-debug" else next(rest)
    return given


def _pod_of_container() -> str:
    """The sandbox that the bundle's container belongs to; empty for a sandbox's own."""
    annotations = json.loads(Path("config.json").read_text()).get("annotations", {})
    is_container = annotations.get("io.kubernetes.cri.container-type") == "container"
    return annotations["io.kubernetes.cri.sandbox-id"] if is_container else ""


def _socket_of(options: dict[str, str], sandbox: str, rust: bool) -> Path:
    name = hashlib.sha256(f"{options['address']}/{options['namespace']}/{sandbox}".encode()).hexdigest()
    return _SOCKETS / (name.upper() if rust else name)


def _start(options: dict[str, str], rust: bool) -> None:
    """A container of a pod gets the address of the pod's shim; a pod gets a shim."""
    pod = _pod_of_container()
    path = _socket_of(options, pod or options["id"], rust)
    if not pod:
        Path("shim.pid").write_text(str(_start_shim(options, path, _RUST_WORDS if rust else _GO_WORDS)))
    Path("address").write_text(f"unix://{path}")
    sys.stdout.write(f"unix://{path}")


def _start_shim(options: dict[str, str], path: Path, names: tuple[str, ...]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        command = [sys.argv[0], *(word for name in names for word in (f"-{name}", options[name]))]
        environment = os.environ | {_LISTENER: str(listener.fileno())}
        null = subprocess.DEVNULL
        with open(_LOG, "ab") as log:
            process = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=log, env=environment, pass_fds=[listener.fileno()], process_group=0
            )
    return process.pid


def _delete(options: dict[str, str], rust: bool) -> None:
    """containerd's shim is dead: ends what it has left."""
    if not _pod_of_container():
        from standin import runtimes

        runtimes.clean_up(options["id"], rust)
    sys.stdout.buffer.write(wire.encode((2, _KILLED), (3, wire.timestamp(time.time()))))


def _serve(options: dict[str, str], rust: bool) -> None:
    from standin import runtimes
    from standin.task import TaskService

    runtime = runtimes.RustRuntime() if rust else runtimes.GoRuntime()
    wire.serve(socket.socket(fileno=int(os.environ[_LISTENER])), TaskService(runtime, options["id"]).call)
