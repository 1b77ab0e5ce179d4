// SPDX-License-Identifier: Apache-2.0
// The CPUs that the threads of one sandbox may use at all, before any decision. That differs from
// role to role where they are in different cgroups.
#pragma once

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

struct Bounds {
  CpuSet mask;  ///< the plain OR of the cpusets of containers that have not exited
  /// No container is known yet, and kubelet has given CPUs to the pod: a VM that touches its memory
  /// on the nodes of these has it there.
  bool starting = false;
  bool unconstrained = false;  ///< no such container has a cpuset
  CpuSet unclaimed;            ///< online, not exclusive to others: all that a cgroup could give
  CpuSet reachable;            ///< what of it the cgroup allows: nothing may be placed elsewhere
  CpuSet permitted;            ///< of the mask (of everything when unconstrained) what is reachable
};

/// For threads of one role; that of the vCPUs is what owners of CPUs are served on.
Bounds bounds_of(const NodeView& node, const SandboxFacts& sandbox, Role role = Role::kVcpu);

/// An exclusive container that counts: it has CPUs and has not exited.
bool owns_cpus(const ContainerFacts& container);

}  // namespace ka::policy::plan
