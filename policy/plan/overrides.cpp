// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/overrides.hpp"

#include <algorithm>
#include <vector>

namespace ka::policy::plan {
namespace {

VcpuPlan* find_vcpu(SandboxPlan& plan, int index) {
  const auto found = std::ranges::lower_bound(plan.vcpus, index, {}, &VcpuPlan::index);
  return found == plan.vcpus.end() || found->index != index ? nullptr : &*found;
}

std::vector<CpuSet*> iothread_sets(SandboxPlan& plan, const std::string& id) {
  std::vector<CpuSet*> sets;
  for (auto& [known, cpus] : plan.iothreads) {
    if (id.empty() || id == known) sets.push_back(&cpus);
  }
  if (id.empty()) sets.push_back(&plan.roles[Role::kIothread]);
  return sets;
}

/// The sets that an override speaks of; none for a thread that is not there.
std::vector<CpuSet*> targets(SandboxPlan& plan, const Override& given) {
  if (given.role == Role::kVcpu) {
    VcpuPlan* vcpu = find_vcpu(plan, given.vcpu_index);
    return vcpu == nullptr ? std::vector<CpuSet*>{} : std::vector<CpuSet*>{&vcpu->cpus};
  }
  if (given.role == Role::kIothread) return iothread_sets(plan, given.iothread);
  if (goes_with_vcpu(given.role)) return {};  // its vCPU is what can be moved
  return {&plan.roles[given.role]};
}

void apply(const Override& given, const CpuSet& reachable, SandboxPlan& plan, Notes& notes) {
  const std::vector<CpuSet*> sets = targets(plan, given);
  if (sets.empty()) return;
  const CpuSet cpus = given.cpus & reachable;
  if (cpus.empty()) {
    notes.warn({Code::kOverrideRefused, override_subject(given), given.cpus, 0});
    return;
  }
  notes.reason({Code::kOverrideByHand, override_subject(given), cpus, 0});
  if (given.role == Role::kVcpu) {
    VcpuPlan& vcpu = *find_vcpu(plan, given.vcpu_index);
    vcpu.placed = true;
    if (vcpu.cpus != cpus) vcpu.role = VcpuRole::kFloating;
  }
  for (CpuSet* set : sets) *set = cpus;
}

/// The pin of one iothread overrides that of all of them.
bool is_general(const Override& given) {
  return given.role == Role::kIothread && given.iothread.empty();
}

}  // namespace

void apply_overrides(const NodeView& node, const SandboxFacts& sandbox, SandboxPlan& plan,
                     Notes& notes) {
  for (const bool general : {true, false}) {
    for (const Override& given : sandbox.overrides) {
      if (is_general(given) != general) continue;
      apply(given, bounds_of(node, sandbox, given.role).reachable, plan, notes);
    }
  }
  for (ContainerPlan& container : plan.containers) {
    if (!container.dedicated) continue;
    container.dedicated = std::ranges::all_of(container.vcpus, [&](int index) {
      return plan.find_vcpu(index)->role == VcpuRole::kDedicated;
    });
  }
}

CpuSet lost_by_pin(const Override& given, const SandboxPlan& unpinned) {
  CpuSet taken;
  for (const VcpuPlan& vcpu : unpinned.vcpus) {
    if (vcpu.role != VcpuRole::kDedicated) continue;
    const bool own = given.role == Role::kVcpu && given.vcpu_index == vcpu.index;
    if (own && given.cpus != vcpu.cpus) taken |= vcpu.cpus;
    if (!own) taken |= given.cpus & vcpu.cpus;
  }
  return taken;
}

bool is_for(const Override& given, const ThreadFacts& thread) {
  if (given.role != thread.role) return false;
  if (given.role == Role::kVcpu) return given.vcpu_index == thread.vcpu_index;
  return given.iothread.empty() || given.iothread == thread.name;
}

std::string thread_subject(Role role, int vcpu_index, const std::string& iothread) {
  std::string subject(role_term(role));
  if (role == Role::kVcpu) return subject + ' ' + std::to_string(vcpu_index);
  if (role == Role::kIothread && !iothread.empty()) return subject + ' ' + iothread;
  return subject;
}

std::string override_subject(const Override& given) {
  return thread_subject(given.role, given.vcpu_index, given.iothread);
}

}  // namespace ka::policy::plan
