# SPDX-License-Identifier: Apache-2.0
"""kata-affinity-helper alone: the host leaves CPUs, whoever writes its masks back, and has all of them again, wherever the helper is killed."""
# lab shapes: smt8
# lab timeout: 1500

import os
import subprocess
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from lab import check, cpus, given_back, helper, product, reach
from lab.cgroup import Cgroup
from lab.given_back import Masks
from lab.helper import Helper
from lab.quiet import PATIENCE, expect_noisy, expect_quiet

OWN, ALL = "2-3", "0-7"
KILLS = 8
SLICE = reach.CGROUPS / "system.slice/cpuset.cpus"
PINNED, LATE = "lab-pinned.service", "lab-late.service"


def run(*command: str) -> None:
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def set_property(unit: str, cpu_list: str) -> None:
    """What an administrator does, until the next boot."""
    run("systemctl", "set-property", "--runtime", unit, f"AllowedCPUs={cpu_list}")


def kernel_thread(name: str) -> int:
    return int(subprocess.run(["pgrep", "-x", name], capture_output=True, text=True, check=True).stdout)


def serial_port() -> Path:
    """The mask of its interrupt."""
    return next(Path("/proc/irq").glob("*/ttyS0")).with_name("smp_affinity_list")


def furnish() -> None:
    """What a node has beside this one's: queues with masks, a service and a kernel thread that are pinned, an interrupt on one CPU."""
    Cgroup("kubepods")  # as kubelet does, which enables the cpuset controller
    run("modprobe", "veth")
    run(*"ip link add lab-q0 numtxqueues 2 numrxqueues 2 type veth peer name lab-q1 numtxqueues 2 numrxqueues 2".split())
    queues = Path("/sys/class/net/lab-q0/queues")
    for queue, mask in {"rx-0/rps_cpus": "ff", "rx-1/rps_cpus": "0c", "tx-0/xps_cpus": "0f", "tx-1/xps_cpus": "f0"}.items():
        (queues / queue).write_text(mask)
    run("systemd-run", "--quiet", f"--unit={PINNED}", "--property=CPUAffinity=2", "sleep", "infinity")
    os.sched_setaffinity(kernel_thread("ksmd"), cpus.parse(OWN))
    serial_port().write_text("3")


def same(before: Masks, what: str = "masks that are not as before") -> None:
    check.eventually(what, lambda: given_back.differs(before), {}, PATIENCE)


def leave() -> None:
    check.step(f"the host leaves CPUs {OWN}")
    helper.ask(OWN)
    expect_quiet(OWN)
    run("systemd-run", "--quiet", f"--unit={LATE}", "sleep", "infinity")
    run("systemd-run", "--quiet", "--slice=machine.slice", "--unit=lab-machine.service", "sleep", "infinity")
    run("systemd-run", "--quiet", "--slice=user.slice", "--unit=lab-user.service", "sleep", "infinity")
    expect_quiet(OWN)
    for unit in (LATE, "lab-machine.service", "lab-user.service"):
        run("systemctl", "stop", unit)


def drift(before: Masks) -> None:
    check.step("other programs write every mask back: the host leaves again")
    for name, text in before.things.items():
        if name.startswith(("/proc", "/sys")):
            subprocess.run(["sh", "-c", f"echo {text} > {name}"], check=False, stderr=subprocess.DEVNULL)
    os.sched_setaffinity(kernel_thread("kthreadd"), cpus.parse(ALL))
    expect_quiet(OWN)
    check.step("a program writes a unit's cpuset past systemd")
    SLICE.write_text(ALL)
    expect_quiet(OWN)
    check.step("systemd reads its units again, and starts itself again")
    run("systemctl", "daemon-reload")
    expect_quiet(OWN)
    run("systemctl", "daemon-reexec")
    expect_quiet(OWN)


def come(before: Masks) -> None:
    check.step("a device comes while the host is kept off: its interrupts stay away, and are the host's like all others afterwards")
    driver = Path("/sys/bus/pci/drivers/virtio-pci")
    device = next(driver.glob("*/virtio*/block/vdb")).parents[2].name
    (driver / "unbind").write_text(device)
    (driver / "bind").write_text(device)
    expect_quiet(OWN)
    helper.ask("")
    masks = {each.name: each.cpus for each in reach.left(ALL, set()) if each.kind == "interrupt" and each.movable and "config" in each.name}
    print(f"          {masks}")
    check.equal("interrupts of devices that may not use all CPUs of their node", [name for name, on in masks.items() if on not in (ALL, "0-3")], [])
    same(before)


def administrator(before: Masks) -> None:
    check.step("an administrator limits system.slice to 2-5: narrowed, and given back as the administrator had it")
    helper.ask(OWN)
    set_property("system.slice", "2-5")
    check.eventually("its CPUs", lambda: SLICE.read_text().strip(), "4-5", PATIENCE)
    helper.ask("")
    check.eventually("its CPUs, given back", lambda: SLICE.read_text().strip(), "2-5", PATIENCE)
    check.step("an administrator limits system.slice to what it must leave: it stays, and is named")
    set_property("system.slice", OWN)
    helper.ask(OWN)
    units = next(kind for kind in helper.told()["kinds"] if kind["kind"] == "unit")
    check.equal("units that are left", [each["name"] for each in units["left"]], ["system.slice"])
    print(f"          {units['left'][0]['why']}")
    helper.ask("")
    check.equal("its CPUs", SLICE.read_text().strip(), OWN)
    for wanted in (ALL, ""):
        set_property("system.slice", wanted)
    same(before)


