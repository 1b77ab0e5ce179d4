# SPDX-License-Identifier: Apache-2.0
"""A cache by content: a result is kept under a name made from everything that it was made from."""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from nodelab.paths import cache_root

_KEY_LENGTH = 16


def digest(parts: Iterable[bytes]) -> str:
    """A short name for `parts`; their boundaries count."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()[:_KEY_LENGTH]


def files_digest(paths: Iterable[Path], *extra: str) -> str:
    """A short name for the names, the modes and the bytes of `paths`, and for `extra`."""
    parts = [text.encode() for text in extra]
    for path in sorted(paths):
        parts += [path.name.encode(), b"%o" % (path.stat().st_mode & 0o777), path.read_bytes()]
    return digest(parts)


def cached(kind: str, key: str, make: Callable[[Path], None], keep_hours: int = 14 * 24) -> Path:
    """The directory `kind`-`key`. `make(directory)` fills it once; a failed or interrupted making leaves nothing.

    Directories of the same kind that no run has asked for in `keep_hours` are deleted when a new one has been made.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    wanted = root / f"{kind}-{key}"
    if not wanted.exists():  # if it is there, no other one that is being made is waited for
        _make_once(root, kind, wanted, make)
        _drop_unused(root, kind, keep_hours)
    os.utime(wanted)
    return wanted


def _make_once(root: Path, kind: str, wanted: Path, make: Callable[[Path], None]) -> None:
    with open(root / f"{kind}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.exists():
            print(f"lab: making {kind} (kept in {wanted})", file=sys.stderr, flush=True)
            _make_aside(root, wanted, make)


def _make_aside(root: Path, wanted: Path, make: Callable[[Path], None]) -> None:
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=root))
    try:
        make(aside)
        aside.chmod(0o755)
        os.utime(aside)  # unpacking a package gives it the package's age, and what is old is dropped
        aside.rename(wanted)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _drop_unused(root: Path, kind: str, keep_hours: int) -> None:
    for directory in root.glob(f"{kind}-{'?' * _KEY_LENGTH}"):
        if time.time() - directory.stat().st_mtime > keep_hours * 3600:
            shutil.rmtree(directory, ignore_errors=True)
