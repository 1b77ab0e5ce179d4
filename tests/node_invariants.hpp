// SPDX-License-Identifier: Apache-2.0
// The invariants of a whole node's plan.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"

namespace ka::tests {

inline std::vector<policy::plan::DedicatedVcpu> dedicated_vcpus(const policy::plan::Plan& plan) {
  std::vector<policy::plan::DedicatedVcpu> vcpus;
  for (const auto& sandbox : plan.sandboxes) {
    for (const auto& vcpu : sandbox.vcpus) {
      if (vcpu.role != policy::plan::VcpuRole::kDedicated) continue;
      vcpus.push_back({sandbox.id, vcpu.index, vcpu.cpus});
    }
  }
  return vcpus;
}

/// What check_plan() finds in each sandbox's plan, and check_dedicated() in all of them.
inline std::vector<policy::plan::Violation> check_node(const policy::plan::Snapshot& snapshot,
                                                       const policy::plan::Settings& settings,
                                                       const policy::plan::Plan& plan) {
  auto violations = policy::plan::check_dedicated(dedicated_vcpus(plan));
  const auto views = policy::plan::node_views(snapshot);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const policy::SandboxFacts& sandbox = snapshot.sandboxes[i];
    const policy::plan::SandboxPlan* own = plan.find(sandbox.id);
    if (own == nullptr) continue;
    auto found = policy::plan::check_plan(views[i], sandbox, settings, *own);
    std::ranges::move(found, std::back_inserter(violations));
  }
  return violations;
}

}  // namespace ka::tests
