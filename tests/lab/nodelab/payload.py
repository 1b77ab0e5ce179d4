# SPDX-License-Identifier: Apache-2.0
"""What a node of the lab gets beside its image.

The ground: units and configuration, there when it boots. The payload: a disk, made afresh for every run, with the product, the
scenario and the guests. It is /lab in the node.
"""

import os
import shutil
import subprocess
from pathlib import Path

from nodelab import chart_kit, kata
from nodelab.cache import cached, digest
from nodelab.image import guest_image, make_ext4
from nodelab.packages import make_packages
from nodelab.paths import INSIDE, PROJECT, SCENARIOS, build_dir
from nodelab.peers import unpacked
from nodelab.scenarios import Scenario

_PROGRAMS = (
    "kata-affinityd",
    "kata-affinityctl",
    "kata-affinity-helper",
    "containerd-shim-kata-affinity-v2",
    "kata-affinity-agent",
    "kata-affinity-reporter",
    "tiny_vm",
    "test_model",
)
_MANUALS = ("README.md", "docs/use/quick-start.md")  # whose commands are typed
_LOADER = "ld-linux-x86-64.so.2"
# A node learns how large its disk is before its payload is made.
PAYLOAD_BYTES = 2**30
_ETC, _MASKED = INSIDE / "etc", INSIDE / "masked-units"


def ground_files() -> list[Path]:
    """All that the ground is made from."""
    return [path for path in [*_ETC.rglob("*"), _MASKED] if path.is_file()]


def write_ground(image: Path, work: Path) -> None:
    """Writes the disk `image`, which becomes part of the node's /etc; `work`: a directory for its making."""
    root = work / "ground"
    shutil.copytree(_ETC, root)
    _mask_units(root)
    make_ext4(root, image, size_mib=16)
    shutil.rmtree(root)


def write_payload(suite: str, image: Path, work: Path, scenario: Scenario | None, extra: Path | None = None, number: int = 1) -> None:
    """Writes the disk `image` of the first or the second node; `work` is a directory for its making. Without a scenario the node
    offers a shell.

    What the directory `extra` holds is put over all the rest.
    """
    root = work / f"payload{number}"
    shutil.copytree(INSIDE, root, ignore=shutil.ignore_patterns("__pycache__", "etc"))
    shutil.copytree(SCENARIOS, root / "scenarios", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "scripts", root / "scripts")
    (root / "manuals").mkdir()
    for page in _MANUALS:
        shutil.copy(PROJECT / page, root / "manuals")
    shutil.copytree(guest_image(suite), root / "guest")
    if scenario:
        (root / "scenario").write_text(scenario.name)
        shutil.copy(scenario.file, root / "scenarios")
    (root / "number").write_text(str(number))
    # Nodes that go on from the same point are not to have the same random numbers.
    (root / "seed").write_bytes(os.urandom(64))
    if programs := built_programs():
        shutil.copytree(_portable(programs), root, dirs_exist_ok=True)
        _lay_out_agent(root)
    if scenario and scenario.packages:
        make_packages(root / "bin", root / "packages", work / f"packing{number}")
    if scenario and scenario.chart:
        chart_kit.lay_out(root / "cluster")
    if scenario and scenario.peers:
        shutil.copytree(unpacked(scenario.peers), root / "peers")
    if scenario and scenario.kata:
        kata.lay_out(suite, root / "kata")
    if extra:
        shutil.copytree(extra, root, dirs_exist_ok=True)
    used = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    make_ext4(root, image, used // 2**20 * 6 // 5 + 16)
    if image.stat().st_size > PAYLOAD_BYTES:
        raise SystemExit(f"lab: the payload has {image.stat().st_size} bytes: raise PAYLOAD_BYTES")
    os.truncate(image, PAYLOAD_BYTES)


def _mask_units(root: Path) -> None:
    for unit in _MASKED.read_text().splitlines():
        if not unit.startswith("#"):
            (root / "systemd/system" / unit).symlink_to("/dev/null")


def built_programs() -> list[Path]:
    """The product's programs that the build tree has, in whatever folder of it."""
    found = {path.name: path for path in build_dir().rglob("*") if path.name in _PROGRAMS and _is_program(path)}
    return [found[name] for name in _PROGRAMS if name in found]


def _is_program(path: Path) -> bool:
    return path.is_file() and path.stat().st_mode & 0o111 != 0


def _portable(programs: list[Path]) -> Path:
    """`bin` and `lib` with `programs` and all their libraries, C library and loader included, to be used at /lab.

    A program built on one Debian release then runs on another one as if it had been built there.
    """
    identity = (f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode() for path in programs)
    return cached("programs", digest(identity), lambda to: _make_portable(programs, to), keep_hours=2)


def _lay_out_agent(root: Path) -> None:
    """The guest agent where the package has it: kata-affinityctl finds it there."""
    agent, folder = root / "bin/kata-affinity-agent", root / "lib/kata-affinity/guest"
    if agent.exists():
        folder.mkdir(parents=True)
        shutil.copy(agent, folder)


def _make_portable(programs: list[Path], to: Path) -> None:
    (to / "bin").mkdir()
    (to / "lib").mkdir()
    for program in programs:
        copy = to / "bin" / program.name
        subprocess.run(["strip", "-o", str(copy), str(program)], check=True)
        libraries = _libraries_of(program)
        for library in libraries:
            shutil.copy(library, to / "lib")
        if libraries:
            # DT_RPATH, not DT_RUNPATH: it also holds for the libraries of libraries.
            command = ["patchelf", "--set-interpreter", f"/lab/lib/{_LOADER}", "--force-rpath", "--set-rpath", "/lab/lib"]
            subprocess.run([*command, str(copy)], check=True)


def _libraries_of(program: Path) -> list[str]:
    """What ldd names, the loader too; nothing for a static program."""
    answer = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return [word for word in answer.stdout.split() if word.startswith("/")]
