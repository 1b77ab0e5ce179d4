# SPDX-License-Identifier: Apache-2.0
"""Containers in real VMs: processes on exactly the vCPUs that are on exactly the container's CPUs.

    guest.py --programs DIR --kernel FILE --initrd FILE --work DIR
"""

import argparse
import json
import os
import re

from scene import Daemon, Vm, broken, eventually, equal

APP, WEB, LATE = "a" * 64, "b" * 64, "c" * 64


def host_cpus():
    """Two CPUs that this test may use: one to share, one to own."""
    return sorted(os.sched_getaffinity(0))[:2]


def container(daemon, vm_name, container_id):
    found = [one for one in daemon.sandbox(vm_name)["containers"] if one["id"] == container_id]
    return (found[0]["guest"] or {}) if found else {}


def dedicated(daemon, vm_name):
    """The one dedicated vCPU: (APIC id, guest CPU, host CPUs that its thread may use)."""
    sandbox = daemon.sandbox(vm_name)
    [vcpu] = [one for one in sandbox["vcpus"] if one["role"] == "dedicated"]
    [thread] = [one for one in sandbox["threads"] if one.get("vcpu") == vcpu["index"]]
    status = open(f"/proc/{thread['tid']}/status").read()
    return vcpu["apic_id"], vcpu.get("guest_cpu"), re.search(r"Cpus_allowed_list:\s*(\S+)", status)[1], thread["tid"]


def runs_on(stat):
    """Field 39 of a stat line: the CPU that the thread was last seen on."""
    return int(stat.rsplit(")", 1)[1].split()[36])


def numbers(daemon, vm, name, wanted):
    print("== who is who in the guest", flush=True)
    ids = vm.shell.apic_ids()
    equal("APIC ids of the guest", sorted(ids.values()), wanted)
    eventually("the guest's CPUs, as the daemon has them", lambda: told(daemon, name), ids)


def told(daemon, name):
    """APIC ids by the guest's CPU number, of those that are online."""
    return {one["guest_cpu"]: one["apic_id"] for one in daemon.sandbox(name)["vcpus"] if "guest_cpu" in one}


def place(daemon, vm, name, root):
    shared, own = host_cpus()
    print("== app owns a CPU, web shares: their cgroups come later", flush=True)
    daemon.ctl("container", "update", name, WEB, "--cpus", str(shared), "--shared")
    daemon.ctl("container", "update", name, APP, "--cpus", str(own), "--exclusive")
    eventually("app in the guest", lambda: container(daemon, name, APP).get("problem"), "not-found")
    vm.inside(f"mkdir -p {root}/kubepods/{APP} {root}/kubepods/cri-containerd-{WEB}.scope")
    eventually("app is placed", lambda: container(daemon, name, APP).get("problem"), "")

    apic_id, guest_cpu, mask, _ = dedicated(daemon, name)
    equal("the guest's number of the dedicated vCPU", vm.shell.apic_ids()[guest_cpu], apic_id)
    equal("CPUs of its thread", mask, str(own))
    app = vm.shell.start(f"{root}/kubepods/{APP}", "sh -c \"nproc > /tmp/first; while :; do :; done\"")
    web = vm.shell.start(f"{root}/kubepods/cri-containerd-{WEB}.scope", "sleep 10000")
    eventually("what app prints as its first act", lambda: vm.inside("cat /tmp/first"), "1")
    equal("CPUs of app", vm.shell.allowed(app), str(guest_cpu))
    others = sorted(set(vm.shell.apic_ids()) - {guest_cpu})
    equal("CPUs of web", set_of(vm.shell.allowed(web)), others)
    return app, guest_cpu


def set_of(text):
    cpus = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def hold(daemon, vm, name, app, guest_cpu, root):
    print("== what app tries, and what is born of it", flush=True)
    vm.inside(f"taskset -p f {app}")
    equal("CPUs of app after it asked for all", vm.shell.allowed(app), str(guest_cpu))
    children = vm.inside(
        f"sh -c 'echo $$ > {root}/kubepods/{APP}/cgroup.procs; for i in 1 2 3; do (taskset f grep Cpus_allowed_list "
        "/proc/self/status) & done; wait'"
    )
    equal("CPUs of its children", set(line.split()[-1] for line in children.splitlines()), {str(guest_cpu)})
    _, _, _, tid = dedicated(daemon, name)
    _, own = host_cpus()
    for _ in range(20):
        inside = runs_on(vm.inside(f"cat /proc/{app}/stat"))
        outside = runs_on(open(f"/proc/{tid}/stat").read())
        if (inside, outside) != (guest_cpu, own):
            raise SystemExit(f"app ran on guest CPU {inside}, its vCPU on CPU {outside}")
    print("good: app was seen 20 times, always on its vCPU, and that on its CPU", flush=True)
    equal("what verify finds", broken(daemon), [])
    seen = container(daemon, name, APP)
    equal("the last link of the chain in status", (set_of(seen["actual"]), seen["outside"]), ([guest_cpu], 0))


