# SPDX-License-Identifier: Apache-2.0
"""The chart on real kubelets and a real API server, as an SRE rolls it out: watch, canary, everywhere, upgrade, rollback, uninstall; exec through kubelet.

No controller is among the peers: what those of DaemonSets and of Jobs would do, lab.controllers does. There are two nodes, each with a kubelet of its own;
the first has the API server, too. On a shape without a wire there is one, which plays both parts in turn: first a node that is not in the canary group,
then one that is, then again one that is not.
"""
# lab shapes: pair8
# lab timeout: 3000
# lab apart: yes
# lab chart: yes
# lab peers: kubelet kube-apiserver etcd kubectl helm cni-bridge cni-host-local cni-loopback

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab import check, cpus, far, rollout_node
from lab.api_server import KUBECONFIG, ApiServer
from lab.controllers import Controllers
from lab.manifests import burstable, container, pod
from lab.rollout_node import KIT

CHART, SPACE, REPOSITORY = KIT / "chart", "kata-affinity", "registry.example/kata-affinity"
NEXT = (KIT / "next").read_text()
VIEWER = Path("/run/viewer")
RUNTIME = {"metadata": {"name": "kata"}, "handler": "kata-go"}
TRIAL, GROUP = "example.org/trial", "kata-affinity.io/group"
ENVIRONMENT = os.environ | {
    "PATH": f"{KIT / 'plugin'}:/lab/peers:/usr/sbin:/usr/bin:/sbin:/bin",
    "KUBECONFIG": str(KUBECONFIG),
    "HOME": "/root",
    "GOMAXPROCS": "2",
}


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """One step of the rollout, with the seconds that it took here."""
    check.step(text)
    began = time.monotonic()
    yield
    print(f"          {time.monotonic() - began:.0f} s: {text}", flush=True)


def try_run(*command: str, config: Path = KUBECONFIG) -> subprocess.CompletedProcess:
    """Runs a command and shows what it says."""
    began = time.monotonic()
    environment = ENVIRONMENT | {"KUBECONFIG": str(config)}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=900)
    lines = "".join(f"          | {line}\n" for line in (ended.stdout + ended.stderr).splitlines())
    print(f"        $ {' '.join(command)}\n{lines}          exit status {ended.returncode} after {time.monotonic() - began:.1f} s", flush=True)
    return ended


def run(*command: str, config: Path = KUBECONFIG) -> str:
    """Runs a command that must succeed; what it printed."""
    ended = try_run(*command, config=config)
    check.equal("exit status", ended.returncode, 0)
    return ended.stdout


def affinity(*arguments: str, status: int = 0) -> str:
    """`kubectl affinity`, as one who may use the readers and nothing else."""
    ended = try_run("kubectl", "affinity", *arguments, config=VIEWER)
    check.equal(f"exit status of kubectl affinity {' '.join(arguments)}", ended.returncode, status)
    return ended.stdout


class Node:
    """A node by its name; `ask` calls a function of lab.rollout_node there."""

    def __init__(self, number: int, ask: Callable[..., object]) -> None:
        self.name = far.name(number)
        self.ask = ask
        suffix = "" if number == 1 else f"-{number}"
        self.vm, self.shared = f"db{suffix}", f"web{suffix}"

    def start_pods(self, api: ApiServer) -> None:
        """A Guaranteed pod in a VM, and one that shares the node's CPUs."""
        for name, made, vm in ((self.vm, container(cpu="2"), True), (self.shared, burstable(), False)):
            manifest = pod(name, made, vm=vm)
            manifest["metadata"]["annotations"] = {}
            manifest["spec"] |= {"runtimeClassName": RUNTIME["metadata"]["name"]} if vm else {}
            api.put(manifest, self.name)

    def expect_pods(self) -> None:
        """They run, and Kata has given the VM's vCPUs all of its CPUs: the state before kata-affinity."""
        check.eventually(f"pods of {self.name}", lambda: self.ask("pods"), [self.vm, self.shared], seconds=300)
        all_cpus = f"{self.name}: kubelet has given CPUs, and Kata its vCPUs all of them"
        check.eventually(all_cpus, lambda: self.ask("vcpu_masks") == {cpus.show(frozenset(self.ask("owned")))}, True, seconds=120)

    def expect_isolated(self) -> None:
        """By the reader that knows nothing of the product: every thread is where kubelet's file wants it."""
        check.eventually(f"{self.name}: threads that are elsewhere than kubelet wants them", lambda: self.ask("wrong"), [], seconds=120)
        check.equal(f"{self.name}: CPUs with a vCPU of their own", self.ask("own_cpus"), self.ask("owned"))

    def expect_unpinned(self) -> None:
        """By the same reader: no thread has less than its cgroup."""
        check.eventually(f"{self.name}: threads with less than their cgroup has", lambda: self.ask("narrow"), {}, seconds=60)
        check.equal(f"{self.name}: CPUs with a vCPU of their own", self.ask("own_cpus"), [])

    def expect_daemon(self, mode: str) -> str:
        """Its version."""
        found, version = self.ask("daemon")
        check.equal(f"{self.name}: mode of the daemon {version}", found, mode)
        return version


