// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/isolation.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "policy/plan/bounds.hpp"
#include "policy/plan/guest.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::policy::plan {
namespace {

bool pins(const Settings& settings) {
  return settings.vcpu_pinning == VcpuPinning::kDedicated ||
         settings.vcpu_pinning == VcpuPinning::kBalanced;
}

bool has_warning(const SandboxPlan& plan, Code code) {
  return std::ranges::any_of(plan.warnings, [&](const Note& note) { return note.code == code; });
}

/// The core that housekeeping = "isolate" took from the owners: it is not theirs any more.
CpuSet set_aside(const SandboxPlan& plan) {
  CpuSet cpus;
  for (const Note& note : plan.reasons) {
    if (note.code == Code::kHousekeepingIsolate) cpus |= note.cpus;
  }
  return cpus;
}

std::string subject_of(const ThreadFacts& thread) {
  return thread_subject(thread.role, thread.vcpu_index, thread.name);
}

/// Why a container was left on more vCPUs than its own, where that is not for want of an answer.
std::optional<GuestDoubt> left_wide(const GuestSide& guest, const std::string& container) {
  if (guest.doubts == nullptr) return std::nullopt;
  const auto found = guest.doubts->find(container);
  if (found == guest.doubts->end()) return std::nullopt;
  const bool is_answer =
      found->second == GuestDoubt::kAgentAway || found->second == GuestDoubt::kUnanswered;
  return is_answer ? std::nullopt : std::optional(found->second);
}

/// Obstacles of one container, each kind once however many threads make it.
class Obstacles {
 public:
  void add(Obstacle obstacle, Remedy remedy, const std::string& subject, const CpuSet& cpus) {
    Entry& entry = entries_[obstacle];
    entry.remedy = remedy;
    entry.cpus |= cpus;
    if (!subject.empty()) entry.subjects.insert(subject);
  }

  std::vector<NotIsolated> obstacles() const {
    std::vector<NotIsolated> list;
    for (const auto& [obstacle, entry] : entries_) {
      std::string subject;
      for (const std::string& one : entry.subjects) subject += (subject.empty() ? "" : ", ") + one;
      list.push_back({obstacle, std::move(subject), entry.cpus, entry.remedy});
    }
    return list;
  }

 private:
  struct Entry {
    std::set<std::string> subjects;
    CpuSet cpus;
    Remedy remedy = Remedy::kReconcile;
  };
  std::map<Obstacle, Entry> entries_;
};

class IsolationChecker {
 public:
  IsolationChecker(const NodeView& node, const SandboxFacts& sandbox, const Settings& settings,
                   const SandboxPlan& plan)
      : node_(node),
        sandbox_(sandbox),
        settings_(settings),
        plan_(plan),
        bounds_(bounds_of(node, sandbox)),
        set_aside_(set_aside(plan)) {}

  void check_host(const ContainerFacts& owner, const std::vector<ActualThread>& threads,
                  Obstacles& found) const;
  void check_guest(const ContainerFacts& owner, const GuestSide& guest, Obstacles& found) const;

 private:
  void check_cpus(const ContainerFacts& owner, Obstacles& found) const;
  bool shares_for_want_of_cpus(const ContainerFacts& owner, const ContainerPlan& planned) const;
  void check_vcpus(const ContainerFacts& owner, const ContainerPlan& planned,
                   Obstacles& found) const;
  void check_sharers(const ContainerPlan& planned, Obstacles& found) const;
  void check_pins(const ContainerPlan& planned, Obstacles& found) const;
  void check_thread(const ContainerFacts& owner, const ContainerPlan& planned,
                    const ActualThread& thread, Obstacles& found) const;
  bool serves(const ContainerFacts& owner, const ContainerPlan& planned,
              const ThreadFacts& thread) const;
  const Override* pin_of(const ThreadFacts& thread) const;
  const ContainerFacts* facts_of(const std::string& container) const;
  Remedy housekeeping_remedy() const;

