# SPDX-License-Identifier: Apache-2.0
"""Running the whole list, and summing up."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nodelab.booted import prepare
from nodelab.machine import Outcome, run_scenario
from nodelab.needs import why_not
from nodelab.paths import build_dir
from nodelab.payload import built_programs
from nodelab.scenarios import Scenario, all_scenarios
from nodelab.shapes import SHAPES

# Of the short list, which CI runs. The whole list has none: each of its scenarios has a limit of its own.
_CORE_SECONDS = 25 * 60
# More scenarios than this that were lost to emulation in one run are no accident.
_LOST_AT_MOST = 2
# A node keeps little more than one CPU of the machine busy: it waits, as its daemon and its programs do.
_NODES_AT_ONCE = 2


@dataclass(frozen=True)
class Case:
    """One scenario on one shape."""

    scenario: Scenario
    shape: str


def verdict(outcome: Outcome) -> str:
    """The outcome in a few words."""
    if outcome.status is None:
        return f"FAILED: {outcome.problem}"
    return "passed" if outcome.status == 0 else f"FAILED: exit status {outcome.status}"


def expect_product(scenarios: list[Scenario]) -> None:
    """Ends the program with a reason when one of `scenarios` needs the daemon and it has not been built."""
    has_daemon = any(path.name == "kata-affinityd" for path in built_programs())
    if not has_daemon and any(scenario.needs_product for scenario in scenarios):
        raise SystemExit(f"lab: no kata-affinityd below {build_dir()}: build it first, or name its build in KATA_AFFINITY_BUILD")


def run_all(out: Path, core_only: bool) -> int:
    """Runs every case of the list; returns 0 when every one ran and passed. Says what it left out and why."""
    wanted, left_out = _choose(core_only)
    expect_product([case.scenario for case in wanted])
    for shape in sorted({case.shape for case in wanted}):
        prepare(SHAPES[shape])
    began = time.monotonic()
    outcomes = _run_each(wanted, out, began + _CORE_SECONDS if core_only else math.inf)
    return _sum_up(wanted, left_out, outcomes, time.monotonic() - began)


def _run_each(wanted: list[Case], out: Path, until: float) -> dict[Case, Outcome]:
    """What became of each case, without those for which no time was left. Those that judge how long something took have the
    machine for themselves, at the end."""
    beside = [case for case in wanted if not case.scenario.alone]
    alone = [case for case in wanted if case.scenario.alone]
    outcomes = {}
    for nodes, cases in ((_NODES_AT_ONCE, beside), (1, alone)):
        with ThreadPoolExecutor(nodes) as lanes:
            ended = lanes.map(lambda case: _run(case, out) if time.monotonic() < until else None, cases)
            outcomes |= {case: outcome for case, outcome in zip(cases, ended, strict=True) if outcome}
    return outcomes


def all_cases() -> list[Case]:
    """Every scenario on every shape that it is meant for."""
    return [Case(scenario, shape) for scenario in all_scenarios() for shape in scenario.shapes]


def _choose(core_only: bool) -> tuple[list[Case], list[Case]]:
    cases = all_cases()
    wanted = [case for case in cases if (is_core(case) or not core_only) and not case.scenario.apart and not why_not(case.scenario)]
    return wanted, [case for case in cases if case not in wanted]


def is_core(case: Case) -> bool:
    """Whether the short list has it: the scenario says so, and this is the first of its shapes."""
    return case.scenario.core and case.shape == case.scenario.shapes[0]


def _run(case: Case, out: Path) -> Outcome:
    name = f"{case.scenario.name}.{case.shape}"
    outcome = run_scenario(SHAPES[case.shape], case.scenario, case.scenario.timeout, out / name)
    lines = [f"{name:36} {outcome.seconds:5.0f} s  {verdict(outcome)}"]
    lines += [f"    {line}" for line in _left_out(out / name / "log")]
    print("\n".join(lines), flush=True)
    return outcome


def _left_out(log: Path) -> list[str]:
    """What the scenario says it did not do on this shape, and why."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line.strip() for line in lines if line.strip().startswith("left out:")]


def _reason(case: Case) -> str:
    too_long = f"too long for this list: node run {case.scenario.name}" if case.scenario.apart else ""
    return why_not(case.scenario) or too_long or "not part of the short list"


def _sum_up(wanted: list[Case], left_out: list[Case], outcomes: dict[Case, Outcome], seconds: float) -> int:
    for case in left_out:
        print(f"{case.scenario.name}.{case.shape}: left out: {_reason(case)}")
    for case in wanted:
        if case not in outcomes:
            print(f"{case.scenario.name}.{case.shape}: NOT RUN, the {_CORE_SECONDS // 60} minutes were used up")
    passed = sum(outcome.status == 0 for outcome in outcomes.values())
    lost = sum(outcome.lost for outcome in outcomes.values())
    print(f"lab: {passed} of {len(wanted)} passed, {len(left_out)} left out, {lost} begun again, {seconds / 60:.0f} minutes")
    return 0 if passed == len(wanted) and lost <= _LOST_AT_MOST else 1
