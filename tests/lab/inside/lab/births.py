# SPDX-License-Identifier: Apache-2.0
"""Watches processes of one name come into the world, from a process of its own, and what they may use when they are first seen."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from lab import cpus

_PROC = Path("/proc")


class Births:
    """Collects processes whose name begins with `name` between start and stop()."""

    def __init__(self, name: str) -> None:
        # A program of its own, not a fork: gRPC does not survive forks.
        command = [sys.executable, "-m", "lab.births", name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()

    def stop(self) -> list[str]:
        """The CPUs of each when it was first seen."""
        answer, _ = self._process.communicate()
        return json.loads(answer)


def _watch(name: str) -> list[str]:
    """Until standard input ends."""
    os.set_blocking(sys.stdin.fileno(), False)
    known = _processes()
    print("watching", flush=True)
    waiting: set[str] = set()
    seen: list[str] = []
    while not _is_over():
        now = _processes()
        waiting = (waiting | (now - known)) & now
        known = now
        masks = {pid: _mask_of(pid, name) for pid in waiting}
        seen += [mask for mask in masks.values() if mask]
        waiting = {pid for pid, mask in masks.items() if not mask}
        time.sleep(0.001)
    return seen


def _is_over() -> bool:
    try:
        return os.read(sys.stdin.fileno(), 1) == b""
    except BlockingIOError:
        return False


def _processes() -> set[str]:
    return {entry for entry in os.listdir(_PROC) if entry.isdigit()}


def _mask_of(pid: str, name: str) -> str:
    """Empty while it has another name: a process is its parent's copy before it is itself."""
    try:
        is_named = (_PROC / pid / "comm").read_text().startswith(name)
        return cpus.show(os.sched_getaffinity(int(pid))) if is_named else ""
    except (FileNotFoundError, ProcessLookupError):
        return ""


if __name__ == "__main__":
    print(json.dumps(_watch(sys.argv[1])))
