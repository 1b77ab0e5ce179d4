// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/match.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/plan/closeness.hpp"
#include "policy/plan/fit.hpp"

namespace ka::policy::plan {
namespace {

bool lives(const SandboxFacts& sandbox, const std::string& id) {
  return std::ranges::any_of(sandbox.containers, [&](const ContainerFacts& container) {
    return container.id == id && !container.exited;
  });
}

/// What a container was before: itself, or the one of its name that it was made again for.
const ContainerPlan* find_before(const SandboxFacts& sandbox, const ContainerFacts& container,
                                 const SandboxPlan& previous) {
  const ContainerPlan* before = nullptr;
  for (const ContainerPlan& plan : previous.containers) {
    if (plan.id == container.id) return &plan;
    const bool same_name = !plan.name.empty() && plan.name == container.name;
    if (same_name && !lives(sandbox, plan.id)) before = &plan;
  }
  return before;
}

bool floats_freely(const VcpuPlan& vcpu) {
  return vcpu.role == VcpuRole::kFloating && vcpu.container.empty();
}

class Matcher {
 public:
  Matcher(const Topology& topology, const SandboxFacts& sandbox, const Assignment& assignment)
      : topology_(topology),
        sandbox_(sandbox),
        assignment_(assignment),
        free_(sandbox.vcpus.size(), true) {
    slots_.reserve(sandbox.vcpus.size());
    for (std::size_t i = 0; i < assignment.holdings.size(); ++i) add_slots(i);
  }

  void keep(const SandboxPlan& previous);
  void reserve_floating();
  void untangle();
  void order_groups();
  void fill() { fit(topology_, sandbox_.vcpus, free_, slots_); }
  std::vector<Slot> slots() { return std::move(slots_); }

 private:
  void add_slots(std::size_t holding);
  void put(Slot& slot, std::size_t vcpu);
  std::size_t position(int index) const;
  void recall(const SandboxPlan& previous);
  void release_makeshift(const SandboxPlan& previous);
  void keep_pairs(const SandboxPlan& previous);
  void keep_members(bool exactly);
  bool belongs(std::size_t vcpu, const Slot& slot, bool exactly) const;
  void untangle(std::size_t holding);

