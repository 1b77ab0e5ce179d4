// Where the threads of one sandbox may run at all, before anything is decided.
#pragma once

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy {

struct Ground {
  CpuSet mask;                 ///< the plain OR of the cpusets of containers that have not exited
  bool unconstrained = false;  ///< no such container has a cpuset
  /// Online, allowed by the cgroup, not exclusive to others: nothing may be placed elsewhere.
  CpuSet reachable;
  CpuSet permitted;  ///< of the mask (of everything when unconstrained) what is reachable
};

Ground survey(const NodeView& node, const SandboxFacts& sandbox);

/// An exclusive container that counts: it has CPUs and has not exited.
bool owns_cpus(const ContainerFacts& container);

}  // namespace ka::policy
