# SPDX-License-Identifier: Apache-2.0
"""Watches kubelet's file, from a process of its own: how long after each change the last thread of other pods was off the CPUs given away,
and who moved it."""

import ctypes
import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from lab import claims, cpus, witness
from lab.claims import Claims
from lab.kubelet import STATE
from lab.moves import Moves

_IN_CLOSE_WRITE, _IN_MOVED_TO = 0x8, 0x80  # linux/inotify.h
_NONBLOCK = 0o4000
_REFRESH = 3.0  # seconds after which threads are listed again, or later, lest it be all that the emulated node does
_SHARE = 5
_TICK = 0.002
_DAEMON = "kata-affinityd"
_ENDED = "its end"
_KINDS = ("VM pods", "runc pods", "pods that were going")
_MARKS = {"p50": 0.5, "p99": 0.99, "max": 1.0}


class Evictions:
    """Prints and collects what it sees between start and stop()."""

    def __init__(self) -> None:
        # A program of its own, not a fork: gRPC does not survive forks.
        command = [sys.executable, "-m", "lab.evictions"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()
        self._samples: list[dict] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def stop(self) -> list[dict]:
        """For each change that took CPUs from pods of a kind: `kind`, `given`, in milliseconds `off`, and for VM pods `heard` and `ours`; `by`."""
        self._process.stdin.close()
        self._reader.join()
        self._process.wait()
        return self._samples

    def _read(self) -> None:
        for line in self._process.stdout:
            sample = json.loads(line)
            self._samples.append(sample)
            print(f"          off: {_told(sample)}", flush=True)


def show(samples: list[dict]) -> None:
    """Prints the distributions by kind of pod."""
    for kind in _KINDS:
        some = [sample for sample in samples if sample["kind"] == kind]
        if some:
            print(f"          {kind}: {len(some)} times from kubelet's file to the last thread off: {_spread(some, 'off')}", flush=True)
            _show_parts(some)
            print(f"          the slowest: {_told(max(some, key=lambda each: each['off']))}", flush=True)


def _show_parts(some: list[dict]) -> None:
    ours = [sample for sample in some if "heard" in sample]
    if ours:
        print(f"          of these, {len(ours)} by the daemon: until its first move {_spread(ours, 'heard')}", flush=True)
        print(f"          from its first move to its last: {_spread(ours, 'ours')}", flush=True)


def _spread(samples: list[dict], name: str) -> str:
    values = sorted(sample[name] for sample in samples)
    return ", ".join(f"{mark} {values[round(share * (len(values) - 1))]:.0f} ms" for mark, share in _MARKS.items())


def _told(sample: dict) -> str:
    parts = f" ({sample['heard']:.0f} until the daemon's first move)" if "heard" in sample else ""
    by = ", ".join(f"{count} by {name}" for name, count in sample["by"].items())
    return f"{sample['kind']}, CPUs {sample['given']}: {sample['off']:.0f} ms{parts}; {by}; last {sample['last']}"


@dataclass(frozen=True)
class _Off:
    """A thread is off the CPUs, since `at`, by the hand of `by`."""

    at: float
    by: str
    what: str


@dataclass
class _Change:
    """CPUs that kubelet gave to a pod, and the threads that may still run there."""

    written: float
    uid: str
    given: frozenset[int]
    waiting: dict[int, tuple[witness.Thread, witness.Pod]] = field(default_factory=dict)
    off: dict[str, list[_Off]] = field(default_factory=dict)

    def samples(self) -> list[dict]:
        """What is to be told of it, by kind."""
        return [self._sample(kind, offs) for kind, offs in self.off.items()]

    def _sample(self, kind: str, offs: list[_Off]) -> dict:
        last = max(offs, key=lambda off: off.at)
        names = [off.by for off in offs]
        sample = {"kind": kind, "given": cpus.show(self.given), "off": self._after(last.at), "last": last.what}
        sample["by"] = {name: names.count(name) for name in sorted(set(names))}
        ours = [off.at for off in offs if off.by.startswith(_DAEMON)]
        return sample | ({"heard": self._after(min(ours)), "ours": (max(ours) - min(ours)) * 1000} if ours else {})

    def _after(self, moment: float) -> float:
        return max(moment - self.written, 0.0) * 1000


class _Watch:
    def __init__(self) -> None:
        self._claims = claims.read()
        self._pods: dict[str, witness.Pod] = {}
        self._threads: list[witness.Thread] = []
        self._listed, self._cost = 0.0, 0.0
        self._open: list[_Change] = []
        self._moves = Moves()
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
        written = self._claims.written - time.time() + time.monotonic()
        for uid in self._claims.owned:
            given = self._claims.of_pod(uid) - before.of_pod(uid)
            if given:
                change = _Change(written, uid, given)
                change.waiting = {each.tid: (each, self._pods[each.pod]) for each in self._threads if self._pods[each.pod].uid != uid}
                self._open.append(change)

    def look(self) -> None:
        """Looks once at every thread that is waited for."""
        for change in list(self._open):
            for tid in list(change.waiting):
                self._look_at(change, tid)
            if not change.waiting:
                self._open.remove(change)
                for sample in change.samples():
                    print(json.dumps(sample), flush=True)

    def _look_at(self, change: _Change, tid: int) -> None:
        try:
            here = frozenset(os.sched_getaffinity(tid))
        except ProcessLookupError:
            here = None
        if here is None or not here & change.given:
            thread, pod = change.waiting.pop(tid)
            if thread.cpus & change.given:
                self._take(change, thread, pod, has_ended=here is None)
        elif not change.given <= self._claims.of_pod(change.uid):
            del change.waiting[tid]  # kubelet has taken them back meanwhile

    def _take(self, change: _Change, thread: witness.Thread, pod: witness.Pod, has_ended: bool) -> None:
        now = time.monotonic()
        self._moves.read()
        moves = self._moves.since(thread.tid, change.written)
        at, by = (now, _ENDED) if has_ended else (moves[-1].at, moves[-1].by) if moves else (now, "nobody seen")
        kind = _KINDS[2] if has_ended else _KINDS[0] if pod.is_vm else _KINDS[1]
        change.off.setdefault(kind, []).append(_Off(at, by, f"{pod.name}: {thread}"))


def _listen() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_NONBLOCK)
    if libc.inotify_add_watch(descriptor, os.fsencode(STATE.parent), _IN_CLOSE_WRITE | _IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return descriptor


def _run() -> None:
    """Until standard input ends."""
    descriptor, watch = _listen(), _Watch()
    print("watching", flush=True)
    while True:
        ready, _, _ = select.select([descriptor, sys.stdin], [], [], _TICK if watch.is_waiting() else _REFRESH / 4)
        if sys.stdin in ready:
            return
        if ready:
            os.read(descriptor, 65536)
            watch.handle_change()
        watch.look()
        watch.refresh()


if __name__ == "__main__":
    _run()
