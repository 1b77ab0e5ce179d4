# SPDX-License-Identifier: Apache-2.0
"""Managed mode with kubelet and an API server: a pod whose annotation changes while it runs gets that class, told by the reporter."""
# lab shapes: smt8
# lab timeout: 1200
# lab alone: yes
# lab peers: kubelet kube-apiserver etcd cni-bridge cni-host-local cni-loopback

import os
import subprocess
from pathlib import Path

from lab import check, containerd, cpus, kernel, product
from lab.api_server import KUBECONFIG, ApiServer, make_a_node
from lab.kubelet_service import Kubelet
from lab.manifests import container, pod
from lab.product import NRI_SOCKET, Daemon

READ_SOCKET = "/run/kata-affinity/read/api.sock"
REPORTER = 65533
KEY = "qos.gocrane.io/cpu-manager"
MERGE = "application/merge-patch+json"


def start_reporter(api: ApiServer) -> subprocess.Popen:
    """As the chart's container runs it: without privileges, as a user of its own."""
    os.chmod("/run/kata-affinity", 0o711)
    account = Path("/run/account")
    api.account(account)
    command = ["setpriv", f"--reuid={REPORTER}", f"--regid={REPORTER}", "--clear-groups", "kata-affinity-reporter"]
    command += ["--node", os.uname().nodename, "--socket", READ_SOCKET, "--account", str(account), "--host", "127.0.0.1", "--port", "6443"]
    log = open(Path(os.environ["LAB_OUT"]) / "reporter.log", "wb")
    return subprocess.Popen([*command, "--classes", "--mark-node", "none"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def entry(name: str) -> dict:
    """The daemon's word on the only container of the pod `name`; empty: it has none."""
    containers = product.call("GET", "/v1/pools")["containers"]
    return next((one for one in containers if one["pod_name"] == f"lab/{name}"), {})


def allowed(name: str) -> str:
    """Where the kernel lets the container's first process run."""
    pids = (cgroup_of(name) / "cgroup.procs").read_text().split()
    if not pids:
        raise ProcessLookupError(name)
    return kernel.allowed(int(pids[0]))


def cgroup_of(name: str) -> Path:
    """The container's, once it has started."""
    wanted = f"cri-containerd-{entry(name)['id']}.scope"
    found = next(Path("/sys/fs/cgroup").rglob(wanted), None)
    if found is None:
        raise FileNotFoundError(wanted)
    return found


def annotate(api: ApiServer, name: str, value: str | None) -> None:
    api.call("PATCH", f"/api/v1/namespaces/lab/pods/{name}", {"metadata": {"annotations": {KEY: value}}}, MERGE)


def expect(name: str, use: str, count: int) -> None:
    check.eventually(f"{name}: class", lambda: entry(name).get("class"), use, seconds=60)
    check.eventually(f"{name}: CPUs of its process", lambda: len(cpus.parse(allowed(name))), count, seconds=60)


def change_classes(api: ApiServer) -> None:
    check.step("a pod of 2 CPUs owns them")
    api.put(pod("cart", container(cpu="2")))
    check.eventually("it runs", lambda: entry("cart").get("class"), "exclusive", seconds=180)
    expect("cart", "exclusive", 2)
    check.step("its annotation says share: it is bound to 2 CPUs that others may use")
    annotate(api, "cart", "share")
    expect("cart", "share", 2)
    check.equal("CPUs that one container owns", product.call("GET", "/v1/pools")["exclusive"], "")
    check.step("its annotation says what pods may not choose: it keeps what it has, and says why")
    annotate(api, "cart", "none")
    check.eventually("the problem", lambda: entry("cart").get("problem"), "not-allowed", seconds=60)
    expect("cart", "share", 2)
    check.step("an operator's class stays until the annotation changes again; without one it owns its CPUs again")
    product.ctl("class", "lab/cart", "none")
    expect("cart", "none", len(kernel.online()))
    annotate(api, "cart", None)
    expect("cart", "exclusive", 2)


def main() -> None:
    make_a_node()
    containerd.start("go", "systemd")
    kubelet = Kubelet(f"--kubeconfig={KUBECONFIG}", cgroupDriver="systemd", registerNode=True, cpuManagerPolicy="none", reservedSystemCPUs="")
    settings = {"managed.allow_classes": ["share"], "managed.annotations_uid": REPORTER, "read_socket": READ_SOCKET, "read_socket_mode": "0666"}
    with ApiServer() as api, Daemon(mode="managed", nri_socket=NRI_SOCKET, log_level="debug", **settings), kubelet:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        reporter = start_reporter(api)
        change_classes(api)
        reporter.kill()
        check.equal("violations that verify finds", product.violations(), [])


main()
