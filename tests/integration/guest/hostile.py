#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Guests that lie, flood, hang and hang up, against the real daemon: it answers as before, places threads as before, and
says what is wrong with each of them.

The VM never runs a guest; its agent is played here, behind a unix socket."""

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


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def answer(stream, payload, kind=2):
    data = text(2, payload)
    return struct.pack(">IIBB", len(data), stream, kind, 0) + data


HELLO = answer(1, number(1, 1) + number(2, 1) + text(3, b"liar"))


def report(container=b"c1", cpus=b"0-1", common=b"0"):
    each = b"".join(text(2, number(1, n) + varint(2 << 3) + varint(n) + number(7, 1)) for n in (0, 1))
    return number(1, 1) + each + text(3, common) + text(4, text(1, container) + text(2, b"1") + text(3, cpus))


# What the agent says, and what the daemon must say of it.
LIES = {
    "bytes that are none": (b"\x00" * 4000, "malformed response"),
    "an answer to nothing": (HELLO + answer(77, b""), "unsolicited"),
    "another sandbox's container": (HELLO + answer(3, report(container=b"other")), "not its own"),
    "impossible CPUs": (HELLO + answer(3, report(cpus=b"4000")), "does not have"),
    "an endless message": (HELLO + struct.pack(">IIBB", 2**31, 3, 2, 0) + b"x" * 10**6, "exceeds the limit"),
    "half a message": (HELLO + answer(3, report())[:20], "in time"),
    "silence": (b"", "in time"),
    "a hello of another world": (answer(1, number(1, 9) + number(2, 8)), "versions 8-9"),
}


class Liar(threading.Thread):
    """Says the same to everyone who connects; hangs up at once when there is nothing to say."""

    def __init__(self, path, words, hangs_up=False):
        super().__init__(daemon=True)
        self._words, self._hangs_up = words, hangs_up
        self.connections = 0
        self._held = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(100)
        self.start()

    def run(self):
        while True:
            peer, _ = self._socket.accept()
            self.connections += 1
            if self._hangs_up:
                peer.close()
                continue
            self._held.append(peer)
            threading.Thread(target=self._lie, args=(peer,), daemon=True).start()

    def _lie(self, peer):
        try:
            peer.sendall(self._words)
            while peer.recv(65536):
                pass
        except OSError:
            pass


def start_vm(directory):
    command = ["qemu-system-x86_64", "-name", "sandbox-vm,debug-threads=on", "-nodefaults", "-display", "none", "-S"]
    command += ["-accel", "tcg,thread=multi", "-smp", "2", "-m", "32", "-qmp", f"unix:{directory}/qmp,server=on,wait=off"]
    vm = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (directory / "qmp").exists():
        time.sleep(0.1)
    return vm


def slowest_answer(daemon, seconds):
    """How long the slowest of many questions to the daemon took."""
    slowest, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(daemon.socket))
            peer.sendall(b"GET /v1/node HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while peer.recv(65536):
                pass
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.02)
    return slowest


def be_lied_to(daemon, directory, name, words, complaint):
    path = directory / "liar"
    path.unlink(missing_ok=True)
    liar = Liar(path, words)
    daemon.ctl("sandbox", "add", "s1", "--vmm-pid", str(daemon.vm.pid), "--agent", f"unix://{path}")
    daemon.ctl("reconcile", "s1")

    def said():
        guest = daemon.sandbox("s1")["guest"] or {}
        return complaint in guest.get("text", "") and not guest["connected"]

    eventually(f"{name}: the daemon says so", said, True)
    equal(f"{name}: no word of it is believed", daemon.sandbox("s1")["containers"][0]["guest"], None)
    daemon.ctl("sandbox", "rm", "s1")
    return liar


def storm_at_agent(programs, directory):
    """The other way round: what a malformed host says, a thousand times, to the real agent."""
    print("== 1000 connections to the agent", flush=True)
    path = directory / "agent.sock"
    command = [programs / "kata-affinity-agent", "--socket", path, "--port", "4242"]
    for root in ("proc", "sys", "run"):
        (directory / "guest" / root).mkdir(parents=True)
        command += [f"--{root}", directory / "guest" / root]
    agent = subprocess.Popen(command)
    words = [b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", struct.pack(">IIBB", 2**31, 1, 1, 0), answer(1, b""),
             answer(1, b"", kind=1)[:7], b""]

    def hello():
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))  # waits for room in the agent's backlog: with a time limit it would fail instead
            peer.settimeout(2)
            request = text(1, b"kata_affinity.guest.v1.Agent") + text(2, b"Hello") + text(3, number(1, 1) + number(2, 1))
            peer.sendall(struct.pack(">IIBB", len(request), 1, 1, 0) + request)
            return b"kata-affinity-agent" in peer.recv(4096)

    try:
        eventually("it listens", path.exists, True)
        equal("it answers a host that speaks well", hello(), True)
        before = len(os.listdir(f"/proc/{agent.pid}/fd"))
        for i in range(1000):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(path))
                peer.sendall(words[i % len(words)])
        equal("it answers after them as well", hello(), True)
        eventually("nothing is left open", lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) <= before, True)
        resident = int(open(f"/proc/{agent.pid}/statm").read().split()[1]) * 4
        if not os.environ.get("KATA_AFFINITY_SANITIZERS"):
            equal(f"its memory, {resident} KiB, is below 3 MiB", resident < 3072, True)
    finally:
        agent.kill()
        agent.wait()


def main():
    programs = Path(os.environ["KATA_AFFINITY_BUILD"]) / "bin"
    if not shutil.which("qemu-system-x86_64"):
        print("skipped: needs QEMU")
        sys.exit(77)
    directory = Path(tempfile.mkdtemp())
    vm = start_vm(directory)
    daemon = Daemon(programs, directory / "daemon", "drift_check = 1")
    daemon.vm = vm
    try:
        own = str(sorted(os.sched_getaffinity(0))[-1])
        for name, (words, complaint) in LIES.items():
            daemon.ctl("sandbox", "add", "s1", "--vmm-pid", str(vm.pid), "--qmp", str(directory / "qmp"))
            daemon.ctl("container", "update", "s1", "c1", "--cpus", own, "--exclusive")
            be_lied_to(daemon, directory, name, words, complaint)

        print("== one that hangs up on every connection", flush=True)
        path = directory / "storm"
        storm = Liar(path, b"", hangs_up=True)
        daemon.ctl("sandbox", "add", "s1", "--vmm-pid", str(vm.pid), "--agent", f"unix://{path}")
        daemon.ctl("container", "update", "s1", "c1", "--cpus", own, "--exclusive")
        slowest = slowest_answer(daemon, 5)
        equal("connections in 5 s are few", 2 <= storm.connections <= 12, True)
        equal("the daemon answers others meanwhile", slowest < 1, True)
        findings = broken(daemon)
        equal("threads are as planned", findings, [])
        storm_at_agent(programs, directory)
    except BaseException:
        print(daemon.log()[-3000:])
        raise
    finally:
        vm.kill()
        vm.wait()
        daemon.stop()
        shutil.rmtree(directory)


main()
