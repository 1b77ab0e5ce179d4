# SPDX-License-Identifier: Apache-2.0
"""Writing an initramfs: the `newc` cpio format of the kernel (Documentation/driver-api/early-userspace/buffer-format.rst)."""

import stat
from pathlib import Path


class Initramfs:
    """Collects files, then yields the archive's bytes. Parent directories are made by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def add_bytes(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """A regular file at `name`, which has no leading slash."""
        self._add_parents(name)
        self._entries[name] = (stat.S_IFREG | mode, content)

    def add_file(self, name: str, source: Path, mode: int = 0o755) -> None:
        """A copy of `source`, symbolic links followed."""
        self.add_bytes(name, source.read_bytes(), mode)

    def add_link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add_parents(name)
        self._entries[name] = (stat.S_IFLNK | 0o777, target.encode())

    def add_dir(self, name: str) -> None:
        """An empty directory."""
        self._add_parents(name)
        self._entries[name] = (stat.S_IFDIR | 0o755, b"")

    def to_bytes(self) -> bytes:
        """The archive, not compressed: software emulation would take longer to unpack it than to read it."""
        chunks = [
            _record(number, name, mode, content)
            for number, (name, (mode, content)) in enumerate(self._entries.items(), start=1)
        ]
        return b"".join(chunks) + _record(0, "TRAILER!!!", 0, b"")

    def _add_parents(self, name: str) -> None:
        for parent in reversed(Path(name).parents):
            if str(parent) != "." and str(parent) not in self._entries:
                self._entries[str(parent)] = (stat.S_IFDIR | 0o755, b"")


def _record(number: int, name: str, mode: int, content: bytes) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name.encode() + b"\0") + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
