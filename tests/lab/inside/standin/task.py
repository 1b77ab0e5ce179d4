# SPDX-License-Identifier: Apache-2.0
"""The task service of a shim (containerd.task.v2, runtime/v2/task/shim.proto), over a Kata-like runtime."""

import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from standin.wire import Message, RpcError, decode, encode, number, text, timestamp

_NOT_FOUND, _UNIMPLEMENTED = 5, 12
_CREATED, _RUNNING, _STOPPED = 1, 2, 3  # containerd.v1.types.Status
_VM_GONE = 255


@dataclass
class Task:
    """A container as containerd sees it. Its process is in the VM; what the host knows is the VMM.

    `runs_for`: the seconds after which the process would end by itself with `ends_with`; never where it is None.
    """

    id: str
    bundle: str
    streams: tuple[str, str, str]
    runs_for: float | None = None
    ends_with: int = 0
    status: int = _CREATED
    exit_status: int = 0
    exited_at: float = 0.0
    exited: threading.Event = field(default_factory=threading.Event)
    files: list[int] = field(default_factory=list)


class TaskService:
    """All tasks of one sandbox."""

    def __init__(self, runtime: object, sandbox: str) -> None:
        self._runtime, self._sandbox = runtime, sandbox
        self._tasks: dict[str, Task] = {}
        self._lock = threading.RLock()
        self._ending: threading.Thread | None = None

    def call(self, method: str, request: Message) -> bytes:
        """One call; the answer's message."""
        answer = getattr(self, f"_{method.lower()}", None)
        if answer is None:
            raise RpcError(_UNIMPLEMENTED, method)
        if method == "Wait":
            return answer(request)
        with self._lock:
            return answer(request)

    def _task(self, request: Message) -> Task:
        task = self._tasks.get(text(request, 1))
        if task is None or text(request, 2):
            raise RpcError(_NOT_FOUND, f"task {text(request, 1)} {text(request, 2)}: not found")
        return task

    def _create(self, request: Message) -> bytes:
        bundle, streams = text(request, 2), (text(request, 5), text(request, 6), text(request, 7))
        spec = json.loads((Path(bundle) / "config.json").read_text())
        task = Task(text(request, 1), bundle, streams, *_life(spec))
        if task.id == self._sandbox:
            self._runtime.create_sandbox(task.id, spec)
            threading.Thread(target=self._watch_vm, daemon=True).start()
        else:
            self._runtime.create_container(task.id, spec)
        # Opened for both, so that it does not wait for containerd's end.
        task.files = [os.open(path, os.O_RDWR) for path in task.streams[1:] if path]
        self._tasks[task.id] = task
        return encode((1, self._runtime.vmm_pid))

    def _start(self, request: Message) -> bytes:
        task = self._task(request)
        self._runtime.start_container(task.id)
        task.status = _RUNNING
        if task.runs_for is not None:
            ending = threading.Timer(task.runs_for, self._run_out, [task])
            ending.daemon = True
            ending.start()
        return encode((1, self._runtime.vmm_pid))

    def _run_out(self, task: Task) -> None:
        with self._lock:
            self._end(task, task.ends_with)

    def _update(self, request: Message) -> bytes:
        task = self._task({1: request[1]})
        resources = decode(request[2][0])  # google.protobuf.Any: a type's name, and here JSON
        self._runtime.update_container(task.id, json.loads(text(resources, 2)))
        return b""

    def _kill(self, request: Message) -> bytes:
        self._end(self._task(request), 128 + number(request, 3))
        return b""

    def _end(self, task: Task, exit_status: int) -> None:
        if task.exited.is_set():
            return
        task.status, task.exit_status, task.exited_at = _STOPPED, exit_status, time.time()
        for file in task.files:
            os.close(file)
        task.exited.set()
        if task.id == self._sandbox:
            self._ending = threading.Thread(target=self._runtime.end)
            self._ending.start()
        elif self._runtime.is_alive():
            self._runtime.stop_container(task.id)

    def _watch_vm(self) -> None:
        """Whatever ran in it ends with the VM."""
        self._runtime.wait_for_vm()
        with self._lock:
            for task in self._tasks.values():
                self._end(task, _VM_GONE)

    def _wait(self, request: Message) -> bytes:
        with self._lock:
            task = self._task(request)
        task.exited.wait()
        return encode((1, task.exit_status), (2, timestamp(task.exited_at)))

    def _delete(self, request: Message) -> bytes:
        task = self._task(request)
        if task.id != self._sandbox and self._runtime.is_alive():
            self._runtime.delete_container(task.id)
        del self._tasks[task.id]
        return encode((1, self._runtime.vmm_pid), (2, task.exit_status), (3, timestamp(task.exited_at)))

    def _state(self, request: Message) -> bytes:
        task = self._task(request)
        stdin, stdout, stderr = task.streams
        told = [(1, task.id), (2, task.bundle), (3, self._runtime.vmm_pid), (4, task.status)]
        told += [(5, stdin), (6, stdout), (7, stderr), (9, task.exit_status)]
        return encode(*told, (10, timestamp(task.exited_at)))

    def _pids(self, _: Message) -> bytes:
        return encode((1, encode((1, self._runtime.vmm_pid))))

    def _connect(self, _: Message) -> bytes:
        return encode((1, os.getpid()), (2, self._runtime.vmm_pid))

    def _stats(self, _: Message) -> bytes:
        return b""

    def _closeio(self, _: Message) -> bytes:
        return b""

    def _resizepty(self, _: Message) -> bytes:
        return b""

    def _shutdown(self, _: Message) -> bytes:
        """Ends the shim, unless it has containers."""
        if self._tasks:
            return b""
        if self._ending:
            self._ending.join()
        os._exit(0)


def _life(spec: dict) -> tuple[float | None, int]:
    """How long the process of a container with this specification runs, and its exit status, by variables of its own."""
    variables = dict(text.partition("=")[::2] for text in spec["process"].get("env", []))
    seconds = variables.get("LAB_SECONDS")
    return (float(seconds) if seconds else None), int(variables.get("LAB_STATUS", 0))
