# SPDX-License-Identifier: Apache-2.0
"""Watches the kernel's scheduler on CPUs that kubelet gave to a pod, from a process of its own: which threads of other sandboxes ran there, and how long.

Each switch to a thread on such a CPU is seen. A thread of another sandbox is an intruder from the moment on when it could know better: the
CPU was given away, the thread was born, or its mask was changed last, whichever came last; until it was seen there last.
"""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import cgroup, claims, witness
from lab.claims import Claims
from lab.moves import Moves

_INSTANCE = Path("/sys/kernel/tracing/instances/intruders")
_SWITCH = re.compile(r"\[(?P<cpu>\d+)\] .* (?P<at>[\d.]+): sched_switch: .* ==> next_comm=(?P<comm>.*) next_pid=(?P<tid>\d+) ", re.MULTILINE)
_LOST = re.compile(r"^(?:overrun|dropped events): (\d+)$", re.MULTILINE)
_BUFFER_KIB = 4096
_CHUNK = 2**16
_TURN = 0.5  # seconds
_TURNS_KEPT = 20
_TICKS = os.sysconf("SC_CLK_TCK")
_SHIM = "containerd-shim"
_KVM = "kvm-"
_BIRTH = "it was born there"
GOING = "pods that were going"
HELD = "pods whose cgroup allowed nothing else"
STAYING = "pods that stay"
STARTING = "KVM's kernel threads of VMs that start"


@dataclass
class Visit:
    """A thread of a sandbox on CPUs of another pod, both in time.monotonic()'s seconds; whose doing its being there was, and its leaving."""

    kind: str
    uid: str
    pod: str
    thread: str
    cpu: int
    since: float
    until: float
    begun: str
    ended: str = "it is still there"

    def milliseconds(self) -> float:
        """How long it was too long there."""
        return max(self.until - self.since, 0.0) * 1000


@dataclass(frozen=True)
class Report:
    """What was seen: switches to any thread on owned CPUs, trace events that the kernel lost, threads that had ended before they could be told
    from those of sandboxes, and the intruders' visits."""

    switches: int
    lost: int
    unnamed: int
    visits: list[Visit]

    def longest(self, kind: str) -> float:
        """Of the visits of a kind, in milliseconds; 0 without one."""
        return max((visit.milliseconds() for visit in self.visits if visit.kind == kind), default=0.0)