class Rollout:
    """The cluster, and what an SRE does to it."""

    def __init__(self, api: ApiServer, nodes: list[Node]) -> None:
        self.api, self.nodes = api, nodes
        self.controllers = Controllers(api, SPACE, [node.name for node in nodes])
        # The canary is a node like the others where there is no other.
        self.canary, self.others = nodes[0], nodes[1:]
        self.values: dict[str, object] = {"image": {"repository": REPOSITORY}, "settings": {"guest": "none"}}

    def install(self, verb: str = "upgrade", **changed: object) -> None:
        """`helm install` or `helm upgrade` with all values, some of them changed, and what the controllers make of it."""
        self.values |= changed
        file = Path("/run/values.yaml")
        file.write_text(json.dumps(self.values))
        run("helm", verb, "kata-affinity", str(CHART), "-n", SPACE, "-f", str(file))
        self.controllers.settle(verb)

    def label(self, node: Node, label: str) -> None:
        """Gives a node a label, or takes it away, and what the controllers make of it."""
        run("kubectl", "label", "node", node.name, label)
        self.controllers.settle(label)

    def wait_with_helm(self, *arguments: str) -> None:
        """A command of helm that waits for a pod."""
        print(self.controllers.during("helm", *arguments, "kata-affinity", "-n", SPACE, env=ENVIRONMENT), flush=True)

    def roll_back(self) -> None:
        """To the revision before."""
        run("helm", "rollback", "kata-affinity", "-n", SPACE)
        self.controllers.settle("rollback")

    def pod_on(self, node: Node, component: str) -> str:
        """The pod of the chart on a node: of component `node`, or `reader`."""
        label = f"app.kubernetes.io/component={component}"
        names = run("kubectl", "-n", SPACE, "get", "pods", "-l", label, "--field-selector", f"spec.nodeName={node.name}", "-o", "name").split()
        check.equal(f"pods of component {component} on {node.name}", len(names), 1)
        return names[0]

    def on_nodes(self, command: str) -> None:
        """A command of kata-affinityctl on each node, as one who may change the DaemonSet."""
        for node in self.nodes:
            run("kubectl", "-n", SPACE, "exec", self.pod_on(node, "node"), "-c", "node", "--", "kata-affinityctl", command)

    def prepare(self) -> None:
        """What a cluster with Kata has before: accounts, its certificate in each namespace, Kata's RuntimeClass and label."""
        run("kubectl", "create", "namespace", SPACE)
        run("kubectl", "label", "namespace", SPACE, "pod-security.kubernetes.io/enforce=privileged")
        for space in (SPACE, "lab"):
            self.api.call("POST", f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}})
            made = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": self.api.authority()}}
            self.api.call("POST", f"/api/v1/namespaces/{space}/configmaps", made)
        self.api.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", RUNTIME)
        run("kubectl", "label", "node", "--all", "katacontainers.io/kata-runtime=true")

    def allow_viewer(self) -> None:
        """Someone of a group that got the chart's Role, as the page says, and may read the pods of `lab`."""
        run("kubectl", "-n", SPACE, "create", "rolebinding", "viewers", "--role", "kata-affinity-reader", "--group", "viewers")
        run("kubectl", "-n", "lab", "create", "role", "pods", "--verb=get,list", "--resource=pods")
        run("kubectl", "-n", "lab", "create", "rolebinding", "pods", "--role", "pods", "--group", "viewers")
        config = json.loads(KUBECONFIG.read_text())
        config["users"][0]["user"] |= {"as": "viewer", "as-groups": ["viewers", "system:authenticated"]}
        VIEWER.write_text(json.dumps(config))

    def expect_unmoved(self, what: str, act: Callable[[], None], nodes: list[Node] | None = None) -> None:
        """While `act()` goes on no thread of the pods is ever seen with another mask; on all nodes, or on some."""
        watched = self.nodes if nodes is None else nodes
        for node in watched:
            node.ask("watch")
        act()
        for node in watched:
            threads, rounds, moved = node.ask("moved")
            check.true(f"{what}: {threads} threads of {node.name} were looked at, {rounds} times", threads > 0 and rounds > 50)
            check.equal(f"{what}: threads of {node.name} that had another mask for a moment", moved, {})
            check.equal(f"{what}: pods of {node.name}", node.ask("pods"), [node.vm, node.shared])

    def expect_rows(self, **wanted: object) -> None:
        """Each node's line of `kubectl affinity status --all` has these values."""
        rows = json.loads(affinity("status", "--all", "--json"))["nodes"]
        found = [{"node": row["node"], **{key: row[key] for key in wanted}} for row in rows]
        check.equal("the nodes' lines", found, [{"node": node.name, **wanted} for node in self.nodes])


