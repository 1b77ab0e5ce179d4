# SPDX-License-Identifier: Apache-2.0
"""Looks at the allowed CPUs of threads again and again, from a process of its own, while a scenario goes on."""

import os
import time
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection

from lab import cpus


class Sampler:
    """Collects the different sets in which each of `tids` was seen between start and stop()."""

    def __init__(self, tids: list[int], pause: float = 0.002) -> None:
        """`pause`: seconds between two looks; to look costs an emulated CPU."""
        self._ours, theirs = Pipe()
        self._process = Process(target=_sample, args=(tids, theirs, pause), daemon=True)
        self._process.start()

    def stop(self) -> tuple[dict[int, set[str]], int]:
        """The sets by thread, and how often all of them were looked at."""
        self._ours.send("stop")
        answer = self._ours.recv()
        self._process.join()
        return answer


def _sample(tids: list[int], control: Connection, pause: float) -> None:
    seen: dict[int, set[str]] = {tid: set() for tid in tids}
    rounds = 0
    while not control.poll():
        for tid in tids:
            _look_at(tid, seen[tid])
        rounds += 1
        time.sleep(pause)
    control.send((seen, rounds))


def _look_at(tid: int, seen: set[str]) -> None:
    try:
        seen.add(cpus.show(os.sched_getaffinity(tid)))
    except ProcessLookupError:
        pass  # QEMU ends its idle workers
