# SPDX-License-Identifier: Apache-2.0
"""A day of a node whose CPUs the daemon gives out: pods come, change and go by a trace, while programs restart.

After each event the kernel's masks are compared with the allocations on disk.
"""

import json
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lab import allocations, check, kernel, product, witness
from lab.cri import Cri, CriPod, restart_containerd, start_containerd
from lab.product import NRI_SOCKET, Daemon

SETTINGS = {
    "mode": "managed",
    "nri_socket": NRI_SOCKET,
    "housekeeping": "shared-pool",
    "cgroup": "manage",
    "managed.reserved_cpus": "0",
    "managed.allow_classes": ["share"],
    "managed.align": "best-effort",
    "managed.memory": "follow",
}
KINDS = ("arrive_vm", "arrive", "arrive", "arrive_shared", "arrive_sharer", "leave", "change", "resize", "restart", "kill", "runtime")
_MOST_PODS, _MOST_VMS, _MOST_CPUS = 7, 2, 3
_MEMORY = 16 << 20  # bytes
_SHARE = {"kata-affinity.io/cpu-manager": "share"}
_TRACE = Path("/run/day.jsonl")  # as `simulate` reads it
_PATIENCE = 30.0  # of a CRI call during which a program restarts, and of drift_check


class Day:
    """The pods of a node and what became of them."""

    def __init__(self, cri: Cri, daemon: Daemon, seed: int) -> None:
        self._cri, self._daemon, self._chance = cri, daemon, random.Random(seed)
        self._pods: dict[str, tuple[CriPod, str, bool]] = {}
        self._events = self._refused = self._bound = 0
        self._times: list[float] = []
        self._trace: list[dict] = []  # of pods that kubelet's static policy would give CPUs of their own

    def run(self, kinds: Iterable[str]) -> None:
        """One event after the other."""
        for kind in kinds:
            self._one(kind, getattr(self, f"_{kind}"))

    def end(self) -> None:
        """All pods go."""
        while self._pods:
            self._one("leave", self._leave)
        check.equal("CPUs with an owner", product.owned(), "")

    def change_mode(self) -> None:
        """To `follow` and back, as an operator does: what had CPUs of its own may run everywhere, and is adopted when the mode returns."""
        check.step("mode = follow: all containers of runc may run on all CPUs")
        self._daemon.configure(mode="follow", nri_socket=NRI_SOCKET)
        self._heard("")
        check.eventually("where threads of runc containers may run", _masks_of_runc, {kernel.online()})
        check.equal("CPUs with an owner", product.owned(), "")
        check.step(f"{self._arrive_shared()}: containerd has the answer; the next daemon plans the way back")
        self._restart()
        plan = product.ctl("plan", "--managed")
        print("".join(f"          | {line}\n" for line in plan.stdout.splitlines()), end="", flush=True)
        check.equal("exit status of plan --managed", plan.returncode, 0)
        check.step("mode = managed again: what runs is adopted")
        self._daemon.configure(**SETTINGS)
        self._heard("")
        check.eventually("wrong masks", wrong, [], _PATIENCE)
        check.equal("violations that verify finds", product.violations(), [])

    def show(self) -> None:
        """Prints the figures."""
        check.true("a container's memory was bound to nodes", self._bound > 0)
        times = sorted(self._times)
        print(
            f"          {self._events} events, 0 wrong masks, {self._refused} classes refused; until the masks were right after an event: "
            f"median {times[len(times) // 2] * 1000:.0f} ms, most {times[-1] * 1000:.0f} ms"
        )
        product.show_times()
        self._simulate()

    def _simulate(self) -> None:
        """Prints what the same pods would have come to, had they kept the class that they came with."""
        _TRACE.write_text("".join(json.dumps(step) + "\n" for step in self._trace))
        for strategy, whose in (("kubelet", "kubelet's static policy"), ("fitted", "ours")):
            done = product.ctl("simulate", "--trace", str(_TRACE), "--strategy", strategy, "--reserved", SETTINGS["managed.reserved_cpus"])
            check.equal("exit status of simulate", done.returncode, 0)
            print(f"          {whose}: {' '.join(' '.join(done.stdout.splitlines()[-3:]).split())}")

    def _one(self, kind: str, act: Callable[[], str]) -> None:
        self._events += 1
        check.step(f"event {self._events}: {kind}: {act()}")
        start = time.monotonic()
        while (found := wrong()) and time.monotonic() - start < _PATIENCE:
            time.sleep(0.02)
        self._times.append(time.monotonic() - start)
        check.equal("wrong masks", found, [])
        check.equal("CPUs with two owners", allocations.overlaps(), [])
        check.equal("violations that verify finds", product.violations(), [])

    # --- events; each says what it does

    def _arrive_vm(self) -> str:
        if sum(is_vm for _, _, is_vm in self._pods.values()) >= _MOST_VMS:
            return self._leave()
        said = self._come("vm", quota=self._size(), memory=_MEMORY)
        check.equal("VM pods whose containers' memory is bound", sorted(bound_vms()), [])
        return said

    def _arrive(self) -> str:
        """The answer to the runtime has all that changed for others, too."""
        said = self._come("", quota=self._size(), memory=_MEMORY)
        self._bound += bool(allocations.memory())
        check.eventually("memory nodes that are not those of the allocations", wrong_memory, [])
        return said

    def _arrive_shared(self) -> str:
        return self._come("", quota=50000)

    def _arrive_sharer(self) -> str:
        return self._come("", quota=self._size(), annotations=_SHARE)

    def _come(self, handler: str, quota: int, annotations: dict[str, str] | None = None, memory: int = 0) -> str:
        if len(self._pods) >= _MOST_PODS:
            return self._leave()
        name = f"day-{self._events}"
        pod = CriPod(self._cri, name, handler, annotations)
        before = allocations.problems()
        self._pods[name] = (pod, pod.run("app", "", quota, memory), handler == "vm")
        if quota % 100000 == 0 and not annotations:
            self._trace.append({"op": "add", "pod": name, "containers": [{"name": "app", "cpus": quota // 100000}]})
        self._refused += allocations.problems() > before
        return f"{handler or 'runc'} pod {name}, quota {quota}"

    def _leave(self) -> str:
        if not self._pods:
            return "no pod is there"
        name = self._chance.choice(sorted(self._pods))
        self._pods.pop(name)[0].remove()
        self._trace_of(name, op="remove")
        return name

    def _trace_of(self, name: str, **step: object) -> None:
        if any(one["op"] == "add" and one["pod"] == name for one in self._trace):
            self._trace.append({"pod": name, **step})

    def _change(self) -> str:
        """VM pods change, too: the daemon writes their cgroups."""
        if not self._pods:
            return "no pod is there"
        name, use = self._chance.choice(sorted(self._pods)), self._chance.choice(("none", "exclusive", "exclusive", "share"))
        pod, _, is_vm = self._pods[name]
        use = "exclusive" if is_vm and use == "share" else use
        done = product.ctl("class", pod.id, use)
        self._refused += done.returncode != 0
        return f"{name} to {use}: {done.stdout.strip() or done.stderr.strip()}"

    def _resize(self) -> str:
        if not self._pods:
            return "no pod is there"
        name, quota = self._chance.choice(sorted(self._pods)), self._size()
        pod, container, _ = self._pods[name]
        pod.update(container, "", quota)
        self._trace_of(name, op="resize", container="app", cpus=quota // 100000)
        return f"{name} to quota {quota}"

    def _restart(self) -> str:
        self._daemon.stop()
        self._daemon.start()
        return self._heard("the daemon stopped and started")

    def _kill(self) -> str:
        self._daemon.kill()
        self._daemon.start()
        return self._heard("the daemon killed and started")

    def _runtime(self) -> str:
        restart_containerd(self._cri)
        return self._heard("containerd restarted")

    def _heard(self, what: str) -> str:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        return what

    def _size(self) -> int:
        return self._chance.randint(1, _MOST_CPUS) * 100000


def wrong() -> list[str]:
    """Threads that do not run where the allocations want them."""
    of = witness.pods()
    return witness.wrong(allocations.read(), of, witness.threads(of))


def bound_vms() -> set[str]:
    """Its memory is the VM's, which has another limit."""
    vms = {pod.uid: pod.name for pod in witness.pods().values() if pod.is_vm}
    return {vms[uid] for uid, _ in allocations.memory() if uid in vms}


def wrong_memory() -> list[str]:
    """Threads of containers whose memory comes from other nodes than the allocations have."""
    of = witness.pods()
    uids = {pod.sandbox: pod.uid for pod in of.values()}
    bound = allocations.memory()
    wanted = [(each, bound.get((uids.get(each.pod, each.pod), each.part))) for each in witness.threads(of)]
    return [f"{each}: {kernel.allowed_mems(each.tid)}, not {nodes}" for each, nodes in wanted if nodes and kernel.allowed_mems(each.tid) != nodes]


def _masks_of_runc() -> set[frozenset[int]]:
    of = witness.pods()
    return {each.cpus for each in witness.threads(of) if not of[each.pod].is_vm}


def run(kinds: Iterable[str], seed: int) -> None:
    """A day of these events; `seed` chooses which pods they are about. Then the mode changes, there and back."""
    cri = start_containerd()
    with Daemon(**SETTINGS) as daemon:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        day = Day(cri, daemon, seed)
        day.run(kinds)
        day.change_mode()
        day.end()
        day.show()
