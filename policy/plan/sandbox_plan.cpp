// SPDX-License-Identifier: Apache-2.0
// What a plan says of single threads.
#include <algorithm>

#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {
namespace {

void add_placement(std::vector<Placement>& placements, Role role, const std::string& name,
                   const CpuSet& cpus) {
  if (!cpus.empty()) placements.push_back({role, -1, name, cpus});
}

}  // namespace

const VcpuPlan* SandboxPlan::find_vcpu(int index) const {
  const auto found = std::ranges::lower_bound(vcpus, index, {}, &VcpuPlan::index);
  return found == vcpus.end() || found->index != index ? nullptr : &*found;
}

const CpuSet* SandboxPlan::cpus_for(const ThreadFacts& thread) const {
  if (goes_with_vcpu(thread.role)) {
    const VcpuPlan* vcpu = find_vcpu(thread.vcpu_index);
    return vcpu == nullptr || !vcpu->placed ? nullptr : &vcpu->cpus;
  }
  const auto known = iothreads.find(thread.name);
  const bool by_id = thread.role == Role::kIothread && known != iothreads.end();
  return by_id ? &known->second : &roles[thread.role];
}

std::vector<Placement> placements_of(const SandboxPlan& plan) {
  std::vector<Placement> placements;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.placed && !vcpu.cpus.empty()) {
      placements.push_back({Role::kVcpu, vcpu.index, {}, vcpu.cpus});
    }
  }
  for (const RoleInfo& info : kRoles) {
    add_placement(placements, info.role, {}, plan.roles[info.role]);
    if (info.role != Role::kIothread) continue;
    for (const auto& [id, cpus] : plan.iothreads) add_placement(placements, info.role, id, cpus);
  }
  return placements;
}

}  // namespace ka::policy::plan
