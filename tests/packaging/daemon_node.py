# SPDX-License-Identifier: Apache-2.0
"""A daemon of its own, with VMs of QEMU as its pods. Needs root."""
import pathlib
import subprocess
import time


def run(*command, **how):
    ended = subprocess.run([str(word) for word in command], text=True, capture_output=True, **how)
    assert ended.returncode == 0, f"{' '.join(map(str, command))}: {ended.stdout[-3000:]}{ended.stderr[-3000:]}"
    return ended.stdout


class Node:
    """A daemon with its sockets."""

    def __init__(self, build, place, name, drift_check=86400):
        self.build, self.name, self.place, self.processes = build, name, place / name, []
        self.place.mkdir(mode=0o755)
        (self.place / "affinity.toml").write_text(f"""[affinity]
            nri_socket = ""
            kubelet_state = ""
            pod_resources = ""
            guest = "none"
            drift_check = {drift_check}
            read_socket = "{self.place}/read/api.sock"
            read_socket_mode = "0666"
            """)
        self.start(self.build / "bin/kata-affinityd", "--config", self.place / "affinity.toml", "--socket", self.place / "api.sock",
                   "--state-dir", self.place / "state", "--run", self.place / "run")
        until = time.monotonic() + 20
        while not (self.place / "read/api.sock").exists():
            assert time.monotonic() < until, (self.place / "log").read_text()
            time.sleep(0.05)

    def start(self, *command):
        with open(self.place / "log", "a") as log:
            self.processes.append(subprocess.Popen([str(word) for word in command], stdout=log, stderr=log))
        return self.processes[-1]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def ctl(self, *arguments):
        return run(self.build / "bin/kata-affinityctl", "--socket", self.place / "api.sock", *arguments)

    def add_pod(self, name, cpus, *more, vcpus=1):
        """A VM whose guest never runs; its container owns CPUs. Returns the vCPU's thread."""
        vm = self.start("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-smp", vcpus, "-m", "64", "-display",
                        "none", "-nodefaults", "-S", "-name", "test,debug-threads=on")
        until = time.monotonic() + 20
        while not (found := [task for task in pathlib.Path(f"/proc/{vm.pid}/task").glob("*")
                             if (task / "comm").read_text().strip() == "CPU 0/TCG"]):
            assert time.monotonic() < until, (self.place / "log").read_text()
            time.sleep(0.05)
        self.ctl("sandbox", "add", name, "--vmm-pid", vm.pid, "--pod-name", f"shop/{name}", *more)
        self.ctl("container", "update", name, "app", "--name", "app", "--cpus", cpus, "--exclusive")
        return int(found[0].name)
