# SPDX-License-Identifier: Apache-2.0
"""Kernel modules of a Debian tree, in the order in which they must be loaded."""

import lzma
from pathlib import Path


class ModuleTree:
    """The modules of the one kernel that is installed in `tree`."""

    def __init__(self, tree: Path) -> None:
        self._dir = next((tree / "usr/lib/modules").glob("*/modules.dep")).parent
        self._needs: dict[str, list[str]] = {}
        for line in (self._dir / "modules.dep").read_text().splitlines():
            path, needs = line.split(":")
            self._needs[path] = needs.split()
        self._path_of = {_module_name(path): path for path in self._needs}

    def load_order(self, names: list[str]) -> list[str]:
        """The paths of modules `names` and of all that they need, needed ones first. Built-in ones are left out."""
        order: list[str] = []
        for name in names:
            if path := self._path_of.get(name):
                # modules.dep lists what a module needs from the nearest to the deepest.
                order += [need for need in reversed(self._needs[path]) if need not in order]
                order += [path] if path not in order else []
        return order

    def read(self, path: str) -> bytes:
        """The bytes of the module, decompressed: busybox does not load compressed ones."""
        content = (self._dir / path).read_bytes()
        return lzma.decompress(content) if path.endswith(".xz") else content


def _module_name(path: str) -> str:
    return Path(path).name.split(".")[0].replace("-", "_")
