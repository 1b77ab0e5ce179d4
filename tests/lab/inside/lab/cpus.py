# SPDX-License-Identifier: Apache-2.0
"""Sets of CPUs, in the kernel's list format (`0-3,8`)."""


def parse(text: str) -> frozenset[int]:
    """The CPUs of `text`."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def show(cpus: frozenset[int] | set[int]) -> str:
    """`cpus` as the kernel writes them."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
