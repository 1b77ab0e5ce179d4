# SPDX-License-Identifier: Apache-2.0
"""kata-affinity-helper, started and killed as a scenario likes, and what it says."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from lab import product

SOCKET = "/run/kata-affinity/helper.sock"
STATE = Path("/run/kata-affinity/helper")
_LOG = Path("/run/lab-helper.log")
_PROGRAM = "kata-affinity-helper"
_PATIENCE = 60.0


def ask(cpu_list: str) -> dict:
    """Has the host kept off these CPUs, and of no others; the answer."""
    return product.call("POST", "/v1/quiet", {"cpus": cpu_list}, socket_path=SOCKET)


def told() -> dict:
    """What it says now."""
    return product.call("GET", "/v1/quiet", socket_path=SOCKET)


def restore() -> None:
    """Gives all back without a helper that runs, as before the package is removed. Fails when the program does."""
    subprocess.run([_PROGRAM, "--restore", "--state", str(STATE)], check=True)


class Helper:
    """It is ended, with SIGKILL, at the end of a `with` block."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> "Helper":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.copy(_LOG, Path(os.environ["LAB_OUT"]) / "helper.log")

    def start(self) -> None:
        """Starts it and waits until it answers."""
        STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(SOCKET).unlink(missing_ok=True)
        with open(_LOG, "ab") as log:
            command = [_PROGRAM, "--socket", SOCKET, "--state", str(STATE)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(f"the helper does not answer; its log:\n{_LOG.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it without a chance to do anything."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends it as systemd does."""
        self._process.terminate()
        self._process.wait(30)

    def _answers(self) -> bool:
        try:
            told()
            return True
        except OSError:
            return False
