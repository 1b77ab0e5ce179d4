# SPDX-License-Identifier: Apache-2.0
"""What the controllers and the scheduler of a cluster would do for a chart on the nodes of the lab: there is none of them among the peers.

A DaemonSet gets a pod of its template on each node that it wants, another one where the template has changed, on no more nodes at once than
it allows, and none where it does not want the node any more; its status says how far that is. A Job gets its pod. What has lost its owner
goes.
"""

import hashlib
import json
import math
import subprocess
import time

from lab import check
from lab.api_server import ApiServer, Refused

_MERGE = "application/merge-patch+json"
_HASH = "controller-revision-hash"
_PATIENCE = 900.0  # seconds
_AGAIN = (404, 409, 429)


class Controllers:
    """Those of `namespace`. They act while settle() or during() goes on, and at no other time."""

    def __init__(self, api: ApiServer, namespace: str, nodes: list[str]) -> None:
        """`nodes`: by their names. What may run anywhere gets the first one."""
        self._api, self._space, self._nodes = api, namespace, nodes
        self._made = 0

    def settle(self, what: str) -> None:
        """Acts until each DaemonSet has what it wants, ready."""
        until = time.monotonic() + _PATIENCE
        while waits := self._round():
            if time.monotonic() > until:
                raise check.Failed(f"{what}: after {_PATIENCE:.0f} s: {waits}: {self._words()}")
            time.sleep(1)

    def during(self, *command: str, env: dict[str, str]) -> str:
        """Acts while a command runs that waits for it; what that printed. It must succeed."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
            until = time.monotonic() + _PATIENCE
            while process.poll() is None and time.monotonic() < until:
                self._round()
                time.sleep(1)
            if process.poll() is None:
                process.kill()
            said = process.stdout.read()
        if process.returncode != 0:
            raise check.Failed(f"{' '.join(command)}: {said}: {self._words()}")
        return said

    def clean_up(self) -> None:
        """Acts until no pod is left."""
        until = time.monotonic() + _PATIENCE
        while self._pods():
            self._round()
            if time.monotonic() > until:
                raise check.Failed(f"pods are left: {self._words()}")
            time.sleep(1)

    def _round(self) -> list[str]:
        """What is to be waited for. An API server that is too busy to respond is asked again, as by every controller, and so is one
        that has another state by now."""
        try:
            return self._act()
        except OSError as error:
            return [f"the API server: {error}"]
        except Refused as refused:
            if refused.status not in _AGAIN and refused.status < 500:
                raise
            return [str(refused)]

    def _act(self) -> list[str]:
        daemon_sets, jobs, pods = self._list("apps/v1", "daemonsets"), self._list("batch/v1", "jobs"), self._pods()
        waits = []
        for one in daemon_sets:
            waits += self._sync_daemon_set(one, _of(pods, one))
        for one in jobs:
            self._sync_job(one, _of(pods, one))
        owners = {one["metadata"]["uid"] for one in daemon_sets + jobs}
        for pod in pods:
            if _owner(pod) and _owner(pod) not in owners:
                self._delete(pod)
            elif "nodeName" not in pod["spec"]:
                self._bind(pod)
        return waits

    def _sync_daemon_set(self, one: dict, pods: list[dict]) -> list[str]:
        name, version = one["metadata"]["name"], hashlib.sha256(json.dumps(one["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]
        wanted = [node for node in self._nodes if self._wants(one, node)]
        current = [pod for pod in pods if pod["metadata"]["labels"][_HASH] == version and not _goes(pod) and _node(pod) in wanted]
        for pod in pods:
            if _node(pod) not in wanted:
                self._delete(pod)
        self._replace(one, [pod for pod in pods if _node(pod) in wanted and pod not in current], wanted, pods)
        for node in set(wanted) - {_node(pod) for pod in pods}:
            self._create(one, version, node)
        ready = sum(_is_ready(pod) for pod in current)
        self._tell(one, len(wanted), len(current), ready)
        is_done = ready == len(wanted) == len(pods)
        return [] if is_done else [f"{name}: {len(pods)} pods, {ready} of {len(wanted)} ready"]

    def _replace(self, one: dict, old: list[dict], wanted: list[str], pods: list[dict]) -> None:
        """Deletes pods of an old template, as long as no more nodes are without one than the DaemonSet allows."""
        allowed = str(one["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"])
        most = math.ceil(len(wanted) * int(allowed[:-1]) / 100) if allowed.endswith("%") else int(allowed)
        available = {_node(pod) for pod in pods if _is_ready(pod) and not _goes(pod)}
        for pod in sorted(old, key=_is_ready):
            if _node(pod) in available and len(set(wanted) - available) >= most:
                break
            self._delete(pod)
            available.discard(_node(pod))

    def _wants(self, one: dict, node: str) -> bool:
        """Whether a node has the labels that the template's selector and its affinity require."""
        spec, labels = one["spec"]["template"]["spec"], self._api.call("GET", f"/api/v1/nodes/{node}")["metadata"]["labels"]
        if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
            return False
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        return any(all(_matches(rule, labels) for rule in term["matchExpressions"]) for term in terms)

    def _sync_job(self, job: dict, pods: list[dict]) -> None:
        if any(each["type"] == "Complete" for each in job.get("status", {}).get("conditions", [])):
            return
        if not pods:
            self._create(job, "1", self._nodes[0])
        elif pods[0]["status"].get("phase") == "Succeeded":
            self._complete(job)
        elif pods[0]["status"].get("phase") == "Failed":
            raise check.Failed(f"the job {job['metadata']['name']} fails: {self._words()}")

    def _create(self, owner: dict, version: str, node: str) -> None:
        """A pod of the owner's template, on a node."""
        self._made += 1
        template, name = owner["spec"]["template"], owner["metadata"]["name"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": owner["metadata"]["uid"], "controller": True}
        meta = template["metadata"] | {"name": f"{name}-{self._made}", "ownerReferences": [reference]}
        meta["labels"] = meta["labels"] | {_HASH: version}
        meta.pop("creationTimestamp", None)
        spec = template["spec"] | {"nodeName": node}
        self._api.call("POST", self._path("v1", "pods"), {"metadata": meta, "spec": spec})

    def _bind(self, pod: dict) -> None:
        """As the scheduler does with a pod that nobody gave a node."""
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": self._nodes[0]}}
        self._api.call("POST", f"{self._path('v1', 'pods')}/{name}/binding", target)

    def _delete(self, pod: dict) -> None:
        if not _goes(pod):
            self._api.call("DELETE", f"{self._path('v1', 'pods')}/{pod['metadata']['name']}")

    def _tell(self, one: dict, wanted: int, updated: int, ready: int) -> None:
        status = {"observedGeneration": one["metadata"]["generation"], "desiredNumberScheduled": wanted, "currentNumberScheduled": wanted}
        status |= {"updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0}
        if {key: one["status"].get(key, 0) for key in status} != status:
            self._api.call("PATCH", f"{self._path('apps/v1', 'daemonsets')}/{one['metadata']['name']}/status", {"status": status}, _MERGE)

    def _complete(self, job: dict) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        kinds = ("SuccessCriteriaMet", "Complete")
        conditions = [{"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now} for kind in kinds]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "uncountedTerminatedPods": {}, "conditions": conditions}
        self._api.call("PATCH", f"{self._path('batch/v1', 'jobs')}/{job['metadata']['name']}/status", {"status": status}, _MERGE)

    def _pods(self) -> list[dict]:
        return self._list("v1", "pods")

    def _list(self, version: str, kind: str) -> list[dict]:
        found = self._api.call("GET", self._path(version, kind))
        singular = found["kind"].removesuffix("List")
        return [{"apiVersion": version, "kind": singular, **one} for one in found["items"]]

    def _path(self, version: str, kind: str) -> str:
        return f"/{'api' if version == 'v1' else 'apis'}/{version}/namespaces/{self._space}/{kind}"

    def _words(self) -> list[dict]:
        """What the cluster says of each pod, for a failure."""
        return [{"name": pod["metadata"]["name"], **{key: pod["status"].get(key) for key in ("phase", "reason", "message", "containerStatuses")}}
                for pod in self._pods()]  # fmt: skip


def _of(pods: list[dict], owner: dict) -> list[dict]:
    return [pod for pod in pods if _owner(pod) == owner["metadata"]["uid"]]


def _owner(pod: dict) -> str:
    return next((each["uid"] for each in pod["metadata"].get("ownerReferences", [])), "")


def _node(pod: dict) -> str:
    return pod["spec"].get("nodeName", "")


def _goes(pod: dict) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: dict) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in pod["status"].get("conditions", []))


def _matches(rule: dict, labels: dict[str, str]) -> bool:
    """NotIn also holds where there is no such label."""
    return (labels.get(rule["key"]) in rule["values"]) == (rule["operator"] == "In")
