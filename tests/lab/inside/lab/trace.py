"""A witness that is not ours: which thread the scheduler put on which CPU, from the kernel's `sched_switch` tracepoint."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TRACING = Path("/sys/kernel/tracing")
_SWITCH = re.compile(r"\[(?P<cpu>\d+)\].* (?P<at>[\d.]+): sched_switch: .* next_pid=(?P<tid>\d+) next_prio")
_MARK = re.compile(r" (?P<at>[\d.]+): tracing_mark_write: (?P<text>.*)$")


@dataclass(frozen=True)
class Switch:
    """Thread `tid` began to run on `cpu`, after the mark `mark` had been set."""

    tid: int
    cpu: int
    mark: str


class Trace:
    """Records switches to `tids` between start() and stop(), in a trace instance of its own."""

    def __init__(self, tids: Iterable[int], buffer_kib: int = 4096) -> None:
        self._instance = _TRACING / "instances" / "lab"
        self._instance.mkdir(exist_ok=True)
        self._write("buffer_size_kb", str(buffer_kib))
        self._write("events/sched/sched_switch/filter", " || ".join(f"next_pid == {tid}" for tid in tids))
        self._write("trace_clock", "mono")

    def start(self) -> None:
        """Begins to record."""
        self._write("trace", "")
        self._write("events/sched/sched_switch/enable", "1")
        self._write("tracing_on", "1")

    def mark(self, text: str) -> None:
        """Puts `text` between the switches before and after this call."""
        self._write("trace_marker", text)

    def stop(self) -> list[Switch]:
        """Ends the recording. Fails when the kernel's buffer was too small for all of it."""
        self._write("tracing_on", "0")
        self._write("events/sched/sched_switch/enable", "0")
        text = (self._instance / "trace").read_text()
        self._instance.rmdir()
        if "LOST" in text:
            raise RuntimeError("the trace buffer was too small")
        return _read(text)

    def _write(self, name: str, text: str) -> None:
        (self._instance / name).write_text(text)


def _read(text: str) -> list[Switch]:
    switches, mark = [], ""
    for line in text.splitlines():
        if found := _MARK.search(line):
            mark = found["text"]
        elif found := _SWITCH.search(line):
            switches.append(Switch(int(found["tid"]), int(found["cpu"]), mark))
    return switches
