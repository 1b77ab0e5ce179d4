#include "policy/plan/ground.hpp"

namespace ka::policy {

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
  return ground;
}

bool owns_cpus(const ContainerFacts& container) {
  return container.exclusive && !container.exited && !container.cpus.empty();
}

}  // namespace ka::policy
