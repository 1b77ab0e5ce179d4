# SPDX-License-Identifier: Apache-2.0
"""Nodes of the fault matrix with a guest agent: the real one, on the host, in a guest made of files. Calls fail in the daemon
(`GuestNode`) or in the agent (`AgentNode`). The agent keeps the container's cpuset, which the test overwrites."""
import contextlib
import itertools
import json
import os
import re

from nodes import BUILD, ApiNode, eventually

AGENT = BUILD / "bin/kata-affinity-agent"
PORTS = itertools.count(20000 + os.getpid() % 1000 * 32)  # of vsock, where jobs must not share one
CPUS = "0-1"


class Guest:
    """/proc, /sys and a cgroup tree of version 1, whose files need no kernel behind them, with one container."""

    def __init__(self, directory):
        self.root, self._port = directory, next(PORTS)
        cgroup = directory / "cgroup"
        self._write("proc/self/mountinfo", f"30 1 0:26 / {cgroup} rw - cgroup cgroup rw,cpuset\n")
        cpuinfo = "".join(f"processor\t: {cpu}\napicid\t\t: {cpu}\n\n" for cpu in (0, 1))
        self._write("proc/cpuinfo", cpuinfo)
        for cpu in (0, 1):
            self._write(f"sys/devices/system/cpu/cpu{cpu}/online", "1\n")
        self._write("run/none", "")
        for name, cpus in (("cgroup", CPUS), ("cgroup/app", CPUS)):
            for file, text in (("cpuset.cpus", cpus), ("cpuset.mems", "0"), ("cgroup.procs", ""), ("tasks", "")):
                self._write(f"{name}/{file}", text + "\n")
        self._cpuset = cgroup / "app/cpuset.cpus"

    def _write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def overwrite(self):
        self._cpuset.write_text("1\n")

    def is_placed(self):
        return self._cpuset.read_text().strip() == CPUS

    def command(self, socket):
        roots = [word for name in ("proc", "sys", "run") for word in (f"--{name}", self.root / name)]
        return [AGENT, "--socket", socket, "--port", str(self._port), *roots]


class GuestNode(ApiNode):
    """Each daemon meets an agent that knows nothing yet."""

    vm_words = ("-smp", "2", "-qmp", "unix:{}/qmp,server=on,wait=off")
    agent = None

    def __init__(self, directory):
        super().__init__(directory)
        self.guest = Guest(directory / "inside")

    def sandbox_words(self):
        return ["--qmp", str(self.directory / "qmp"), "--agent", f"unix://{self.directory}/agent.sock"]

    def start_agent(self, inject=()):
        self.stop_agent()
        self.agent = self.launch(self.guest.command(self.directory / "agent.sock"), inject, "agent.log")

    def stop_agent(self):
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()

    def start(self, inject):
        self.start_agent()
        self.guest.overwrite()
        super().start(inject)

    def come_and_go(self):
        super().come_and_go()
        self.start_agent()
        self.guest.overwrite()

    def as_planned(self):
        return super().as_planned() and self.guest.is_placed()

    def admits(self, _call):
        """The threads are as planned, and it is reported that the guest is not; that it has not confirmed yet, only while the fault lasts."""
        findings = []
        with contextlib.suppress(ValueError, KeyError):
            findings = json.loads(self.ctl("verify", "--json")[1])["findings"]
        is_reported = any(one["invariant"] == "guest" and (self.is_for_good or one.get("reason") != "guest-unconfirmed") for one in findings)
        pending = "" if self.is_for_good else "(?! confirmed)"
        status = self.ctl("status", "guest")[1]
        return super().as_planned() and (is_reported or re.search(rf"\bNOT\b{pending}|not in the guest", status) is not None)

    def close(self):
        super().close()
        self.stop_agent()


class AgentNode(GuestNode):
    """Each agent meets a daemon without faults, which reports what it has of the agent."""

    program = "agent"
    _daemon = None

    def start(self, inject):
        self._end_daemon()
        self.guest.overwrite()
        self.start_agent(inject)
        self.running = self.agent
        self._daemon = self.launch(self.daemon(), [])

    def _end_daemon(self):
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()

    def come_and_go(self):
        ApiNode.come_and_go(self)
        self.guest.overwrite()

    def output(self):
        return (self.directory / "agent.log").read_text(errors="replace")

    def is_said_beside(self):
        return re.search(r"guest: .* NOT placed: \S", self.ctl("status", "guest")[1]) is not None

    def answers(self):
        """The daemon has met it."""
        return not self.lives() or re.search(r'"connected": *true', self.ctl("status", "guest", "--json")[1]) is not None

    def set_up(self):
        self.start([])
        assert eventually(self.vm_runs) and eventually(lambda: self.ctl("status")[0] == 0)
        self.introduce()
        assert eventually(self.as_planned), self.ctl("status", "guest")[1]
        self.stop()
        self.measure()

    def close(self):
        super().close()
        self._end_daemon()
