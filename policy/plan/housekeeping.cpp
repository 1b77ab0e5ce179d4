#include "policy/plan/housekeeping.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ka::policy {
namespace {

void add_once(std::vector<Note>& notes, Note note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

/// For a sandbox that may use none of its own CPUs: anything that is nobody's.
CpuSet fallback(const NodeView& node, const Ground& ground) {
  CpuSet pool = node.shared_pool & ground.reachable;
  return pool.empty() ? ground.reachable : pool;
}

CpuSet as_sandbox(const NodeView& node, const Ground& ground, const Assignment& assignment,
                  Notes& notes) {
  if (ground.permitted.empty()) return fallback(node, ground);
  CpuSet rest = ground.permitted - assignment.dedicated;
  if (!rest.empty()) return rest;
  CpuSet core = node.topology.siblings(ground.permitted.first()) & ground.permitted;
  notes.warn({Code::kNotIsolated, {}, core, 0});
  return core;
}

/// A set that does not depend on the sandbox, as far as this one may use it.
CpuSet outside(const NodeView& node, const Ground& ground, const Assignment& assignment,
               const CpuSet& wanted, Code reason, const std::string& subject, Notes& notes) {
  CpuSet cpus = (wanted & ground.reachable) - assignment.dedicated;
  if (!cpus.empty()) {
    notes.reason({reason, subject, cpus, 0});
    return cpus;
  }
  notes.warn({Code::kHousekeepingRefused, subject, wanted, 0});
  return as_sandbox(node, ground, assignment, notes);
}

struct Place {
  int cpu = 0;
  int load = 0;
  int* l3 = nullptr;    ///< load of its L3
  int* core = nullptr;  ///< load of its core

  auto rank() const { return std::tuple(load, *l3, *core, cpu); }
};

/// The places of a region; the sums that they point to are in `sums`.
std::vector<Place> make_places(const Topology& topology, const CpuSet& region,
                               const std::vector<int>& load, std::map<int, int>& l3s,
                               std::map<int, int>& cores) {
  std::vector<Place> places;
  for (const int id : region) {
    const Cpu& cpu = *topology.find(id);
    const auto at = static_cast<std::size_t>(id);
    Place place{id, at < load.size() ? load[at] : 0, &l3s[cpu.l3], &cores[cpu.core]};
    *place.l3 += place.load;
    *place.core += place.load;
    places.push_back(place);
  }
  return places;
}

}  // namespace

void Notes::reason(Note note) { add_once(reasons, std::move(note)); }
void Notes::warn(Note note) { add_once(warnings, std::move(note)); }

CpuSet resolve_housekeeping(const NodeView& node, const Ground& ground,
                            const Assignment& assignment, const Housekeeping& wanted,
                            const std::string& subject, Notes& notes) {
  switch (wanted.kind) {
    case Housekeeping::Kind::kSharedPool:
      return outside(node, ground, assignment, node.shared_pool, Code::kHousekeepingSharedPool,
                     subject, notes);
    case Housekeeping::Kind::kCpus:
      return outside(node, ground, assignment, wanted.cpus, Code::kHousekeepingCpus, subject,
                     notes);
    case Housekeeping::Kind::kIsolate:
      if (assignment.set_aside.empty()) break;
      notes.reason({Code::kHousekeepingIsolate, subject, assignment.set_aside, 0});
      return assignment.set_aside;
    case Housekeeping::Kind::kSandbox:
      break;
  }
  CpuSet cpus = as_sandbox(node, ground, assignment, notes);
  notes.reason({Code::kHousekeepingSandbox, subject, cpus, 0});
  return cpus;
}

CpuSet floating_set(const Topology& topology, const CpuSet& region) {
  if (!region.intersects(topology.isolated()) || region.size() < 2) return region;
  CpuSet balanced = region - topology.isolated();
  return balanced.empty() ? CpuSet{region.first()} : balanced;
}

std::vector<int> spread(const Topology& topology, const CpuSet& region, std::size_t count,
                        const std::vector<int>& load) {
  std::map<int, int> l3s, cores;
  std::vector<Place> places = make_places(topology, region, load, l3s, cores);
  std::vector<int> cpus;
  while (!places.empty() && cpus.size() < count) {
    Place& best = *std::ranges::min_element(places, {}, &Place::rank);
    cpus.push_back(best.cpu);
    ++best.load;
    ++*best.l3;
    ++*best.core;
  }
  return cpus;
}

}  // namespace ka::policy
