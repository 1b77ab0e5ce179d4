# SPDX-License-Identifier: Apache-2.0
"""Nodes for the fault matrix: a VM whose threads share the first CPU, the last one owned by a pod of another runtime, and the
real daemon, which hears of both through the API alone (`ApiNode`), or from a container runtime and kubelet (`KubeletNode`).
With a resource class: classes_node.py; with a guest agent: guest_nodes.py; with a cgroup that the daemon writes: manage_node.py;
of libvirt: libvirt_node.py."""
import collections
import contextlib
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path

BUILD = Path(os.environ["KATA_AFFINITY_BUILD"]).absolute()
DAEMON, CTL = BUILD / "bin/kata-affinityd", BUILD / "bin/kata-affinityctl"
SETTLE = 30.0  # seconds: a bound, not a wait
PATIENCE = 4.0  # seconds with a daemon that may have lost its ears
MORE_MEMORY = 4096  # KiB that a daemon may have more than one without faults; twice what they differ by
# Read by hwloc alone, which forgets the descriptor of a file or a directory that it has opened and cannot use.
HWLOC = ("/sys/devices/", "/sys/bus/", "/sys/kernel/mm/hugepages", "/proc/cpuinfo", "/proc/meminfo", "/proc/mounts")


def eventually(holds, seconds=SETTLE):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


