# SPDX-License-Identifier: Apache-2.0
"""The Debian packages under systemd: install, upgrade and downgrade with sandboxes running, restarts, what the journal has, remove, purge."""
# lab shapes: smt8
# lab timeout: 900
# lab packages: yes

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from lab import check, kernel, product
from lab.expect import expect_dedicated, expect_inside
from lab.pods import VmPod
from lab.sampler import Sampler
from lab.vm import Vms, VmSpec

PACKAGES = Path("/lab/packages")
UNIT, AGENT = "kata-affinityd.service", "kata-affinity-agent.service"
KATA = Path("/etc/kata-containers")
DROP_IN = KATA / "config.d/50-affinity.toml"
# Seconds within which the daemon goes on without sources that stay silent: NRI does here.
START_LIMIT = 30.0


def run(*command: str) -> str:
    """Runs a command that must succeed; what it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise check.Failed(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def dpkg(*arguments: str) -> None:
    """dpkg, as apt calls it."""
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    print("".join(f"          | {line}\n" for line in run("dpkg", *arguments).splitlines()), end="")


def package(name: str, version: str) -> str:
    return str(PACKAGES / f"{name}_{version}.deb")


def state(unit: str) -> str:
    """`active`, `inactive`, `failed`, ..."""
    return subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True, check=False).stdout.strip()


def main_pid() -> int:
    return int(run("systemctl", "show", "--value", "--property=MainPID", UNIT))


def masks(vm: object) -> dict[int, str]:
    return {tid: kernel.allowed(tid) for tid in vm.all_tids()}


def answers() -> bool:
    try:
        product.call("GET", "/v1/sandboxes")
        return True
    except (OSError, product.Refused):
        return False


def expect_undisturbed(what: str, pods: list[VmPod], act: object) -> None:
    """While `act()` goes on no thread may ever run elsewhere, and every VM runs on."""
    before = {tid: mask for pod in pods for tid, mask in masks(pod.vm).items()}
    sampler = Sampler(list(before))
    act()
    check.eventually(f"{what}: the daemon answers", answers, True)
    check.eventually(f"{what}: violations", product.violations, [], seconds=START_LIMIT)
    seen, rounds = sampler.stop()
    check.true(f"{what}: threads were watched", rounds > 50)
    moved = {tid: found for tid, found in seen.items() if found - {before[tid]}}
    check.equal(f"{what}: threads that had another mask for a moment", moved, {})
    check.true(f"{what}: the VMs run", all(pod.vm.is_undisturbed() for pod in pods))


def install() -> None:
    check.step("install: nothing starts, nothing is moved")
    dpkg("--install", package("kata-affinity", "0.1.0-1"))
    check.equal("the unit", state(UNIT), "inactive")
    enabled = subprocess.run(["systemctl", "is-enabled", UNIT], capture_output=True, text=True, check=False)
    check.equal("whether it starts by itself", enabled.stdout.strip(), "disabled")
    check.true("zsh's completion is there", Path("/usr/share/zsh/vendor-completions/_kata-affinityctl").exists())

    KATA.mkdir(parents=True)
    (KATA / "configuration.toml").write_text("[runtime]\nenable_vcpus_pinning = false\n")
    run("kata-affinityctl", "setup")
    check.true("setup without --yes writes nothing", not DROP_IN.exists())
    run("kata-affinityctl", "setup", "--profile", "default", "--yes")
    check.true("setup --yes writes the drop-in", DROP_IN.exists())
    run("systemctl", "enable", "--now", UNIT)
    check.equal("the unit, once it said that it is ready", state(UNIT), "active")
    exposure = run("systemd-analyze", "security", "--no-pager", "--threshold=40", UNIT).splitlines()[-1]
    print(f"          {exposure}")


def start_pods(vms: Vms) -> list[VmPod]:
    check.step("two sandboxes, placed by a daemon that has nothing but what its unit leaves it")
    roomy = VmPod(vms, "roomy", VmSpec(vcpus=3), extra_cpus="0-1")
    roomy.update("app", "2-3", exclusive=True)
    tight = VmPod(vms, "tight", VmSpec(vcpus=2, firmware="spin"))
    tight.update("app", "6-7", exclusive=True)
    expect_dedicated(roomy.vm, "2-3")
    expect_dedicated(tight.vm, "6-7")
    check.eventually("violations", product.violations, [], seconds=START_LIMIT)
    return [roomy, tight]


def restart(pods: list[VmPod]) -> None:
    check.step("the unit restarts, and the daemon is killed: no pod notices")
    expect_undisturbed("restart", pods, lambda: run("systemctl", "restart", UNIT))
    before = main_pid()
    expect_undisturbed("kill", pods, lambda: (os.kill(before, signal.SIGKILL), time.sleep(2)))
    check.true("systemd started another one", main_pid() not in (0, before))


def upgrade(pods: list[VmPod]) -> None:
    check.step("upgrade: the new daemon takes over, no pod notices")
    before = main_pid()
    expect_undisturbed("upgrade", pods, lambda: dpkg("--install", package("kata-affinity", "0.1.0-2")))
    check.true("another daemon runs", main_pid() not in (0, before))
    check.equal("it still starts by itself", run("systemctl", "is-enabled", UNIT).strip(), "enabled")
    pods[1].update("app", "4-5", exclusive=True)
    expect_dedicated(pods[1].vm, "4-5")


def downgrade(pods: list[VmPod]) -> None:
    check.step("downgrade, and back: no pod notices")
    for version in ("0.1.0-1", "0.1.0-2"):
        before = main_pid()
        expect_undisturbed(f"install {version}", pods, lambda version=version: dpkg("--install", package("kata-affinity", version)))
        check.true("another daemon runs", main_pid() not in (0, before))
    expect_dedicated(pods[1].vm, "4-5")


def may_widen() -> bool:
    return product.call("GET", "/v1/sandboxes")["start"]["may_widen"]


def write_as_newer() -> dict[Path, str]:
    """State as a later version might write it; what was there before, by file."""
    before = {file: file.read_text() for file in product.STATE.glob("*.json")}
    for file, text in before.items():
        check.true(f"{file.name} names its version", '"version":1,' in text)
        file.write_text(text.replace('"version":1,', '"version":2,', 1))
    return before


def downgrade_across_states(pods: list[VmPod]) -> None:
    check.step("downgrade from a version whose state this one cannot read: it is set aside, and nothing moves before the pods are reported again")
    run("systemctl", "stop", UNIT)
    states = write_as_newer()
    before = {pod.vm.id: masks(pod.vm) for pod in pods}
    sampler = Sampler([tid for threads in before.values() for tid in threads])
    dpkg("--install", package("kata-affinity", "0.1.0-1"))
    run("systemctl", "start", UNIT)
    time.sleep(START_LIMIT)
    seen, _ = sampler.stop()
    wanted = {tid: {mask} for threads in before.values() for tid, mask in threads.items()}
    check.equal("threads that had another mask for a moment", {tid: found for tid, found in seen.items() if found != wanted[tid]}, {})
    check.equal("state files that it reads", list(product.STATE.glob("*.json")), [])
    check.equal("state files that it set aside", len(list(product.STATE.glob("*.unreadable*"))), len(states))
    check.equal("threads may get more CPUs", may_widen(), False)
    report_again(pods, before)
    check.step("the later version comes back, with its state: what the threads had before us is known again")
    run("systemctl", "stop", UNIT)
    for file, text in states.items():
        file.write_text(text)
    dpkg("--install", package("kata-affinity", "0.1.0-2"))
    run("systemctl", "start", UNIT)
    expect_dedicated(pods[1].vm, "4-5")


def report_again(pods: list[VmPod], before: dict[str, dict[int, str]]) -> None:
    check.step("the pods are reported: each has the masks that it had, whichever of its vCPUs has which")
    for pod, cpu_list in zip(pods, ("2-3", "4-5"), strict=True):
        product.put_sandbox(pod.vm)
        pod.update("app", cpu_list, exclusive=True)
    check.eventually("threads may get more CPUs", may_widen, True)
    check.eventually("violations", product.violations, [], seconds=START_LIMIT)
    for pod, cpu_list in zip(pods, ("2-3", "4-5"), strict=True):
        expect_dedicated(pod.vm, cpu_list)
        check.equal(f"{pod.vm.id}: masks", sorted(masks(pod.vm).values()), sorted(before[pod.vm.id].values()))
        check.true(f"{pod.vm.id} runs", pod.vm.is_undisturbed())


def journal() -> None:
    check.step("the journal has events by their fields")
    lines = run("journalctl", "--unit", UNIT, "--output=json", "KIND=container-updated", "SANDBOX=tight", "CONTAINER=app").splitlines()
    entries = [json.loads(line) for line in lines]
    check.true("container updates of one sandbox can be searched for", len(entries) >= 2)
    check.equal("their reason and priority", {(e["REASON"], e["PRIORITY"]) for e in entries}, {("api", "6")})


def throttle(pods: list[VmPod]) -> None:
    check.step("a CFS quota on a dedicated vCPU's cgroup: doctor says so")
    directory = Path(f"/sys/fs/cgroup{pods[1].vm.cgroup.path}")
    healthy = {found["check"] for found in json.loads(product.ctl("doctor", "--json").stdout)["checks"]}
    check.true("doctor asks the daemon, and finds no quota yet", not healthy & {"quota", "daemon"})
    (directory / "cpu.max").write_text("20000 100000")
    check.eventually("periods in which it was stopped", lambda: "nr_throttled 0" not in (directory / "cpu.stat").read_text(), True)
    doctor = product.ctl("doctor", "--json")
    check.equal("doctor's exit status", doctor.returncode, 1)
    found = [one["text"] for one in json.loads(doctor.stdout)["checks"] if (one["level"], one["check"]) == ("bad", "quota")]
    check.equal("findings about quotas", len(found), 1)
    print(f"          {found[0]}")
    (directory / "cpu.max").write_text("max 100000")


def remove(pods: list[VmPod]) -> None:
    check.step("remove, with a daemon that was stopped before: every thread is released")
    run("systemctl", "stop", UNIT)
    expect_dedicated(pods[1].vm, "4-5")
    dpkg("--remove", "kata-affinity")
    for pod in pods:
        everywhere = pod.vm.cgroup.effective_cpus()
        check.equal(f"{pod.vm.id}: masks", set(masks(pod.vm).values()), {everywhere})
        check.true(f"{pod.vm.id} runs", pod.vm.is_undisturbed())
    check.true("the unit is gone", state(UNIT) == "inactive" and not Path(f"/usr/lib/systemd/system/{UNIT}").exists())
    check.true("what setup wrote is gone", not DROP_IN.exists())
    check.true("Kata's own file is as it was", (KATA / "configuration.toml").read_text() == "[runtime]\nenable_vcpus_pinning = false\n")
    dpkg("--purge", "kata-affinity")
    check.true("nothing is left in /run", not Path("/run/kata-affinity").exists())


def guest_package() -> None:
    check.step("the guest's package: its agent starts with it, listens, restarts over an upgrade, and goes with it")
    dpkg("--install", package("kata-affinity-guest", "0.1.0-1"))
    check.equal("the agent's unit", state(AGENT), "active")
    check.eventually("its socket", Path("/run/kata-affinity/agent.sock").exists, True)
    dpkg("--install", package("kata-affinity-guest", "0.1.0-2"))
    check.equal("the agent's unit after an upgrade", state(AGENT), "active")
    dpkg("--remove", "kata-affinity-guest")
    check.equal("the agent's unit after the removal", state(AGENT), "inactive")
    dpkg("--purge", "kata-affinity-guest")
    check.true("nothing is left in /run", not Path("/run/kata-affinity").exists())


def main() -> None:
    install()
    with Vms() as vms:
        pods = start_pods(vms)
        restart(pods)
        upgrade(pods)
        downgrade(pods)
        downgrade_across_states(pods)
        journal()
        throttle(pods)
        expect_inside(pods[1].vm, "4-5")
        remove(pods)
    guest_package()


main()
