# SPDX-License-Identifier: Apache-2.0
"""Where containers of the real Kata may run in their guests, by the guest's kernel, and on which CPUs of the node that is, by KVM."""

import itertools
import os
import re
import subprocess

from lab import cpus, kernel, product, witness
from lab.claims import Claims

_ASK = "/bin/busybox grep Cpus_allowed_list /proc/1/status; /bin/busybox grep -E '^(processor|apicid)' /proc/cpuinfo"
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_PROCESSOR = re.compile(r"^processor\s*: (\d+)\n(?:.*\n)*?apicid\s*: (\d+)", re.MULTILINE)
_PATIENCE = 60.0  # seconds

_looks = itertools.count()


def problems(said: Claims, pods: dict[str, witness.Pod]) -> list[str]:
    """Containers that cannot use the CPUs that they own; those that can use others, though the product says that they were told."""
    known = {each["id"]: each for each in product.call("GET", "/v1/sandboxes")["sandboxes"]}
    found = []
    for pod in pods.values():
        told = {each["id"]: each for each in known.get(pod.sandbox, {}).get("containers", [])}
        for name, owned in said.owned.get(pod.uid, {}).items():
            if pod.is_vm and name in pod.containers:
                found += _problem(pod, name, owned, told.get(pod.containers[name], {}))
    return found


def _problem(pod: witness.Pod, name: str, owned: frozenset[int], told: dict) -> list[str]:
    where = f"{pod.name}: in its guest, container {name}"
    try:
        numbers, reached = _reaches(pod.sandbox, pod.containers[name])
    except (LookupError, StopIteration, OSError, subprocess.SubprocessError) as error:
        return [f"{where} cannot be asked: {error!r}"]
    by = told.get("guest_told", {}).get("by", "nobody")
    line = f"{where} may run on guest CPUs {numbers}, that is on {cpus.show(reached)}; told by {by}, doubt: {told.get('guest_doubt', 'none')}"
    print(f"          {line}", flush=True)
    is_right = owned == reached if by != "nobody" else owned <= reached
    return [] if is_right else [f"{line}; it owns {cpus.show(owned)}"]


def _reaches(sandbox: str, container: str) -> tuple[str, frozenset[int]]:
    """The guest's CPUs of its first process, and all CPUs on which these vCPUs may run."""
    answer = _ask(container)
    numbers = _ALLOWED.search(answer)[1]
    apic_ids = {int(number): int(apic_id) for number, apic_id in _PROCESSOR.findall(answer)}
    tids = kernel.kvm_vcpus(witness.vmm(sandbox))
    masks = (os.sched_getaffinity(tids[apic_ids[number]]) for number in cpus.parse(numbers))
    return numbers, frozenset().union(*masks)


def _ask(container: str) -> str:
    command = ["ctr", "-n", "k8s.io", "task", "exec", "--exec-id", f"look-{next(_looks)}", container, "/bin/busybox", "sh", "-c", _ASK]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL)
    if not _ALLOWED.search(ended.stdout):
        raise LookupError(ended.stdout + ended.stderr)
    return ended.stdout
