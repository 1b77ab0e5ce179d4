# SPDX-License-Identifier: Apache-2.0
"""Watches kubelet's file, from a process of its own: how long after each change the last thread of other pods was off the CPUs given away."""

import ctypes
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field

from lab import claims, cpus, witness
from lab.claims import Claims
from lab.kubelet import STATE

_IN_CLOSE_WRITE, _IN_MOVED_TO = 0x8, 0x80  # linux/inotify.h
_NONBLOCK = 0o4000
_REFRESH = 3.0  # seconds after which threads are listed again, or later, lest it be all that the emulated node does
_SHARE = 5
_TICK = 0.002
_KINDS = ("VM pods", "runc pods")


class Evictions:
    """Collects what it sees between start and stop()."""

    def __init__(self) -> None:
        # A program of its own, not a fork: gRPC does not survive forks.
        command = [sys.executable, "-m", "lab.evictions"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()

    def stop(self) -> list[dict]:
        """For each change that took CPUs from somebody: `given`, and seconds by kind, `VM pods` and `runc pods`, with the `last` thread."""
        answer, _ = self._process.communicate()
        return json.loads(answer)


def show(samples: list[dict]) -> None:
    """Prints the distributions, and which thread was the last of all."""
    for kind in _KINDS:
        some = sorted((sample[kind]["seconds"] * 1000, sample["given"], sample[kind]["last"]) for sample in samples if kind in sample)
        if some:
            marks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
            text = ", ".join(f"{name} {some[round(share * (len(some) - 1))][0]:.0f} ms" for name, share in marks.items())
            print(f"          {kind}: {len(some)} times from kubelet's file to the last thread off: {text}", flush=True)
            print(f"          all of them, in ms: {' '.join(f'{each:.0f}' for each, _, _ in some)}", flush=True)
            print(f"          the slowest: CPUs {some[-1][1]}, {some[-1][2]}", flush=True)


@dataclass
class _Change:
    """CPUs that kubelet gave to a pod, and the threads that may still run there."""

    written: float
    uid: str
    given: frozenset[int]
    waiting: dict[int, tuple[witness.Thread, witness.Pod]] = field(default_factory=dict)
    seen: dict = field(default_factory=dict)


class _Watch:
    def __init__(self) -> None:
        self._claims = claims.read()
        self._pods: dict[str, witness.Pod] = {}
        self._threads: list[witness.Thread] = []
        self._listed, self._cost = 0.0, 0.0
        self._open: list[_Change] = []
        self.samples: list[dict] = []
        self.list_threads()

    def is_waiting(self) -> bool:
        return bool(self._open)

    def list_threads(self) -> None:
        began = time.monotonic()
        self._pods = witness.pods()
        self._threads = witness.threads(self._pods)
        self._listed = time.monotonic()
        self._cost = self._listed - began

    def refresh(self) -> None:
        """Lists threads again now and then; not while a VM's are waited for, since it takes long."""
        is_vm = (pod.is_vm for change in self._open for _, pod in change.waiting.values())
        if not any(is_vm) and time.monotonic() - self._listed > max(_REFRESH, _SHARE * self._cost):
            self.list_threads()

    def handle_change(self) -> None:
        """Kubelet has written: whatever a pod has that it had not is given away by all others."""
        before, self._claims = self._claims, claims.read()
        for uid in self._claims.owned:
            given = self._claims.of_pod(uid) - before.of_pod(uid)
            if given:
                change = _Change(self._claims.written, uid, given)
                change.waiting = {each.tid: (each, self._pods[each.pod]) for each in self._threads if self._pods[each.pod].uid != uid}
                self._open.append(change)

    def look(self) -> None:
        """Looks once at every thread that is waited for."""
        for change in list(self._open):
            for tid in list(change.waiting):
                self._look_at(change, tid)
            if not change.waiting:
                self._open.remove(change)
                self._keep(change)

    def _look_at(self, change: _Change, tid: int) -> None:
        try:
            here = frozenset(os.sched_getaffinity(tid))
        except ProcessLookupError:
            here = frozenset()
        if not here & change.given:
            thread, pod = change.waiting.pop(tid)
            if thread.cpus & change.given:
                _left(change, thread, pod)
        elif not change.given <= self._claims.of_pod(change.uid):
            del change.waiting[tid]  # kubelet has taken them back meanwhile

    def _keep(self, change: _Change) -> None:
        if change.seen:
            self.samples.append({"given": cpus.show(change.given), **change.seen})


def _left(change: _Change, thread: witness.Thread, pod: witness.Pod) -> None:
    seconds = max(time.time() - change.written, 0.0)
    change.seen[_KINDS[0] if pod.is_vm else _KINDS[1]] = {"seconds": seconds, "last": f"{pod.name}: {thread}"}


def _listen() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_NONBLOCK)
    if libc.inotify_add_watch(descriptor, os.fsencode(STATE.parent), _IN_CLOSE_WRITE | _IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return descriptor


def _run() -> list[dict]:
    """Until standard input ends."""
    descriptor, watch = _listen(), _Watch()
    print("watching", flush=True)
    while True:
        ready, _, _ = select.select([descriptor, sys.stdin], [], [], _TICK if watch.is_waiting() else _REFRESH / 4)
        if sys.stdin in ready:
            return watch.samples
        if ready:
            os.read(descriptor, 65536)
            watch.handle_change()
        watch.look()
        watch.refresh()


if __name__ == "__main__":
    print(json.dumps(_run()))
