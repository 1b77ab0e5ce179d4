// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/invariants.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "policy/plan/bounds.hpp"
#include "policy/plan/closeness.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::policy::plan {
namespace {

/// The CPUs beyond the sandbox's own that a housekeeping setting names.
CpuSet beyond_own(const NodeView& node, const Housekeeping& wanted) {
  switch (wanted.kind) {
    case Housekeeping::Kind::kSharedPool:
      return node.shared_pool;
    case Housekeeping::Kind::kCpus:
      return wanted.cpus;
    case Housekeeping::Kind::kSandbox:
    case Housekeeping::Kind::kIsolate:
      break;
  }
  return {};
}

class Checker {
 public:
  Checker(const NodeView& node, const SandboxFacts& sandbox, const Settings& settings,
          const SandboxPlan& plan);

  void check_placements(const std::vector<Placement>& placements);
  void check_containers();
  void check_interrupts();
  void check_again();
  std::vector<Violation> violations() { return std::move(violations_); }

 private:
  bool pins() const {
    return settings_.vcpu_pinning == VcpuPinning::kDedicated ||
           settings_.vcpu_pinning == VcpuPinning::kBalanced;
  }
  void report(Breach breach, std::string subject, CpuSet cpus);
  void report(Breach breach, const Placement& placement, CpuSet cpus);
  bool by_hand(const Placement& placement) const;
  bool by_hand(int vcpu) const { return by_hand({Role::kVcpu, vcpu, {}, {}}); }
  const VcpuPlan* dedicated(const Placement& placement) const;
  CpuSet allowed(Role role) const;
  CpuSet elsewhere(Role role) const;
  bool carries_all(const Placement& placement) const;
  void check_region(const Placement& placement);
  void check_alone(const Placement& placement);
  void check_closeness(const std::vector<Placement>& placements);
  void check_seats(const std::vector<Seat>& seats);
  void check_dedicated(const ContainerFacts& facts, const ContainerPlan& container);
  void check_own_vcpus(const ContainerFacts& facts, const ContainerPlan& container);
  void check_group(const VcpuPlan& vcpu);
  CpuSet usable(const ContainerFacts& container) const;
  const ContainerFacts* facts_of(const std::string& container) const;

  const NodeView& node_;
  const SandboxFacts& sandbox_;
  const Settings& settings_;
  const SandboxPlan& plan_;
  Bounds bounds_;
  CpuSet set_aside_;  ///< as planned
  CpuSet owned_;      ///< by exclusive containers, usable and not set aside
  CpuSet dedicated_;  ///< CPUs of the vCPUs that are meant to be dedicated
  VcpuSet floating_;  ///< vCPUs that serve no exclusive container
  std::vector<Violation> violations_;
};

Checker::Checker(const NodeView& node, const SandboxFacts& sandbox, const Settings& settings,
                 const SandboxPlan& plan)
    : node_(node),
      sandbox_(sandbox),
      settings_(settings),
      plan_(plan),
      bounds_(bounds_of(node, sandbox)) {
  for (const Note& note : plan.reasons) {
    if (note.code == Code::kHousekeepingIsolate) set_aside_ = note.cpus;
  }
  for (const ContainerFacts& container : sandbox.containers) {
    if (owns_cpus(container)) owned_ |= usable(container);
  }
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.role == VcpuRole::kDedicated) dedicated_ |= vcpu.cpus;
    if (vcpu.container.empty()) floating_.add(vcpu.index);
  }
}

void Checker::report(Breach breach, std::string subject, CpuSet cpus) {
  violations_.push_back({breach, sandbox_.id, std::move(subject), std::move(cpus)});
}

void Checker::report(Breach breach, const Placement& placement, CpuSet cpus) {
  report(breach, thread_subject(placement.role, placement.vcpu_index, placement.name),
         std::move(cpus));
  violations_.back().tid = placement.tid;
}

