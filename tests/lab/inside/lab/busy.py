# SPDX-License-Identifier: Apache-2.0
"""A busy node: services, a disk and a network in use, timers of systemd, cron, and devices that interrupt, until it is told to stop."""

import subprocess
from pathlib import Path

from lab import cpus

_DISK = Path("/run/lab-disk")
_NETNS, _HERE, _THERE, _PORT = "lab", "10.99.0.1", "10.99.0.2", "9999"
_ECHO = f"""
import socket
answer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answer.bind(("{_THERE}", {_PORT}))
while True:
    answer.sendto(*answer.recvfrom(2048))
"""
_ASK = f"""
import socket, time
ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ask.settimeout(0.2)
while True:
    for _ in range(8):
        ask.sendto(b"x" * 512, ("{_THERE}", {_PORT}))
    try:
        ask.recv(2048)
    except TimeoutError:
        pass
    time.sleep(0.05)
"""
# rtc(4). With an HPET, as here, it interrupts 64 times a second for that.
_CLOCK = """
import fcntl, os
RTC_UIE_ON = 0x7003
clock = os.open("/dev/rtc0", os.O_RDONLY)
fcntl.ioctl(clock, RTC_UIE_ON)
while True:
    os.read(clock, 8)
"""
_SERVICES = {
    "worker": "while :; do i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; sleep 0.1; done",
    "chatter": "while :; do echo a line for the journal; sleep 0.3; done",
    "reader": "while :; do dd if=/dev/vda of=/dev/null bs=16k count=8 skip=$(shuf -n1 -i 0-40000) iflag=direct 2>/dev/null; sleep 0.1; done",
    "writer": f"while :; do dd if=/dev/zero of={_DISK}/mount/file bs=64k count=8 conv=fsync 2>/dev/null; sleep 0.5; done",
    "serial": "while :; do echo the serial port has something to do; sleep 1; done > /dev/ttyS0",
}
# systemd starts a unit no more than five times in ten seconds.
_TIMERS = {"minute": ("3", "true"), "report": ("4", "ls -lR /etc | wc -l"), "rotate": ("5", "find /run -name lab-none")}
_CRONTABS = Path("/run/lab-cron")
_CRONTAB = "* * * * * ls -lR /etc | wc -l\n* * * * * sleep 5; find /run -name lab-none\n"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Busy:
    """Makes the node busy from its making on."""

    def __init__(self) -> None:
        self._units: list[str] = []
        self._disk()
        self._network()
        for name, line in _SERVICES.items():
            self._service(name, "sh", "-c", line)
        self._service("clock", "python3", "-c", _CLOCK)
        for name, (seconds, line) in _TIMERS.items():
            timing = [f"--on-active={seconds}", f"--on-unit-active={seconds}", "--timer-property=AccuracySec=100ms"]
            _run("systemd-run", "--quiet", f"--unit=lab-{name}", *timing, "sh", "-c", line)
            self._units.append(f"lab-{name}.timer")
        self._cron()

    def interrupt(self, on: str) -> None:
        """Sends the interrupts of the serial port and the clock to CPUs `on`, where they may be: their masks stay as they are, and a wider one
        does not change where an interrupt is sent now."""
        targets = sorted(cpus.parse(on))
        for number, name in enumerate(("ttyS0", "rtc0")):
            mask = next(Path("/proc/irq").glob(f"*/{name}")).with_name("smp_affinity_list")
            wider = mask.read_text()
            mask.write_text(str(targets[number % len(targets)]))
            mask.write_text(wider)

    def stop(self) -> None:
        """Ends all of it."""
        _run("systemctl", "stop", *self._units)
        _run("umount", str(_DISK / "mount"))
        _run("ip", "netns", "delete", _NETNS)

    def _service(self, name: str, *command: str) -> None:
        _run("systemd-run", "--quiet", f"--unit=lab-{name}", *command)
        self._units.append(f"lab-{name}.service")

    def _cron(self) -> None:
        """Each minute, as a distribution's own jobs come."""
        _CRONTABS.mkdir()
        (_CRONTABS / "root").write_text(_CRONTAB)
        self._service("cron", "busybox", "crond", "-f", "-c", str(_CRONTABS))

    def _disk(self) -> None:
        """A file system with a journal, in memory."""
        (_DISK / "mount").mkdir(parents=True)
        _run("modprobe", "loop")
        _run("truncate", "--size=64M", str(_DISK / "image"))
        _run("mkfs.ext4", "-q", str(_DISK / "image"))
        _run("mount", "-o", "loop", str(_DISK / "image"), str(_DISK / "mount"))

    def _network(self) -> None:
        """Packets are spread over all CPUs when they come (RPS)."""
        _run("modprobe", "veth")
        _run("ip", "netns", "add", _NETNS)
        _run("ip", "link", "add", "lab-here", "type", "veth", "peer", "name", "lab-there", "netns", _NETNS)
        within = ("ip", "netns", "exec", _NETNS)
        for prefix, device, address in (((), "lab-here", _HERE), (within, "lab-there", _THERE)):
            _run(*prefix, "ip", "address", "add", f"{address}/24", "dev", device)
            _run(*prefix, "ip", "link", "set", device, "up")
        for queue in Path("/sys/class/net/lab-here/queues").glob("rx-*"):
            (queue / "rps_cpus").write_text("ff")
        self._service("echo", *within, "python3", "-c", _ECHO)
        self._service("ask", "python3", "-c", _ASK)
