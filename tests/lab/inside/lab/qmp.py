# SPDX-License-Identifier: Apache-2.0
"""The QMP client that a VM's shim is: it connects once and keeps the socket for the VM's life, so that no other client gets in."""

import json
import socket


class Qmp:
    """One QMP session. Events are read past."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(path)
        self._lines = self._socket.makefile("r")
        self._receive()
        self.call("qmp_capabilities")

    def call(self, command: str, **arguments: object) -> object:
        """What `command` returns. An error of QEMU's is raised."""
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while "event" in (answer := self._receive()):
            pass
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def close(self) -> None:
        """Lets go of the socket."""
        self._lines.close()
        self._socket.close()

    def _receive(self) -> dict:
        if not (line := self._lines.readline()):
            raise RuntimeError("QMP: QEMU has gone")
        return json.loads(line)
