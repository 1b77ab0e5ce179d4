# SPDX-License-Identifier: Apache-2.0
"""A witness that is not ours, the kernel's tracepoints: which thread was put on which CPU, and whose mask was written when."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_TRACING = Path("/sys/kernel/tracing")
# Event, and its field that holds the thread's id.
_EVENTS = {"sched/sched_switch": "next_pid", "syscalls/sys_enter_sched_setaffinity": "pid"}
_SWITCH = re.compile(r"\[(?P<cpu>\d+)\].* [\d.]+: sched_switch: .* next_pid=(?P<tid>\d+) next_prio")
_MASK_WRITE = re.compile(r" [\d.]+: sys_sched_setaffinity\(pid: (?P<tid>[0-9a-f]+),")
_ENTRIES = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")
_MARK = re.compile(r" [\d.]+: tracing_mark_write: (?P<text>.*)$")


@dataclass(frozen=True)
class Switch:
    """Thread `tid` began to run on `cpu`, after the mark `mark` had been set."""

    tid: int
    cpu: int
    mark: str


@dataclass(frozen=True)
class MaskWrite:
    """Somebody asked the kernel for another mask of thread `tid`, after the mark `mark` had been set."""

    tid: int
    mark: str


@dataclass
class Recording:
    """What was seen, each list in the order in which it happened."""

    switches: list[Switch] = field(default_factory=list)
    mask_writes: list[MaskWrite] = field(default_factory=list)


class Trace:
    """Records switches to `tids`, and writes of their masks, between start() and stop(), in a trace instance of its own."""

    def __init__(self, tids: Iterable[int], buffer_kib: int = 4096) -> None:
        self._instance = _TRACING / "instances" / "lab"
        self._instance.mkdir(exist_ok=True)
        self._write("buffer_size_kb", str(buffer_kib))
        for event, name in _EVENTS.items():
            self._write(f"events/{event}/filter", " || ".join(f"{name} == {tid}" for tid in tids))
        self._write("trace_clock", "mono")

    def start(self) -> None:
        """Begins to record."""
        self._write("trace", "")
        self._enable("1")
        self._write("tracing_on", "1")

    def mark(self, text: str) -> None:
        """Puts `text` between what is seen before and after this call."""
        self._write("trace_marker", text)

    def stop(self) -> Recording:
        """Ends the recording. Fails when the kernel's buffer was too small for all of it."""
        self._write("tracing_on", "0")
        self._enable("0")
        text = (self._instance / "trace").read_text()
        self._instance.rmdir()
        kept, written = _ENTRIES.search(text).groups()
        if kept != written:
            raise RuntimeError(f"the trace buffer was too small: {kept} of {written} entries are left")
        return _read(text)

    def _enable(self, on: str) -> None:
        for event in _EVENTS:
            self._write(f"events/{event}/enable", on)

    def _write(self, name: str, text: str) -> None:
        (self._instance / name).write_text(text)


def _read(text: str) -> Recording:
    seen, mark = Recording(), ""
    for line in text.splitlines():
        if found := _MARK.search(line):
            mark = found["text"]
        elif found := _SWITCH.search(line):
            seen.switches.append(Switch(int(found["tid"]), int(found["cpu"]), mark))
        elif found := _MASK_WRITE.search(line):
            seen.mask_writes.append(MaskWrite(int(found["tid"], 16), mark))
    return seen
