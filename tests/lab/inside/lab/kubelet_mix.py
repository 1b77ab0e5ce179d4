# SPDX-License-Identifier: Apache-2.0
"""A node of a real kubelet that goes through what chance brings: pods come, change and go while programs are killed and restarted."""

import random
import threading
import time
from collections.abc import Callable, Iterator

from lab import builds, claims, containerd, kubelet_service, kubelet_steps, product
from lab.kubelet_steps import Node, Step
from lab.manifests import burstable, container, ending, pod

_PODS_AT_MOST = 5
_CPUS_AT_MOST = 3  # of a pod
_UNINSTALLED = 2.0  # seconds that a program runs on whose file is gone
_SOON = 8.0  # seconds: kubelet looks for changed manifests every 5 s
_RETRIES = 12.0  # seconds: kubelet repeats an update that failed after 10 s, unless its last successful one is wanted again by then


def steps(seconds: float, seed: int, with_builds: bool = False) -> Iterator[Step]:
    """Steps for `seconds`, and until each program was restarted, as `seed` has it; they begin with a few pods and end with none.

    `with_builds`: programs are also replaced by other builds of them."""
    disturbances = (*_DISTURBANCES, *_NEW_BUILDS) if with_builds else _DISTURBANCES
    mix, until = _Mix(random.Random(seed), disturbances), time.monotonic() + seconds
    yield kubelet_steps.come
    while time.monotonic() < until or not mix.has_restarted_all():
        yield mix.step()
    yield kubelet_steps.go


class _Mix:
    def __init__(self, chance: random.Random, disturbances: "tuple[Step | None, ...]") -> None:
        self._chance, self._disturbances, self._number = chance, disturbances, 0
        self._next: list[Step | None] = []

    def step(self) -> Step:
        """Something happens to the pods and, most of the time, to a program at a moment within."""
        change = self._chance.choice((_arrive, _arrive, _leave, _grow_or_shrink))
        self._number += 1
        return _one(change, self._disturbance(), self._number, self._chance)

    def has_restarted_all(self) -> bool:
        """Whether the steps so far had all that can happen to programs."""
        return self._number >= len(self._disturbances)

    def _disturbance(self) -> Step | None:
        """Each of them once, in any order, before one comes again."""
        if not self._next:
            self._next = self._chance.sample(self._disturbances, len(self._disturbances))
        return self._next.pop()


def _one(change: "_Change", disturb: Step | None, number: int, chance: random.Random) -> Step:
    after, inner = chance.uniform(0, _SOON), random.Random(chance.random())

    def do(node: Node) -> None:
        disturbing = threading.Timer(after, disturb, [node]) if disturb else None
        if disturbing:
            disturbing.start()
        change(node, number, inner)
        if disturbing:
            disturbing.join()
        node.pods.settle(f"step {number}")

    do.__doc__ = f"step {number}: {change.__doc__}" + (f"; {after:.1f} s later {disturb.__doc__}" if disturb else "")
    return do


_Change = Callable[[Node, int, random.Random], None]


def _arrive(node: Node, number: int, chance: random.Random) -> None:
    """a pod comes"""
    room = len(claims.read().pool) - 1  # one CPU stays in the pool
    if len(node.pods.names()) >= _PODS_AT_MOST or room < 1:
        return _leave(node, number, chance)
    is_vm = chance.random() < 0.7
    owned = container(cpu=str(chance.randint(1, min(room, _CPUS_AT_MOST))))
    spec = chance.choice((owned, owned, burstable(), ending(owned, seconds=chance.randint(2, 10), status=1)))
    node.pods.put(pod(f"mix-{number}", spec, vm=is_vm))
    return None


def _leave(node: Node, _: int, chance: random.Random) -> None:
    """a pod goes"""
    names = [name for name in node.pods.names() if not name.startswith("shared")]
    if names:
        node.pods.remove(chance.choice(names))


def _grow_or_shrink(node: Node, _: int, chance: random.Random) -> None:
    """the manifest of a pod is changed in place"""
    names = [name for name in node.pods.names() if not name.startswith("shared")]
    room = len(claims.read().pool) - 1
    if names and room > 0:
        node.pods.put(pod(chance.choice(names), container(cpu=str(chance.randint(1, min(room, _CPUS_AT_MOST)))), vm=chance.random() < 0.7))


def _kill_daemon(node: Node) -> None:
    """the daemon is killed, and started again"""
    node.daemon.kill()
    time.sleep(3)
    node.daemon.start()


def _restart_containerd(_: Node) -> None:
    """containerd is restarted"""
    containerd.restart()
    time.sleep(_RETRIES)


def _restart_kubelet(node: Node) -> None:
    """kubelet is restarted"""
    node.kubelet.stop()
    node.kubelet.start()


def _lose_state(node: Node) -> None:
    """kubelet is restarted without its state"""
    node.kubelet.stop()
    node.kubelet.forget()
    node.kubelet.start()


def _new_daemon(node: Node) -> None:
    """the daemon is replaced by another build, killed, and started again"""
    builds.replace(product.PROGRAM)
    _kill_daemon(node)
    _expect(node, "the daemon", builds.runs(node.daemon.pid, product.PROGRAM))


def _new_containerd(node: Node) -> None:
    """containerd and runc's shim are replaced by other builds, and containerd is restarted"""
    builds.replace(containerd.PROGRAM, containerd.RUNC_SHIM)
    time.sleep(_UNINSTALLED)
    _restart_containerd(node)
    _expect(node, "containerd", builds.runs(containerd.pid(), containerd.PROGRAM))


def _new_kubelet(node: Node) -> None:
    """kubelet is replaced by another build, and restarted"""
    builds.replace(kubelet_service.PROGRAM)
    time.sleep(_UNINSTALLED)
    _restart_kubelet(node)
    _expect(node, "kubelet", builds.runs(node.kubelet.pid, kubelet_service.PROGRAM))


def _expect(node: Node, program: str, is_new: bool) -> None:
    """An error in a timer's thread would be lost."""
    if not is_new:
        node.pods.failures.append(f"{program} is not the build that replaced it")


_DISTURBANCES: tuple[Step | None, ...] = (None, None, _kill_daemon, _kill_daemon, _restart_containerd, _restart_kubelet, _lose_state)
_NEW_BUILDS: tuple[Step, ...] = (_new_daemon, _new_containerd, _new_kubelet)
