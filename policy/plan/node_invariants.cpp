// SPDX-License-Identifier: Apache-2.0
// The invariants across the sandboxes of a node.
#include <utility>

#include "policy/plan/invariants.hpp"

namespace ka::policy::plan {
std::vector<Violation> check_dedicated(const std::vector<DedicatedVcpu>& vcpus) {
  std::vector<Violation> violations;
  CpuSet taken;
  for (const DedicatedVcpu& vcpu : vcpus) {
    CpuSet twice = vcpu.cpus & taken;
    taken |= vcpu.cpus;
    if (twice.empty()) continue;
    violations.push_back(
        {Breach::kCpuTaken, vcpu.sandbox, "vCPU " + std::to_string(vcpu.index), std::move(twice)});
  }
  return violations;
}

}  // namespace ka::policy::plan