/// KVM's timer goes where its vCPU went.
bool Checker::by_hand(const Placement& placement) const {
  if (placement.role == Role::kPit) return by_hand(placement.vcpu_index);
  return std::ranges::any_of(sandbox_.overrides, [&](const Override& given) {
    if (given.role != placement.role) return false;
    if (!given.cpus.intersects(bounds_of(node_, sandbox_, given.role).reachable)) return false;
    if (given.role == Role::kVcpu) return given.vcpu_index == placement.vcpu_index;
    return given.iothread.empty() || given.iothread == placement.name;
  });
}

const VcpuPlan* Checker::dedicated(const Placement& placement) const {
  if (!goes_with_vcpu(placement.role)) return nullptr;
  const VcpuPlan* vcpu = plan_.find_vcpu(placement.vcpu_index);
  return vcpu == nullptr || vcpu->role != VcpuRole::kDedicated ? nullptr : vcpu;
}

CpuSet Checker::usable(const ContainerFacts& container) const {
  return (container.cpus & bounds_.permitted) - set_aside_;
}

const ContainerFacts* Checker::facts_of(const std::string& container) const {
  const auto found = std::ranges::find(sandbox_.containers, container, &ContainerFacts::id);
  return found == sandbox_.containers.end() ? nullptr : &*found;
}

CpuSet Checker::allowed(Role role) const {
  const Bounds bounds = bounds_of(node_, sandbox_, role);
  return bounds.permitted.empty() ? bounds.reachable : bounds.permitted | elsewhere(role);
}

/// The CPUs beyond the sandbox's own that the settings name for a role and its cgroup allows.
CpuSet Checker::elsewhere(Role role) const {
  const CpuSet wanted = beyond_own(node_, settings_.housekeeping_of(role));
  return wanted & bounds_of(node_, sandbox_, role).reachable;
}

void Checker::check_placements(const std::vector<Placement>& placements) {
  for (const Placement& placement : placements) {
    if (CpuSet foreign = placement.cpus & node_.exclusive_to_others; !foreign.empty()) {
      report(Breach::kForeignCpu, placement, std::move(foreign));
    }
    if (by_hand(placement)) continue;
    check_region(placement);
    check_alone(placement);
  }
  check_closeness(placements);
}

void Checker::check_region(const Placement& placement) {
  CpuSet outside = placement.cpus - allowed(placement.role) - node_.exclusive_to_others;
  if (!outside.empty()) report(Breach::kOutside, placement, std::move(outside));
}

void Checker::check_alone(const Placement& placement) {
  const VcpuPlan* vcpu = dedicated(placement);
  if (vcpu != nullptr && placement.cpus.size() != 1) {
    report(Breach::kNotOneCpu, placement, placement.cpus);
  }
  CpuSet taken = placement.cpus & dedicated_;
  if (vcpu != nullptr) taken -= vcpu->cpus;
  if (taken.empty() || (vcpu == nullptr && carries_all(placement))) return;
  const Breach breach = vcpu != nullptr ? Breach::kCpuTaken : Breach::kNotAlone;
  report(breach, placement, std::move(taken));
}

/// Nothing but CPUs of dedicated vCPUs is left for the role: the core of the lowest one has to
/// carry it. CPUs that vCPUs have left by hand count as theirs.
bool Checker::carries_all(const Placement& placement) const {
  const Bounds bounds = bounds_of(node_, sandbox_, placement.role);
  const auto moved =
      std::ranges::count_if(sandbox_.vcpus, [&](const VcpuFacts& v) { return by_hand(v.index); });
  const CpuSet left = (bounds.permitted | elsewhere(placement.role)) - dedicated_;
  if (left.size() > moved) return false;
  return placement.cpus.subset_of(node_.topology.siblings(bounds.permitted.first()));
}

