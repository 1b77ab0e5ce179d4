# SPDX-License-Identifier: Apache-2.0
"""The scenarios: what each file says about itself in its first lines."""

import re
from dataclasses import dataclass
from pathlib import Path

from nodelab.paths import SCENARIOS

_SETTING = re.compile(r"^# lab (?P<key>\w+): *(?P<value>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Scenario:
    """One scenario. `shapes` are those that `node all` runs it on; `core` says whether the short list has it.

    `alone`: it judges how long something takes, so that no other node may run beside it. `apart`: it is too long for `node all`.
    `needs_product`: it cannot run without the product's programs in the build tree; `packages`: nor without its packages; `chart`: nor
    without its chart, its image and the kubectl plugin; `peers`: nor without these programs of others; `kata`: nor without the real Kata.
    """

    name: str
    file: Path
    about: str
    shapes: tuple[str, ...]
    timeout: float
    core: bool
    alone: bool
    apart: bool
    needs_product: bool
    packages: bool
    chart: bool
    peers: tuple[str, ...]
    kata: bool


def all_scenarios() -> list[Scenario]:
    """Every scenario, in the order of their names."""
    return [_read(path) for path in sorted(SCENARIOS.glob("*.py"))]


def find_scenario(name: str) -> Scenario:
    """The scenario `name`, or that of a file of one's own, `PATH.py`; the program ends when there is none."""
    if Path(name).suffix == ".py" and Path(name).is_file():
        return _read(Path(name))
    for scenario in all_scenarios():
        if scenario.name == name:
            return scenario
    raise SystemExit(f"lab: no scenario {name!r}; `node list` shows them")


def _read(path: Path) -> Scenario:
    text = path.read_text()
    settings = {match["key"]: match["value"].strip() for match in _SETTING.finditer(text)}
    about = text.split('"""')[1].strip().splitlines()[0]
    shapes = tuple(settings["shapes"].split())
    return Scenario(
        path.stem,
        path,
        about,
        shapes,
        timeout=float(settings["timeout"]),
        core=settings.get("core") == "yes",
        alone=settings.get("alone") == "yes",
        apart=settings.get("apart") == "yes",
        needs_product=settings.get("product") != "no",
        packages=settings.get("packages") == "yes",
        chart=settings.get("chart") == "yes",
        peers=tuple(settings.get("peers", "").split()),
        kata=settings.get("kata") == "yes",
    )
