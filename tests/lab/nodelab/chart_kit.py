# SPDX-License-Identifier: Apache-2.0
"""What a cluster gets of the product: its chart, its image in two versions, and the kubectl plugin."""

import gzip
import hashlib
import json
import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from nodelab import installer_image
from nodelab.cache import cached, digest
from nodelab.installer_image import RECIPE, Buildah, add_base, build_image, run
from nodelab.paths import PROJECT, build_dir

REPOSITORY = "registry.example/kata-affinity"
_CHART, _PLUGIN = PROJECT / "packaging/chart/kata-affinity", PROJECT / "packaging/krew"
_GZIP = b"\x1f\x8b"
_OWN = re.search(r'^appVersion: "?([\d.]+)', (_CHART / "Chart.yaml").read_text(), re.MULTILINE)[1]
_NEXT = _OWN[:-1] + ("1" if _OWN[-1] != "1" else "2")  # of the same length
_PROGRAMS = ("usr/bin/kata-affinityctl", "usr/sbin/kata-affinityd")


def why_not() -> str:
    """Why it cannot be made here; empty where it can."""
    return installer_image.why_not()


def lay_out(to: Path) -> None:
    """Fills the directory `to`: `chart`, `plugin` with the program kubectl-affinity, `images.tar`, an archive for containerd, and
    `next`, the tag of its later version; that of the other is the chart's."""
    with tempfile.TemporaryDirectory() as name:
        programs = Path(name)
        _install(programs)
        files = [file for place in (Path(__file__), programs, RECIPE, _PLUGIN) for file in [place, *sorted(place.rglob("*"))] if file.is_file()]
        key = digest([part for file in files for part in (file.name.encode(), file.read_bytes())])
        shutil.copytree(cached("chart-kit", key, lambda made: _make(programs, made), keep_hours=2), to)
    shutil.copytree(_CHART, to / "chart")
    (to / "next").write_text(_NEXT)


def _install(programs: Path) -> None:
    try:
        installer_image.install_programs(build_dir(), programs)
    except RuntimeError as error:
        raise SystemExit(f"lab: the chart's image cannot be made, build everything first: {error}") from error


def _make(programs: Path, to: Path) -> None:
    work = to / "work"
    work.mkdir()
    run(_PLUGIN / "archive", programs, work / "krew", "https://example.org")
    (to / "plugin").mkdir()
    run("tar", "-C", to / "plugin", "-xf", *(work / "krew").glob("*.tar.gz"))
    later = work / "later"
    shutil.copytree(programs, later, symlinks=True)
    _rename(later)
    with Buildah(work) as buildah:
        add_base(buildah)
        for version, tree in ((_OWN, programs), (_NEXT, later)):
            stage = work / version
            run(RECIPE / "assemble", tree, stage / "payload")
            build_image(buildah, f"localhost/lab:{version}", stage, "--layers")
            buildah("push", "--quiet", f"localhost/lab:{version}", f"oci:{work / 'images'}:{version}")
    _unpack_layers(work / "images")
    with tarfile.open(to / "images.tar", "w") as archive:
        archive.add(work / "images", arcname=".")
    shutil.rmtree(work)


def _rename(tree: Path) -> None:
    """Gives the programs the number of the next version: they are the same but for what they say of themselves."""
    for file in [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]:
        content = file.read_bytes()
        if content.startswith(b"\x7fELF"):
            file.write_bytes(content.replace(_OWN.encode(), _NEXT.encode()))
    for program in _PROGRAMS:
        said = run(tree / program, "--version")
        if f" {_NEXT} " not in said:
            raise SystemExit(f"lab: {program} cannot be made to say version {_NEXT}, it says {said}")


def _unpack_layers(layout: Path) -> None:
    """An emulated CPU is slow to unpack them. The images get the names by which containerd is to know them."""
    blobs, index = layout / "blobs/sha256", json.loads((layout / "index.json").read_text())
    for entry in index["manifests"]:
        version = entry["annotations"]["org.opencontainers.image.ref.name"]
        entry["annotations"]["io.containerd.image.name"] = f"{REPOSITORY}:{version}"
        manifest = json.loads((blobs / _name(entry)).read_text())
        unpacked = json.loads((blobs / _name(manifest["config"])).read_text())["rootfs"]["diff_ids"]
        manifest["layers"] = [_unpack(blobs, layer, digest) for layer, digest in zip(manifest["layers"], unpacked, strict=True)]
        content = json.dumps(manifest).encode()
        entry |= {"digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
        (blobs / _name(entry)).write_bytes(content)
    (layout / "index.json").write_text(json.dumps(index))
    used = {layer["digest"] for entry in index["manifests"] for layer in json.loads((blobs / _name(entry)).read_text())["layers"]}
    for blob in blobs.iterdir():
        if blob.read_bytes()[:2] == _GZIP and f"sha256:{blob.name}" not in used:
            blob.unlink()


def _unpack(blobs: Path, layer: dict, unpacked: str) -> dict:
    """The layer as it is before compression, which is what the image's configuration names it by."""
    to = blobs / unpacked.removeprefix("sha256:")
    if not to.exists():
        to.write_bytes(gzip.decompress((blobs / _name(layer)).read_bytes()))
    return {"mediaType": layer["mediaType"].removesuffix("+gzip"), "digest": unpacked, "size": to.stat().st_size}


def _name(blob: dict) -> str:
    return blob["digest"].removeprefix("sha256:")