def late(daemon, vm, name, root, guest_cpu):
    print("== a container of which nobody spoke, and somebody who writes app's cpuset", flush=True)
    vm.inside(f"mkdir -p {root}/kubepods/{LATE}")
    others = sorted(set(vm.shell.apic_ids()) - {guest_cpu})
    eventually("CPUs of the stranger", lambda: set_of(vm.inside(f"cat {root}/kubepods/{LATE}/cpuset.cpus") or "99"), others)
    vm.inside(f"echo 0 > {root}/kubepods/{APP}/cpuset.cpus")
    eventually("app's cpuset is mended", lambda: vm.inside(f"cat {root}/kubepods/{APP}/cpuset.cpus"), str(guest_cpu))


def hooks(vm, root, guest_cpu):
    print("== hooks of kata-agent", flush=True)
    others = sorted(set(vm.shell.apic_ids()) - {guest_cpu})
    hook = "/usr/libexec/kata-affinity/hooks"
    state = '{"ociVersion":"1.0.2","id":"hooked","status":"creating","pid":1,"bundle":"/run/x","annotations":{"a":"b"}}'
    vm.inside(f"mkdir -p {root}/kubepods/hooked")
    said = vm.inside(f"echo '{state}' | env -i {hook}/prestart/kata-affinity-agent prestart; echo $?; "
                     f"cat {root}/kubepods/hooked/cpuset.cpus").split()
    equal("prestart: placed when the hook returns", (said[0], set_of(said[1])), ("0", others))
    equal("poststop", vm.inside(f"echo '{state}' | env -i {hook}/poststop/kata-affinity-agent poststop; echo $?"), "0")
    equal("nonsense", vm.inside(f"echo nonsense | {hook}/prestart/kata-affinity-agent prestart 2>/dev/null; echo $?"), "1")
    vm.inside(f"rmdir {root}/kubepods/hooked")


def surroundings(vm, root, guest_cpu):
    print("== what else runs in the guest", flush=True)
    others = sorted(set(vm.shell.apic_ids()) - {guest_cpu})
    agent = vm.inside("for comm in /proc/[0-9]*/comm; do [ \"$(cat $comm)\" != kata-agent ] || echo $comm; done")
    equal("CPUs of kata-agent", set_of(vm.shell.allowed(agent.split("/")[2])), others)
    equal("its cgroup", vm.inside(f"cat {root}/kata-affinity/cpuset.cpus"), vm.inside(f"cat {root}/kubepods/{LATE}/cpuset.cpus"))
    equal("CPUs of kthreadd", set_of(vm.shell.allowed(2)), others)
    notice = json.loads(vm.inside("cat /run/kata-affinity/cpus.json"))
    [cpus] = [one["cpus"] for one in notice["containers"] if one["id"] == APP]
    equal("what app can read of its CPUs", cpus, str(guest_cpu))
    resident = vm.inside("for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" != kata-affinity-a ] || grep VmRSS $p/status; done")
    kib = int(resident.split()[1])
    equal("the agent's memory is below 3 MiB", kib < 3072, True)


def busy(daemon, vm, name, root):
    print("== the vCPU in common is busy", flush=True)
    shared, own = host_cpus()
    # Kata's kernels do not have it: who is in a session of its own would have half of the vCPU.
    vm.inside("! cd /proc/sys/kernel || echo 0 > sched_autogroup_enabled")
    vm.inside("echo 'for i in $(seq 100); do (while :; do :; done) & done; wait' > /tmp/loops")
    vm.shell.start(f"{root}/kubepods/cri-containerd-{WEB}.scope", "sh /tmp/loops")
    processes = f"{root}/kubepods/cri-containerd-{WEB}.scope/cgroup.procs"
    eventually("there are many loops", lambda: int(vm.inside(f"wc -l < {processes}")) > 100, True)
    slowest = 0
    for cpus in (str(shared), str(own), str(shared), str(own)):
        whose = "--shared" if cpus == str(shared) else "--exclusive"
        daemon.ctl("container", "update", name, APP, "--cpus", cpus, whose)
        eventually("the guest has it", lambda: daemon.sandbox(name)["guest"].get("current"), True)
        slowest = max(slowest, daemon.sandbox(name)["guest"]["reaction_seconds"])
    print(f"the guest took {slowest:.3f} s at most", flush=True)
    equal("an agent that was too late", "lost connection" in daemon.log(), False)
    vm.inside(f"kill -9 $(cat {processes})")


