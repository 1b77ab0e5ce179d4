# SPDX-License-Identifier: Apache-2.0
"""Who changes threads' masks, and when: a probe in the kernel, on the one function through which each change goes, by call or by cgroup."""

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_TRACING = Path("/sys/kernel/tracing")
_PROBE = "p:lab/moved __set_cpus_allowed_ptr tid=p->pid by=$comm"
_LINE = re.compile(r" (?P<at>[\d.]+): moved: .* tid=(?P<tid>\d+) by=\"(?P<by>.*)\"$", re.MULTILINE)
_CHUNK = 2**16


@dataclass(frozen=True)
class Move:
    """A thread got another mask at `at`, in time.monotonic()'s seconds, from a thread of the name `by`."""

    at: float
    by: str


class Moves:
    """Every move since it was made. A kernel older than 6.4 cannot name what the function was called with: nothing is known there."""

    def __init__(self, instance: str = "moves") -> None:
        self._moves: dict[int, list[Move]] = defaultdict(list)
        self._rest = ""
        self._pipe = _listen(instance)

    def read(self) -> None:
        """Takes in what has happened up to now."""
        if self._pipe is None:
            return
        try:
            while chunk := os.read(self._pipe, _CHUNK):
                self._take(chunk.decode())
        except BlockingIOError:
            pass

    def since(self, tid: int, moment: float) -> list[Move]:
        """The moves of thread `tid` after `moment`, in their order."""
        return [move for move in self._moves[tid] if move.at >= moment]

    def _take(self, text: str) -> None:
        whole, _, self._rest = (self._rest + text).rpartition("\n")
        for found in _LINE.finditer(whole):
            self._moves[int(found["tid"])].append(Move(float(found["at"]), found["by"]))


def _listen(name: str) -> int | None:
    instance, probes = _TRACING / "instances" / name, _TRACING / "kprobe_events"
    try:
        if "lab/moved" not in probes.read_text():
            probes.write_text(_PROBE)
        instance.mkdir()
        (instance / "trace_clock").write_text("mono")
        (instance / "events/lab/enable").write_text("1")
    except OSError:
        return None
    return os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
