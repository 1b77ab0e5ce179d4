// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/bounds.hpp"

namespace ka::policy::plan {

namespace {

/// The pod's own CPUs, and those of the shared pool on the same nodes.
CpuSet birthplace(const NodeView& node) {
  CpuSet near = node.owned;
  for (const int number : node.topology.nodes_of(node.owned)) {
    near |= node.shared_pool & node.topology.node_cpus(number);
  }
  return near;
}

}  // namespace

Bounds bounds_of(const NodeView& node, const SandboxFacts& sandbox, Role role) {
  Bounds bounds;
  for (const ContainerFacts& container : sandbox.containers) {
    if (!container.exited) bounds.mask |= container.cpus;
  }
  bounds.unconstrained = bounds.mask.empty();
  bounds.unclaimed = node.topology.online() - node.exclusive_to_others;
  const CpuSet* cgroup = sandbox.cgroup_of(role);
  bounds.reachable = cgroup == nullptr ? bounds.unclaimed : bounds.unclaimed & *cgroup;
  bounds.permitted = bounds.unconstrained ? bounds.reachable : bounds.mask & bounds.reachable;
  const CpuSet near = birthplace(node) & bounds.reachable;
  bounds.starting = sandbox.containers.empty() && !node.owned.empty() && !near.empty();
  if (bounds.starting) bounds.permitted = near;
  return bounds;
}

bool owns_cpus(const ContainerFacts& container) {
  return container.exclusive && !container.exited && !container.cpus.empty();
}

}  // namespace ka::policy::plan
