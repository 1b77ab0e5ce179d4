# SPDX-License-Identifier: Apache-2.0
"""Where what is no dedicated vCPU belongs, by the setting `housekeeping` and docs/understand/deciding.md, without the product."""

from collections.abc import Iterable

from lab import cpus, kernel
from lab.claims import Claims

_NOBODY = frozenset()
_BY_POD = ("sandbox", "isolate")  # the settings that name no CPUs outside the pod


def owners(names: Iterable[str], uid: str, claims: Claims) -> list[frozenset[int]]:
    """What each container of these names owns, of those that own CPUs."""
    return [own for name in names if (own := claims.owned.get(uid, {}).get(name))]


def set_aside(setting: str, names: Iterable[str], uid: str, claims: Claims) -> frozenset[int]:
    """The core that a pod gives up under "isolate": the lowest one without which each of its owners keeps a CPU. Else empty."""
    having = owners(names, uid, claims) if setting == "isolate" else []
    own = _NOBODY.union(*having)
    cores = (kernel.siblings(cpu) & own for cpu in sorted(own))
    return next((core for core in cores if all(each - core for each in having)), _NOBODY)


def allowed(setting: str, names: Iterable[str], uid: str, claims: Claims) -> frozenset[int]:
    """Where a thread of a pod with the containers `names` may run at all."""
    own, names = claims.of_pod(uid), set(names)
    if setting == "shared-pool" or not names or not claims.owned.get(uid, {}).keys() <= names:
        return own | claims.pool  # a container that is to come, or has ended, is in no mask
    return _mask(names, uid, claims) | (_outside(setting, claims) - claims.of_others(uid))


def room(setting: str, names: Iterable[str], uid: str, claims: Claims, dedicated: frozenset[int], reach: frozenset[int]) -> frozenset[int]:
    """Where a thread belongs that is no dedicated vCPU, and whose cgroup allows `reach`: outside the pod if it may, else on what no dedicated
    vCPU has, else on the core of the lowest CPU."""
    if not (reach := reach - claims.of_others(uid)):
        return reach
    aside = set_aside(setting, names, uid, claims)
    own = _mask(names, uid, claims) & reach or reach
    return (_outside(setting, claims) & reach) - dedicated or aside & reach or own - dedicated or kernel.siblings(min(own)) & own


def _mask(names: Iterable[str], uid: str, claims: Claims) -> frozenset[int]:
    """The CPUs of all containers. Those that own none have the pool."""
    owned = claims.owned.get(uid, {})
    return _NOBODY.union(*(owned.get(name, claims.pool) for name in names))


def _outside(setting: str, claims: Claims) -> frozenset[int]:
    if setting == "shared-pool":
        return claims.pool
    return _NOBODY if setting in _BY_POD else cpus.parse(setting)
