# SPDX-License-Identifier: Apache-2.0
"""A node of static pods: what kubelet was given, whether all of it is there, where it must be, and whether the product says the same."""

import json
import os
import time
from http.client import HTTPException
from pathlib import Path

from lab import alone, check, claims, cpus, guest_witness, kata, kubelet_service, product, witness
from lab.kubelet import STATE

_PATIENCE = 240.0  # seconds: kubelet tells running containers of a new pool every 10 s, and starts pods one after another
_TELL_EVERY = 30.0  # seconds
_SHOWN = 12


class StaticPods:
    """The pods that kubelet is to run. What does not hold is collected, so that a step that fails does not hide the next ones."""

    def __init__(self, by: object = kubelet_service, housekeeping: str = "shared-pool") -> None:
        """`by`: whatever gives kubelet pods and takes them away, with `put` and `remove`; `housekeeping`: see witness.wrong()."""
        self._by, self._housekeeping = by, housekeeping
        self._wanted: dict[str, dict] = {}
        self.failures: list[str] = []
        self.looks = 0

    def put(self, *manifests: dict) -> None:
        """Gives kubelet pods, or changed manifests of those that it has."""
        for manifest in manifests:
            self._wanted[manifest["metadata"]["name"]] = manifest
            self._by.put(manifest)

    def remove(self, *names: str) -> None:
        """Takes pods away."""
        for name in names:
            del self._wanted[name]
            self._by.remove(name)

    def names(self) -> list[str]:
        """The pods that are to be there, those that share CPUs last."""
        return sorted(self._wanted, key=lambda name: name.startswith("shared"))

    def settle(self, what: str, seconds: float = _PATIENCE) -> None:
        """Waits until the node is as it must be by what the kernel says, and the product says the same."""
        began = time.monotonic()
        found = self._last_problems(seconds)
        if found:
            check.step(f"FAILED: {what}: {found}; verify says {product.ctl('verify').stdout}")
            self.failures.append(what)
            self._keep_evidence(found)
        else:
            print(f"          ok: {what}, after {time.monotonic() - began:.0f} s", flush=True)

    def _last_problems(self, seconds: float) -> list[str]:
        until = time.monotonic() + seconds
        tell_at = time.monotonic() + _TELL_EVERY
        while True:
            began = time.monotonic()
            if not (found := self.problems()) or began > until:
                return found
            if began > tell_at:
                check.step(f"not yet: {found[0]}")
                tell_at = began + _TELL_EVERY
            time.sleep(max(1.0, 3 * (time.monotonic() - began)))  # to look must not be all that the emulated node does

    def problems(self) -> list[str]:
        """What does not hold now; the first of it."""
        self.looks += 1
        said, pods = claims.read(), witness.pods()
        seen = witness.threads(pods)
        found = self._not_there(said, pods) + witness.orphans(pods) + witness.wrong(said, pods, seen, self._housekeeping)
        return (found or by_the_product(said, pods, seen, self._housekeeping) or _in_guests(said, pods, self._housekeeping))[:_SHOWN]

    def _not_there(self, said: claims.Claims, pods: dict[str, witness.Pod]) -> list[str]:
        """Pods and containers that are missing or too many, and CPUs that kubelet has not given them, or not taken back."""
        names = sorted(pod.name for pod in pods.values())
        found = [] if names == sorted(self._wanted) else [f"pods: {names}, wanted {sorted(self._wanted)}"]
        for pod in pods.values():
            found += _lacks(pod, self._wanted[pod.name], said) if pod.name in self._wanted else []
        uids = {pod.uid for pod in pods.values()}
        return found + [f"kubelet has CPUs for {uid}, which is no pod" for uid in said.owned if uid not in uids]

    def _keep_evidence(self, found: list[str]) -> None:
        told = {name: product.ctl(name, "--json").stdout for name in ("status", "verify", "map")}
        evidence = {"problems": found, "claims": STATE.read_text(), **told}
        file = Path(os.environ["LAB_OUT"]) / f"evidence-{len(self.failures)}.json"
        file.write_text(json.dumps(evidence, indent=1))