  const NodeView& node_;
  const SandboxFacts& sandbox_;
  const Settings& settings_;
  const SandboxPlan& plan_;
  Bounds bounds_;
  CpuSet set_aside_;
};

void IsolationChecker::check_host(const ContainerFacts& owner,
                                  const std::vector<ActualThread>& threads,
                                  Obstacles& found) const {
  check_cpus(owner, found);
  const auto planned = std::ranges::find(plan_.containers, owner.id, &ContainerPlan::id);
  if (planned == plan_.containers.end()) return;
  check_vcpus(owner, *planned, found);
  check_sharers(*planned, found);
  check_pins(*planned, found);
  for (const ActualThread& thread : threads) check_thread(owner, *planned, thread, found);
}

void IsolationChecker::check_cpus(const ContainerFacts& owner, Obstacles& found) const {
  const CpuSet contested = owner.cpus & node_.exclusive_to_others;
  const CpuSet refused = owner.cpus - bounds_.permitted - contested;
  if (!contested.empty()) found.add(Obstacle::kCpusContested, Remedy::kOneOwner, {}, contested);
  if (!refused.empty()) found.add(Obstacle::kCpusUnusable, Remedy::kCgroupCpus, {}, refused);
}

/// Where some of its CPUs cannot be used, its vCPUs share the others however many they are. That is
/// reported of these CPUs (check_cpus).
bool IsolationChecker::shares_for_want_of_cpus(const ContainerFacts& owner,
                                               const ContainerPlan& planned) const {
  return pins(settings_) && !owner.cpus.subset_of(bounds_.permitted) &&
         planned.vcpus.size() >= owner.cpus.size();
}

void IsolationChecker::check_vcpus(const ContainerFacts& owner, const ContainerPlan& planned,
                                   Obstacles& found) const {
  CpuSet missing = (owner.cpus & bounds_.permitted) - set_aside_;
  bool moved = false;
  for (const int index : planned.vcpus) {
    const VcpuPlan* vcpu = plan_.find_vcpu(index);
    if (vcpu != nullptr && vcpu->role == VcpuRole::kDedicated) missing -= vcpu->cpus;
    moved |= pin_of({{}, Role::kVcpu, index, {}}) != nullptr;
  }
  if (missing.empty() || shares_for_want_of_cpus(owner, planned)) return;
  if (!pins(settings_)) {
    found.add(Obstacle::kNotPinned, Remedy::kPinning, {}, missing);
  } else if (!moved) {
    found.add(Obstacle::kTooFewVcpus, Remedy::kMoreVcpus, {}, missing);
  }
}

/// Containers without CPUs of their own, and the guest's kernel, run on the vCPUs that float. Where
/// none does, they run on one that is dedicated to an owner.
void IsolationChecker::check_sharers(const ContainerPlan& planned, Obstacles& found) const {
  if (!pins(settings_)) return;
  for (const Note& note : plan_.warnings) {
    if (note.code != Code::kNoFloatingVcpu || !planned.vcpus.contains(note.number)) continue;
    found.add(Obstacle::kNoFloatingVcpu, Remedy::kMoreVcpus, {}, note.cpus);
  }
  for (const ContainerPlan& other : plan_.containers) {
    const ContainerFacts* facts = facts_of(other.id);
    if (facts == nullptr || owns_cpus(*facts)) continue;
    CpuSet cpus;
    for (const int index : other.vcpus & planned.vcpus) cpus |= plan_.find_vcpu(index)->cpus;
    if (!cpus.empty()) found.add(Obstacle::kSharedContainer, Remedy::kMoreVcpus, other.id, cpus);
  }
}

/// A vCPU of its own that a pin took off its CPU.
void IsolationChecker::check_pins(const ContainerPlan& planned, Obstacles& found) const {
  for (const Override& given : sandbox_.overrides) {
    if (given.role != Role::kVcpu || !planned.vcpus.contains(given.vcpu_index)) continue;
    const VcpuPlan* vcpu = plan_.find_vcpu(given.vcpu_index);
    if (vcpu == nullptr || vcpu->container.empty() || vcpu->role == VcpuRole::kDedicated) continue;
    found.add(Obstacle::kPinnedByHand, Remedy::kUnpin, override_subject(given), given.cpus);
  }
}

void IsolationChecker::check_thread(const ContainerFacts& owner, const ContainerPlan& planned,
                                    const ActualThread& thread, Obstacles& found) const {
  const CpuSet touched = (owner.cpus - set_aside_) & bounds_.permitted & thread.cpus;
  if (touched.empty() || serves(owner, planned, thread.thread)) return;
  const std::string subject = subject_of(thread.thread);
  if (!thread.thread.movable) {
    found.add(Obstacle::kKernelThread, Remedy::kNewerKernel,
              subject + " \"" + thread.thread.name + '"', touched);
  } else if (const Override* pin = pin_of(thread.thread); pin != nullptr) {
    found.add(Obstacle::kPinnedByHand, Remedy::kUnpin, override_subject(*pin), touched);
  } else if (thread.thread.role == Role::kVcpu) {
    const Remedy remedy = pins(settings_) ? housekeeping_remedy() : Remedy::kPinning;
    found.add(Obstacle::kFloatingVcpu, remedy, subject, touched);
  } else {
    found.add(Obstacle::kHousekeeping, housekeeping_remedy(), subject, touched);
  }
}

/// A vCPU that serves this container, or one that owns the same CPUs legitimately (an init
/// container and its app); KVM's timer goes with its vCPU.
bool IsolationChecker::serves(const ContainerFacts& owner, const ContainerPlan& planned,
                              const ThreadFacts& thread) const {
  if (!goes_with_vcpu(thread.role)) return false;
  const VcpuPlan* vcpu = plan_.find_vcpu(thread.vcpu_index);
  if (vcpu == nullptr) return false;
  if (vcpu->container.empty()) return !pins(settings_) && planned.vcpus.contains(vcpu->index);
  if (planned.vcpus.contains(vcpu->index)) return true;
  const ContainerFacts* other = facts_of(vcpu->container);
  return other != nullptr && other->cpus.intersects(owner.cpus);
}

/// The pin of one iothread overrides that of all of them, and comes after it.
const Override* IsolationChecker::pin_of(const ThreadFacts& thread) const {
  const Override* pin = nullptr;
  for (const Override& given : sandbox_.overrides) {
    if (is_for(given, thread) && given.cpus.intersects(bounds_.reachable)) pin = &given;
  }
  return pin;
}

const ContainerFacts* IsolationChecker::facts_of(const std::string& container) const {
  const auto found = std::ranges::find(sandbox_.containers, container, &ContainerFacts::id);
  return found == sandbox_.containers.end() ? nullptr : &*found;
}

Remedy IsolationChecker::housekeeping_remedy() const {
  if (has_warning(plan_, Code::kHousekeepingConfined)) {
    return settings_.manage_cgroup ? Remedy::kIsolate : Remedy::kManageCgroup;
  }
  if (!has_warning(plan_, Code::kNotIsolated)) return Remedy::kReconcile;
  return settings_.housekeeping.kind == Housekeeping::Kind::kSandbox ? Remedy::kSharedPool
                                                                     : Remedy::kIsolate;
}

void IsolationChecker::check_guest(const ContainerFacts& owner, const GuestSide& guest,
                                   Obstacles& found) const {
  if (settings_.guest.agent == GuestAgent::kNone) return;
  if (is_mask(owner.id)) {
    return found.add(Obstacle::kGuestUnconfirmed, Remedy::kContainers, "mask-only", {});
  }
  if (const auto doubt = left_wide(guest, owner.id)) {
    return found.add(Obstacle::kGuestUnconfirmed, Remedy::kGuestAgent,
                     std::string(guest_doubt_name(*doubt)), {});
  }
  if (!guest.connected || guest.report == nullptr || guest.spec == nullptr) {
    return found.add(Obstacle::kGuestSilent, Remedy::kGuestAgent, {}, {});
  }
  const auto unconfirmed = [&](const char* why, Remedy remedy) {
    found.add(Obstacle::kGuestUnconfirmed, remedy, why, {});
  };
  if (!guest.current) return unconfirmed("behind", Remedy::kReconcile);
  const auto& states = guest.report->containers;
  const auto state = std::ranges::find(states, owner.id, &GuestContainerState::id);
  const bool is_missing =
      state == states.end() ? !guest.report->by_kata : state->problem == GuestProblem::kNotFound;
  if (is_missing) return unconfirmed("not-found", Remedy::kReconcile);
  if (guest.report->by_kata) return unconfirmed("kata-agent", Remedy::kGuestAgent);
  const auto breaches = policy::plan::check_guest(*guest.spec, *guest.report);
  if (state->problem != GuestProblem::kNone ||
      std::ranges::find(breaches, owner.id, &GuestBreach::container) != breaches.end()) {
    found.add(Obstacle::kGuestElsewhere, Remedy::kReconcile,
              std::string(guest_problem_name(state->problem)), {});
  }
}

}  // namespace

