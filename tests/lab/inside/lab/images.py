# SPDX-License-Identifier: Apache-2.0
"""Container images made on the spot."""

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path


def import_image(name: str, files: dict[str, Path], entrypoint: Iterable[str], ctr: Iterable[str] = ("ctr",)) -> None:
    """Makes the image `name` of `files` (path in it: file here), and gives it to containerd."""
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "image.tar"
        _write_image(archive, name, files, list(entrypoint))
        subprocess.run([*ctr, "-n", "k8s.io", "images", "import", str(archive)], check=True, stdout=subprocess.DEVNULL)


def _write_image(archive: Path, name: str, files: dict[str, Path], entrypoint: list[str]) -> None:
    """In the form of `docker save`, which containerd takes too."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for inside, outside in files.items():
            tar.add(outside, inside, filter=_as_root)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": entrypoint},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for file, content in (
            ("layer.tar", layer.getvalue()),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.mode = 0o755
    return entry
