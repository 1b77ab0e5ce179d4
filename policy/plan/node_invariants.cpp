// SPDX-License-Identifier: Apache-2.0
// The invariants across the sandboxes of a node.
#include <algorithm>
#include <iterator>
#include <utility>

#include "policy/plan/invariants.hpp"

namespace ka::policy::plan {
namespace {

std::vector<DedicatedVcpu> dedicated_vcpus(const Plan& plan) {
  std::vector<DedicatedVcpu> vcpus;
  for (const SandboxPlan& sandbox : plan.sandboxes) {
    for (const VcpuPlan& vcpu : sandbox.vcpus) {
      if (vcpu.role != VcpuRole::kDedicated) continue;
      vcpus.push_back({sandbox.id, vcpu.index, vcpu.cpus});
    }
  }
  return vcpus;
}

}  // namespace

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

std::vector<Violation> check_node(const Snapshot& snapshot, const Settings& settings,
                                  const Plan& plan) {
  std::vector<Violation> violations = check_dedicated(dedicated_vcpus(plan));
  const std::vector<NodeView> views = node_views(snapshot);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const SandboxFacts& sandbox = snapshot.sandboxes[i];
    const SandboxPlan* own = plan.find(sandbox.id);
    if (own == nullptr) continue;
    std::vector<Violation> found = check_plan(views[i], sandbox, settings, *own);
    std::ranges::move(found, std::back_inserter(violations));
  }
  return violations;
}

}  // namespace ka::policy::plan
