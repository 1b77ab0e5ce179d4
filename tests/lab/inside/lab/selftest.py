# SPDX-License-Identifier: Apache-2.0
"""`kata-affinityctl selftest` on the node, run to its end or killed in the middle."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import check, claims

_LIMIT = "240s"
_RECORD = Path("/var/lib/kata-affinity/selftest.json")


def run(*options: str) -> dict:
    """Runs it to its end; its report."""
    began = time.monotonic()
    file = Path(os.environ["LAB_OUT"]) / f"selftest-{began:.0f}.json"
    ended = subprocess.run(["kata-affinityctl", "selftest", "--time-limit", _LIMIT, "--report", str(file), *options], capture_output=True, text=True, check=False)
    print(ended.stdout, flush=True)
    check.equal(f"exit status of the self-test, after {time.monotonic() - began:.0f} s", ended.returncode, 0)
    return json.loads(file.read_text())


def expect_success(report: dict, assigner: str = "kubelet") -> None:
    """Checks what a report of success must say, and that nothing is recorded as left. `assigner`: the witness of who owns which CPUs."""
    check.true(f"the verdict is {report['verdict']}", report["verdict"] in ("kept", "degraded"))
    findings = [each for step in report["steps"] for each in step["findings"]]
    check.equal("witnesses", {each["by"] for each in findings}, {assigner, "kernel", "guest", "daemon"})
    check.equal("broken findings", [each["text"] for each in findings if each["level"] == "broken"], [])
    check.equal("the record is left", _RECORD.exists(), False)


def expect_guest(report: dict) -> None:
    """Checks that its container was seen in the guest, though its image has no program for that."""
    seen = [(each["level"], each["text"]) for step in report["steps"] for each in step["findings"] if each["by"] == "guest"]
    check.true(f"the guest's findings: {seen}", bool(seen) and all(level in ("ok", "degraded") for level, _ in seen))


def expect_demonstration(report: dict, halts: bool) -> None:
    """Checks that waiting was measured with masks that differ, and that each of the pod's CPUs had a vCPU of its own. `halts`: the VM may
    do nothing for as long as it is measured."""
    demo = report["demo"]
    vcpus = [each for each in demo["threads"] if each["part"] == "vCPU"]
    check.true(f"CPUs {demo['busy_cpus']} were kept busy", bool(demo["busy_cpus"]))
    check.true("vCPUs were measured", len(vcpus) >= 2)
    check.true("some thread ran", halts or any(each["after"]["ran_ms"] > 0 for each in demo["threads"]))
    alone = [each["after"]["cpus"] for each in vcpus if each["after"]["cpus"].isdigit()]
    check.equal("CPUs with a vCPU of their own", len(set(alone)), 2)
    check.true("released, no vCPU had one", not any(each["before"]["cpus"].isdigit() for each in vcpus))


def kill_in_the_middle() -> None:
    """Kills it once kubelet has given its pod CPUs."""
    before = claims.read().owned.keys()
    kill_once("kubelet gave its pod CPUs", lambda: bool(claims.read().owned.keys() - before))
    check.true("what it placed is recorded", _RECORD.exists())


def kill_once(what: str, holds: Callable[[], bool], *options: str, by: int = signal.SIGKILL) -> int:
    """Starts it, and ends it by a signal once something holds; its exit status."""
    command = ["kata-affinityctl", "selftest", "--time-limit", _LIMIT, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check.eventually(what, holds, True, seconds=240)
    process.send_signal(by)
    return process.wait()