def _lacks(pod: witness.Pod, manifest: dict, said: claims.Claims) -> list[str]:
    spec = manifest["spec"]
    staying = [each for each in spec["initContainers"] if each.get("restartPolicy")] + spec["containers"]
    found = []
    for container in staying:
        name, cpu = container["name"], container["resources"]["limits"].get("cpu", "")
        wanted = int(cpu) if cpu.isdigit() else 0
        have = len(said.owned.get(pod.uid, {}).get(name, ()))
        if have != wanted:
            found.append(f"{pod.name}: kubelet has {have} CPUs for {name}, wanted {wanted}")
        if "command" not in container and name not in pod.containers:
            found.append(f"{pod.name}: container {name} is missing")
    return found


def by_the_product(
    said: claims.Claims, pods: dict[str, witness.Pod], seen: list[witness.Thread], housekeeping: str = "shared-pool"
) -> list[str]:
    """What the product says otherwise than the kernel and `said`."""
    try:
        return _product_differs(said, pods, seen, housekeeping)
    except (OSError, HTTPException, product.Refused) as error:
        return [f"the daemon does not answer: {error!r}"]


def _in_guests(said: claims.Claims, pods: dict[str, witness.Pod], housekeeping: str) -> list[str]:
    """Of stand-ins there is nobody to ask."""
    return guest_witness.problems(said, pods, housekeeping) if kata.is_real() else []


def _product_differs(said: claims.Claims, pods: dict[str, witness.Pod], seen: list[witness.Thread], housekeeping: str) -> list[str]:
    """What the product says that the kernel and kubelet do not. Only asked where these two agree."""
    node, report = product.call("GET", "/v1/node"), product.verify()
    pairs = [("exclusive CPUs", node["exclusive"], cpus.show(said.all_owned())), ("shared pool", node["shared_pool"], cpus.show(said.pool))]
    found = [f"the product's {what}: {told}, by kubelet's file {wanted}" for what, told, wanted in pairs if told != wanted]
    found += [f"verify: {finding['text']}" for finding in product.broken(report)]
    known = {each["id"]: each for each in product.call("GET", "/v1/sandboxes")["sandboxes"]}
    vms = {pod.sandbox: pod for pod in pods.values() if pod.is_vm}
    if known.keys() != vms.keys():
        found.append(f"sandboxes that the product knows: {sorted(known)}, there are {sorted(vms)}")
    for sandbox in known.keys() & vms.keys():
        mine = [thread for thread in seen if thread.pod == sandbox]
        found += _status_differs(known[sandbox], vms[sandbox], said, mine, housekeeping)
        found += alone.differs(known[sandbox], report, vms[sandbox], said, mine, housekeeping)
    return found


def _status_differs(told: dict, pod: witness.Pod, said: claims.Claims, mine: list[witness.Thread], housekeeping: str) -> list[str]:
    threads = {each["tid"]: each["actual"] for each in told["threads"]}
    actual = {thread.tid: cpus.show(thread.cpus) for thread in mine}
    astray = {tid: here for tid, here in actual.items() if threads.get(tid, "") not in (here, _now(tid))}
    found = [f"{pod.name}: the product has thread {tid} on {threads.get(tid)}, it is on {here}" for tid, here in astray.items()]
    dedicated = {int(each["cpus"]) for each in told["vcpus"] if each["role"] == "dedicated"}
    if dedicated != (own := witness.own_cpus(pod, said, mine, housekeeping)):
        found.append(f"{pod.name}: the product says that vCPUs are dedicated to {sorted(dedicated)}, there are some on {sorted(own)}")
    return found


def _now(tid: int) -> str:
    """Where the kernel has a thread after the product was asked: it may have moved, or ended, meanwhile."""
    try:
        return cpus.show(frozenset(os.sched_getaffinity(tid)))
    except ProcessLookupError:
        return ""
