#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""guest = "kata-agent" with the real daemon and a real VMM: kata-agent is played here, behind a unix socket, by the field
numbers of its messages (kata-containers 4.1.0: agent.proto, oci.proto). The VM never runs a guest."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scene import Daemon, broken, equal, eventually

APP, WEB = "a" * 64, "b" * 64
GUEST_DETAILS_VERSION = 1  # AgentDetails.version, in GuestDetailsResponse.agent_details (2)
PERMISSION_DENIED, INVALID_ARGUMENT = 7, 3


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields(message):
    """What a message has, by number: the last of each."""
    found, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        value = number()
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        found[key >> 3] = value
    return found


class KataAgent(threading.Thread):
    """Answers every call; refuses containers with the codes that it was told."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.cpus, self.refusals, self.calls, self.connections = {}, {}, [], 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(10)
        self.start()

    def run(self):
        while True:
            peer, _ = self._socket.accept()
            self.connections += 1
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        stream = peer.makefile("rb")
        try:
            while len(header := stream.read(10)) == 10:
                length, number, _, _ = struct.unpack(">IIBB", header)
                request = fields(stream.read(length))
                answer = self._answer(request[2].decode(), fields(request.get(3, b"")))
                peer.sendall(struct.pack(">IIBB", len(answer), number, 2, 0) + answer)
        except OSError:
            pass  # the daemon hung up

    def _answer(self, method, request):
        self.calls.append(method)
        if method == "GetGuestDetails":
            return text(2, text(2, text(GUEST_DETAILS_VERSION, b"4.1.0")))
        container = request[1].decode()
        if code := self.refusals.get(container):
            return text(1, varint(1 << 3) + varint(code))
        self.cpus[container] = fields(fields(request[2])[3])[6].decode()
        return b""


def start_vm(directory, smp):
    command = ["qemu-system-x86_64", "-name", "sandbox-vm,debug-threads=on", "-nodefaults", "-display", "none", "-S"]
    command += ["-accel", "tcg,thread=multi", "-smp", smp, "-m", "32", "-qmp", f"unix:{directory}/qmp,server=on,wait=off"]
    vm = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (directory / "qmp").exists():
        time.sleep(0.1)
    return vm


class Sandbox:
    """A VM, its kata-agent, and what the daemon says of both."""

    def __init__(self, daemon, directory, smp):
        directory.mkdir()
        self.daemon, self.name = daemon, directory.name
        self.agent = KataAgent(directory / "agent")
        self.vm = start_vm(directory, smp)
        daemon.ctl("sandbox", "add", self.name, "--vmm-pid", str(self.vm.pid), "--qmp", str(directory / "qmp"), "--agent",
                   f"unix://{directory}/agent")

    def container(self, name, cpu, kind):
        self.daemon.ctl("container", "update", self.name, name, "--cpus", cpu, kind)

    def status(self):
        return self.daemon.sandbox(self.name)

    def own_vcpu(self):
        [vcpu] = [one for one in self.status()["vcpus"] if one["role"] == "dedicated"]
        return str(vcpu["index"])

    def stop(self):
        self.vm.kill()
        self.vm.wait()


def placed(daemon, directory, cpus):
    print("== containers are placed through kata-agent", flush=True)
    sandbox = Sandbox(daemon, directory / "placed", "2,maxcpus=4")
    try:
        sandbox.agent.refusals[APP] = INVALID_ARGUMENT
        sandbox.container(WEB, cpus[0], "--shared")
        sandbox.container(APP, cpus[1], "--exclusive")
        eventually("app is not in the guest yet", lambda: [one["guest"] and one["guest"]["problem"]
                                                          for one in sandbox.status()["containers"] if one["id"] == APP],
                   ["not-found"])
        sandbox.agent.refusals.clear()
        own = sandbox.own_vcpu()
        eventually("app's guest CPUs", lambda: sandbox.agent.cpus.get(APP), own)
        equal("web's", sandbox.agent.cpus[WEB], str(1 - int(own)))
        equal("who answers", sandbox.status()["guest"]["text"], "kata-agent 4.1.0")
        eventually("what verify finds", lambda: broken(daemon), [])
        print(daemon.ctl("status", sandbox.name).stdout, daemon.ctl("explain", sandbox.name).stdout)
        before = len(sandbox.agent.calls)
        daemon.ctl("reconcile", sandbox.name)
        time.sleep(0.5)
        equal("what is as it was is not told again", len(sandbox.agent.calls), before)
        daemon.ctl("release", sandbox.name)
        eventually("given back: all CPUs", lambda: sandbox.agent.cpus, {APP: "0-1", WEB: "0-1"})
    finally:
        sandbox.stop()


def forbidden(daemon, directory, cpus):
    print("== a policy forbids it", flush=True)
    sandbox = Sandbox(daemon, directory / "forbidden", "2")
    try:
        sandbox.agent.refusals[APP] = PERMISSION_DENIED
        sandbox.container(APP, cpus[1], "--exclusive")
        eventually("the daemon says so", lambda: "policy forbids" in sandbox.status()["guest"]["text"], True)
        calls = len(sandbox.agent.calls)
        time.sleep(2)
        equal("and does not try again", len(sandbox.agent.calls), calls)
        report = json.loads(daemon.ctl("verify", "--json").stdout)
        equal("verify says so as well", (report["verdict"], "guest" in [one["invariant"] for one in report["findings"]]),
              ("degraded", True))
    finally:
        sandbox.stop()


def main():
    programs = Path(os.environ["KATA_AFFINITY_BUILD"]) / "bin"
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    if not shutil.which("qemu-system-x86_64") or len(cpus) < 2:
        print("skipped: needs QEMU and two CPUs")
        sys.exit(77)
    directory = Path(tempfile.mkdtemp())
    daemon = Daemon(programs, directory / "daemon", 'drift_check = 1\nguest = "kata-agent"')
    try:
        placed(daemon, directory, cpus)
        forbidden(daemon, directory, cpus)
    except BaseException:
        print(daemon.log()[-3000:], daemon.ctl("status", check=False).stdout)
        raise
    finally:
        daemon.stop()
        shutil.rmtree(directory)


main()
