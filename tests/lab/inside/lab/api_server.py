# SPDX-License-Identifier: Apache-2.0
"""An API server for kubelet, with etcd, on loopback. Both are peers (see the lab's README). There is no scheduler: pods name their node."""

import base64
import json
import os
import secrets
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

_DIRECTORY = Path("/var/lib/lab-api")
_PROGRAMS = Path("/lab/peers")
_ETCD, _PORT = "http://127.0.0.1:2379", 6443
# Where pods find it: an address on their own network, so that no kube-proxy is needed. CNI's first ones are low.
_SERVICE, _SERVICES, _SERVICE_PORT = "10.88.0.241", "10.88.0.240/28", 443
_PODS = "/api/v1/namespaces/lab/pods"
_PATIENCE = 600.0  # seconds
# SEC1's form of a private key of P-256, around its 32 bytes: signs accounts' tokens, which no client requests.
_KEY_BEGIN, _KEY_END = bytes.fromhex("30310201010420"), bytes.fromhex("a00a06082a8648ce3d030107")
_MERGE = "application/strategic-merge-patch+json"
_ENVIRONMENT = os.environ | {"GOMAXPROCS": "2"}  # as kubelet's (kubelet_service.py)
KUBECONFIG = _DIRECTORY / "kubeconfig"


def make_a_node() -> None:
    """kubelet takes no address of loopback. What ends with the node's name is taken for a static pod."""
    subprocess.run(["hostname", "lab"], check=True)
    for command in ("link add node0 type bridge", "addr add 10.99.0.1/24 dev node0", "link set node0 up", "route add default dev node0"):
        subprocess.run(["ip", *command.split()], check=True)


def _serve_pods() -> None:
    """The bridge that CNI's plugin would make, with the Service's address."""
    for command in ("link add lab0 type bridge", f"addr add {_SERVICE}/24 dev lab0", "link set lab0 up"):
        subprocess.run(["ip", *command.split()], check=True)


class Refused(RuntimeError):
    """The API server's word against a call, with its HTTP status."""

    def __init__(self, call: str, status: int, text: str) -> None:
        super().__init__(f"{call}: {status}: {text}")
        self.status = status


class ApiServer:
    """Both run within a `with` block. Gives kubelet pods, as lab.kubelet_service does by files."""

    def __init__(self, *arguments: str, for_pods: bool = False) -> None:
        """`arguments`: more of the API server's. `for_pods`: pods reach it as the Service `kubernetes`, with tokens of their accounts."""
        _DIRECTORY.mkdir(parents=True)
        self._more, self._for_pods = arguments, for_pods
        self._port = _SERVICE_PORT if for_pods else _PORT
        self._token = secrets.token_hex(16)
        self._running: list[subprocess.Popen] = []

    def __enter__(self) -> "ApiServer":
        if self._for_pods:
            _serve_pods()
        self._start("etcd", f"--data-dir={_DIRECTORY}/etcd", f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}", "--unsafe-no-fsync")
        self._start("kube-apiserver", *self._arguments())
        self._wait_until_up()
        self._write_kubeconfig()
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": "lab"}})
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            process.kill()
            process.wait()

    def put(self, manifest: dict, node: str = "") -> None:
        """Gives a node a pod, this one if none is named."""
        anywhere = {"nodeName": node or os.uname().nodename, "tolerations": [{"operator": "Exists"}]}
        self.call("POST", _PODS, manifest | {"spec": manifest["spec"] | anywhere})

    def remove(self, name: str) -> None:
        """Takes a pod away."""
        self.call("DELETE", f"{_PODS}/{name}")

    def resize(self, name: str, limit: str) -> None:
        """Gives the container `app` of a running pod another CPU limit."""
        container = {"name": "app", "resources": {"limits": {"cpu": limit}}}
        self.call("PATCH", f"{_PODS}/{name}/resize", {"spec": {"containers": [container]}}, _MERGE)

    def account(self, directory: Path) -> None:
        """Makes a directory as kubelet mounts a service account; the token is the administrator's."""
        directory.mkdir(mode=0o755)
        (directory / "token").write_text(self._token)
        (directory / "ca.crt").write_text(self.authority())

    def authority(self) -> str:
        """The certificate by which its clients know it."""
        return (_DIRECTORY / "apiserver.crt").read_text()

    def call(self, method: str, path: str, body: object = None, form: str = "application/json") -> dict:
        """One call; the answer's object."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": form}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self._port}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=ssl._create_unverified_context()) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(f"{method} {path}", error.code, error.read().decode()) from error
        return json.loads(text) if text.startswith(b"{") else {}

    def _arguments(self) -> list[str]:
        key = _DIRECTORY / "accounts.key"
        der = base64.b64encode(_KEY_BEGIN + b"\x01" + secrets.token_bytes(31) + _KEY_END).decode()
        key.write_text(f"-----BEGIN EC PRIVATE KEY-----\n{der}\n-----END EC PRIVATE KEY-----\n")
        tokens = _DIRECTORY / "tokens"
        tokens.write_text(f'{self._token},admin,1,"system:masters"\n')
        # No controller says that the node is ready, nor makes accounts; those of a chart are made by helm.
        disabled = "TaintNodesByCondition" if self._for_pods else "ServiceAccount,TaintNodesByCondition"
        address = ["--bind-address=0.0.0.0", f"--service-cluster-ip-range={_SERVICES}"] if self._for_pods else ["--bind-address=127.0.0.1"]
        return [
            *(f"--etcd-servers={_ETCD}", f"--cert-dir={_DIRECTORY}", *address, f"--secure-port={self._port}"),
            *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--token-auth-file={tokens}", "--allow-privileged=true"),
            f"--disable-admission-plugins={disabled}",
            *self._more,
        ]

    def _start(self, program: str, *arguments: str) -> None:
        with open(_DIRECTORY / f"{program}.log", "wb") as log:
            command = [_PROGRAMS / program, *arguments]
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_ENVIRONMENT)
        self._running.append(process)

    def _wait_until_up(self) -> None:
        until = time.monotonic() + _PATIENCE
        while not self._is_up():
            if time.monotonic() > until or any(process.poll() is not None for process in self._running):
                logs = "\n".join(log.read_text()[-2000:] for log in _DIRECTORY.glob("*.log"))
                raise RuntimeError(f"the API server does not come up:\n{logs}")
            time.sleep(0.5)

    def _is_up(self) -> bool:
        try:
            self.call("GET", "/readyz")
            return True
        except (OSError, RuntimeError):
            return False

    def _write_kubeconfig(self) -> None:
        cluster = {"server": f"https://127.0.0.1:{self._port}", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": {"token": self._token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        }
        KUBECONFIG.write_text(json.dumps(config))
