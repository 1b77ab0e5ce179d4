# SPDX-License-Identifier: Apache-2.0
"""Which containers of a VM have their CPUs to themselves, by the kernel, and whether the product says the same of each, and of the node."""

from lab import cpus, rooms, witness
from lab.claims import Claims
from lab.witness import Pod, Thread

# Reasons of the product's that lie in the guest, where the kernel of the node sees nothing; the second ones only where no vCPU floats.
_IN_GUEST = frozenset({"guest-silent", "guest-unconfirmed"})
_WITHOUT_FLOATING = frozenset({"shared-container", "no-floating-vcpu"})
_GOES_WITH_ITS_VCPU = "kvm-pit"


def differs(told: dict, report: dict, pod: Pod, claims: Claims, mine: list[Thread], housekeeping: str) -> list[str]:
    """What `told`, of the sandbox by `status`, and `report`, of `verify`, say otherwise than the threads `mine`."""
    aside = rooms.set_aside(housekeeping, pod.containers, pod.uid, claims)
    named = {each["subject"] for each in report["findings"] if each["sandbox"] == pod.sandbox and each["severity"] == "degraded"}
    said = {each["id"]: each for each in told["containers"]}
    excused, found = _excused(claims.of_pod(pod.uid) - aside, mine), {}
    for name, id_ in pod.containers.items():
        if own := claims.owned.get(pod.uid, {}).get(name, frozenset()) - aside:
            beside = _beside(own, mine)
            text = _of_container(said.get(id_), beside, excused) or _of_verify(f"container {id_}", report, named, beside)
            found |= {id_: f"{pod.name}: the product's word of container {name}: {text}"} if text else {}
    there = {id_ for each in witness.pods().values() for id_ in each.containers.values()} if found else set()
    return [text for id_, text in found.items() if id_ in there]  # it may have ended between the two


def _of_container(said: dict | None, beside: dict[int, str], excused: frozenset[str]) -> str:
    """What is wrong with the product's word of a container on whose CPUs there is something `beside` it; empty: nothing."""
    if said is None or said["isolated"] is None:
        return "it has no CPUs of its own"
    if said["isolated"]:
        return f"it is isolated; by the kernel, {_show(beside)}" if beside else ""
    on_host = [each for each in said["obstacles"] if each["reason"] not in _IN_GUEST | excused]
    named = frozenset().union(*(cpus.parse(each["cpus"]) for each in on_host))
    if named != beside.keys() or bool(on_host) != bool(beside):
        reasons = ", ".join(f"{each['reason']} {each['cpus']}" for each in on_host) or "nothing of the host"
        return f"it is not isolated for {reasons}; by the kernel, {_show(beside)}"
    return ""


def _of_verify(subject: str, report: dict, named: set[str], beside: dict[int, str]) -> str:
    if not beside or (subject in named and report["verdict"] != "ok"):
        return ""
    return f"verify says {report['verdict']}, and nothing of it; by the kernel, {_show(beside)}"


def _excused(own: frozenset[int], mine: list[Thread]) -> frozenset[str]:
    """Where every vCPU is bound to a CPU of a container, the guest's kernel and what shares have no other."""
    floats = any(thread.part == "vcpu" and not (len(thread.cpus) == 1 and thread.cpus <= own) for thread in mine)
    return frozenset() if floats else _WITHOUT_FLOATING


def _beside(own: frozenset[int], mine: list[Thread]) -> dict[int, str]:
    """Of CPUs that a container owns, those that do not carry one vCPU bound there and nothing else of its sandbox, and what they carry."""
    here = {cpu: [each for each in mine if cpu in each.cpus and each.part != _GOES_WITH_ITS_VCPU] for cpu in own}
    return {cpu: ", ".join(map(str, there)) or "no vCPU" for cpu, there in here.items() if not _is_alone(there)}


def _is_alone(there: list[Thread]) -> bool:
    return len(there) == 1 and there[0].part == "vcpu" and len(there[0].cpus) == 1


def _show(beside: dict[int, str]) -> str:
    return "; ".join(f"CPU {cpu} carries {text}" for cpu, text in sorted(beside.items())) or "nothing is beside its vCPUs"
