# SPDX-License-Identifier: Apache-2.0
"""Daemons as a shim proxy may meet them at the API's socket: one that listens, one that hangs, one that means ill."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import node


class FakeDaemon:
    """A server at a unix socket, with a thread for each connection."""

    def __init__(self, path: Path, behave: Callable[[socket.socket], None]) -> None:
        self._path = path
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(8)
        self._behave = behave
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                self._behave(client)
            except OSError:
                pass

    def close(self) -> None:
        """Is gone, and its socket with it."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)


class Listening(FakeDaemon):
    """Answers everything, and keeps what it was told: (method, path, body)."""

    def __init__(self, path: Path) -> None:
        self.heard: list[tuple[str, str, object]] = []
        super().__init__(path, self._answer)

    def _answer(self, client: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(65536) or b"\r\n\r\n"
        head, body = request.split(b"\r\n\r\n", 1)
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
        while len(body) < length:
            body += client.recv(65536)
        method, path, _ = head.split(b"\r\n")[0].decode().split()
        self.heard.append((method, path, json.loads(body) if body else None))
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n{}\n")


def hanging(path: Path) -> FakeDaemon:
    """Accepts, and never says or reads a thing."""
    return FakeDaemon(path, lambda client: threading.Event().wait(60))


def flooding(path: Path) -> FakeDaemon:
    """Answers without reading, without an end."""

    def flood(client: socket.socket) -> None:
        while True:
            client.sendall(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 65536)

    return FakeDaemon(path, flood)


class RealDaemon:
    """kata-affinityd, asked by kata-affinityctl."""

    def __init__(self, place: node.Node, programs: Path) -> None:
        self._place, self._programs = place, programs
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with (self._place.dir / "daemon.log").open("a") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "kata-affinityd"), "--config", str(self._place.settings), "--socket", str(self._place.api_socket)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        node.eventually(lambda: self._ask("status").returncode == 0, "the daemon answers")

    def kill(self) -> None:
        """Ends it without a word."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def owned_by(self, container: str) -> list[int]:
        """The CPUs that it takes for the container's own; runc's pods are no VM sandboxes, but own CPUs like them."""
        cpus = json.loads(self._ask("map", "--json").stdout)["cpus"]
        return [one["cpu"] for one in cpus if any(container in str(owner) for owner in one["owners"])]

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [str(self._programs / "kata-affinityctl"), *arguments, "--socket", str(self._place.api_socket)]
        return subprocess.run(command, capture_output=True, text=True, check=False)
