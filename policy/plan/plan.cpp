// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/plan.hpp"

#include <algorithm>
#include <utility>

#include "policy/plan/assign.hpp"
#include "policy/plan/balance.hpp"
#include "policy/plan/bounds.hpp"
#include "policy/plan/cgroup.hpp"
#include "policy/plan/housekeeping.hpp"
#include "policy/plan/interrupts.hpp"
#include "policy/plan/match.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::policy::plan {
namespace {

bool wants_isolate(const Settings& settings) {
  const auto isolates = [](const Housekeeping& h) {
    return h.kind == Housekeeping::Kind::kIsolate;
  };
  return isolates(settings.housekeeping) ||
         std::ranges::any_of(settings.housekeeping_by_role,
                             [&](const auto& entry) { return isolates(entry.second); });
}

/// Composes the plan of one sandbox, step by step.
class Planner {
 public:
  Planner(const NodeView& node, const SandboxFacts& sandbox, const Settings& settings,
          const SandboxPlan* previous);

  SandboxPlan run();

 private:
  bool pins() const {
    return settings_.vcpu_pinning == VcpuPinning::kDedicated ||
           settings_.vcpu_pinning == VcpuPinning::kBalanced;
  }
  bool owned_by(const Slot& slot, std::size_t container) const;

  void describe();
  void record_bounds();
  void record_kept();
  void place_owned_vcpus();
  void place_floating_vcpus();
  std::vector<CpuSet> floating_sets(std::size_t count);
  CpuSet group_set(const OwnedSet& holding, const Slot& slot) const;
  void place_threads();
  CpuSet thread_set(Role role);
  Region region_of(Role role);
  void confine(std::string_view who, const Region& region);
  void record_confined();
  CpuSet single_set(const CpuSet& region);
  void place_interrupts();
  void hold_vcpus();
  void place_containers();
  VcpuSet vcpus_of(std::size_t container) const;
  VcpuSet vcpus_held_for(std::size_t container) const;
  VcpuSet common_vcpus() const;
  bool is_dedicated(std::size_t container) const;
  void record_vcpus(const ContainerPlan& plan, std::size_t container);

