# SPDX-License-Identifier: Apache-2.0
"""The command line: `node build`, `run`, `all`, `shell`, `list`, `cases`."""

import argparse
from pathlib import Path

from nodelab import suite
from nodelab.booted import prepare
from nodelab.machine import run_scenario, run_shell
from nodelab.needs import why_not
from nodelab.paths import build_dir
from nodelab.scenarios import all_scenarios, find_scenario
from nodelab.shapes import SHAPES

_NOT_RUN = 125
_SKIPPED = 77


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status: the scenario's own, 125 when the node did not come to its end, 77 when it lacks what others make."""
    options = _parser().parse_args(arguments)
    return options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="node", description="A node with many CPUs, NUMA, SMT and KVM, in software.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="make the images of a shape, or of all single nodes that need no Debian sid, and boot it once")
    build.add_argument("shape", nargs="?", choices=SHAPES)
    build.set_defaults(run=_build)
    run = commands.add_parser("run", help="run one scenario in a throw-away node")
    run.add_argument("scenario", help="its name, or a file of your own: PATH.py")
    run.add_argument("--shape", choices=SHAPES, help="default: the scenario's first")
    run.add_argument("--timeout", type=float, metavar="SECONDS", help="default: the scenario's own")
    run.add_argument("--out", type=Path, help="where log and results go")
    _add_extra(run)
    run.set_defaults(run=_run)
    everything = commands.add_parser("all", help="run every scenario on its shapes and sum up")
    everything.add_argument("--core", action="store_true", help="only the short list")
    everything.add_argument("--out", type=Path, help="where logs and results go")
    everything.set_defaults(run=_all)
    shell = commands.add_parser("shell", help="give a shell in a throw-away node")
    shell.add_argument("--shape", choices=SHAPES, default="smt8")
    _add_extra(shell)
    shell.set_defaults(run=lambda options: run_shell(SHAPES[options.shape], options.extra))
    cases = commands.add_parser("cases", help="print the list for other programs: scenario, shape, timeout, core or long a line")
    cases.set_defaults(run=_print_cases)
    commands.add_parser("list", help="show scenarios and shapes").set_defaults(run=_list)
    return parser


def _add_extra(command: argparse.ArgumentParser) -> None:
    command.add_argument("--with", dest="extra", type=Path, metavar="DIRECTORY", help="what it holds is put over the node's /lab")


def _build(options: argparse.Namespace) -> int:
    stable = [shape for shape in SHAPES.values() if not shape.newer and not shape.wired]
    for shape in [SHAPES[options.shape]] if options.shape else stable:
        prepare(shape)
    return 0


def _run(options: argparse.Namespace) -> int:
    scenario = find_scenario(options.scenario)
    shape = SHAPES[options.shape or scenario.shapes[0]]
    out = options.out or build_dir() / "lab" / f"{scenario.name}.{shape.name}"
    if reason := why_not(scenario):
        print(f"SKIPPED: {scenario.name}: {reason}")
        return _SKIPPED
    suite.expect_product([scenario])
    prepare(shape)
    outcome = run_scenario(shape, scenario, options.timeout or scenario.timeout, out, options.extra)
    log = out / "log"
    print(log.read_text(errors="replace") if log.exists() else "", end="")
    print(f"lab: {scenario.name} on {shape.name}: {suite.verdict(outcome)} in {outcome.seconds:.0f} s, see {out}")
    return _NOT_RUN if outcome.status is None else outcome.status


def _all(options: argparse.Namespace) -> int:
    return suite.run_all(options.out or build_dir() / "lab", options.core)


def _print_cases(_: argparse.Namespace) -> int:
    for case in suite.all_cases():
        print(case.scenario.name, case.shape, f"{case.scenario.timeout:.0f}", "core" if suite.is_core(case) else "long")
    return 0


def _list(_: argparse.Namespace) -> int:
    for scenario in all_scenarios():
        print(f"{scenario.name:24} {' '.join(scenario.shapes)}\n    {scenario.about}")
    print()
    for shape in SHAPES.values():
        print(f"{shape.name:24} {shape.about}")
    return 0
