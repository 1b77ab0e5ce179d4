# SPDX-License-Identifier: Apache-2.0
"""What doctor finds on a node, and its remedies: the commands that it prints are run, and the finding is gone."""
# lab shapes: smt8
# lab timeout: 900
# lab peers: kubelet

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from lab import check, kubelet_service, product
from lab.kubelet import STATE, CpuManager
from lab.quick_start import CONFIG, a_kata_node

_CONTAINERD = Path("/etc/containerd/config.toml")
_NRI_SOCKET = Path("/run/nri/nri.sock")
_MINE = CONFIG.parent / "config.d/60-mine.toml"
_KUBELET = Path("/var/lib/kubelet/config.yaml")
_PATIENCE = 120.0


def finding(text: str) -> dict | None:
    """What doctor says about `text`, unless it is good."""
    found = json.loads(product.ctl("doctor", "--json").stdout)["checks"]
    return next((each for each in found if text in each["text"] and each["level"] != "good"), None)


def run(command: str) -> None:
    """As an operator does, as root."""
    print(f"        $ {command}", flush=True)
    subprocess.run(["sh", "-c", command], check=True, stdin=subprocess.DEVNULL)


def remedy(text: str, edit: Callable[[], object] = lambda: None) -> None:
    """doctor has the finding; after `edit`, what its advice says in words, and the command that it prints, it has not."""
    found = finding(text)
    check.true(f"doctor says: {text}", found is not None)
    print(f"          {found['level']}: {found['text']}\n          -> {found['advice']}", flush=True)
    edit()
    if found["command"]:
        run(found["command"])
    check.eventually(f"doctor says it no more: {text}", lambda: finding(text), None, seconds=_PATIENCE)


def containerd_has(old: str, new: str) -> None:
    """A change of containerd's configuration, not yet in force."""
    text = _CONTAINERD.read_text()
    check.true(f"containerd's configuration has {old.splitlines()[0]}", old in text)
    _CONTAINERD.write_text(text.replace(old, new))


def nri() -> None:
    table = '[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n'
    check.step("NRI: disabled, not enabled, its socket gone")
    containerd_has(table, table.replace("false", "true"))
    run("systemctl restart containerd")
    remedy("NRI is disabled in /etc/containerd/config.toml", lambda: containerd_has(table.replace("false", "true"), table))
    containerd_has(table, "")
    run(f"systemctl stop containerd; rm -f {_NRI_SOCKET}; systemctl start containerd")
    remedy("containerd before 2.0 has NRI disabled by default", lambda: (containerd_has("version = 2\n", f"version = 2\n{table}"), run("systemctl restart containerd")))
    run(f"systemctl stop containerd; rm -f {_NRI_SOCKET}")
    remedy("its socket is missing")
    run("systemctl stop containerd")
    remedy("the container runtime that created it has ended")
    text = _CONTAINERD.read_text()
    _CONTAINERD.unlink()
    run(f"systemctl stop containerd; rm -f {_NRI_SOCKET}")
    remedy("no /etc/containerd/config.toml that enables NRI", lambda: (_CONTAINERD.write_text(text), run("systemctl restart containerd")))


def debugfs() -> None:
    check.step("debugfs: not mounted, without KVM")
    run("umount /sys/kernel/tracing; umount /sys/kernel/debug")
    remedy("debugfs is not mounted")
    run("modprobe -r kvm_amd kvm")
    remedy("has no kvm directory")


def kata() -> None:
    check.step("Kata's own pinning, and the profile")
    remedy("enable_vcpus_pinning is on")
    run("kata-affinityctl setup --profile default --yes")
    remedy("profile default, exclusive containers are degraded")
    run("kata-affinityctl setup --undo --yes")
    remedy("sandbox_cgroup_only is off")
    _MINE.write_text('mode = "follow"\n')
    remedy("60-mine.toml:1:1: mode", _MINE.unlink)
    _MINE.write_text("[runtime]\nenable_vcpus_pinning = true\n")
    remedy("enable_vcpus_pinning is on", _MINE.unlink)
    _MINE.write_text("[hypervisor.qemu]\ndefault_maxvcpus = 4\n")
    remedy("default_maxvcpus is 4", lambda: _MINE.write_text("[hypervisor.qemu]\ndefault_maxvcpus = 0\n"))
    remedy("static_sandbox_resource_mgmt is off", lambda: _MINE.write_text("[runtime]\nstatic_sandbox_resource_mgmt = true\n"))


def unit(program: str) -> None:
    """A program of that name, which does nothing, as a unit."""
    Path(f"/usr/local/sbin/{program}").symlink_to("/usr/bin/sleep")
    Path(f"/etc/systemd/system/{program}.service").write_text(f"[Service]\nExecStart=/usr/local/sbin/{program} infinity\n[Install]\nWantedBy=multi-user.target\n")
    run(f"systemctl daemon-reload; systemctl enable --now {program}")


