// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/ground.hpp"

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

Ground survey(const NodeView& node, const SandboxFacts& sandbox, Role role) {
  Ground ground;
  for (const ContainerFacts& container : sandbox.containers) {
    if (!container.exited) ground.mask |= container.cpus;
  }
  ground.unconstrained = ground.mask.empty();
  ground.unclaimed = node.topology.online() - node.exclusive_to_others;
  const CpuSet* cgroup = sandbox.cgroup_of(role);
  ground.reachable = cgroup == nullptr ? ground.unclaimed : ground.unclaimed & *cgroup;
  ground.permitted = ground.unconstrained ? ground.reachable : ground.mask & ground.reachable;
  const CpuSet near = birthplace(node) & ground.reachable;
  ground.newborn = sandbox.containers.empty() && !node.owned.empty() && !near.empty();
  if (ground.newborn) ground.permitted = near;
  return ground;
}

bool owns_cpus(const ContainerFacts& container) {
  return container.exclusive && !container.exited && !container.cpus.empty();
}

}  // namespace ka::policy::plan
