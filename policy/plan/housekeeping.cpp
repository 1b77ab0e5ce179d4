// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/housekeeping.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ka::policy::plan {
namespace {

void add_once(std::vector<Note>& notes, Note note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

/// For a sandbox that may use none of its own CPUs: CPUs without an owner.
CpuSet fallback(const NodeView& node, const Bounds& bounds) {
  CpuSet pool = node.shared_pool & bounds.reachable;
  return pool.empty() ? bounds.reachable : pool;
}

CpuSet as_sandbox(const NodeView& node, const Bounds& bounds, const Assignment& assignment,
                  Notes& notes) {
  if (bounds.permitted.empty()) return fallback(node, bounds);
  CpuSet rest = bounds.permitted - assignment.dedicated;
  if (!rest.empty()) return rest;
  CpuSet core = node.topology.siblings(bounds.permitted.first()) & bounds.permitted;
  notes.warn({Code::kNotIsolated, {}, core, 0});
  return core;
}

CpuSet own_region(const NodeView& node, const Bounds& bounds, const Assignment& assignment,
                  const std::string& subject, Notes& notes) {
  CpuSet cpus = as_sandbox(node, bounds, assignment, notes);
  notes.reason({Code::kHousekeepingSandbox, subject, cpus, 0});
  return cpus;
}

/// A set that does not depend on the sandbox, as far as these threads may use it.
Region outside(const NodeView& node, const Bounds& bounds, const Assignment& assignment,
               const CpuSet& wanted, Code reason, const std::string& subject, Notes& notes) {
  CpuSet cpus = (wanted & bounds.reachable) - assignment.dedicated;
  if (!cpus.empty()) {
    notes.reason({reason, subject, cpus, 0});
    return {std::move(cpus), {}};
  }
  CpuSet refused = (wanted & bounds.unclaimed) - assignment.dedicated;
  const bool nowhere = refused.empty() && !wanted.empty();
  if (nowhere) notes.warn({Code::kHousekeepingRefused, subject, wanted, 0});
  return {own_region(node, bounds, assignment, subject, notes), std::move(refused)};
}

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

Loads loads_by(const Topology& topology, const CpuSet& region, int Cpu::* group) {
  std::vector<int> groups;
  for (const int id : region) groups.push_back(topology.find(id)->*group);
  return Loads(std::move(groups));
}

}  // namespace

void Notes::reason(Note note) { add_once(reasons, std::move(note)); }
void Notes::warn(Note note) { add_once(warnings, std::move(note)); }

Region resolve_housekeeping(const NodeView& node, const Bounds& bounds,
                            const Assignment& assignment, const Housekeeping& wanted,
                            const std::string& subject, Notes& notes) {
  if (bounds.starting) {
    notes.reason({Code::kBornNear, {}, bounds.permitted, 0});
    return {bounds.permitted, {}};
  }
  switch (wanted.kind) {
    case Housekeeping::Kind::kSharedPool:
      return outside(node, bounds, assignment, node.shared_pool, Code::kHousekeepingSharedPool,
                     subject, notes);
    case Housekeeping::Kind::kCpus:
      return outside(node, bounds, assignment, wanted.cpus, Code::kHousekeepingCpus, subject,
                     notes);
    case Housekeeping::Kind::kIsolate:
      if (!assignment.set_aside.intersects(bounds.reachable)) break;
      notes.reason({Code::kHousekeepingIsolate, subject, assignment.set_aside, 0});
      return {assignment.set_aside & bounds.reachable, {}};
    case Housekeeping::Kind::kSandbox:
      break;
  }
  return {own_region(node, bounds, assignment, subject, notes), {}};
}

CpuSet floating_set(const Topology& topology, const CpuSet& region) {
  if (!region.intersects(topology.isolated()) || region.size() < 2) return region;
  CpuSet balanced = region - topology.isolated();
  return balanced.empty() ? CpuSet{region.first()} : balanced;
}

std::vector<int> spread(const Topology& topology, const CpuSet& region, std::size_t count,
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
  std::vector<int> cpus;
  while (!places.empty() && cpus.size() < count) {
    Place& best = *std::ranges::min_element(places, {}, &Place::rank);
    cpus.push_back(best.cpu);
    best.add(1);
  }
  return cpus;
}

}  // namespace ka::policy::plan
