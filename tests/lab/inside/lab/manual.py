# SPDX-License-Identifier: Apache-2.0
"""A manual by the letter: its commands as a reader types them."""

import os
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from lab import check

_MANUALS = Path("/lab/manuals")
_BLOCK = re.compile(r"(?:^ {4,}\S.*\n)+", re.MULTILINE)
# A reader's, not the lab's, whose programs are the same.
_ENVIRONMENT = {**os.environ, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}


def commands(page: str, heading: str) -> list[str]:
    """The first block of commands below a heading, without its comments."""
    text = (_MANUALS / page).read_text().partition(f"\n## {heading}\n")[2]
    block = _BLOCK.search(text.partition("\n## ")[0])
    if not block:
        raise check.Failed(f"{page} has no commands below {heading}")
    return [re.sub(r"\s+#.*", "", line).strip() for line in block[0].splitlines()]


def type_in(command: str, statuses: Iterable[int] = (0,), place: Path = Path("/root")) -> str:
    """Runs a line of the manual, and shows what its reader sees, who answers yes. `statuses`: the exit statuses that the manual speaks of."""
    print(f"        $ {command}", flush=True)
    began = time.monotonic()
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, input="y\n", cwd=place, env=_ENVIRONMENT)
    lines = "".join(f"          | {line}\n" for line in (ended.stdout + ended.stderr).splitlines())
    print(f"{lines}          exit status {ended.returncode} after {time.monotonic() - began:.1f} s", flush=True)
    check.true(f"the manual speaks of exit status {ended.returncode} of {command}", ended.returncode in statuses)
    return ended.stdout
