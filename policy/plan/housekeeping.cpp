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

}  // namespace ka::policy::plan
