# SPDX-License-Identifier: Apache-2.0
"""A guest that boots from a disk image with systemd, into which `guest-image add` put our agent: its unit there, and what systemd does."""
# lab shapes: smt8
# lab timeout: 400

from pathlib import Path

from lab import check, disk, product
from lab.expect import expect_dedicated
from lab.guest import Guest, expect_notice, expect_placed
from lab.pods import VmPod
from lab.product import Daemon
from lab.vm import Vm, Vms, VmSpec

PLAIN, IMAGE = Path("/run/plain.img"), Path("/run/with-agent.img")
AGENT = "/lab/bin/kata-affinity-agent"
UNIT, KATA = "kata-affinity-agent.service", "kata-agent.service"
CGROUPS, SLICE = "/sys/fs/cgroup", "kubepods-pod1.slice"
APP, DB, WEB = "a" * 64, "b" * 64, "c" * 64
OWN = {APP: "4-5", DB: "6", WEB: "0-1"}


class SystemdGuest(Guest):
    """A guest whose containers are systemd's scopes, as kata-agent asks for them when cgroups are systemd's."""

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm, "v2")

    def path(self, container: str) -> str:
        """The cgroup of `container`."""
        return f"{CGROUPS}/kubepods.slice/{SLICE}/cri-containerd-{container}.scope"

    def make(self, *containers: str) -> None:
        """Makes containers' scopes, which stay while a process is in them."""
        for container in containers:
            scope = f"--scope --slice={SLICE} --unit={Path(self.path(container)).name} --property=Delegate=yes"
            self.shell.run(f"systemd-run --quiet {scope} sh -c 'sleep 100000 &'")

    def unit(self, name: str, setting: str) -> str:
        """What systemd says of a unit."""
        return self.shell.run(f"systemctl show --value --property={setting} {name}")

    def children(self, pid: str) -> str:
        """The children of process `pid`."""
        return self.shell.run(f"cat /proc/{pid}/task/{pid}/children")


def make_image() -> None:
    """As an operator does it."""
    disk.make(PLAIN)
    check.equal("check of the plain one", product.ctl("guest-image", "check", str(PLAIN)).stdout.strip(), f"{PLAIN}: disk, without the agent")
    added = product.ctl("guest-image", "add", str(PLAIN), "-o", str(IMAGE), "--agent", AGENT)
    check.true("Kata is told of the new one, and of no other first program", added.stdout.endswith(f'image = "{IMAGE}"\ninitrd = ""\n'))
    checked = product.ctl("guest-image", "check", str(IMAGE))
    check.true("check of the new one", checked.stdout.startswith(f"{IMAGE}: disk, with kata-affinity-agent"))


def expect_unit(pod: VmPod, guest: SystemdGuest, restarts: int) -> None:
    """systemd has our agent in a cgroup of its own, and the daemon has reached it."""
    state = ["active", str(restarts)]
    check.eventually("the agent's unit, and how often it was restarted", lambda: [guest.unit(UNIT, each) for each in ("ActiveState", "NRestarts")], state)
    check.eventually("the agent answers", lambda: product.guest(pod.vm.id).get("connected"), True, seconds=60)
    process = f"/proc/{guest.unit(UNIT, 'MainPID')}"
    check.equal("its program", guest.shell.run(f"readlink {process}/exe"), "/usr/bin/kata-affinity-agent")
    check.equal("its nice value", guest.shell.run(f"cut -d ' ' -f 19 {process}/stat"), "-20")
    check.equal("its cgroup", guest.unit(UNIT, "ControlGroup"), f"/system.slice/{UNIT}")


def expect_kata_agent_aside(guest: SystemdGuest) -> None:
    """kata-agent is held by the cgroup that systemd gave it, and what it starts is free once it left that."""
    common = guest.owned_numbers(OWN[WEB])
    cgroup = f"/system.slice/{KATA}"
    check.eventually("the cpuset of kata-agent's cgroup", lambda: guest.shell.run(f"cat {CGROUPS}{cgroup}/cpuset.cpus"), common)
    pid = guest.unit(KATA, "MainPID")
    there = [guest.shell.run(f"cat /proc/{pid}/cgroup"), guest.shell.allowed(int(pid))]
    check.equal("where kata-agent is, and may run", there, [f"0::{cgroup}", common])
    before = guest.children(pid)
    guest.shell.run(f"kill {before}")
    check.eventually("it starts another process", lambda: guest.children(pid) not in ("", before), True)
    child = guest.children(pid)
    guest.shell.run(f"echo {child} > {CGROUPS}/cgroup.procs")
    check.equal("where that may run outside of the cgroup", guest.shell.allowed(int(child)), "0-4")