class Node:
    """What all have in common. A node is introduced once; each case is a daemon that finds what the last one left."""

    program = "daemon"  # in which calls fail
    settings = ""
    vm_words = ("-smp", "1")
    running = None

    def __init__(self, directory):
        self.directory = directory
        cpus = sorted(os.sched_getaffinity(0))
        self.first, self.last = cpus[0], cpus[-1]
        self.may_trespass, self.is_certain, self.is_for_good = False, True, False
        self.vm = self.run_vm()
        (directory / "affinity.toml").write_text("[affinity]\ndrift_check = 1\n" + self.settings_text())

    def run_vm(self):
        return subprocess.Popen(
            ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-m", "64", "-display", "none",
             "-nodefaults", "-S", "-name", "test,debug-threads=on", *(word.format(self.directory) for word in self.vm_words)],
            stdin=subprocess.DEVNULL)

    def settings_text(self):
        return self.settings.format(self.directory)

    def set_up(self):
        self.start([])
        assert eventually(self.vm_runs) and eventually(self.answers), self.output()
        self.introduce()
        assert eventually(self.as_planned), self.ctl("status")[1]
        self.stop()
        self.measure()

    def measure(self):
        """What a daemon has that found its state, and has seen the CPU come and go."""
        self.start([])
        assert eventually(self.answers), self.output()
        self.come_and_go()
        assert self.is_certain and eventually(self.as_planned), self.ctl("status")[1]
        time.sleep(0.5)
        self.descriptors, self.memory = self.descriptors_now(), self.memory_now()
        self.stop()

    def come_and_go(self):
        """The VM gets the last CPU and must leave it again. What is said of the one state that is not certain."""
        self.may_trespass = True
        self.is_certain = self.disown_last()
        self.is_certain = self.own_last() and self.is_certain
        self.may_trespass = not self.is_certain

    def start(self, inject):
        self.running = self.launch(self.daemon(), inject)

    def daemon(self):
        return [DAEMON, "--config", self.directory / "affinity.toml", "--socket", self.directory / "api.sock", "--state-dir",
                self.directory / "state", "--run", self.directory]

    def launch(self, command, inject, log="log"):
        wrapper = ["strace", "-D", "-f", "-q", "-o", self.directory / "trace", *inject] if inject else []
        if inject:
            (self.directory / "trace").unlink(missing_ok=True)
        with open(self.directory / log, "w+b") as output:
            return subprocess.Popen([*self.wrapped(), *wrapper, *command], stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def stop(self):
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    def traced(self):
        """The lines of strace, which has seen the daemon end."""
        ended = re.compile(rf"^{self.running.pid} +\+\+\+ ", re.MULTILINE)
        trace = self.directory / "trace"
        eventually(lambda: trace.exists() and ended.search(trace.read_text(errors="replace")), 5)
        return trace.read_text(errors="replace").splitlines()

    def vm_runs(self):
        tasks = Path(f"/proc/{self.vm.pid}/task").glob("*/comm")
        return any(task.read_text().startswith("CPU 0/") for task in tasks)

    def output(self):
        return (self.directory / "log").read_text(errors="replace")

    def ctl(self, *words):
        try:
            done = subprocess.run([CTL, *words, "--socket", self.directory / "api.sock"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=5, check=False)
        except subprocess.TimeoutExpired:
            return -1, ""
        return done.returncode, done.stdout.decode(errors="replace")

    def lives(self):
        return self.running.poll() is None

    def answers(self):
        return not self.lives() or self.ctl("status")[0] == 0

    def masks(self):
        for task in Path(f"/proc/{self.vm.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                yield os.sched_getaffinity(int(task.name))

    def wrapped(self):
        """Words before every command line."""
        return []

    def has_found_threads(self):
        """By the daemon's word, since its start."""
        return re.search(r'"threads": *\[ *\{', self.ctl("status", "guest", "--json")[1]) is not None

    def admits(self, _call):
        """What is not as planned beside masks is reported."""
        return False

    def is_said_beside(self):
        """The program that can write nothing cannot say why, and another one does."""
        return False

    def trespasses(self):
        return not self.may_trespass and any(self.last in mask for mask in self.masks())

    def as_planned(self):
        return all(mask == {self.first} for mask in self.masks())

    def wait_for(self, holds, seconds=SETTLE):
        """Also watches that nothing is widened; False when that was, or the time is up."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.trespasses():
                return False
            if holds():
                return True
            time.sleep(0.05)
        return False

    def knows_all(self):
        status, text = self.ctl("status", "--json")
        owner_is_there = not self.is_certain or self.ctl("map")[1].count("owner") > 0
        return status == 0 and '"guest"' in text and owner_is_there

    def gives_back(self):
        """Of what it has changed, what was there before."""
        return True

    def descriptors_now(self):
        """How many the daemon has of each kind. A pipe is one: without eventfds Asio has pipes in their place."""
        files = []
        for descriptor in Path(f"/proc/{self.running.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                files.append(os.readlink(descriptor))
        pipes = {file for file in files if file.startswith("pipe:")}
        others = [file for file in files if not file.startswith(("pipe:", *HWLOC))]
        return collections.Counter(re.sub(r"\d+", "N", file) for file in [*pipes, *others])

    def memory_now(self):
        """KiB of its own, without files."""
        return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{self.running.pid}/status").read_text())[1])

    def leaks(self):
        """What it has more than it should, each time that it is counted for a while: the daemon may be at work. Empty: nothing."""
        surplus = self.descriptors_now() - self.descriptors

        def has_no_more():
            nonlocal surplus
            now = self.descriptors_now()
            surplus &= now - self.descriptors
            return not surplus or sum(now.values()) <= sum(self.descriptors.values())

        if not eventually(has_no_more, PATIENCE):
            return f"descriptors leak: {dict(surplus)}"
        more = self.memory_now() - self.memory
        return f"memory leaks: {more} KiB" if more > MORE_MEMORY else ""

    def keep_quiet(self):
        """What tells the daemon of pods says nothing until `speak`."""

    def speak(self):
        pass

    def close(self):
        self.stop()
        self.vm.kill()
        self.vm.wait()


class ApiNode(Node):
    """A node without kubelet and NRI: whoever calls the API is who knows."""

    settings = 'nri_socket = ""\nkubelet_state = ""\n'

    def introduce(self):
        self.ctl("sandbox", "add", "guest", "--vmm-pid", str(self.vm.pid), *self.sandbox_words())
        self.ctl("container", "update", "guest", "app", "--cpus", f"{self.first},{self.last}")
        self.own_last()

    def sandbox_words(self):
        return []

    def own_last(self):
        self.request("PUT", "owner", "{}")
        return self.request("PUT", "owner/containers/app", f'{{"cpus":"{self.last}","exclusive":true}}')

    def disown_last(self):
        return self.request("DELETE", "owner/containers/app", "")

    def request(self, method, target, body):
        """Whether the daemon said that it is done."""
        done = subprocess.run(["curl", "-sf", "--max-time", "5", "-X", method, "--unix-socket",
                               self.directory / "api.sock", "-d", body, f"http://x/v1/sandboxes/{target}"],
                              check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0


class Runtime:
    """A container runtime that serves one daemon after the other, each with an nri-player of its own."""

    def __init__(self, *node):
        [self._program] = BUILD.rglob("nri-player")
        self._node, self._is_owned, self._player = [str(word) for word in node], True, None

    def listen(self):
        """For the next daemon, or the next time that this one comes; unless it is there."""
        if self._player is not None and self._player.poll() is None:
            return
        self.leave()
        Path(self._node[0]).unlink(missing_ok=True)
        state = "owned" if self._is_owned else "free"
        self._player = subprocess.Popen([self._program, *self._node, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0)
        self._taken_in = False

    def tell(self, word):
        """Whether the daemon agreed to it. One that was not connected is told all there is when it is."""
        self._is_owned = word == "own"
        self.listen()
        if not self._taken_in:
            self._taken_in = self._said_ok()
        if self._taken_in:
            with contextlib.suppress(BrokenPipeError):
                self._player.stdin.write(word.encode() + b"\n")
            if self._said_ok():
                return True
        self.leave()
        self.listen()
        return False

    def _said_ok(self):
        readable, _, _ = select.select([self._player.stdout], [], [], PATIENCE)
        return bool(readable) and self._player.stdout.readline() == b"ok\n"

    def leave(self):
        if self._player is None:
            return
        self._player.kill()
        self._player.communicate()
        self._player = None


class KubeletNode(Node):
    """A node with kubelet and NRI. kubelet writes its state when it admits a pod, and when that has gone."""

    settings = 'nri_socket = "{0}/nri.sock"\nkubelet_state = "{0}/cpu_manager_state"\n'
    runtime = None

    def start(self, inject):
        if self.runtime is None:
            self.admit(True)
            self.runtime = Runtime(self.directory / "nri.sock", self.vm.pid, f"{self.first},{self.last}", self.last)
        self.runtime.leave()
        self.runtime.listen()
        super().start(inject)

    def introduce(self):
        assert self.own_last(), self.output()

    def own_last(self):
        self.admit(True)
        return self.runtime.tell("own")

    def disown_last(self):
        is_told = self.runtime.tell("disown")
        self.admit(False)
        eventually(self.is_wide, 1)
        return is_told

    def is_wide(self):
        """What kubelet does not list any more is given to the VM without another word."""
        return all(self.last in mask for mask in self.masks())

    def admit(self, owner):
        """As kubelet writes it: another file under the same name. A checksum of 0 fits always."""
        state = {"policyName": "static", "defaultCpuSet": str(self.first), "entries": {"uid-owner": {"app": str(self.last)}}}
        if not owner:
            state |= {"defaultCpuSet": f"{self.first},{self.last}", "entries": {}}
        (self.directory / "fresh").write_text(json.dumps(state | {"checksum": 0}))
        (self.directory / "fresh").rename(self.directory / "cpu_manager_state")

    def keep_quiet(self):
        self.runtime.leave()

    def speak(self):
        self.runtime.listen()

    def close(self):
        super().close()
        self.runtime.leave()
