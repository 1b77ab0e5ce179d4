# SPDX-License-Identifier: Apache-2.0
"""Assertions for scenarios: they say what was expected and what was there, and print each thing that held."""

import time
from collections.abc import Callable


class Failed(AssertionError):
    """Something that the scenario promises does not hold."""


def step(text: str) -> None:
    """Announces what happens next, with the seconds since boot."""
    print(f"[{time.clock_gettime(time.CLOCK_BOOTTIME):7.1f}] {text}", flush=True)


def equal(what: str, actual: object, wanted: object) -> None:
    """Fails unless `actual` is `wanted`."""
    if actual != wanted:
        raise Failed(f"{what}: wanted {wanted}, found {actual}")
    print(f"          ok: {what}: {actual}", flush=True)


def true(what: str, holds: bool) -> None:
    """Fails unless `holds`."""
    equal(what, holds, True)


def eventually(what: str, read: Callable[[], object], wanted: object, seconds: float = 20) -> None:
    """Fails unless `read()` becomes `wanted` within `seconds`. What goes away while it is read counts as None."""
    until = time.monotonic() + seconds
    while (actual := _read(read)) != wanted and time.monotonic() < until:
        time.sleep(0.1)
    equal(what, actual, wanted)


def _read(read: Callable[[], object]) -> object:
    try:
        return read()
    except (FileNotFoundError, ProcessLookupError):
        return None