  const NodeView& node_;
  const SandboxFacts& sandbox_;
  const Settings& settings_;
  const SandboxPlan* previous_;
  Bounds bounds_;
  Assignment assignment_;
  std::vector<Slot> slots_;
  std::size_t lowest_owned_ = kUnserved;
  Region common_;         ///< housekeeping of everything that has none of its own
  CpuSet refused_;        ///< what cgroups refuse of housekeeping
  std::string confined_;  ///< to whom
  Notes notes_;
  SandboxPlan plan_;
};

Planner::Planner(const NodeView& node, const SandboxFacts& sandbox, const Settings& settings,
                 const SandboxPlan* previous)
    : node_(node),
      sandbox_(sandbox),
      settings_(settings),
      previous_(previous),
      bounds_(bounds_of(node, sandbox)) {
  assignment_.floating = static_cast<int>(sandbox.vcpus.size());
}

SandboxPlan Planner::run() {
  describe();
  record_bounds();
  if (pins()) {
    assignment_ = assign(node_.topology, sandbox_, bounds_, wants_isolate(settings_));
    slots_ = match(node_.topology, sandbox_, assignment_, previous_);
    lowest_owned_ = lowest_owned_vcpu(assignment_, slots_);
    record_kept();
  }
  common_ = resolve_housekeeping(node_, bounds_, assignment_, settings_.housekeeping,
                                 "housekeeping", notes_);
  plan_.housekeeping = common_.cpus;
  place_owned_vcpus();
  place_floating_vcpus();
  place_threads();
  record_confined();
  hold_vcpus();
  place_containers();
  apply_overrides(node_, sandbox_, plan_, notes_);
  place_interrupts();
  if (sandbox_.cgroup_writable) plan_.cgroup = cgroup_cpus(plan_, sandbox_, bounds_);
  plan_.reasons = std::move(notes_.reasons);
  plan_.warnings = std::move(notes_.warnings);
  return std::move(plan_);
}

void Planner::describe() {
  plan_.id = sandbox_.id;
  plan_.pod_uid = sandbox_.pod_uid;
  plan_.mask = bounds_.mask;
  for (const ContainerFacts& container : sandbox_.containers) {
    if (!container.exited) plan_.mems |= container.mems;
  }
  if (plan_.mems.empty()) plan_.mems = node_.topology.nodes_of(bounds_.mask);
  plan_.vcpus.reserve(sandbox_.vcpus.size());
  for (const VcpuFacts& vcpu : sandbox_.vcpus) plan_.vcpus.push_back({.index = vcpu.index});
}

void Planner::record_bounds() {
  if (bounds_.permitted.empty()) {
    notes_.warn({Code::kNoUsableCpu, sandbox_.id, bounds_.mask, bounds_.reachable.empty() ? 1 : 0});
  } else if (bounds_.unconstrained && !bounds_.starting) {
    notes_.reason({Code::kUnconstrained, sandbox_.id, bounds_.permitted, 0});
  }
  CpuSet foreign = bounds_.mask & node_.exclusive_to_others;
  for (const ContainerFacts& container : sandbox_.containers) {
    if (!owns_cpus(container)) continue;
    CpuSet contested = container.cpus & node_.exclusive_to_others;
    foreign -= contested;
    if (!contested.empty()) {
      notes_.warn({Code::kCpusContested, container.id, std::move(contested), 0});
    }
  }
  if (!foreign.empty()) notes_.reason({Code::kForeignCpusRemoved, sandbox_.id, foreign, 0});
}

bool Planner::owned_by(const Slot& slot, std::size_t container) const {
  return std::ranges::binary_search(assignment_.holdings[slot.holding].owners, container);
}

/// Only what the previous plan really decided is reported; so applying a plan twice also reports
/// the same twice.
void Planner::record_kept() {
  if (previous_ == nullptr) return;
  const std::vector<Slot> fresh = match(node_.topology, sandbox_, assignment_, nullptr);
  if (fresh == slots_) return;
  for (std::size_t i = 0; i < sandbox_.containers.size(); ++i) {
    bool kept = false;
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      kept |= slots_[k].vcpu != fresh[k].vcpu && owned_by(slots_[k], i);
    }
    if (kept) notes_.reason({Code::kKeptFromBefore, sandbox_.containers[i].id, {}, 0});
  }
}

void Planner::place_owned_vcpus() {
  for (const Slot& slot : slots_) {
    const OwnedSet& holding = assignment_.holdings[slot.holding];
    VcpuPlan& vcpu = plan_.vcpus[slot.vcpu];
    vcpu.container = sandbox_.containers[holding.owners.front()].id;
    vcpu.role = holding.dedicated() ? VcpuRole::kDedicated : VcpuRole::kFloating;
    vcpu.cpus = holding.dedicated() ? CpuSet{slot.cpu} : group_set(holding, slot);
  }
  if (assignment_.floating == 0 && lowest_owned_ != kUnserved) {
    const VcpuPlan& shared = plan_.vcpus[lowest_owned_];
    notes_.warn({Code::kNoFloatingVcpu, sandbox_.id, shared.cpus, shared.index});
  }
}

/// A group floats over CPUs between which the scheduler balances; where these are too few for it,
/// each of its vCPUs gets one CPU.
CpuSet Planner::group_set(const OwnedSet& holding, const Slot& slot) const {
  const CpuSet& isolated = node_.topology.isolated();
  if (!holding.usable.intersects(isolated)) return holding.usable;
  CpuSet balanced = holding.usable - isolated;
  return balanced.size() >= holding.vcpus ? balanced : CpuSet{slot.cpu};
}

void Planner::place_floating_vcpus() {
  std::vector<VcpuPlan*> floating;
  for (VcpuPlan& vcpu : plan_.vcpus) {
    if (vcpu.container.empty()) floating.push_back(&vcpu);
  }
  if (floating.empty()) return;
  std::vector<CpuSet> sets = floating_sets(floating.size());
  CpuSet all;
  for (std::size_t i = 0; i < floating.size(); ++i) {
    all |= sets[i];
    floating[i]->cpus = std::move(sets[i]);
    floating[i]->placed = settings_.vcpu_pinning != VcpuPinning::kNone;
  }
  const Code code = settings_.vcpu_pinning == VcpuPinning::kNone   ? Code::kVcpusLeftAlone
                    : settings_.vcpu_pinning == VcpuPinning::kMask ? Code::kVcpusOnMask
                                                                   : Code::kFloating;
  notes_.reason({code, sandbox_.id, std::move(all), static_cast<int>(floating.size())});
  if (code == Code::kFloating) confine("floating vCPUs", common_);
}

