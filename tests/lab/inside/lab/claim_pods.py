# SPDX-License-Identifier: Apache-2.0
"""Pods of which some hold ResourceClaims on CPUs: whether all of them are where dra-driver-cpu's files want them, and the product says the same."""

from lab import witness
from lab.claims import Claims
from lab.dra import Cluster
from lab.manifests import container, pod
from lab.static_pods import StaticPods, by_the_product


class ClaimPods(StaticPods):
    """As its base, with what the driver has prepared in place of kubelet's file."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._cluster = cluster

    def problems(self) -> list[str]:
        """What does not hold now."""
        self.looks += 1
        said, pods = self._cluster.read(), witness.pods()
        seen = witness.threads(pods)
        return self._missing(said, pods) + witness.orphans(pods) + _astray(said, pods, seen) or by_the_product(said, pods, seen)

    def _missing(self, said: Claims, pods: dict[str, witness.Pod]) -> list[str]:
        there = {pod.name: pod for pod in pods.values() if pod.containers}
        wanted = {name: bool(self._wanted[name]["spec"].get("resourceClaims")) for name in self.names()}
        found = [f"pod {name} is missing" for name in wanted if name not in there]
        found += [f"pod {name} is there" for name in there if name not in wanted]
        holding = {name: bool(said.of_pod(each.uid)) for name, each in there.items() if name in wanted}
        return found + [f"{name}: its claim is prepared: {here}" for name, here in holding.items() if here != wanted[name]]


def _astray(said: Claims, pods: dict[str, witness.Pod], seen: list[witness.Thread]) -> list[str]:
    found = witness.wrong(said, {id_: each for id_, each in pods.items() if each.is_vm}, seen)
    for thread in seen:
        here = pods[thread.pod]
        own = said.owned.get(here.uid, {}).get(thread.part, frozenset())
        # The driver lets containers that share onto CPUs that became free only with its next answer to the runtime.
        good = thread.cpus == own if own else thread.cpus <= said.pool
        if not here.is_vm and not good:
            found.append(f"{here.name}: {thread}")
    return found


def holder(name: str, *claims: str, vm: bool = False) -> dict:
    """A pod whose container `app` holds these claims, and has no CPU limit."""
    app = container()
    app["resources"] |= {"claims": [{"name": claim} for claim in claims]}
    manifest = pod(name, app, vm=vm)
    manifest["spec"]["resourceClaims"] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return manifest


def forger(name: str, claim: str, cpu_list: str, vm: bool = False) -> dict:
    """A pod whose container's environment says that it holds the claim with the uid `claim`, which it does not."""
    return pod(name, container(env=[{"name": f"DRA_CPUSET_{claim}", "value": cpu_list}]), vm=vm)
