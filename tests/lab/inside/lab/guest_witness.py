# SPDX-License-Identifier: Apache-2.0
"""Where containers of the real Kata may run in their guests, by the guest's kernel, and on which CPUs of the node that is, by KVM."""

import itertools
import os
import re
import subprocess
from dataclasses import dataclass

from lab import cpus, kernel, product, rooms, witness
from lab.claims import Claims

_ASK = "/bin/busybox grep Cpus_allowed_list /proc/1/status; /bin/busybox grep -E '^(processor|apicid)' /proc/cpuinfo"
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_PROCESSOR = re.compile(r"^processor\s*: (\d+)\n(?:.*\n)*?apicid\s*: (\d+)", re.MULTILINE)
_PATIENCE = 60.0  # seconds
_NOBODY = "nobody"

_looks = itertools.count()


@dataclass(frozen=True)
class _Look:
    """A container in its guest. `numbers`: the guest's CPUs of its first process, of `online`; `reached`: all CPUs on which these vCPUs may
    run; `owned`: without what "isolate" takes; `by`: who told the guest, and `called_isolated`, both by the product."""

    name: str
    numbers: frozenset[int]
    online: frozenset[int]
    reached: frozenset[int]
    owned: frozenset[int]
    by: str
    called_isolated: bool

    def __str__(self) -> str:
        numbers, reached = cpus.show(self.numbers), cpus.show(self.reached)
        return f"container {self.name} may run on guest CPUs {numbers} of {cpus.show(self.online)}, that is on {reached}; told by {self.by}"

    @property
    def is_told(self) -> bool:
        return self.by != _NOBODY


def problems(said: Claims, pods: dict[str, witness.Pod], housekeeping: str = "shared-pool") -> list[str]:
    """Containers that may run elsewhere in their guests than they are to, those without CPUs of their own among them, and those that the
    product calls isolated although others may run on their vCPUs."""
    known = {each["id"]: each for each in product.call("GET", "/v1/sandboxes")["sandboxes"]}
    found = []
    for pod in pods.values():
        if pod.is_vm:
            told = {each["id"]: each for each in known.get(pod.sandbox, {}).get("containers", [])}
            aside = rooms.set_aside(housekeeping, pod.containers, pod.uid, said)
            owned = {name: own - aside for name, own in said.owned.get(pod.uid, {}).items()}
            found += [f"{pod.name}: in its guest, {text}" for text in _problems(pod, owned, told)]
    return found


def _problems(pod: witness.Pod, owned: dict[str, frozenset[int]], told: dict[str, dict]) -> list[str]:
    looks, found = [], []
    for name, container in pod.containers.items():
        said = told.get(container, {})
        by = said.get("guest_told", {}).get("by", _NOBODY)
        try:
            looks.append(_look(pod.sandbox, container, name, owned.get(name, frozenset()), by, bool(said.get("isolated"))))
        except (LookupError, StopIteration, OSError, subprocess.SubprocessError) as error:
            found.append(f"container {name} cannot be asked: {error!r}")
    for look in looks:
        print(f"          {pod.name}: {look}", flush=True)
    return found + [f"{look}: {text}" for look in looks if (text := _wrong(look, looks))]


def _wrong(look: _Look, looks: list[_Look]) -> str:
    """What is wrong with where it may run; empty: nothing."""
    others = frozenset().union(*(each.numbers for each in looks if not each.owned & look.owned))
    if look.called_isolated and (look.owned != look.reached or look.numbers & others):
        return f"the product calls it isolated; it owns {cpus.show(look.owned)}, and others may run on {cpus.show(look.numbers & others)} too"
    if not look.is_told:
        return "" if look.numbers == look.online else "nobody is to have narrowed it"
    if look.owned:
        return "" if look.owned == look.reached else f"it owns {cpus.show(look.owned)}"
    theirs = frozenset().union(*(each.numbers for each in looks if each.owned and each.is_told))
    return f"{cpus.show(look.numbers & theirs)} serve others" if look.numbers & theirs else ""


def _look(sandbox: str, container: str, name: str, owned: frozenset[int], by: str, called_isolated: bool) -> _Look:
    answer = _ask(container)
    apic_ids = {int(number): int(apic_id) for number, apic_id in _PROCESSOR.findall(answer)}
    numbers = cpus.parse(_ALLOWED.search(answer)[1]) & apic_ids.keys()  # those that may yet come are in the mask, too
    tids = kernel.kvm_vcpus(witness.vmm(sandbox))
    masks = (os.sched_getaffinity(tids[apic_ids[number]]) for number in numbers)
    return _Look(name, numbers, frozenset(apic_ids), frozenset().union(*masks), owned, by, called_isolated)


def _ask(container: str) -> str:
    command = ["ctr", "-n", "k8s.io", "task", "exec", "--exec-id", f"look-{next(_looks)}", container, "/bin/busybox", "sh", "-c", _ASK]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL)
    if not _ALLOWED.search(ended.stdout):
        raise LookupError(ended.stdout + ended.stderr)
    return ended.stdout