def refused_exec(*words: str) -> None:
    """exec into a container that is not the reader."""
    ended = try_run("kubectl", "-n", SPACE, "exec", *words, "--", "true", config=VIEWER)
    check.true("exec is refused, and the policy says why", ended.returncode != 0 and "exec is for the container reader" in ended.stderr)


def watch(site: Rollout) -> None:
    with step("0 a cluster with pods, and without kata-affinity"):
        for node in site.nodes:
            node.start_pods(site.api)
        for node in site.nodes:
            node.expect_pods()
    with step("1 watch: no node has the label of the trial, and none gets anything"):
        site.expect_unmoved("installation", lambda: site.install("install", nodeSelector={TRIAL: "true"}))
        check.equal("what is on the nodes", [node.ask("left") for node in site.nodes], [[] for _ in site.nodes])
    with step("1 watch: one node; nothing is written, and status says what would be"):
        site.expect_unmoved("installation", lambda: site.label(site.canary, f"{TRIAL}=true"))
        check.equal("CPUs with a vCPU of their own", site.canary.ask("own_cpus"), [])
        site.canary.expect_daemon("observe")
        check.equal("what is on the other nodes", [node.ask("left") for node in site.others], [[] for _ in site.others])
        site.allow_viewer()
        affinity("status", site.canary.name)
        expect_plan(site.canary)
        affinity("status", "--all")
    with step("1 watch: all nodes"):
        site.expect_unmoved("installation", lambda: site.install(nodeSelector={}))
        for node in site.nodes:
            node.expect_daemon("observe")
        site.expect_rows(pods=1, isolated=0)


def expect_plan(node: Node) -> None:
    """`status` says that it only watches, and that each CPU which kubelet assigned would get a vCPU of its own."""
    check.true("status names the mode", "(observe: nothing is written)" in affinity("status", f"lab/{node.vm}"))
    planned = json.loads(affinity("status", f"lab/{node.vm}", "--json"))["threads"]
    alone = sorted(int(each["wanted"]) for each in planned if each["role"] == "vcpu" and each["wanted"].isdigit())
    check.equal("CPUs that would have a vCPU of their own, by status", alone, node.ask("owned"))


def canary(site: Rollout) -> None:
    group = {"profile": "isolated", "settings": {"guest": "none"}}
    with step("2 canary: a node without the label is left alone"):
        site.expect_unmoved("upgrade of another group", lambda: site.install(groups={"canary": group}))
        for node in site.nodes:
            node.expect_daemon("observe")
    with step("2 canary: the node with the label isolates, and no other one"):
        site.expect_unmoved("the canary's label", lambda: site.label(site.canary, f"{GROUP}=canary"), nodes=site.others)
        site.canary.expect_isolated()
        site.canary.expect_daemon("follow")
        for node in site.others:
            node.expect_daemon("observe")
        affinity("verify", "--all", status=1 if site.others else 0)  # those that only watch are not as planned


def look(site: Rollout) -> None:
    node, name = site.canary, f"lab/{site.canary.vm}"
    with step("3 look: kubectl affinity, by exec through kubelet into the reader, and no other exec"):
        for verb in ("status", "verify", "map", "noise"):
            affinity(verb, node.name)
        affinity("explain", node.name, "--cpu", str(node.ask("owned")[0]))
        check.true("status of a pod", ", isolated" in affinity("status", name))
        for verb in ("verify", "map", "noise", "explain"):
            affinity(verb, name)
        installer, reader = site.pod_on(node, "node"), site.pod_on(node, "reader")
        refused_exec(installer)
        refused_exec(installer, "-c", "node")
        ended = try_run("kubectl", "-n", SPACE, "exec", reader, "--", "id", config=VIEWER)
        check.true("the reader is no root", "uid=65532" in ended.stdout)
        ended = try_run("kubectl", "-n", SPACE, "exec", reader, "--", "kata-affinityctl", "release", config=VIEWER)
        check.true("what changes something is refused there", ended.returncode == 2 and "refused on this socket" in ended.stderr)