std::vector<CpuSet> Planner::floating_sets(std::size_t count) {
  const CpuSet& housekeeping = plan_.housekeeping;
  switch (settings_.vcpu_pinning) {
    case VcpuPinning::kNone:
      return std::vector<CpuSet>(count, bounds_.permitted | housekeeping);
    case VcpuPinning::kMask:
      return std::vector<CpuSet>(
          count, single_set(bounds_.permitted.empty() ? housekeeping : bounds_.permitted));
    case VcpuPinning::kDedicated:
      break;
    case VcpuPinning::kBalanced:
      if (housekeeping.empty()) break;
      return balanced_sets(node_, sandbox_, bounds_, plan_,
                           node_.current == nullptr ? previous_ : node_.current);
      break;
  }
  return std::vector<CpuSet>(count, single_set(housekeeping));
}

/// What one thread gets that floats in a region.
CpuSet Planner::single_set(const CpuSet& region) {
  CpuSet cpus = floating_set(node_.topology, region);
  if (cpus != region) notes_.reason({Code::kIsolatedCpus, sandbox_.id, region, 0});
  return cpus;
}

CpuSet Planner::thread_set(Role role) {
  const Region region = region_of(role);
  if (sandbox_.roles.empty() || sandbox_.roles.contains(role)) confine(role_name(role), region);
  return single_set(region.cpus);
}

/// Of a role that has a setting or a cgroup of its own; else it shares the common housekeeping.
Region Planner::region_of(Role role) {
  const bool is_own = settings_.housekeeping_by_role.contains(role);
  if (!is_own && !sandbox_.cgroup_by_role.contains(role)) return common_;
  return resolve_housekeeping(node_, bounds_of(node_, sandbox_, role), assignment_,
                              settings_.housekeeping_of(role), std::string(role_name(role)),
                              notes_);
}

/// Records the roles that cannot use the housekeeping CPUs of the settings.
void Planner::confine(std::string_view who, const Region& region) {
  if (region.refused.empty()) return;
  refused_ |= region.refused;
  confined_ += (confined_.empty() ? "" : ", ") + std::string(who);
}

void Planner::record_confined() {
  if (confined_.empty()) return;
  notes_.warn({Code::kHousekeepingConfined, confined_, refused_, sandbox_.cgroup_writable ? 1 : 0});
}

void Planner::place_threads() {
  if (wants_isolate(settings_) && !slots_.empty() && assignment_.set_aside.empty()) {
    notes_.warn({Code::kIsolateImpossible, sandbox_.id, bounds_.permitted, 0});
  }
  for (const RoleInfo& info : kRoles) {
    if (!goes_with_vcpu(info.role)) plan_.roles[info.role] = thread_set(info.role);
  }
  for (const std::string& id : sandbox_.iothreads) {
    plan_.iothreads[id] = plan_.roles[Role::kIothread];
  }
}

void Planner::place_interrupts() {
  for (const DeviceFacts& device : sandbox_.devices) {
    CpuSet cpus = interrupt_cpus(node_.topology, plan_, device);
    if (!cpus.empty()) plan_.interrupts[device.id] = std::move(cpus);
  }
}

/// A container owns CPUs of which it may use none when its cgroup follows later. Until then the
/// vCPUs that served it float, and no other container gets them: in the guest it stays put.
void Planner::hold_vcpus() {
  if (!pins() || previous_ == nullptr) return;
  const VcpuSet common = common_vcpus();
  for (std::size_t i = 0; i < sandbox_.containers.size(); ++i) {
    const ContainerFacts& container = sandbox_.containers[i];
    if (container.exited || !owns_cpus(container) || !vcpus_of(i).empty()) continue;
    for (const int index : vcpus_before(sandbox_, container, *previous_)) {
      const auto vcpu = std::ranges::find(plan_.vcpus, index, &VcpuPlan::index);
      const bool is_free = vcpu != plan_.vcpus.end() && vcpu->container.empty();
      if (is_free && index != common.first()) vcpu->container = container.id;
    }
  }
}