class Intruders:
    """Watches between its making and stop()."""

    def __init__(self) -> None:
        # A program of its own, not a fork: gRPC does not survive forks.
        command = [sys.executable, "-m", "lab.intruders"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()

    def stop(self) -> Report:
        """What was seen since."""
        answer, _ = self._process.communicate()
        said = json.loads(answer)
        return Report(**said | {"visits": [Visit(**visit) for visit in said["visits"]]})


def show(report: Report) -> None:
    """Prints the figures."""
    print(f"          {report.switches} switches on CPUs of pods were seen, {report.lost} trace events lost", flush=True)
    print(f"          {report.unnamed} threads ended before they could be told from those of sandboxes", flush=True)
    for kind in (STAYING, STARTING, HELD, GOING):
        some = sorted((visit for visit in report.visits if visit.kind == kind), key=Visit.milliseconds)
        print(f"          {kind}: {len(some)} visits" + (f", {_figures(some)}" if some else ""), flush=True)
        if shims := [visit for visit in some if visit.thread.startswith(_SHIM)]:
            print(f"          {kind}, shims alone: {len(shims)} visits, {_figures(shims)}", flush=True)


def _figures(ascending: list[Visit]) -> str:
    half, most, last = ascending[len(ascending) // 2], ascending[len(ascending) * 99 // 100], ascending[-1]
    times = ", ".join(f"{name} {visit.milliseconds():.0f} ms" for name, visit in (("p50", half), ("p99", most), ("max", last)))
    return f"{times}; the longest: {last.pod}: {last.thread} on CPU {last.cpu}: {last.begun}; {last.ended}"


@dataclass(frozen=True)
class _Owned:
    """A CPU is a pod's, since `since`."""

    uid: str
    since: float


@dataclass(frozen=True)
class _Allowed:
    """What a cgroup allowed when it was read."""

    at: float
    cpus: frozenset[int]


def _cgroup_of(tid: int) -> str:
    """What names a thread's cgroup; empty where it is gone."""
    try:
        return Path(f"/proc/{tid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class _Watch:
    def __init__(self) -> None:
        self._moves = Moves("intruders-moves")
        self._pipe = _listen()
        self._rest = ""
        self._mask: frozenset[int] = frozenset()
        self._claims = Claims()
        self._claims_read = time.monotonic()
        self._owned: dict[int, list[_Owned | None]] = {}
        self._changed: dict[int, list[float]] = {}
        self._open: dict[tuple[int, str], Visit] = {}
        self._closed: list[Visit] = []
        self._pods: dict[str, witness.Pod] = {}
        self._switches = 0
        self._names: dict[int, str] = {}
        self._unnamed: set[int] = set()
        # By a cgroup: one of its threads, and what it allowed at the last turns. When a switch is read it may allow other CPUs already.
        self._members: dict[str, int] = {}
        self._allowed: dict[str, deque[_Allowed]] = {}

    def turn(self) -> None:
        """Takes in what has happened since the last turn.

        The switches first: what explains them, the file and the masks, is then known up to a later moment.
        """
        fresh = list(self._read())
        self._follow_claims()
        self._moves.read()
        if fresh:
            self._pods = witness.pods()
        owner_of: dict[int, witness.Pod | None] = {}
        for found in fresh:
            tid = int(found["tid"])
            if tid not in owner_of:
                owner_of[tid] = self._pod_of(tid)
                if owner_of[tid]:
                    self._members[_cgroup_of(tid)] = tid
            self._see(tid, owner_of[tid], found)
        self._close_visits()
        self._judge_again()
        self._note_allowed()

    def report(self) -> dict:
        """All of it."""
        visits = self._closed + list(self._open.values())
        return {"switches": self._switches, "lost": _lost(), "unnamed": len(self._unnamed), "visits": [asdict(visit) for visit in visits]}

    def _note_allowed(self) -> None:
        for path, tid in self._members.items():
            at = time.monotonic()
            self._allowed.setdefault(path, deque(maxlen=_TURNS_KEPT)).append(_Allowed(at, cgroup.allowed_cpus(tid)))

    def _allowed_at(self, tid: int, at: float) -> frozenset[int]:
        """What its cgroup allowed when it was last read before `at`; empty: it was not."""
        return next((each.cpus for each in reversed(self._allowed.get(_cgroup_of(tid), ())) if each.at <= at), frozenset())

    def _follow_claims(self) -> None:
        last_read, self._claims_read = self._claims_read, time.monotonic()
        now = claims.read()
        if now == self._claims:
            return
        self._claims = now
        at = now.written - time.time() + time.monotonic()
        uid_of = {cpu: uid for uid in now.owned for cpu in now.of_pod(uid)}
        for cpu in uid_of.keys() | self._owned.keys():
            # kubelet may have written the file twice since: a CPU was free as soon as the first time.
            self._enter(cpu, uid_of.get(cpu), at if cpu in uid_of else last_read)
        if not now.all_owned() <= self._mask:
            self._mask |= now.all_owned()
            (_INSTANCE / "tracing_cpumask").write_text(f"{sum(1 << cpu for cpu in self._mask):x}")

    def _enter(self, cpu: int, uid: str | None, at: float) -> None:
        history, times = self._owned.setdefault(cpu, [None]), self._changed.setdefault(cpu, [0.0])
        last = history[-1].uid if history[-1] else None
        if uid != last:
            history.append(_Owned(uid, at) if uid else None)
            times.append(at)

    def _read(self):
        try:
            while chunk := os.read(self._pipe, _CHUNK):
                whole, _, self._rest = (self._rest + chunk.decode(errors="replace")).rpartition("\n")
                yield from _SWITCH.finditer(whole)
        except BlockingIOError:
            pass

    def _pod_of(self, tid: int) -> witness.Pod | None:
        """The VM pod of a thread. One that has ended is known by what it was before."""
        try:
            sandbox = witness.vm_of(tid, self._pods)
        except (FileNotFoundError, ProcessLookupError):
            self._unnamed |= {tid} - self._names.keys()
            return self._pods.get(self._names.get(tid, ""))
        self._names[tid] = sandbox
        return self._pods.get(sandbox)

    def _see(self, tid: int, pod: witness.Pod | None, found: re.Match) -> None:
        self._switches += 1
        at, cpu = float(found["at"]), int(found["cpu"])
        owned = self._owner_at(cpu, at)
        if pod is None or owned is None or owned.uid == pod.uid:
            return
        key = (tid, owned.uid)
        if key in self._open:
            self._open[key].until = at
            return
        since, begun = self._began(tid, owned, at)
        kind = self._kind(tid, pod.uid, at)
        if kind == STAYING and begun == _BIRTH and found["comm"].startswith(_KVM):
            kind = STARTING
        self._open[key] = Visit(kind, pod.uid, pod.name, f"{found['comm']} {tid}", cpu, since, max(at, since), begun)

    def _began(self, tid: int, owned: _Owned, at: float) -> tuple[float, str]:
        """Since when a thread could know better, and whose doing it was that it may run there."""
        moves = [move for move in self._moves.since(tid, owned.since) if move.at <= at]
        # One that has ended already was not seen at the turn before: it did not run there long before this.
        birth = _born(tid)
        causes = [(owned.since, "kubelet gave the CPU away under it"), (at, "it ended at once") if birth is None else (birth, _BIRTH)]
        return max(causes + [(move.at, f"{move.by} let it there") for move in moves[-1:]])

    def _kind(self, tid: int, uid: str, at: float) -> str:
        if self._was_owner(uid) and uid not in self._claims.owned:
            return GOING
        others = self._claims.of_others(uid)
        return HELD if any(allowed and allowed <= others for allowed in (cgroup.allowed_cpus(tid), self._allowed_at(tid, at))) else STAYING

    def _judge_again(self) -> None:
        """kubelet gives CPUs away one container at a time: a thread that could still leave when it was first seen may be held since."""
        for (tid, _), visit in self._open.items():
            if visit.kind == STAYING:
                visit.kind = self._kind(tid, visit.uid, visit.until)

    def _owner_at(self, cpu: int, at: float) -> _Owned | None:
        for owned, since in zip(reversed(self._owned.get(cpu, [])), reversed(self._changed.get(cpu, []))):
            if since <= at:
                return owned
        return None

    def _was_owner(self, uid: str) -> bool:
        return any(each and each.uid == uid for history in self._owned.values() for each in history)

    def _close_visits(self) -> None:
        """Those of threads that may not run there any more."""
        for key in list(self._open):
            tid, uid = key
            try:
                if os.sched_getaffinity(tid) & self._claims.of_pod(uid):
                    continue
                moves = self._moves.since(tid, self._open[key].since)
                ended = f"{moves[-1].by} moved it off" if moves else "kubelet took the CPU back, or nobody was seen to move it off"
            except ProcessLookupError:
                ended = "it ended"
            self._open[key].ended = ended
            self._closed.append(self._open.pop(key))


def _listen() -> int:
    _INSTANCE.mkdir()
    for name, text in {
        "trace_clock": "mono",
        "buffer_size_kb": str(_BUFFER_KIB),
        "tracing_cpumask": "0",
        "events/sched/sched_switch/filter": "next_pid != 0",
        "events/sched/sched_switch/enable": "1",
    }.items():
        (_INSTANCE / name).write_text(text)
    return os.open(_INSTANCE / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)


def _lost() -> int:
    return sum(int(count) for stats in _INSTANCE.glob("per_cpu/cpu*/stats") for count in _LOST.findall(stats.read_text()))


def _born(tid: int) -> float | None:
    """When thread `tid` was made; None when it is gone. A node is never suspended: the clocks of boot and of time.monotonic() agree."""
    try:
        fields = Path(f"/proc/{tid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (int(fields[19]) + 1) / _TICKS


def _run() -> None:
    """Until standard input ends."""
    watch = _Watch()
    watch.turn()
    print("watching", flush=True)
    while not select.select([sys.stdin], [], [], _TURN)[0]:
        watch.turn()
    watch.turn()
    print(json.dumps(watch.report()))


if __name__ == "__main__":
    _run()
