# SPDX-License-Identifier: Apache-2.0
"""Counts what runs on CPUs: which threads are switched to, interrupts, what workers do there. The kernel's tracepoints fill tables, so that
nothing is lost but what does not fit; that is counted, too."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lab import cpus, reach

_TRACING = Path("/sys/kernel/tracing")
_ENTRIES = 16384
_ENTRY = re.compile(r"^\{ (?P<keys>.*?) *\} hitcount: *(?P<count>\d+)", re.MULTILINE)
_DROPPED = re.compile(r"^ *Dropped: (\d+)", re.MULTILINE)
_VECTORS = ("local_timer", "reschedule", "call_function", "call_function_single", "irq_work")
_EVENTS = {
    "sched/sched_switch": "next_pid,next_comm",
    "irq/irq_handler_entry": "irq,name",
    "irq/softirq_entry": "vec",
    "workqueue/workqueue_execute_start": "function.sym",
} | {f"irq_vectors/{name}_entry": "vector" for name in _VECTORS}
_SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")  # include/linux/interrupt.h
_SYMBOL = re.compile(r"^(?:\[[0-9a-f]+\])?\s*(?P<name>\S+)")  # [address] name [module]
_OF_ONE_CPU = re.compile(r"^(kworker/\d|kworker/R-|ksoftirqd/|migration/|cpuhp/|idle_inject/)")


@dataclass
class Visits:
    """What was counted, by name: threads that the kernel lets somebody move, and the others; interrupts likewise; what no device sends; workers'
    work.

    `own`: switches to the owners. `lost`: how much did not fit.
    """

    movable: Counter[str] = field(default_factory=Counter)
    bound: Counter[str] = field(default_factory=Counter)
    interrupts: Counter[str] = field(default_factory=Counter)
    fixed_interrupts: Counter[str] = field(default_factory=Counter)
    vectors: Counter[str] = field(default_factory=Counter)
    softirqs: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    own: int = 0
    lost: int = 0


class Visitors:
    """Counts on the CPUs `on` between its making and stop()."""

    def __init__(self, on: str) -> None:
        self._instance = _TRACING / "instances/visitors"
        self._instance.mkdir()
        self._there = " || ".join(f"CPU == {cpu}" for cpu in sorted(cpus.parse(on)))
        for event in _EVENTS:
            self._trigger(event, self._table_of(event))

    def stop(self, owners: set[int], sandbox: set[int]) -> Visits:
        """What was counted. `owners`: the threads whose CPUs they are; `sandbox`: the others of their VM."""
        tables = {event: self._table(event) for event in _EVENTS}
        for event in _EVENTS:
            self._trigger(event, f"!{self._table_of(event)}")
        self._instance.rmdir()
        return _sorted_out(tables, owners, sandbox)

    def _table_of(self, event: str) -> str:
        condition = f"({self._there}) && next_pid != 0" if event == "sched/sched_switch" else self._there
        return f"hist:keys={_EVENTS[event]}:size={_ENTRIES} if {condition}"

    def _trigger(self, event: str, text: str) -> None:
        (self._instance / "events" / event / "trigger").write_text(text)

    def _table(self, event: str) -> tuple[list[tuple[list[str], int]], int]:
        text = (self._instance / "events" / event / "hist").read_text()
        entries = [(_values(found["keys"]), int(found["count"])) for found in _ENTRY.finditer(text)]
        return entries, sum(map(int, _DROPPED.findall(text)))


def _values(keys: str) -> list[str]:
    """`next_pid: 12, next_comm: a b` -> 12, a b."""
    return [part.partition(":")[2].strip() for part in re.split(r",(?= (?:next_comm|name):)", keys)]


def _sorted_out(tables: dict, owners: set[int], sandbox: set[int]) -> Visits:
    visits = Visits(lost=sum(dropped for _, dropped in tables.values()))
    for (tid, name), count in tables["sched/sched_switch"][0]:
        _add_switch(visits, int(tid), name, count, owners, sandbox)
    for (number, name), count in tables["irq/irq_handler_entry"][0]:
        kind = visits.interrupts if reach.is_movable(Path("/proc/irq") / number) else visits.fixed_interrupts
        kind[f"{number} {name}"] += count
    for (vector,), count in tables["irq/softirq_entry"][0]:
        visits.softirqs[_SOFTIRQS[int(vector)]] += count
    for (function,), count in tables["workqueue/workqueue_execute_start"][0]:
        visits.work[_SYMBOL.search(function)["name"]] += count
    for name in _VECTORS:
        visits.vectors[name] += sum(count for _, count in tables[f"irq_vectors/{name}_entry"][0])
    return visits


def _add_switch(visits: Visits, tid: int, name: str, count: int, owners: set[int], sandbox: set[int]) -> None:
    if tid in owners:
        visits.own += count
    elif tid in sandbox:
        visits.movable["other threads of its VM"] += count
    elif _OF_ONE_CPU.match(name) or reach.refuses_masks(tid):
        visits.bound[name] += count
    else:
        visits.movable[name] += count
