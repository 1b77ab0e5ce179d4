// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/balance.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace ka::policy::plan {
namespace {

/// How many floating vCPUs there are in each group (L3, core) of CPUs.
class Loads {
 public:
  explicit Loads(std::vector<int> groups) : groups_(std::move(groups)) {
    std::ranges::sort(groups_);
    groups_.erase(std::ranges::unique(groups_).begin(), groups_.end());
    sums_.resize(groups_.size());
  }
  int& of(int group) {
    return sums_[static_cast<std::size_t>(std::ranges::lower_bound(groups_, group) -
                                          groups_.begin())];
  }

 private:
  std::vector<int> groups_;  ///< ascending
  std::vector<int> sums_;
};

struct Place {
  int cpu = 0;
  int load = 0;
  int* l3 = nullptr;    ///< load of its L3
  int* core = nullptr;  ///< load of its core

  auto rank() const { return std::tuple(load, *l3, *core, cpu); }
  void add(int vcpus) {
    load += vcpus;
    *l3 += vcpus;
    *core += vcpus;
  }
};

Place* find_place(std::vector<Place>& places, std::optional<int> cpu) {
  if (!cpu) return nullptr;
  const auto found = std::ranges::lower_bound(places, *cpu, {}, &Place::cpu);
  return found == places.end() || found->cpu != *cpu ? nullptr : &*found;
}

/// Counts a vCPU on `place`, or, without one, on the best. Its CPU.
int place_on(std::vector<Place>& places, Place* place) {
  Place& chosen = place != nullptr ? *place : *std::ranges::min_element(places, {}, &Place::rank);
  chosen.add(1);
  return chosen.cpu;
}

int least_load(const std::vector<Place>& places) {
  return std::ranges::min(places, {}, &Place::load).load;
}

Loads loads_by(const Topology& topology, const CpuSet& region, int Cpu::* group) {
  std::vector<int> groups;
  for (const int id : region) groups.push_back(topology.find(id)->*group);
  return Loads(std::move(groups));
}

/// `before`: where each vCPU was, or nowhere.
std::vector<int> spread(const Topology& topology, const CpuSet& region,
                        const std::vector<std::optional<int>>& before,
                        const std::vector<int>& load) {
  Loads l3s = loads_by(topology, region, &Cpu::l3);
  Loads cores = loads_by(topology, region, &Cpu::core);
  std::vector<Place> places;
  for (const int id : region) {
    const Cpu& cpu = *topology.find(id);
    const auto at = static_cast<std::size_t>(id);
    places.push_back({id, 0, &l3s.of(cpu.l3), &cores.of(cpu.core)});
    if (at < load.size()) places.back().add(load[at]);
  }
  for (const auto& cpu : before) {
    if (Place* place = find_place(places, cpu)) place->add(1);
  }
  std::vector<int> cpus(before.size());
  std::vector<std::size_t> newcomers;
  for (std::size_t i = 0; i < before.size(); ++i) {
    Place* place = find_place(places, before[i]);
    if (place == nullptr) {
      newcomers.push_back(i);
      continue;
    }
    place->add(-1);
    cpus[i] = place_on(places, place->load > least_load(places) ? nullptr : place);
  }
  for (const std::size_t i : newcomers) cpus[i] = place_on(places, nullptr);
  return cpus;
}

/// The CPU that a vCPU floated on alone; absent: on none, or on several.
std::optional<int> balanced_cpu(const SandboxPlan* plan, int index) {
  const VcpuPlan* vcpu = plan == nullptr ? nullptr : plan->find_vcpu(index);
  const bool is_one =
      vcpu != nullptr && vcpu->role == VcpuRole::kFloating && vcpu->cpus.size() == 1;
  return is_one ? std::optional(vcpu->cpus.first()) : std::nullopt;
}

/// Where the last pin by hand puts a vCPU; empty: there is none, or it is refused.
CpuSet pinned_cpus(const SandboxFacts& sandbox, const Bounds& bounds, int index) {
  CpuSet cpus;
  for (const Override& given : sandbox.overrides) {
    if (given.role == Role::kVcpu && given.vcpu_index == index) cpus = given.cpus;
  }
  return cpus & bounds.reachable;
}

/// Other vCPUs of the sandbox keep away from one that is pinned to one CPU, too.
void add_pin(std::vector<int>& load, const CpuSet& pin) {
  if (pin.size() != 1) return;
  const auto cpu = static_cast<std::size_t>(pin.first());
  load.resize(std::max(load.size(), cpu + 1));
  ++load[cpu];
}

}  // namespace

std::vector<CpuSet> balanced_sets(const NodeView& node, const SandboxFacts& sandbox,
                                  const Bounds& bounds, const SandboxPlan& plan,
                                  const SandboxPlan* before) {
  std::vector<int> load = node.floating_load;
  add_floating_load(load, plan);
  std::vector<CpuSet> sets;
  std::vector<std::size_t> balanced;
  std::vector<std::optional<int>> places;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (!vcpu.container.empty()) continue;
    const CpuSet pin = pinned_cpus(sandbox, bounds, vcpu.index);
    add_pin(load, pin);
    if (pin.empty()) {
      balanced.push_back(sets.size());
      places.push_back(balanced_cpu(before, vcpu.index));
    }
    sets.push_back(plan.housekeeping);
  }
  const std::vector<int> cpus = spread(node.topology, plan.housekeeping, places, load);
  for (std::size_t i = 0; i < balanced.size(); ++i) sets[balanced[i]] = {cpus[i]};
  return sets;
}

}  // namespace ka::policy::plan
