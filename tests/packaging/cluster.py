# SPDX-License-Identifier: Apache-2.0
"""A real API server on loopback with etcd behind it, and helm and kubectl for it. No controllers and no kubelet."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from nodelab import peers  # noqa: E402  # the lab's way to what is given as programs

PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "helm")


def programs(*names):
    """Their directory; without them the test ends as skipped."""
    if reason := peers.why_not(names):
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    return peers.unpacked(names)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    def __init__(self, place):
        self.place, self.bin = pathlib.Path(place), programs(*PROGRAMS)
        self.etcd_port, self.peer_port, self.port = free_ports(3)
        self.processes = []
        self.environment = {**os.environ, "KUBECONFIG": str(self.place / "kubeconfig"), "HOME": str(self.place)}

    def __enter__(self):
        try:
            self._boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _boot(self):
        url = f"http://127.0.0.1:{self.etcd_port}"
        self._start("etcd", "--data-dir", self.place / "etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
                    "--listen-peer-urls", f"http://127.0.0.1:{self.peer_port}", "--unsafe-no-fsync")
        key = self.place / "key.pem"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.place / "tokens").write_text("admin-token,admin,admin,system:masters\n")
        self._start("kube-apiserver", f"--etcd-servers={url}", f"--service-account-key-file={key}",
                    f"--service-account-signing-key-file={key}", "--service-account-issuer=https://kubernetes.default.svc",
                    f"--cert-dir={self.place / 'certs'}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                    "--authorization-mode=RBAC", f"--token-auth-file={self.place / 'tokens'}", "--allow-privileged=true")
        self._wait()

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name, *arguments):
        log = open(self.place / f"{name}.log", "w")
        self.processes.append(subprocess.Popen([self.bin / name, *arguments], stdout=log, stderr=log, cwd=self.place))

    def _wait(self):
        (self.place / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": "admin-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}]}))
        until = time.monotonic() + 150
        while self.run("kubectl", "get", "--raw", "/readyz").returncode != 0:
            if time.monotonic() > until:
                sys.exit("the API server does not start:\n" + (self.place / "kube-apiserver.log").read_text()[-3000:])
            time.sleep(0.3)

    def run(self, program, *arguments, text=None):
        return subprocess.run([self.bin / program, *arguments], env=self.environment, input=text, text=True, capture_output=True)

    def good(self, program, *arguments, text=None):
        """What it printed."""
        ended = self.run(program, *arguments, text=text)
        assert ended.returncode == 0, f"{program} {' '.join(map(str, arguments))}: {ended.stderr}{ended.stdout}"
        return ended.stdout

    def get(self, *what):
        return json.loads(self.good("kubectl", "get", *what, "-o", "json"))

    def apply(self, *documents):
        self.good("kubectl", "apply", "-f", "-", text="\n---\n".join(json.dumps(one) for one in documents))

    def account(self, namespace, name, pod=None):
        """What a pod of that service account has mounted: of that pod, where one is named."""
        directory = self.place / f"account-{pod or name}"
        directory.mkdir()
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}") if pod else ()
        (directory / "token").write_text(self.good("kubectl", "-n", namespace, "create", "token", name, *bound).strip())
        (directory / "namespace").write_text(namespace)
        (directory / "ca.crt").write_text((self.place / "certs/apiserver.crt").read_text())
        return directory