void Checker::check_closeness(const std::vector<Placement>& placements) {
  std::map<std::vector<std::string>, std::vector<Seat>> seats;  // by the containers that own it
  for (const Placement& placement : placements) {
    if (placement.role != Role::kVcpu || placement.cpus.size() != 1) continue;
    if (dedicated(placement) == nullptr) continue;
    const auto vcpu = std::ranges::find(sandbox_.vcpus, placement.vcpu_index, &VcpuFacts::index);
    const Cpu* cpu = node_.topology.find(placement.cpus.first());
    if (vcpu == sandbox_.vcpus.end() || cpu == nullptr) continue;
    std::vector<std::string> owners;
    for (const ContainerFacts& container : sandbox_.containers) {
      if (owns_cpus(container) && container.cpus.contains(cpu->cpu)) owners.push_back(container.id);
    }
    seats[owners].push_back({&*vcpu, cpu});
  }
  for (const auto& [owners, own] : seats) check_seats(own);
}

void Checker::check_seats(const std::vector<Seat>& seats) {
  // A manual pin has left a gap that the plan did not cause.
  if (std::ranges::any_of(sandbox_.vcpus, [&](const auto& v) { return by_hand(v.index); })) return;
  const Closeness closeness(seats);
  if (!closeness.matters()) return;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    for (std::size_t j = i + 1; j < seats.size(); ++j) {
      if (!closeness.better_swapped(i, j)) continue;
      report(Breach::kSiblingsApart, "vCPU " + std::to_string(seats[i].vcpu->index),
             {seats[i].cpu->cpu, seats[j].cpu->cpu});
      return;
    }
  }
}

void Checker::check_containers() {
  if (sandbox_.vcpus.empty()) return;
  for (const ContainerPlan& container : plan_.containers) {
    if (container.vcpus.empty()) report(Breach::kNoVcpu, container.id, {});
    const ContainerFacts* facts = facts_of(container.id);
    if (facts == nullptr || !pins()) continue;
    check_dedicated(*facts, container);
    check_own_vcpus(*facts, container);
  }
  for (const VcpuPlan& vcpu : plan_.vcpus) check_group(vcpu);
}

/// Every CPU of a container that may use all of them has a vCPU of its own, if the VM has enough.
void Checker::check_dedicated(const ContainerFacts& facts, const ContainerPlan& container) {
  if (!owns_cpus(facts) || !facts.cpus.subset_of(bounds_.permitted)) return;
  if (static_cast<int>(sandbox_.vcpus.size()) < owned_.size()) return;
  CpuSet missing = usable(facts);
  const bool moved = std::ranges::any_of(container.vcpus, [&](int v) { return by_hand(v); });
  for (const int index : container.vcpus) {
    const VcpuPlan* vcpu = plan_.find_vcpu(index);
    if (vcpu != nullptr && vcpu->role == VcpuRole::kDedicated) missing -= vcpu->cpus;
  }
  const bool complete = missing.empty() && container.vcpus.size() == usable(facts).size();
  if (!moved && !(complete && container.dedicated)) {
    report(Breach::kNotDedicated, container.id, std::move(missing));
  }
}

/// Owners run on vCPUs that serve them, or are held for them; everyone else on those that float
/// while any does.
void Checker::check_own_vcpus(const ContainerFacts& facts, const ContainerPlan& container) {
  if (owns_cpus(facts) && !usable(facts).empty()) {
    const VcpuSet common = container.vcpus & floating_;
    if (!common.empty()) report(Breach::kVcpuNotOwn, container.id, {});
    return;
  }
  const bool held = owns_cpus(facts) && std::ranges::all_of(container.vcpus, [&](int index) {
                      const VcpuPlan* vcpu = plan_.find_vcpu(index);
                      return vcpu != nullptr && vcpu->container == container.id;
                    });
  if (!held && !floating_.empty() && container.vcpus != floating_) {
    report(Breach::kVcpuNotOwn, container.id, {});
  }
}