def spare_vms(active: Path) -> None:
    """As the advice says it: a profile that includes the other one."""
    own = active.parent / "vm-cpu-partitioning/tuned.conf"
    own.parent.mkdir()
    own.write_text("[main]\ninclude=cpu-partitioning\n[scheduler]\nps_blacklist=.*qemu.*;.*cloud-hyper.*;.*virtiofsd.*\n")
    active.write_text("vm-cpu-partitioning\n")


def movers() -> None:
    check.step("programs that move threads and interrupts")
    unit("numad")
    remedy("numad is running")
    unit("irqbalance")
    remedy("irqbalance is running")
    run("systemctl start irqbalance")
    check.true("doctor says it again", finding("irqbalance is running") is not None)
    settings = Path("/etc/default/irqbalance")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("IRQBALANCE_BANNED_CPULIST=2-7\n")
    check.equal("doctor says it no more", finding("irqbalance is running"), None)
    profile = Path("/etc/tuned/active_profile")
    profile.parent.mkdir()
    profile.write_text("cpu-partitioning\n")
    unit("tuned")
    remedy("tuned is running with the profile cpu-partitioning", lambda: profile.write_text("virtual-host\n"))
    profile.write_text("cpu-partitioning\n")
    remedy("tuned is running with the profile cpu-partitioning", lambda: spare_vms(profile))
    CpuManager()
    unit("dracpu")
    remedy("dra-driver-cpu is running beside kubelet's static policy", lambda: run("systemctl disable --now dracpu"))
    STATE.unlink()
    unit("nri-resource-policy-balloons")
    remedy("an NRI resource policy", lambda: run("systemctl disable --now nri-resource-policy-balloons"))
    plugin = Path("/opt/nri/plugins/10-other")
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    remedy("starts other NRI plugins: 10-other", plugin.unlink)


def kubelet_runs(policy: str) -> None:
    kubelet_service.install_unit(cpuManagerPolicy=policy)
    run("systemctl start kubelet")
    check.eventually("kubelet has written its state", STATE.exists, True, seconds=_PATIENCE)


def set_static() -> None:
    """As the advice says, which has no command of its own."""
    kubelet_service.install_unit(cpuManagerPolicy="static")
    run(f"rm {STATE}; systemctl restart kubelet")


def kubelet() -> None:
    check.step("kubelet: another policy, a damaged state, SMT that was turned off")
    remedy("no CPU manager state on this node", lambda: kubelet_runs("static"))
    run(f"systemctl stop kubelet; rm {STATE}")
    kubelet_runs("none")
    remedy('policy is "none"', set_static)
    check.eventually("kubelet has written its state", STATE.exists, True, seconds=_PATIENCE)
    run(f"systemctl stop kubelet; echo broken > {STATE}; systemctl start kubelet")
    remedy("kubelet's CPU manager state:")
    check.eventually("kubelet has written its state", STATE.exists, True, seconds=_PATIENCE)
    run("echo off > /sys/devices/system/cpu/smt/control")
    remedy("SMT is off, and kubelet's state still has")
    check.eventually("kubelet has written its state", lambda: json.loads(STATE.read_text())["defaultCpuSet"], "0,2,4,6", seconds=_PATIENCE)


def kubelet_and_kata() -> None:
    """A cgroup of pods that lacks cpuset, and a pool that VMs would be sized by."""
    check.step("Kata's settings that kubelet makes matter")
    burstable = next(Path("/sys/fs/cgroup").glob("kubepods*/*burstable*"))
    for slice_ in (burstable.parent, burstable):
        print(f"          {slice_.name} delegates {(slice_ / 'cgroup.subtree_control').read_text().strip() or 'nothing'}", flush=True)
    check.equal("whether doctor finds fault with slices that have no pod", finding("does not delegate cpuset"), None)
    run("systemctl stop kubelet")  # it removes cgroups of pods that it does not know
    (burstable / "pod1").mkdir()
    (burstable / "cgroup.subtree_control").write_text("-cpuset")
    remedy("does not delegate cpuset to its pods", lambda: _MINE.write_text("[runtime]\nsandbox_cgroup_only = true\n"))
    text = _KUBELET.read_text()
    _KUBELET.write_text(f"{text}featureGates:\n  DisableCPUQuotaWithExclusiveCPUs: false\n")
    remedy("a burstable container without a CPU limit", lambda: _MINE.write_text("[runtime]\nsandbox_cgroup_only = true\nstatic_sandbox_resource_mgmt = true\n"))
    _KUBELET.write_text(text)
    remedy("Kata sizes VMs by CPU quota", lambda: _MINE.write_text("[runtime]\nsandbox_cgroup_only = true\nstatic_sandbox_resource_mgmt = false\n"))


def main() -> None:
    a_kata_node()
    nri()
    debugfs()
    kata()
    movers()
    kubelet()
    kubelet_and_kata()


main()
