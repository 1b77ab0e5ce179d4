# SPDX-License-Identifier: Apache-2.0
"""Nodes that have booted, kept as they stood: a run goes on from there, and does not boot.

A boot keeps both CPUs busy for half a minute, and once in a while hangs; to go on takes three seconds. Such a node waits for its
payload (inside/etc/lab/wait-for-payload), which every run brings anew.
"""

import os
import subprocess
from pathlib import Path

from nodelab.cache import cached, files_digest
from nodelab.hardware import QEMU_SUITE, qemu
from nodelab.image import debian_tree, guest_image, node_image
from nodelab.payload import PAYLOAD_BYTES, ground_files, write_ground
from nodelab.shapes import Shape
from nodelab.waiting import has_said, wait_for

_WAITS = "node waits"
_BOOTS = 4
# The kernel measures its clock while it boots. On a busy machine it was seen to take 489 MHz for 2596: its seconds were a fifth of ours.
_WRONG_CLOCK = "PIT calibration deviates"


def prepare(shape: Shape) -> None:
    """Makes whatever `shape` needs and the cache does not have."""
    debian_tree(QEMU_SUITE)
    guest_image(shape.suite)
    booted_node(shape)


def booted_node(shape: Shape) -> Path:
    """A directory with `state`, to be given to -incoming, and `ground.img`, the second disk that it was booted with."""
    made_from = [debian_tree(QEMU_SUITE).name, node_image(shape.suite, shape.newer).name, *qemu(shape, *[Path()] * 4)]
    key = files_digest(ground_files(), _WRONG_CLOCK, *made_from)
    return cached(f"booted-{shape.name}", key, lambda to: _boot_and_keep(shape, to))


def _boot_and_keep(shape: Shape, to: Path) -> None:
    write_ground(to / "ground.img", to)
    payload = to / "payload.img"
    payload.touch()
    os.truncate(payload, PAYLOAD_BYTES)
    for left in reversed(range(_BOOTS)):
        if _keep(shape, to, payload, any_clock=left == 0):
            break
        print(f"lab: no state of a node of {shape.name} is kept yet", flush=True)
    else:
        raise SystemExit(f"lab: no node of {shape.name} boots: {(to / 'console').read_text(errors='replace')[-500:]}")
    for left in ("payload.img", "console", "log", "out"):
        (to / left).unlink()


def _keep(shape: Shape, to: Path, payload: Path, any_clock: bool) -> bool:
    """Boots, and writes `state` once the node waits; whether it did. `any_clock`: also one whose clock is wrong, which is better than none."""
    command = qemu(shape, to / "ground.img", payload, to / "log", to / "out")
    command += ["-serial", f"file:{to / 'console'}", "-monitor", "stdio"]
    state, part = to / "state", to / "state.part"
    (to / "log").unlink(missing_ok=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as machine:
        try:
            if not wait_for(machine, to / "log", _WAITS, to / "console"):
                return False
            if has_said(to / "console", _WRONG_CLOCK):
                print(f"lab: a node of {shape.name} measured its clock wrongly; " + ("it is kept: expect short timeouts" if any_clock else "it boots again"), flush=True)
                if not any_clock:
                    return False
            # On a full disk cat fails, and what it wrote is no state.
            machine.communicate(f'migrate "exec:cat > {part} && mv {part} {state}"\nquit\n', timeout=120)
            return state.exists()
        finally:
            machine.kill()
