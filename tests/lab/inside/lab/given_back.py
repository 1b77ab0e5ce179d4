# SPDX-License-Identifier: Apache-2.0
"""All that may have been written to keep the host off CPUs: how it was, and what is not so any more."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab import cpus, kernel, reach

_PROPERTY = "AllowedCPUs"
_DROP_INS = (Path("/run/systemd/system.control"), Path("/etc/systemd/system.control"))


@dataclass(frozen=True)
class Masks:
    """By name. `things`: files of devices and the kernel, and threads, which come and go; `limits`: cpusets, and systemd's properties with the
    drop-ins that hold them."""

    things: dict[str, str]
    limits: dict[str, str]


def read() -> Masks:
    """As they are now."""
    files = {str(file): file.read_text().strip() for file in reach.mask_files()}
    return Masks(files | reach.kernel_threads() | reach.programs(), _cpusets() | _properties())


def differs(before: Masks) -> dict[str, tuple[str, str]]:
    """What is not as it was: each with what it was and what it is. Things that have come or gone since do not count."""
    now = read()
    found = {name: (before.limits.get(name, ""), now.limits.get(name, "")) for name in before.limits.keys() | now.limits.keys()}
    found |= {name: (before.things[name], now.things[name]) for name in before.things.keys() & now.things.keys()}
    return {name: (was, now_is) for name, (was, now_is) in sorted(found.items()) if was != now_is}


def _cpusets() -> dict[str, str]:
    """The kernel lets nobody empty a cpuset that has processes: one with all CPUs counts as empty."""
    every = cpus.show(kernel.online())
    found = {}
    for unit in reach.UNITS:
        for file in (reach.CGROUPS / unit).rglob("cpuset.cpus"):
            text = file.read_text().strip()
            if text and text != every:
                found[str(file)] = text
    return found


def _properties() -> dict[str, str]:
    command = ["systemctl", "show", "--value", "-p", _PROPERTY, *reach.UNITS]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n\n")
    found = {f"{_PROPERTY} of {unit}": text.strip() for unit, text in zip(reach.UNITS, told, strict=True)}
    return found | {str(file): value for place in _DROP_INS for file in place.rglob(f"*{_PROPERTY}*") if (value := _value(file))}


def _value(file: Path) -> str:
    """What a drop-in sets. systemd keeps that of a property that has been emptied."""
    values = [line.partition("=")[2] for line in file.read_text().splitlines() if line.startswith(f"{_PROPERTY}=")]
    return values[-1] if values else ""