def refused() -> None:
    check.step("what is refused changes nothing")
    helper.ask(OWN)
    expect_quiet(OWN)
    before = given_back.read()
    for wrong in (ALL, "2-99", "99", "2-", "3-2", "a", "2,,3", " "):
        try:
            said = f"accepted: {helper.ask(wrong)['cpus']}"
        except product.Refused as refusal:
            said = str(refusal.status)
            print(f"          {wrong!r}: {refusal}", flush=True)
        check.equal(f"{wrong!r}", said, "400")
    check.equal("the helper's CPUs", helper.told()["cpus"], OWN)
    same(before, "masks that are not as they were before")


def others(before: Masks) -> None:
    check.step("other CPUs: those that are wanted no longer are given back")
    helper.ask("3,6")
    expect_quiet("3,6")
    expect_noisy("2")
    helper.ask("")
    same(before)


class Request(threading.Thread):
    """One that may be cut off."""

    def __init__(self, cpu_list: str) -> None:
        super().__init__()
        self._cpus = cpu_list
        self.start()

    def run(self) -> None:
        try:
            helper.ask(self._cpus)
        except (OSError, HTTPException):
            pass


def seconds_of(cpu_list: str) -> float:
    began = time.monotonic()
    helper.ask(cpu_list)
    return time.monotonic() - began


def kill_within(program: Helper, cpu_list: str, after: float, before: Masks) -> str:
    """Kills it `after` seconds into a request; how many masks were not as before then."""
    request = Request(cpu_list)
    time.sleep(after)
    program.kill()
    request.join()
    return f"{after * 1000:.0f} ms into it, {len(given_back.differs(before))} masks are not as before"


def killed(program: Helper, before: Masks) -> list[str]:
    """What was not given back, by the moment of the kill: one must not hide the next."""
    taking, giving = seconds_of(OWN), seconds_of("")
    same(before)
    times = f"takes CPUs within {taking * 1000:.0f} ms, and gives them back within {giving * 1000:.0f} ms"
    check.step(f"the helper {times}; it is killed at {KILLS} moments of each")
    ends: tuple[tuple[str, Callable[[], object]], ...] = (
        ("started again, it is asked to give back", lambda: (program.start(), helper.ask(""))),
        ("restored without it", lambda: (helper.restore(), program.start())),
        ("started again, it is asked for the same CPUs", lambda: (program.start(), helper.ask(OWN), expect_quiet(OWN), helper.ask(""))),
        ("started again, it is asked for others", lambda: (program.start(), helper.ask("5"), expect_quiet("5"), expect_noisy(OWN), helper.ask(""))),
    )
    failures = []
    for number in range(2 * KILLS):
        taken = number >= KILLS
        if taken:
            helper.ask(OWN)
        what, moment = ("", giving) if taken else (OWN, taking)
        name, end = ends[number % len(ends)]
        killed_at = f"{'giving back' if taken else 'taking'}; {name}: {kill_within(program, what, moment * (number % KILLS) / KILLS, before)}"
        check.step(killed_at)
        end()
        failures += [killed_at] if not is_same(before) else []
    return failures


def is_same(before: Masks) -> bool:
    """Prints what is not, and writes units' properties as they were, so that the next kill has the same node."""
    try:
        same(before)
    except check.Failed as failure:
        print(f"          FAILED: {failure}", flush=True)
        for unit in reach.UNITS:
            set_property(unit, "")
        return False
    return True


def alone(program: Helper, before: Masks) -> None:
    check.step("killed and started again, it keeps what it holds without being asked, through others' writes")
    helper.ask(OWN)
    program.kill()
    Path("/proc/irq/default_smp_affinity").write_text("ff")
    program.start()
    expect_quiet(OWN)
    check.step("stopped: it keeps it; restored")
    program.stop()
    check.true("new interrupts stay away", reach.of_mask(Path("/proc/irq/default_smp_affinity").read_text()) == "0-1,4-7")
    helper.restore()
    same(before)
    check.step("restored again: nothing happens")
    helper.restore()
    same(before)
    program.start()


def unreadable(program: Helper, before: Masks) -> None:
    check.step("its record cannot be read: it writes nothing, and says why")
    helper.ask(OWN)
    expect_quiet(OWN)
    program.kill()
    records = [file for file in helper.STATE.rglob("*.json")]
    check.equal("records", len(records), 1)
    kept = records[0].read_text()
    records[0].write_text(kept[: len(kept) // 2])
    held = given_back.read()
    program.start()
    print(f"          {helper.told()['problem']}")
    check.true("it says why", helper.told()["problem"] != "")
    try:
        helper.ask("")
    except product.Refused as refusal:
        print(f"          {refusal}")
    same(held, "masks that it wrote without a record")
    program.kill()
    for file in helper.STATE.iterdir():
        file.unlink()
    records[0].write_text(kept)
    program.start()
    helper.ask("")
    same(before)


def main() -> None:
    furnish()
    before = given_back.read()
    with Helper() as program:
        check.equal("what it holds at its start", helper.told()["cpus"], "")
        same(before)
        leave()
        drift(before)
        helper.ask("")
        same(before)
        expect_noisy(OWN)
        others(before)
        helper.ask(OWN)
        come(before)
        administrator(before)
        refused()
        helper.ask("")
        same(before)
        failures = killed(program, before)
        alone(program, before)
        unreadable(program, before)
        check.equal("records of what is held", list(helper.STATE.glob("*.json")), [])
        check.equal("kills after which something was not given back", failures, [])


main()
