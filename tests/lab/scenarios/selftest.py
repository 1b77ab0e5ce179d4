# SPDX-License-Identifier: Apache-2.0
"""The self-test on a node without kubelet: its pods come and go through containerd's CRI, also after a signal and after kill -9."""
# lab shapes: smt8
# lab timeout: 900

import signal
from pathlib import Path

from lab import check, product, selftest
from lab.cri import Cri, CriPod, start_containerd
from lab.product import NRI_SOCKET, Daemon

_TASKS = Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io")
_CGROUPS = Path("/sys/fs/cgroup")
_PARENTS = {"/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/kata_overhead"}  # containerd's and Kata's own, which they keep


def left(cri: Cri) -> list[str]:
    """What there is of the self-test's pods: by containerd, and in the file system."""
    pods = [each["metadata"]["name"] for each in cri.call("ListPodSandbox", {}).get("items", [])]
    return [name for name in pods if name.startswith("kata-affinity-selftest-")]


def tasks() -> set[str]:
    return {each.name for each in _TASKS.iterdir()} if _TASKS.exists() else set()


def cgroups() -> set[str]:
    return {str(each) for each in _CGROUPS.rglob("*") if each.is_dir()}


def succeed(*options: str) -> dict:
    report = selftest.run(*options)
    selftest.expect_success(report, "runtime")
    return report


def refuse(text: str, *options: str) -> None:
    """It refuses with that reason."""
    ended = product.ctl("selftest", *options)
    check.equal(f"exit status of {options}", ended.returncode, 2)
    check.true(f"its reason: {ended.stdout.splitlines()[0]}", text in ended.stdout)


def main() -> None:
    cri = start_containerd()
    with Daemon(nri_socket=NRI_SOCKET, log_level="debug", cgroup="manage"):
        check.eventually("the daemon hears nri", lambda: product.is_heard("nri"), True)
        before = tasks(), cgroups()

        check.step("both of Kata's runtimes, one with the demonstration")
        report = succeed("--demo", "--handler", "kata-go")
        selftest.expect_demonstration(report, halts=True)
        succeed("--handler", "kata")
        check.equal("pods that are left", left(cri), [])
        check.equal("tasks that are left", tasks() - before[0], set())
        check.equal("cgroups that are left", cgroups() - before[1] - _PARENTS, set())

        check.step("killed in the middle; the next call removes its pods, and nobody else's")
        other = CriPod(cri, "other", "kata-go")
        app = other.run("app", "6-7", quota=200000)
        known = tasks()
        selftest.kill_once("both pods are there", lambda: len(left(cri)) == 2)
        check.true("they are left", len(left(cri)) == 2)
        report = succeed()
        check.equal("its first step", report["steps"][0]["step"], "pods of an interrupted self-test end")
        check.equal("pods that are left", left(cri), [])
        check.equal("tasks", tasks(), known)

        check.step("CPUs of another pod are not taken")
        text = [each["text"] for step in report["steps"] for each in step["findings"] if each["by"] == "runtime"]
        check.true(f"{text[0]}", any("CPUs 4-5" in each for each in text))
        refuse("CPUs 6-7 belong to other pods", "--demo")
        other.remove_container(app)
        other.remove()

        check.step("a signal ends it, and its pods")
        check.equal("its exit status", selftest.kill_once("both pods are there", lambda: len(left(cri)) == 2, by=signal.SIGTERM), 2)
        check.equal("pods that are left", left(cri), [])

        check.step("what it refuses")
        refuse("no kubelet runs", "--runtime-class", "kata")
        refuse("no Kata handler", "--handler", "mine")
        refuse("nothing.sock", "--runtime-endpoint", "unix:///run/nothing.sock")
        Path("/var/lib/kubelet").mkdir(parents=True, exist_ok=True)
        Path("/var/lib/kubelet/cpu_manager_state").write_text("{}")
        refuse("kubelet does not run")


main()