def everywhere(site: Rollout) -> None:
    with step("4 everywhere: the profile of all nodes"):
        site.expect_unmoved("isolation of all", lambda: site.install(profile="isolated"), nodes=[site.canary])
        for node in site.nodes:
            node.expect_isolated()
    with step("4 everywhere: the canary becomes a node like the others"):
        site.expect_unmoved("the node changes its group", lambda: site.label(site.canary, f"{GROUP}-"))
        site.expect_rows(pods=1, isolated=1, violated=0)
        affinity("verify", "--all")
        site.wait_with_helm("test", "--timeout", "10m")


def upgrade(site: Rollout) -> list[str]:
    first = [node.expect_daemon("follow") for node in site.nodes]
    with step("5 upgrade: another version, and no thread moves"):
        site.expect_unmoved("upgrade", lambda: site.install(image={"repository": REPOSITORY, "tag": NEXT}))
        second = [node.expect_daemon("follow") for node in site.nodes]
        check.true(f"the daemons are another version: {first}, then {second}", all(each.startswith(f"{NEXT}-") for each in second))
        site.expect_rows(version=NEXT, isolated=1, violated=0)
        for node in site.nodes:
            node.expect_isolated()
    return first


def roll_back(site: Rollout, first: list[str]) -> None:
    with step("6 rollback: the version before, and no thread moves"):
        site.expect_unmoved("rollback", site.roll_back)
        check.equal("the daemons' versions", [node.expect_daemon("follow") for node in site.nodes], first)
        for node in site.nodes:
            node.expect_isolated()
    with step("6 watch again: threads stay until they are released"):
        site.expect_unmoved("profile", lambda: site.install(profile="watch", image={"repository": REPOSITORY}))
        for node in site.nodes:
            node.expect_daemon("observe")
        site.on_nodes("release")
        for node in site.nodes:
            node.expect_unpinned()
            check.true("status lists the sandbox as released", "released" in affinity("status", node.name))
    with step("6 isolated again"):
        site.install(profile="isolated")
        site.on_nodes("reconcile")
        for node in site.nodes:
            node.expect_isolated()


def uninstall(site: Rollout) -> None:
    with step("7 uninstall: takes everything back"):
        site.wait_with_helm("uninstall", "--timeout", "10m")
        site.controllers.clean_up()
        for node in site.nodes:
            node.expect_unpinned()
            check.equal(f"pods of {node.name}", node.ask("pods"), [node.vm, node.shared])
            check.equal(f"what is left on {node.name}", node.ask("left"), [])
        left = run("kubectl", "-n", SPACE, "get", "-o", "name", "all,configmaps,roles,networkpolicies,validatingadmissionpolicies").split()
        check.equal("objects of the chart", [name for name in left if "kata-affinity" in name], [])


def roll_out(api: ApiServer) -> None:
    nodes = [Node(1, lambda name, *arguments: getattr(rollout_node, name)(*arguments))]
    if far.is_paired():
        nodes.append(Node(2, far.SecondNode()))
        nodes[1].ask("start_kubelet", KUBECONFIG.read_text().replace("127.0.0.1", far.ADDRESS))
    site = Rollout(api, nodes)
    names = [node.name for node in nodes]
    there = lambda: sorted(node["metadata"]["name"] for node in api.call("GET", "/api/v1/nodes")["items"])  # noqa: E731
    check.eventually("the nodes of the cluster", there, names, seconds=300)
    site.prepare()
    watch(site)
    canary(site)
    look(site)
    everywhere(site)
    first = upgrade(site)
    roll_back(site, first)
    uninstall(site)


def main() -> None:
    rollout_node.prepare()
    if far.NUMBER == 2:
        far.serve(rollout_node)
        return
    api = ApiServer("--authorization-mode=RBAC", "--kubelet-preferred-address-types=InternalIP", for_pods=True)
    with api, rollout_node.kubelet():
        roll_out(api)


main()
