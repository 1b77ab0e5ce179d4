# SPDX-License-Identifier: Apache-2.0
"""An agent behind vsock is killed, stopped, loses its VM for a while, and the daemon's calls to it fail: it is said, and mended afterwards."""
# lab shapes: smt8
# lab timeout: 600

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import check, product
from lab.expect import expect_dedicated
from lab.guest import Guest, expect_placed, spec
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vms

APP, WEB = "a" * 64, "c" * 64
WIDE, NARROW, SHARED = "4-5", "4", "0-1"
SILENT = 30  # seconds until the daemon has noticed
BACK = 60  # seconds, under emulation
PID = "$(pidof kata-affinity-agent)"
TRACE = Path("/run/trace")
# What the daemon does to reach an agent, and to talk to it.
FAULTS = {
    "socket": "EMFILE",
    "connect": "ENODEV",
    "getsockopt": "ENOMEM",
    "epoll_ctl": "ENOMEM",
    "sendto": "ENOBUFS",
    "recvfrom": "ECONNRESET",
    "ioctl": "EIO",
}


def connected(pod: VmPod) -> bool:
    return bool(product.guest(pod.vm.id).get("connected"))


def verdict() -> str:
    return product.call("POST", "/v1/verify")["verdict"]


def expect_silent(pod: VmPod, cpu_list: str) -> None:
    """The vCPUs are in their places; that nobody knows how it is inside is said."""
    expect_dedicated(pod.vm, cpu_list)
    check.eventually("the daemon has an agent", lambda: connected(pod), False, seconds=SILENT)
    check.equal("verdict", verdict(), "degraded")


def expect_back(pod: VmPod, guest: Guest, cpu_list: str) -> None:
    """Inside, too, all is as the plan has it by now."""
    check.eventually("the daemon has an agent", lambda: connected(pod), True, seconds=BACK)
    expect_placed(guest, {APP: cpu_list})
    check.eventually("the other one is on the vCPUs that float", lambda: guest.allowed(WEB) == {guest.owned_numbers(SHARED)}, True)
    check.equal("violations that verify finds", product.violations(), [])
    check.true("the VM runs", pod.vm.is_undisturbed())


def start_agent(guest: Guest) -> None:
    guest.shell.run("kata-affinity-agent > /tmp/agent 2>&1 &")


def kill(pod: VmPod, guest: Guest) -> None:
    check.step("the agent is killed, and started again after the plan has changed")
    before = guest.allowed(APP)
    guest.shell.run(f"kill -9 {PID}")
    check.eventually("the daemon has an agent", lambda: connected(pod), False, seconds=SILENT)
    check.equal("where the container may run", guest.allowed(APP), before)
    pod.update(APP, NARROW, exclusive=True)
    expect_silent(pod, NARROW)
    start_agent(guest)
    expect_back(pod, guest, NARROW)


def stop(pod: VmPod, guest: Guest) -> None:
    check.step("the agent stops in the middle of a conversation, while the plan changes")
    guest.shell.run(f"kill -STOP {PID}")
    pod.update(APP, WIDE, exclusive=True)
    expect_silent(pod, WIDE)
    guest.shell.run(f"kill -CONT {PID}")
    expect_back(pod, guest, WIDE)


def pause(pod: VmPod, guest: Guest) -> None:
    check.step("the whole VM is paused, while the plan changes")
    pod.vm.qmp.call("stop")
    pod.update(APP, NARROW, exclusive=True)
    expect_silent(pod, NARROW)
    pod.vm.qmp.call("cont")
    expect_back(pod, guest, NARROW)


def restart(daemon: Daemon, pod: VmPod, guest: Guest) -> None:
    check.step("the daemon is killed while the agent stops; the next one waits for neither")
    guest.shell.run(f"kill -STOP {PID}")
    daemon.kill()
    daemon.start()
    pod.update(APP, WIDE, exclusive=True)
    expect_silent(pod, WIDE)
    guest.shell.run(f"kill -CONT {PID}")
    expect_back(pod, guest, WIDE)


@contextmanager
def failing(daemon: Daemon, call: str, errno: str) -> Iterator[None]:
    """All calls of that kind fail."""
    command = ["strace", "-qq", "-f", "-p", str(daemon.pid), "-o", str(TRACE), "-e", f"trace={call}", "-e", f"inject={call}:error={errno}"]
    with subprocess.Popen(command) as trace:
        status = Path(f"/proc/{daemon.pid}/status")
        check.eventually("the daemon is traced", lambda: "TracerPid:\t0" not in status.read_text(), True)
        try:
            yield
        finally:
            trace.terminate()


def calls_fail(daemon: Daemon, pod: VmPod, guest: Guest) -> None:
    for number, (call, errno) in enumerate(FAULTS.items()):
        check.step(f"{call} fails with {errno} while the agent is killed and started again, and then no more")
        with failing(daemon, call, errno):
            guest.shell.run(f"kill -9 {PID}")
            start_agent(guest)
            check.eventually("some have failed", lambda: "INJECTED" in TRACE.read_text(), True, SILENT)
        cpu_list = (NARROW, WIDE)[number % 2]
        pod.update(APP, cpu_list, exclusive=True)
        expect_dedicated(pod.vm, cpu_list)
        expect_back(pod, guest, cpu_list)


def main() -> None:
    with Daemon(housekeeping="shared-pool") as daemon, Vms() as vms:
        check.step("a guest with our agent, a container with CPUs of its own, and one without")
        pod = VmPod(vms, "guest", spec("v2", vcpus=4, max_vcpus=4), extra_cpus=SHARED)
        guest = Guest(pod.vm, "v2")
        check.eventually("the daemon has an agent", lambda: connected(pod), True, seconds=BACK)
        check.equal("its address", product.guest(pod.vm.id)["address"], f"vsock://{pod.vm.cid}:1031")
        guest.make(APP, WEB)
        pod.update(APP, WIDE, exclusive=True)
        pod.update(WEB, SHARED)
        for container in (APP, WEB):
            guest.start(container, "sleep 10000")
        expect_back(pod, guest, WIDE)
        kill(pod, guest)
        stop(pod, guest)
        pause(pod, guest)
        restart(daemon, pod, guest)
        calls_fail(daemon, pod, guest)


main()
