# SPDX-License-Identifier: Apache-2.0
"""A throw-away node at work, with its log and its results brought out."""

import contextlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodelab.booted import booted_node
from nodelab.hardware import qemu
from nodelab.payload import write_payload
from nodelab.scenarios import Scenario
from nodelab.shapes import Shape
from nodelab.waiting import has_said, wait_for

# In each line about a machine that was lost to emulation: scripts/lib/steps.sh counts them.
LOST = "lost to emulation"

_UP = "node up"
_STARTS = 2
_LAST_LINES = 15
_SECOND = "second"  # the directory of the other node's results
_KERNEL_LINE = re.compile(r"\[ *\d+\.\d+\] ")
_GUEST_LOST = 75  # inside/lab/vm.py


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `status` is the scenario's exit status, None when it gave none; `problem` says why then. `lost` counts
    the machines that were lost to emulation before."""

    status: int | None
    seconds: float
    problem: str = ""
    lost: int = 0


def run_scenario(shape: Shape, scenario: Scenario, timeout: float, out: Path, extra: Path | None = None) -> Outcome:
    """Starts a node, runs `scenario` in it, and leaves `log`, `console` and what the scenario kept in directory `out`.

    What the directory `extra` holds is put over the node's /lab.
    """
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / _SECOND, ignore_errors=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="node-lab-") as directory:
        work = Path(directory)
        write_payload(shape.suite, work / "payload.img", work, scenario, extra)
        wire = (work / "wire1", work / "wire2")
        command = _headless(shape, work / "payload.img", out, work / "out.tar", wire)
        for start in range(1, _STARTS + 1):
            (out / "log").unlink(missing_ok=True)
            with _second(shape, scenario, work, out / _SECOND, extra) if shape.wired else contextlib.nullcontext():
                ended = _run_for(command, timeout, out)
            status = _unpack(work / "out.tar", out)
            lost = _lost(out, status, ended)
            if not lost or start == _STARTS:
                break
            print(f"{scenario.name}: {LOST}: {lost}: it begins again\n{_last_words(out)}", flush=True)
            _put_aside(out, work / "out.tar")
    seconds = time.monotonic() - began
    return Outcome(status, seconds, "" if status is not None else _problem(out, ended, timeout), start - 1)


def run_shell(shape: Shape, extra: Path | None = None) -> int:
    """Starts a node with its console on this terminal, and `extra` as for a scenario. It ends with `poweroff`, or with QEMU's Ctrl-A x."""
    with tempfile.TemporaryDirectory(prefix="node-lab-") as directory:
        work = Path(directory)
        write_payload(shape.suite, work / "payload.img", work, None, extra)
        command = _node(shape, work / "payload.img", work / "log", work / "out.tar")
        return subprocess.run([*command, "-serial", "mon:stdio"], check=False).returncode


@contextlib.contextmanager
def _second(shape: Shape, scenario: Scenario, work: Path, out: Path, extra: Path | None) -> Iterator[None]:
    """The other node, which runs the same scenario as number 2 as long as the first one runs. It leaves `log` and `console` in `out`."""
    out.mkdir(exist_ok=True)
    (out / "log").unlink(missing_ok=True)
    payload = work / "payload2.img"
    if not payload.exists():
        write_payload(shape.suite, payload, work, scenario, extra, number=2)
    command = _headless(shape, payload, out, work / "out2.tar", (work / "wire2", work / "wire1"))
    with open(out / "qemu", "wb") as to, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=to) as machine:
        try:
            yield
        finally:
            machine.kill()


def _headless(shape: Shape, payload: Path, out: Path, archive: Path, wire: tuple[Path, Path]) -> list[str]:
    return [*_node(shape, payload, out / "log", archive, wire), "-monitor", "none", "-serial", f"file:{out / 'console'}"]


def _node(shape: Shape, payload: Path, log: Path, out: Path, wire: tuple[Path, Path] | None = None) -> list[str]:
    stood = booted_node(shape)
    return [*qemu(shape, stood / "ground.img", payload, log, out, wire), "-incoming", f"exec:cat {stood / 'state'}"]


def _run_for(command: list[str], timeout: float, out: Path) -> bool:
    """Whether the machine went on and ended by itself within `timeout` seconds; else it is ended. QEMU's own words go to `qemu`."""
    with open(out / "qemu", "wb") as to, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=to) as machine:
        try:
            wait_for(machine, out / "log", _UP, out / "console")
            machine.wait(timeout if _was_up(out) else 0)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            machine.kill()


def _lost(out: Path, status: int | None, ended: bool) -> str:
    """What an emulated CPU does once in a while, and no program in the node or in its guests can help; else nothing."""
    if status == _GUEST_LOST:
        return "a guest hangs or its VM ended by itself (see log.lost)"
    if not all(_was_up(node) for node in (out, out / _SECOND) if node.exists()):
        return "a node hangs while it starts"
    # It switches off after it has sent its status: without one, its kernel or QEMU failed.
    return "the node's kernel or its QEMU ended by itself (see console.lost)" if ended and status is None else ""


def _last_words(out: Path) -> str:
    """The end of what the node's kernel and QEMU printed."""
    kernel = [line for line in _lines(out / "console") if _KERNEL_LINE.match(line)]
    return "\n".join(f"    {line}" for line in (kernel + _lines(out / "qemu"))[-_LAST_LINES:])


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines() if file.exists() else []


def _put_aside(out: Path, archive: Path) -> None:
    archive.unlink(missing_ok=True)
    for name in ("console", "log"):
        if (out / name).exists():
            (out / name).replace(out / f"{name}.lost")


def _was_up(out: Path) -> bool:
    return has_said(out / "log", _UP)


def _unpack(archive: Path, out: Path) -> int | None:
    """Unpacks what the node sent as its last act into `out`, and returns the exit status that is part of it."""
    if not archive.exists() or not tarfile.is_tarfile(archive):
        return None
    with tarfile.open(archive) as content:
        content.extractall(out, filter="data")
    return int((out / "status").read_text())


def _problem(out: Path, ended: bool, timeout: float) -> str:
    if not _was_up(out):
        return f"the node did not start: see {out}"
    how = "ended" if ended else f"was ended after {timeout:.0f} s"
    return f"the node {how} before the scenario did\n{_last_words(out)}"
