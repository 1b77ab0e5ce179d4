#include "policy/plan/ground.hpp"

namespace ka::policy {

Ground survey(const NodeView& node, const SandboxFacts& sandbox) {
  Ground ground;
  for (const ContainerFacts& container : sandbox.containers) {
    if (!container.exited) ground.mask |= container.cpus;
  }
  ground.unconstrained = ground.mask.empty();
  ground.reachable = node.topology.online() - node.exclusive_to_others;
  if (sandbox.cgroup_cpus) ground.reachable &= *sandbox.cgroup_cpus;
  ground.permitted = ground.unconstrained ? ground.reachable : ground.mask & ground.reachable;
  return ground;
}

bool owns_cpus(const ContainerFacts& container) {
  return container.exclusive && !container.exited && !container.cpus.empty();
}

}  // namespace ka::policy