def end(daemon, vm, name, root):
    print("== everything is given back", flush=True)
    daemon.ctl("release", name)
    file = "cpuset.cpus" if "cpuset" in root else "cpuset.cpus.effective"
    everything = vm.inside(f"cat {root}/{file}")
    eventually("CPUs of app", lambda: vm.inside(f"cat {root}/kubepods/{APP}/{file}"), everything)
    daemon.ctl("reconcile", name)
    eventually("app is placed again", lambda: container(daemon, name, APP).get("problem"), "")


def by_affinity(daemon, vm, name, root):
    print("== app owns a CPU, and its threads alone can be placed", flush=True)
    shared, own = host_cpus()
    daemon.ctl("container", "update", name, WEB, "--cpus", str(shared), "--shared")
    daemon.ctl("container", "update", name, APP, "--cpus", str(own), "--exclusive")
    vm.inside(f"mkdir -p {root}/kubepods/{APP} {root}/kubepods/{WEB}")
    app = vm.shell.start(f"{root}/kubepods/{APP}", "sleep 10000")
    web = vm.shell.start(f"{root}/kubepods/{WEB}", "sleep 10000")
    eventually("CPUs of app's vCPU", lambda: dedicated(daemon, name)[2], str(own))
    guest_cpu = dedicated(daemon, name)[1]
    others = sorted(set(vm.shell.apic_ids()) - {guest_cpu})
    eventually("CPUs of app", lambda: vm.shell.allowed(app), str(guest_cpu))
    eventually("CPUs of web", lambda: set_of(vm.shell.allowed(web)), others)
    eventually("how, and how many threads", lambda: told_of(daemon, name), ("affinity", 1, 0, ""))

    print("== threads that are born later, and that try to get away", flush=True)
    vm.inside(f"taskset -p f {app}")
    eventually("CPUs of app after it asked for all", lambda: vm.shell.allowed(app), str(guest_cpu))
    born = [vm.shell.start(f"{root}/kubepods/{APP}", "sleep 10000") for _ in range(3)]
    eventually("CPUs of those that came later", lambda: {vm.shell.allowed(each) for each in born}, {str(guest_cpu)})
    eventually("how, and how many threads", lambda: told_of(daemon, name), ("affinity", 4, 0, ""))
    eventually("what verify finds", lambda: broken(daemon), [])

    print("== everything is given back", flush=True)
    daemon.ctl("release", name)
    eventually("CPUs of app and web", lambda: {tuple(set_of(vm.shell.allowed(each))) for each in (app, web)}, {(0, 1)})


def told_of(daemon, name):
    """How app is placed, its threads, those that may run elsewhere, and what is wrong with it."""
    seen = container(daemon, name, APP)
    return tuple(seen.get(key) for key in ("method", "threads", "outside", "problem"))


def by_cgroups(daemon, vm, name, root):
    app, guest_cpu = place(daemon, vm, name, root)
    hold(daemon, vm, name, app, guest_cpu, root)
    late(daemon, vm, name, root, guest_cpu)
    hooks(vm, root, guest_cpu)
    surroundings(vm, root, guest_cpu)
    busy(daemon, vm, name, root)
    end(daemon, vm, name, root)


def run(arguments, name, words, root, parts):
    """A VM of two vCPUs whose kernel has `words` on its command line; cgroups of containers are below `root`."""
    daemon = Daemon(arguments.programs, f"{arguments.work}/{name}-daemon", "drift_check = 1")
    # One socket without holes: with anything else the guest's kernel hangs in its boot, under software emulation.
    vm = Vm(arguments, f"{arguments.work}/{name}", ["-smp", "2"], words)
    try:
        print(f"==== {name}", flush=True)
        # No address: the daemon finds the port in QEMU's command line.
        daemon.ctl("sandbox", "add", name, "--vmm-pid", str(vm.process.pid), "--qmp", f"{vm.directory}/qmp")
        eventually("the agent is connected", lambda: (daemon.sandbox(name)["guest"] or {}).get("connected"), True, 120)
        numbers(daemon, vm, name, [0, 1])
        parts(daemon, vm, name, root)
    except BaseException:
        print((vm.directory / "console").read_text(errors="replace")[-2000:])
        print(daemon.log()[-3000:], daemon.ctl("status", check=False).stdout)
        raise
    finally:
        vm.stop()
        daemon.stop()


def main():
    parser = argparse.ArgumentParser()
    for name in ("programs", "kernel", "initrd", "work"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    run(arguments, "guest-v2", "v2", "/sys/fs/cgroup", by_cgroups)
    run(arguments, "guest-v1", "v1", "/sys/fs/cgroup/cpuset", by_cgroups)
    run(arguments, "guest-without-cpusets", "v2 cgroup_disable=cpuset", "/sys/fs/cgroup", by_affinity)


main()
