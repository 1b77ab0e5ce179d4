# SPDX-License-Identifier: Apache-2.0
"""The machines that the lab can be: CPUs, NUMA nodes, and the Debian release that runs on them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One machine. `node_cpus` holds the CPUs of each NUMA node, in the kernel's list format.

    `distances` are between nodes, by row; empty: 20 between any two. `iommu`: with one, and the device 0000:21:00.0 to be passed
    through to a VM. `newer`: packages from Debian sid. `wired`: a second node runs beside the first, with a wire between them.
    """

    name: str
    about: str
    suite: str
    smp: str
    node_cpus: tuple[str, ...]
    memory_mib: int = 4096
    kernel_args: tuple[str, ...] = ()
    distances: tuple[tuple[int, ...], ...] = ()
    iommu: bool = False
    newer: tuple[str, ...] = ()
    wired: bool = False


_TWO_NODES = ("0-3", "4-7")
# Kernel 6.1 sees no SMT in an AMD processor without `topoext`, which software emulation does not have.
_BOOKWORM_SMP = "8,sockets=2,cores=4,threads=1"

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("smt8", "2 sockets x 2 cores x 2 threads, 2 NUMA nodes, Debian 13", "trixie", "8,sockets=2,cores=2,threads=2", _TWO_NODES),
        Shape(
            "numa16",
            "4 sockets x 4 cores without SMT, 4 NUMA nodes in two pairs, Debian 13",
            "trixie",
            "16,sockets=4,cores=4,threads=1",
            ("0-3", "4-7", "8-11", "12-15"),
            distances=((10, 12, 32, 32), (12, 10, 32, 32), (32, 32, 10, 12), (32, 32, 12, 10)),
        ),
        Shape(
            "iommu8",
            "as smt8, with an IOMMU and a device that can be passed through",
            "trixie",
            "8,sockets=2,cores=2,threads=2",
            _TWO_NODES,
            iommu=True,
        ),
        Shape(
            "parameters8",
            "as smt8, booted with parameters that doctor reports",
            "trixie",
            "8,sockets=2,cores=2,threads=2",
            _TWO_NODES,
            kernel_args=("isolcpus=6-7", "nohz_full=4-7", "cgroup_disable=cpuset", "lockdown=confidentiality"),
        ),
        Shape(
            "nodebugfs8",
            "as smt8, booted without debugfs",
            "trixie",
            "8,sockets=2,cores=2,threads=2",
            _TWO_NODES,
            kernel_args=("debugfs=off",),
        ),
        Shape(
            "containerd2",
            "as smt8, with containerd 2 from Debian sid",
            "trixie",
            "8,sockets=2,cores=2,threads=2",
            _TWO_NODES,
            newer=("containerd", "runc"),
        ),
        Shape(
            "pair8",
            "two nodes as smt8, with a wire between them",
            "trixie",
            "8,sockets=2,cores=2,threads=2",
            _TWO_NODES,
            wired=True,
        ),
        Shape(
            "bookworm",
            "2 sockets x 4 cores, 2 NUMA nodes, Debian 12: kernel 6.1, whose vhost workers are kernel threads",
            "bookworm",
            _BOOKWORM_SMP,
            _TWO_NODES,
        ),
        Shape(
            "bookworm-v1",
            "as bookworm, with cgroup v1",
            "bookworm",
            _BOOKWORM_SMP,
            _TWO_NODES,
            kernel_args=("systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"),
        ),
    )
}