std::string_view obstacle_name(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kDisabled:
      return "disabled";
    case Obstacle::kReleased:
      return "released";
    case Obstacle::kObserved:
      return "observed";
    case Obstacle::kNotPinned:
      return "not-pinned";
    case Obstacle::kTooFewVcpus:
      return "too-few-vcpus";
    case Obstacle::kNoFloatingVcpu:
      return "no-floating-vcpu";
    case Obstacle::kCpusUnusable:
      return "cpus-unusable";
    case Obstacle::kCpusContested:
      return "cpus-contested";
    case Obstacle::kHousekeeping:
      return "housekeeping";
    case Obstacle::kKernelThread:
      return "kernel-thread";
    case Obstacle::kFloatingVcpu:
      return "floating-vcpu";
    case Obstacle::kSharedContainer:
      return "shared-container";
    case Obstacle::kPinnedByHand:
      return "pinned-by-hand";
    case Obstacle::kGuestSilent:
      return "guest-silent";
    case Obstacle::kGuestUnconfirmed:
      return "guest-unconfirmed";
    case Obstacle::kGuestElsewhere:
      return "guest-elsewhere";
  }
  return "";
}

std::vector<ContainerIsolation> isolation_of(const NodeView& node, const SandboxFacts& sandbox,
                                             const Settings& settings, const SandboxPlan& plan,
                                             const std::vector<ActualThread>& threads,
                                             const GuestSide& guest, Placing placing) {
  const IsolationChecker checker(node, sandbox, settings, plan);
  std::vector<ContainerIsolation> list;
  for (const ContainerFacts& owner : sandbox.containers) {
    if (!owns_cpus(owner)) continue;
    Obstacles found;
    if (placing == Placing::kDisabled) {
      found.add(Obstacle::kDisabled, Remedy::kEnable, {}, owner.cpus);
    } else if (placing == Placing::kReleased) {
      found.add(Obstacle::kReleased, Remedy::kReconcile, {}, owner.cpus);
    } else if (placing == Placing::kObserved) {
      found.add(Obstacle::kObserved, Remedy::kFollow, {}, owner.cpus);
    } else {
      checker.check_host(owner, threads, found);
      checker.check_guest(owner, guest, found);
    }
    list.push_back({owner.id, owner.name, owner.cpus, settings.guest.agent == GuestAgent::kNone,
                    found.obstacles()});
  }
  return list;
}

}  // namespace ka::policy::plan
