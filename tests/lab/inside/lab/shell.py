# SPDX-License-Identifier: Apache-2.0
"""A shell in a guest, behind its second serial port (tests/lab/guest/shell), and what is asked of the guest's kernel by it."""

import socket
import time
from pathlib import Path


class GuestLost(RuntimeError):
    """The guest hangs, or its VM ended by itself."""


class Shell:
    """Runs one line at a time."""

    def __init__(self, path: Path | str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._socket.settimeout(0.5)
        self._commands = 0

    def run(self, command: str, seconds: float = 60) -> str:
        """Runs a line of shell and returns what it prints. Raises GuestLost."""
        self._commands += 1
        mark = f"done-{self._commands}"
        # The mark is put together by the guest, so that an echo of the command is not taken for it.
        self._socket.sendall(f"{{ {command}\n}} 2>&1; echo done'-'{self._commands}\n".encode())
        text = ""
        until = time.monotonic() + seconds
        while mark not in text:
            text += self._receive()
            if time.monotonic() > until:
                raise GuestLost(f"the guest's shell does not answer: {command}: {text}")
        return text.split(mark)[0].replace("\r", "").strip()

    def _receive(self) -> str:
        try:
            received = self._socket.recv(65536)
        except TimeoutError:
            # An emulated serial port may lose an interrupt while that is moved to another CPU; the next one makes up.
            self._socket.sendall(b"\n")
            return ""
        except ConnectionResetError:
            received = b""
        if not received:
            raise GuestLost("the VM ended by itself")
        return received.decode(errors="replace")

    def apic_ids(self) -> dict[int, int]:
        """Who each CPU that is online is, by its number in the guest."""
        text = self.run("""awk -F: '$1 ~ /^processor/ { cpu = $2 } $1 ~ /^apicid/ { print cpu, $2 }' /proc/cpuinfo""")
        return {int(cpu): int(apic_id) for cpu, apic_id in map(str.split, text.splitlines())}

    def allowed(self, pid: int) -> str:
        """The CPUs on which thread `pid` may run, in list format."""
        return self.run(f"grep Cpus_allowed_list /proc/{pid}/status").split()[-1]

    def start(self, cgroup: str, program: str) -> int:
        """A container's process, as kata-agent starts it: it joins its cgroup, then becomes the program. Its pid."""
        line = f"sh -c 'echo $$ > {cgroup}/cgroup.procs; exec {program}' >/tmp/out-$$ 2>&1 & echo $!"
        return int(self.run(line).split()[-1])
