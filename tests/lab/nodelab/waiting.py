# SPDX-License-Identifier: Apache-2.0
"""Waiting for a node to come so far that it says a word."""

import subprocess
import time
from pathlib import Path

# A boot takes half a minute, on a busy machine three times as long. Once in a while an emulated CPU loses its timer while the kernel
# boots, and nothing ever goes on, nor is anything printed: such a node is ended, and started again.
_MOST_SECONDS = 240
_SILENT_SECONDS = 60


def has_said(log: Path, word: str) -> bool:
    """Whether `log`, which may not be there, has `word`."""
    return log.exists() and word in log.read_text(errors="replace")


def wait_for(machine: subprocess.Popen, log: Path, word: str, console: Path) -> bool:
    """Whether `word` came; not when the machine ended or hangs before, or had its time. `console` shows that something goes on."""
    deadline = time.monotonic() + _MOST_SECONDS
    printed, silent_since = 0, time.monotonic()
    while machine.poll() is None and not has_said(log, word) and time.monotonic() < min(deadline, silent_since + _SILENT_SECONDS):
        time.sleep(0.2)
        if (now := _size(console)) != printed:
            printed, silent_since = now, time.monotonic()
    return has_said(log, word)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