void Planner::place_containers() {
  const VcpuSet common = common_vcpus();
  for (std::size_t i = 0; i < sandbox_.containers.size(); ++i) {
    const ContainerFacts& container = sandbox_.containers[i];
    if (container.exited) continue;
    ContainerPlan plan{container.id, container.name, vcpus_of(i), is_dedicated(i)};
    if (plan.vcpus.empty()) plan.vcpus = vcpus_held_for(i);
    if (plan.vcpus.empty()) plan.vcpus = common;
    record_vcpus(plan, i);
    plan_.containers.push_back(std::move(plan));
  }
}

/// The vCPUs that serve this exclusive container.
VcpuSet Planner::vcpus_of(std::size_t container) const {
  VcpuSet vcpus;
  for (const Slot& slot : slots_) {
    if (owned_by(slot, container)) vcpus.add(sandbox_.vcpus[slot.vcpu].index);
  }
  return vcpus;
}

VcpuSet Planner::vcpus_held_for(std::size_t container) const {
  VcpuSet vcpus;
  for (const VcpuPlan& vcpu : plan_.vcpus) {
    if (vcpu.container == sandbox_.containers[container].id) vcpus.add(vcpu.index);
  }
  return vcpus;
}

/// The vCPUs of containers without their own: those that float, else the lowest one.
VcpuSet Planner::common_vcpus() const {
  VcpuSet vcpus;
  for (const VcpuPlan& vcpu : plan_.vcpus) {
    if (vcpu.container.empty()) vcpus.add(vcpu.index);
  }
  if (vcpus.empty() && lowest_owned_ != kUnserved) vcpus.add(plan_.vcpus[lowest_owned_].index);
  return vcpus;
}

bool Planner::is_dedicated(std::size_t container) const {
  bool any = false;
  for (const OwnedSet& holding : assignment_.holdings) {
    if (!std::ranges::binary_search(holding.owners, container)) continue;
    if (!holding.dedicated()) return false;
    any = true;
  }
  return any;
}

/// The reason for this container's placement.
void Planner::record_vcpus(const ContainerPlan& plan, std::size_t container) {
  const ContainerFacts& facts = sandbox_.containers[container];
  if (!pins() || !owns_cpus(facts)) {
    const bool any_floats = std::ranges::any_of(
        plan_.vcpus, [](const VcpuPlan& vcpu) { return vcpu.container.empty(); });
    // Else a warning names the vCPU that all of them share.
    if (any_floats) {
      notes_.reason({Code::kSharedContainer, facts.id, facts.cpus, plan.vcpus.size()});
    }
    return;
  }
  const CpuSet usable = (facts.cpus & bounds_.permitted) - assignment_.set_aside;
  const CpuSet refused = facts.cpus - bounds_.permitted - node_.exclusive_to_others;
  if (!refused.empty()) notes_.warn({Code::kCpusUnusable, facts.id, refused, 0});
  if (usable.empty()) {
    notes_.warn({Code::kNoUsableCpu, facts.id, facts.cpus, bounds_.reachable.empty() ? 1 : 0});
  } else if (plan.dedicated) {
    notes_.reason({Code::kDedicated, facts.id, usable, usable.size()});
  } else if (std::ranges::count(assignment_.sharing, container) > 0) {
    notes_.warn({Code::kVcpuShared, facts.id, usable, plan.vcpus.first()});
  } else if (!plan.vcpus.empty() && plan.vcpus.size() < usable.size()) {
    notes_.warn({Code::kTooFewVcpus, facts.id, usable, plan.vcpus.size()});
  }
}

}  // namespace

SandboxPlan plan_sandbox(const NodeView& node, const SandboxFacts& sandbox,
                         const Settings& settings, const SandboxPlan* previous) {
  return Planner(node, sandbox, settings, previous).run();
}

}  // namespace ka::policy::plan
