# SPDX-License-Identifier: Apache-2.0
"""Two nodes of the lab and the wire between them (shape pair8): the second one does what the first one asks for.

Either has the address 10.99.0.NUMBER; on the one node of another shape there is nobody at the other end.
"""

import contextlib
import subprocess
import time
import traceback
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import ModuleType

from lab import check

NUMBER = int(Path("/lab/number").read_text())
ADDRESS = f"10.99.0.{NUMBER}"
_OTHER, _PORT, _KEY = "10.99.0.2", 7777, b"lab"
_CARD = "eth0"
_PATIENCE = 300.0  # seconds


def name(number: int) -> str:
    """What a node is called."""
    return "lab" if number == 1 else f"lab{number}"


def is_paired() -> bool:
    """Whether there is a wire."""
    subprocess.run(["modprobe", "virtio_net"], check=True)
    return Path("/sys/class/net", _CARD).exists()


def join() -> None:
    """Gives this node its name, and its address on the wire. Both nodes go on from one state, the card's own address included."""
    subprocess.run(["hostname", name(NUMBER)], check=True)
    commands = (f"link set {_CARD} address 52:54:00:00:00:0{NUMBER}", f"addr add {ADDRESS}/24 dev {_CARD}", f"link set {_CARD} up")
    for command in (*commands, f"route add default dev {_CARD}"):
        subprocess.run(["ip", *command.split()], check=True)


def serve(functions: ModuleType) -> None:
    """Calls what the first node asks for, one after the other, until that has ended."""
    with Listener((ADDRESS, _PORT), authkey=_KEY) as listener, listener.accept() as other, contextlib.suppress(EOFError):
        while True:
            name, arguments = other.recv()
            check.step(f"{name}{arguments}"[:120])
            other.send(_answer(getattr(functions, name), arguments))


def _answer(function: object, arguments: tuple) -> tuple[bool, object]:
    try:
        return True, function(*arguments)
    except Exception:  # whatever it is, the first node says it
        return False, traceback.format_exc()


class SecondNode:
    """The functions of the module that the second node serves."""

    def __init__(self) -> None:
        """Waits until it is there."""
        until = time.monotonic() + _PATIENCE
        while (other := _connect()) is None:
            if time.monotonic() > until:
                raise check.Failed(f"the second node does not answer within {_PATIENCE:.0f} s")
            time.sleep(1)
        self._other = other

    def __call__(self, name: str, *arguments: object) -> object:
        """What a function returns there."""
        self._other.send((name, arguments))
        is_good, answer = self._other.recv()
        if not is_good:
            raise check.Failed(f"{name} on the second node: {answer}")
        return answer


def _connect() -> Connection | None:
    try:
        return Client((_OTHER, _PORT), authkey=_KEY)
    except OSError:
        return None
