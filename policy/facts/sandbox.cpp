// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/sandbox.hpp"

namespace ka::policy {

const CpuSet* SandboxFacts::cgroup_of(Role role) const {
  const auto own = cgroup_by_role.find(role);
  if (own != cgroup_by_role.end()) return &own->second;
  return cgroup_cpus ? &*cgroup_cpus : nullptr;
}

}  // namespace ka::policy
