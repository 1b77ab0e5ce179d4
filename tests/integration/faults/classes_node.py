# SPDX-License-Identifier: Apache-2.0
"""A node of the fault matrix whose VM has a resource class, and which serves metrics over TCP. The class comes and goes with the
CPU of the other pod. A daemon with faults finds a value that another program has set, and the next one what that daemon left."""
import contextlib
import http.client
import itertools
import json
import os
import re
from pathlib import Path

from nodes import ApiNode, eventually

PORTS = itertools.count(20000 + os.getpid() % 380 * 32)  # below those that the kernel gives to clients; jobs must not share one
THEIRS = os.getpriority(os.PRIO_PROCESS, 0)  # which the VM has from this program
NICE = THEIRS + 1 if THEIRS < 19 else 0


class ClassesNode(ApiNode):
    settings = ApiNode.settings + 'allow_annotations = ["scheduling-class"]\nmetrics_listen = "127.0.0.1:{1}"\n'
    settings += f"[affinity.classes.batch]\nnice = {NICE}\n"

    def __init__(self, directory):
        self._port = next(PORTS)
        super().__init__(directory)

    def settings_text(self):
        return self.settings.format(self.directory, self._port)

    def start(self, inject):
        if inject:
            self._overwrite()
        super().start(inject)

    def come_and_go(self):
        super().come_and_go()
        self._is_measurable()

    def own_last(self):
        is_owned = super().own_last()
        return self._give_class("pod") and is_owned

    def disown_last(self):
        is_disowned = super().disown_last()
        return self._give_class("container.another") and is_disowned

    def as_planned(self):
        return super().as_planned() and self._has_nices(NICE) and self._is_measurable()

    def admits(self, _call):
        """The threads are where they should be, and it is reported that their class is not there, or that nobody can be served."""
        nice_is_said = self._has_nices(NICE) or self._says_nice()
        metrics_are_said = self._is_measurable() or "cannot accept a connection" in self.output()
        return super().as_planned() and nice_is_said and metrics_are_said

    def knows_all(self):
        return super().knows_all() and (not self.is_certain or self._class_is_known())

    def gives_back(self):
        """What it had before the first daemon is still known, whatever could not be written or saved; then it has its class again."""
        is_back = self._give_class("container.another") and eventually(lambda: self._has_nices(THEIRS))
        return self._give_class("pod") and is_back

    def _give_class(self, scope):
        """None at all would keep those that are known: the VM has one only, without a name, and another's class is none for it."""
        return self.request("PUT", "guest", json.dumps({"annotations": {f"scheduling-class.resource-policy.nri.io/{scope}": "batch"}}))

    def _class_is_known(self):
        return '"batch"' in self.ctl("status", "guest", "--json")[1]

    def _says_nice(self):
        """Both to the operator and to the one that verifies, who may have seen no thread at all."""
        status, finding = self.ctl("status", "guest")[1], self.ctl("verify")[1]
        is_found = re.search(rf"guest: (nice {NICE} of vCPU|cannot read its VMM)", finding) is not None
        return is_found and (f"nice {NICE} NOT set" in status or "does NOT have scheduling-class batch" in status)

    def _threads(self):
        """Their ids, with whether they run vCPUs."""
        for task in Path(f"/proc/{self.vm.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield int(task.name), (task / "comm").read_text().startswith("CPU ")

    def _overwrite(self):
        for tid, is_vcpu in self._threads():
            if is_vcpu:
                os.setpriority(os.PRIO_PROCESS, tid, THEIRS)

    def _has_nices(self, wanted):
        """Threads without vCPUs keep their own."""
        return all(os.getpriority(os.PRIO_PROCESS, tid) == (wanted if is_vcpu else THEIRS) for tid, is_vcpu in self._threads())

    def _is_measurable(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/metrics")
            return b"\nkata_affinity_" in connection.getresponse().read()
        return False