def expect_services_aside(guest: SystemdGuest) -> None:
    """systemd and its services may not run on a container's vCPUs; a service that starts now neither."""
    common = guest.owned_numbers(OWN[WEB])
    for cgroup in ("init.scope", "system.slice"):
        check.eventually(f"the CPUs of {cgroup}", lambda cgroup=cgroup: guest.shell.run(f"cat {CGROUPS}/{cgroup}/cpuset.cpus.effective"), common)
    check.equal("where systemd may run", guest.shell.allowed(1), common)
    guest.shell.run("systemd-run --quiet --unit=late sleep 100000")
    check.equal("where a new service may run", guest.shell.allowed(int(guest.unit("late.service", "MainPID"))), common)
    guest.shell.run("systemctl stop late.service")


def expect_all(guest: SystemdGuest) -> None:
    """Containers are on their vCPUs, kata-agent is not, and the product has nothing to say against it."""
    expect_placed(guest, OWN)
    expect_services_aside(guest)
    expect_kata_agent_aside(guest)
    check.equal("violations that verify finds", product.violations(), [])


def doubts() -> set[str]:
    """Why verify says `degraded`."""
    return {each["reason"] for each in product.call("POST", "/v1/verify")["findings"] if each["severity"] == "degraded"}


def hang(pod: VmPod, guest: SystemdGuest) -> None:
    """The agent is stopped, as one that hangs: the host does its part without it and says what nobody confirms, until the agent goes on."""
    guest.shell.run(f"systemctl kill --signal=STOP {UNIT}")
    pod.update(DB, "7", exclusive=True)
    expect_dedicated(pod.vm, "4-5,7")
    check.eventually("why verify says degraded", doubts, {"guest-silent"})
    check.equal("whether the agent answers", product.guest(pod.vm.id)["connected"], False)
    guest.shell.run(f"systemctl kill --signal=CONT {UNIT}")
    expect_placed(guest, OWN | {DB: "7"})
    check.eventually("why verify says degraded", doubts, set())
    pod.update(DB, OWN[DB], exclusive=True)


def live(vms: Vms) -> None:
    check.step("a guest boots from it")
    spec = VmSpec(5, job="disk", disk=str(IMAGE), words="systemd.unit=kata-containers.target", shell=True)
    pod = VmPod(vms, "guest-disk", spec, extra_cpus="0-1")
    guest = SystemdGuest(pod.vm)
    check.equal("its first program", guest.shell.run("cat /proc/1/comm"), "systemd")
    expect_unit(pod, guest, restarts=0)
    check.equal("its address", product.guest(pod.vm.id)["address"], f"vsock://{pod.vm.cid}:1031")

    check.step("three containers; each counts its CPUs first")
    guest.make(*OWN)
    for container, cpu_list in OWN.items():
        pod.update(container, cpu_list, exclusive=container != WEB)
    check.eventually("containers that the guest has placed", lambda: [each[2] for each in product.in_guest(pod.vm.id).values()], [""] * 3)
    check.equal("nproc", {each[0]: guest.first_act(each, "nproc") for each in OWN}, {"a": "2", "b": "1", "c": "2"})
    for container in OWN:
        guest.start(container, "/restless")
    expect_all(guest)
    expect_notice(guest, OWN, WEB)

    check.step("systemd writes its cgroups anew: it reads its units again, and a slice gets another controller")
    guest.shell.run(f"systemctl daemon-reload; systemctl set-property --runtime {KATA} CPUWeight=50")
    expect_all(guest)

    check.step("systemd starts kata-agent anew, in a new cgroup")
    guest.shell.run(f"systemctl --no-ask-password restart {KATA}")
    expect_all(guest)

    check.step("our agent hangs, and goes on")
    hang(pod, guest)
    expect_all(guest)

    check.step("our agent is killed")
    guest.shell.run(f"systemctl kill --signal=KILL {UNIT}")
    expect_unit(pod, guest, restarts=1)
    expect_all(guest)
    expect_notice(guest, OWN, WEB)
    check.true("the VM runs", pod.vm.is_undisturbed())
    pod.remove()


def main() -> None:
    check.step("a disk image with systemd gets our agent")
    make_image()
    with Daemon(housekeeping="shared-pool"), Vms() as vms:
        live(vms)


main()