  const Topology& topology_;
  const SandboxFacts& sandbox_;
  const Assignment& assignment_;
  std::vector<Slot> slots_;  ///< by holding
  std::vector<bool> free_;   ///< by position of the vCPU
  std::size_t released_ = kUnserved;
  /// By position of the vCPU: the owners that it served before, ascending.
  std::vector<std::vector<std::size_t>> served_;
};

/// Core by core, so that a group sits on as few cores as it can.
void Matcher::add_slots(std::size_t holding) {
  const OwnedSet& held = assignment_.holdings[holding];
  std::vector<Slot> places;
  places.reserve(sandbox_.vcpus.size());
  for (const int id : held.usable) {
    const Cpu& cpu = *topology_.find(id);
    places.push_back({holding, id, cpu.core, cpu.numa, kUnserved});
  }
  if (!held.dedicated()) {
    std::ranges::stable_sort(places, {}, [&](const Slot& slot) {
      return (topology_.core_cpus(slot.core) & held.usable).first();
    });
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(held.vcpus); ++i) {
    slots_.push_back(places[i % places.size()]);
  }
}

void Matcher::put(Slot& slot, std::size_t vcpu) {
  slot.vcpu = vcpu;
  free_[vcpu] = false;
}

std::size_t Matcher::position(int index) const {
  const auto found = std::ranges::lower_bound(sandbox_.vcpus, index, {}, &VcpuFacts::index);
  if (found == sandbox_.vcpus.end() || found->index != index) return kUnserved;
  return static_cast<std::size_t>(found - sandbox_.vcpus.begin());
}

void Matcher::keep(const SandboxPlan& previous) {
  release_makeshift(previous);
  recall(previous);
  keep_pairs(previous);
  keep_members(/*exactly=*/true);
  keep_members(/*exactly=*/false);
}

void Matcher::recall(const SandboxPlan& previous) {
  served_.resize(sandbox_.vcpus.size());
  for (std::size_t i = 0; i < sandbox_.containers.size(); ++i) {
    const bool owns = std::ranges::any_of(slots_, [&](const Slot& slot) {
      return std::ranges::binary_search(assignment_.holdings[slot.holding].owners, i);
    });
    if (!owns) continue;
    for (const int index : vcpus_before(sandbox_, sandbox_.containers[i], previous)) {
      const std::size_t vcpu = position(index);
      if (vcpu != kUnserved) served_[vcpu].push_back(i);
    }
  }
}

void Matcher::release_makeshift(const SandboxPlan& previous) {
  if (assignment_.floating == 0 || sandbox_.vcpus.empty()) return;
  if (std::ranges::none_of(previous.vcpus, floats_freely)) released_ = 0;
}

void Matcher::keep_pairs(const SandboxPlan& previous) {
  std::vector<std::pair<int, int>> vcpu_of;  // by CPU
  for (const VcpuPlan& vcpu : previous.vcpus) {
    if (vcpu.role == VcpuRole::kDedicated) vcpu_of.emplace_back(vcpu.cpus.first(), vcpu.index);
  }
  std::ranges::sort(vcpu_of);
  for (Slot& slot : slots_) {
    if (!assignment_.holdings[slot.holding].dedicated()) continue;
    const auto pair = std::ranges::lower_bound(vcpu_of, slot.cpu, {}, &std::pair<int, int>::first);
    if (pair == vcpu_of.end() || pair->first != slot.cpu) continue;
    const std::size_t vcpu = position(pair->second);
    if (vcpu == kUnserved || vcpu == released_ || !free_[vcpu]) continue;
    if (belongs(vcpu, slot, /*exactly=*/false)) put(slot, vcpu);
  }
}

/// A vCPU stays with those that it served: if possible, with exactly these.
void Matcher::keep_members(bool exactly) {
  for (Slot& slot : slots_) {
    if (slot.vcpu != kUnserved) continue;
    for (std::size_t vcpu = 0; vcpu < served_.size(); ++vcpu) {
      if (!free_[vcpu] || vcpu == released_ || !belongs(vcpu, slot, exactly)) continue;
      put(slot, vcpu);
      break;
    }
  }
}

bool Matcher::belongs(std::size_t vcpu, const Slot& slot, bool exactly) const {
  const auto& owners = assignment_.holdings[slot.holding].owners;
  if (exactly) return served_[vcpu] == owners;
  return std::ranges::any_of(
      served_[vcpu], [&](std::size_t owner) { return std::ranges::binary_search(owners, owner); });
}

/// The guest boots on its first vCPU and its kernel does most of its work there, so that one is
/// the best to float; the vCPUs of its core would feel it most.
void Matcher::reserve_floating() {
  int wanted = assignment_.floating;
  const auto lowest = std::ranges::find(free_, true);
  if (wanted == 0 || lowest == free_.end()) return;
  const auto first = static_cast<std::size_t>(lowest - free_.begin());
  const auto core = guest_core(sandbox_.vcpus[first]);
  for (std::size_t i = first; i < free_.size() && wanted > 0; ++i) {
    if (!free_[i] || guest_core(sandbox_.vcpus[i]) != core) continue;
    free_[i] = false;
    --wanted;
  }
}

/// In a group only its members matter, so they sit in ascending order, whatever was before.
void Matcher::order_groups() {
  for (auto first = slots_.begin(); first != slots_.end();) {
    const std::size_t holding = first->holding;
    const auto last = std::find_if(first, slots_.end(),
                                   [&](const Slot& slot) { return slot.holding != holding; });
    if (!assignment_.holdings[holding].dedicated()) {
      std::vector<std::size_t> members;
      for (auto slot = first; slot != last; ++slot) members.push_back(slot->vcpu);
      std::ranges::sort(members);
      for (const std::size_t member : members) (first++)->vcpu = member;
    }
    first = last;
  }
}

/// Where keeping what was, or the lack of room, has left guest siblings apart, vCPUs of the same
/// container change places as long as that brings more of them together.
void Matcher::untangle() {
  for (std::size_t i = 0; i < assignment_.holdings.size(); ++i) {
    if (assignment_.holdings[i].dedicated()) untangle(i);
  }
}

void Matcher::untangle(std::size_t holding) {
  std::vector<Slot*> own;
  std::vector<Seat> seats;
  for (Slot& slot : slots_) {
    if (slot.holding != holding) continue;
    own.push_back(&slot);
    seats.push_back({&sandbox_.vcpus[slot.vcpu], topology_.find(slot.cpu)});
  }
  Closeness closeness(seats);
  for (bool again = closeness.matters(); again;) {
    again = false;
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (std::size_t j = i + 1; j < own.size(); ++j) {
        if (!closeness.better_swapped(i, j)) continue;
        closeness.swap(i, j);
        std::swap(own[i]->vcpu, own[j]->vcpu);
        again = true;
      }
    }
  }
}

}  // namespace

VcpuSet vcpus_before(const SandboxFacts& sandbox, const ContainerFacts& container,
                     const SandboxPlan& previous) {
  const ContainerPlan* before = find_before(sandbox, container, previous);
  VcpuSet own;
  if (before == nullptr) return own;
  for (const int index : before->vcpus) {
    const VcpuPlan* vcpu = previous.find_vcpu(index);
    if (vcpu != nullptr && !vcpu->container.empty()) own.add(index);
  }
  return own;
}

std::vector<Slot> match(const Topology& topology, const SandboxFacts& sandbox,
                        const Assignment& assignment, const SandboxPlan* previous) {
  Matcher matcher(topology, sandbox, assignment);
  if (previous != nullptr) matcher.keep(*previous);
  matcher.reserve_floating();
  matcher.fill();
  matcher.untangle();
  matcher.order_groups();
  return matcher.slots();
}

std::size_t lowest_owned_vcpu(const Assignment& assignment, const std::vector<Slot>& slots) {
  const auto rank = [&](const Slot& slot) {
    const OwnedSet& holding = assignment.holdings[slot.holding];
    const bool dedicated = holding.dedicated();
    return std::tuple(dedicated ? slot.cpu : holding.usable.first(), slot.vcpu);
  };
  const auto lowest = std::ranges::min_element(slots, {}, rank);
  return lowest == slots.end() ? kUnserved : lowest->vcpu;
}

}  // namespace ka::policy::plan