void Checker::check_group(const VcpuPlan& vcpu) {
  if (vcpu.container.empty() || by_hand(vcpu.index)) return;
  CpuSet own;
  for (const ContainerPlan& container : plan_.containers) {
    const ContainerFacts* facts = facts_of(container.id);
    if (facts == nullptr || !owns_cpus(*facts) || !container.vcpus.contains(vcpu.index)) continue;
    own |= usable(*facts);
  }
  CpuSet outside = vcpu.cpus - own;
  // One that is only held floats with the others (check_region).
  if (!own.empty() && !outside.empty()) {
    report(Breach::kWidened, "vCPU " + std::to_string(vcpu.index), std::move(outside));
  }
}

/// I2, and they go where a vCPU is that may take them.
void Checker::check_interrupts() {
  CpuSet vcpus;
  for (const VcpuPlan& vcpu : plan_.vcpus) vcpus |= vcpu.cpus;
  for (const auto& [device, cpus] : plan_.interrupts) {
    const std::string subject = "interrupts of " + device;
    if (CpuSet foreign = cpus & node_.exclusive_to_others; !foreign.empty()) {
      report(Breach::kForeignCpu, subject, std::move(foreign));
    }
    if (CpuSet outside = cpus - vcpus; !outside.empty()) {
      report(Breach::kOutside, subject, std::move(outside));
    }
  }
}

/// Planning again from here moves nothing. Where floating vCPUs are levelled against those of
/// other sandboxes, their sets follow the others' and are not checked.
void Checker::check_again() {
  const SandboxPlan again = plan_sandbox(node_, sandbox_, settings_, &plan_);
  const bool levelled = settings_.vcpu_pinning == VcpuPinning::kBalanced;
  for (const VcpuPlan& vcpu : plan_.vcpus) {
    const VcpuPlan* other = again.find_vcpu(vcpu.index);
    const bool same_place =
        other != nullptr && other->role == vcpu.role && other->container == vcpu.container;
    const bool free = levelled && vcpu.container.empty();
    if (same_place && (free || other->cpus == vcpu.cpus)) continue;
    report(Breach::kUnstable, "vCPU " + std::to_string(vcpu.index), vcpu.cpus);
  }
}

/// The plan with the sets that vCPUs really have in place of those they were to get.
SandboxPlan with_real_vcpus(SandboxPlan plan, const std::vector<Placement>& real) {
  for (const Placement& placement : real) {
    if (placement.role != Role::kVcpu) continue;
    const auto vcpu = std::ranges::find(plan.vcpus, placement.vcpu_index, &VcpuPlan::index);
    if (vcpu != plan.vcpus.end()) vcpu->cpus = placement.cpus;
  }
  return plan;
}

}  // namespace

std::vector<Violation> check_plan(const NodeView& node, const SandboxFacts& sandbox,
                                  const Settings& settings, const SandboxPlan& plan) {
  Checker checker(node, sandbox, settings, plan);
  checker.check_placements(placements_of(plan));
  checker.check_containers();
  checker.check_interrupts();
  checker.check_again();
  return checker.violations();
}

std::vector<Violation> check_actual(const NodeView& node, const SandboxFacts& sandbox,
                                    const Settings& settings, const SandboxPlan& plan,
                                    const std::vector<ActualThread>& threads) {
  std::vector<Placement> placements;
  for (const ActualThread& actual : threads) {
    const ThreadFacts& thread = actual.thread;
    if (!thread.movable || plan.cpus_for(thread) == nullptr) continue;
    const CpuSet* cgroup = sandbox.cgroup_of(thread.role);
    CpuSet running = actual.cpus & node.topology.online();
    if (cgroup != nullptr) running &= *cgroup;
    placements.push_back(
        {thread.role, thread.vcpu_index, thread.name, std::move(running), thread.key.tid});
  }
  Checker threads_checker(node, sandbox, settings, plan);
  threads_checker.check_placements(placements);
  std::vector<Violation> violations = threads_checker.violations();
  const SandboxPlan real = with_real_vcpus(plan, placements);
  Checker containers_checker(node, sandbox, settings, real);
  containers_checker.check_containers();
  std::ranges::move(containers_checker.violations(), std::back_inserter(violations));
  return violations;
}

}  // namespace ka::policy::plan
