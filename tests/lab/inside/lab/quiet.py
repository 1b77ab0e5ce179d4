# SPDX-License-Identifier: Apache-2.0
"""What is expected of CPUs that the host is kept off, asked of the kernel; and that the product says the same."""

import re
from collections import Counter

from lab import check, cpus, helper, kernel, reach
from lab.reach import Left
from lab.vm import Vm

PATIENCE = 40.0  # seconds: the helper looks again every 10 s
_PROGRAMS = "process"  # of these the product does not tell: they are where their units are
_shown: list[tuple[str, str]] = []
_NUMBER = re.compile(r"[:/ ]*[0-9].*$")


def owners(vm: Vm, own: str) -> set[int]:
    """The vCPUs whose CPUs `own` are: each may run on one of them."""
    on = {str(cpu) for cpu in cpus.parse(own)}
    return {tid for tid in vm.vcpu_tids().values() if kernel.allowed(tid) in on}


def expect_quiet(own: str, *vms: Vm, seconds: float = PATIENCE) -> None:
    """Nothing that the kernel lets anybody move may run on `own`, except what would lose all its CPUs. What is left is printed, and the product
    names as much."""

    def found() -> list[Left]:
        return reach.left(own, set().union(*(owners(vm, own) for vm in vms)))

    def strays() -> list[str]:
        return [str(each) for each in found() if each.movable and not each.would_lose_all(own)]

    check.eventually(f"what could leave CPUs {own}", strays, [], seconds)
    _show(found(), own)
    check.eventually("what is left, by kind, where the helper says otherwise", lambda: _differences(own, found()), {}, seconds)


def expect_noisy(own: str) -> None:
    """The host may use `own` again."""
    on = cpus.parse(own)

    def without() -> list[str]:
        """Units, and masks for what comes new, that lack some of them."""
        return [str(each) for each in reach.for_new_ones() if not on <= cpus.parse(each.cpus)]

    check.eventually(f"what is still kept off CPUs {own}", without, [], PATIENCE)


def _differences(own: str, found: list[Left]) -> dict[str, tuple[int, int]]:
    """By kind, how many are left by the helper's word, and by the kernel's."""
    said = helper.told()
    if (said["cpus"], said["problem"]) != (own, ""):
        return {f"{said['cpus']}: {said['problem']}": (0, 0)}
    by_kernel = Counter(each.kind for each in found if each.kind != _PROGRAMS)
    by_helper = Counter({kind["kind"]: kind["left_total"] for kind in said["kinds"]})
    return {kind: (by_helper[kind], by_kernel[kind]) for kind in by_helper | by_kernel if by_helper[kind] != by_kernel[kind]}


def _show(found: list[Left], own: str) -> None:
    """Not again what was shown last."""
    fixed = Counter(f"{each.kind} {_NUMBER.sub('', each.name) or each.name}" for each in found if not each.movable)
    text = ", ".join(name + (f" ({count})" if count > 1 else "") for name, count in sorted(fixed.items()))
    single = ", ".join(str(each) for each in found if each.movable and each.would_lose_all(own))
    if (text, single) not in _shown:
        print(f"          left there, as nobody can move it: {text}", flush=True)
        print(f"          left there, as it would lose all its CPUs: {single or 'nothing'}", flush=True)
    _shown[:] = [(text, single)]
