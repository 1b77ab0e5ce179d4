# SPDX-License-Identifier: Apache-2.0
"""grade = "realtime" inside of a guest: idle vCPUs poll before they halt while it has the grade; with our agent as its first program, and as a unit of systemd."""
# lab shapes: smt8
# lab timeout: 900

import json
from dataclasses import replace
from pathlib import Path

from lab import check, disk, product
from lab.cgroup import Cgroup
from lab.guest import spec
from lab.helper import Helper
from lab.pods import VmPod
from lab.product import Daemon
from lab.quiet import PATIENCE
from lab.shell import Shell
from lab.vm import Vms, VmSpec

OWN, FLOOR = "2-3", "0-1"
SETTINGS = {"quiet_floor": FLOOR, "housekeeping": "shared-pool", "drift_check": 1}
CPUIDLE = "/sys/devices/system/cpu/cpuidle"
POLL_NS = "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
OFF, ON = ["haltpoll", "0"], ["haltpoll", "200000"]
WORDS = "cpuidle_haltpoll.force=1 haltpoll.guest_halt_poll_ns=0"
PLAIN, IMAGE = Path("/run/plain.img"), Path("/run/with-agent.img")
AGENT, UNIT = "/lab/bin/kata-affinity-agent", "kata-affinity-agent.service"
FINDING = "idle vCPUs halt at once"


def guest_spec() -> VmSpec:
    """A guest whose kernel has the driver in use, switched off."""
    plain = spec("v2", vcpus=3, max_vcpus=3)
    return replace(plain, words=f"{plain.words} {WORDS}")


def expect_idle(pod: VmPod, shell: Shell, idle: str, driver: list[str]) -> None:
    """What idle vCPUs do: by the guest's kernel, and by the daemon."""
    check.eventually("driver of cpuidle, and how long it polls", lambda: shell.run(f"cat {CPUIDLE}/current_driver {POLL_NS}").split(), driver, PATIENCE)
    check.eventually("the daemon has it so", lambda: product.guest(pod.vm.id).get("idle"), idle, PATIENCE)


def live(daemon: Daemon, pod: VmPod, shell: Shell) -> None:
    check.step("a container gets CPUs, with grade quiet")
    pod.update("app", OWN, exclusive=True)
    check.eventually("the agent answers", lambda: product.guest(pod.vm.id).get("connected"), True, seconds=60)
    expect_idle(pod, shell, "as-before", OFF)

    check.step("grade = realtime")
    daemon.configure(**SETTINGS | {"grade": "realtime"})
    expect_idle(pod, shell, "polling", ON)
    check.equal("governor", shell.run(f"cat {CPUIDLE}/current_governor"), "haltpoll")
    check.true("verify has nothing to say of it", FINDING not in product.ctl("verify").stdout)
    print(product.ctl("status", pod.vm.id).stdout, flush=True)


def end(daemon: Daemon, pod: VmPod, shell: Shell) -> None:
    check.step("grade = quiet, and realtime again")
    daemon.configure(**SETTINGS | {"grade": "quiet"})
    expect_idle(pod, shell, "as-before", OFF)
    daemon.configure(**SETTINGS | {"grade": "realtime"})
    expect_idle(pod, shell, "polling", ON)
    check.step("everything is released")
    product.call("POST", "/v1/release")
    expect_idle(pod, shell, "as-before", OFF)
    check.true("the VM runs", pod.vm.is_undisturbed())
    pod.remove()
    daemon.configure(**SETTINGS | {"grade": "quiet"})


def first_program(daemon: Daemon, vms: Vms) -> None:
    pod = VmPod(vms, "first", guest_spec(), extra_cpus=FLOOR)
    shell = Shell(pod.vm.directory / "shell")
    live(daemon, pod, shell)
    end(daemon, pod, shell)


def unit(daemon: Daemon, vms: Vms) -> None:
    check.step("a guest with systemd")
    disk.make(PLAIN)
    check.equal("guest-image", product.ctl("guest-image", "add", str(PLAIN), "-o", str(IMAGE), "--agent", AGENT).returncode, 0)
    words = f"systemd.unit=kata-containers.target {WORDS}"
    pod = VmPod(vms, "unit", VmSpec(3, job="disk", disk=str(IMAGE), words=words, shell=True), extra_cpus=FLOOR)
    shell = Shell(pod.vm.directory / "shell")
    live(daemon, pod, shell)
    check.step("measure, from within the sandbox of the unit")
    measured = product.ctl("measure", pod.vm.id, "--for", "2s", "--json")
    check.equal("real-time threads measured", (measured.returncode, json.loads(measured.stdout or "{}").get("realtime")), (0, True))
    check.step("our agent is killed: the next one knows what is its own")
    shell.run(f"systemctl kill --signal=KILL {UNIT}")
    check.eventually("its unit was restarted", lambda: shell.run(f"systemctl show --value --property=NRestarts {UNIT}"), "1", seconds=60)
    end(daemon, pod, shell)


def main() -> None:
    Cgroup("kubepods")
    with Helper(), Daemon(**SETTINGS, grade="quiet") as daemon, Vms() as vms:
        first_program(daemon, vms)
        unit(daemon, vms)


main()
