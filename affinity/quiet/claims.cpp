// SPDX-License-Identifier: Apache-2.0
#include "affinity/quiet/claims.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "affinity/host/cgroup.hpp"
#include "affinity/line/tuned_containers.hpp"

namespace ka::quiet {
namespace {

using policy::CpuSet;
using policy::plan::is_quiet;
using policy::plan::NotQuiet;
using policy::plan::QuietClaim;
using policy::plan::QuietObstacle;

CpuSet dedicated_cpus(const policy::plan::SandboxPlan& plan) {
  CpuSet cpus;
  for (const policy::plan::VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.role == policy::plan::VcpuRole::kDedicated) cpus |= vcpu.cpus;
  }
  return cpus;
}

/// Which of the units a cgroup is in, by its path below the mount; empty: none.
std::string unit_of(const std::filesystem::path& below) {
  const std::string first = below.empty() ? "" : below.begin()->string();
  return std::ranges::count(policy::kHostUnits, first) > 0 ? first : "";
}

/// What the helper need not be asked for; absent: nothing is in its way.
std::optional<QuietObstacle> bar(const line::Node& node, const line::SandboxView& view,
                                 const CpuSet& cpus) {
  if (!node.options.enable) return QuietObstacle{NotQuiet::kDisabled};
  if (view.released) return QuietObstacle{NotQuiet::kReleased};
  if (view.observed) return QuietObstacle{NotQuiet::kObserved};
  if (cpus.empty()) return QuietObstacle{NotQuiet::kNotDedicated};
  if (!node.cgroups || view.cgroup.empty()) return std::nullopt;
  const auto below = std::filesystem::path(view.cgroup).lexically_relative(node.cgroups->mount());
  const std::string unit = unit_of(below);
  if (!unit.empty()) return QuietObstacle{NotQuiet::kOwnUnit, unit};
  return std::nullopt;
}

/// kubelet's cgroups are in no such unit, and are not reported: those that are, an operator names.
std::optional<QuietObstacle> bar(const line::PlainPodView& view, const line::Options& options) {
  if (!options.enable) return QuietObstacle{NotQuiet::kDisabled};
  if (view.released) return QuietObstacle{NotQuiet::kReleased};
  if (options.observe) return QuietObstacle{NotQuiet::kObserved};
  const std::string unit = unit_of(std::filesystem::path(view.pod.cgroup).relative_path());
  if (!unit.empty()) return QuietObstacle{NotQuiet::kOwnUnit, unit};
  return std::nullopt;
}

void add(std::string id, CpuSet cpus, std::optional<QuietObstacle> obstacle, Wants& wants) {
  if (obstacle) {
    wants.barred[std::move(id)] = std::move(obstacle);
  } else {
    wants.claims.push_back({std::move(id), std::move(cpus)});
  }
}

void add_sandbox(const line::Node& node, const std::string& id, Wants& wants) {
  const policy::ledger::PodRecord* pod = node.registry.find(id);
  if (pod == nullptr || !is_quiet(node.grade_for(*pod).grade)) return;
  const auto view = node.view(id);
  if (!view) return;
  CpuSet cpus = dedicated_cpus(view->plan);
  auto obstacle = bar(node, *view, cpus);
  add(id, std::move(cpus), std::move(obstacle), wants);
}

void add_plain_pods(const line::Node& node, Wants& wants) {
  for (line::PlainPodView& view : node.graded_pods()) {
    if (view.grade.is_by_configuration()) continue;
    add(view.pod.id, std::move(view.cpus), bar(view, node.options), wants);
  }
}

/// kubelet's reserved CPUs are in the shared pool, or in nothing at all (strict-cpu-reservation).
CpuSet floor_of(const line::Node& node) {
  const CpuSet& set = node.options.quiet.floor;
  if (!set.empty()) return set;
  const CpuSet& online = node.topology.online();
  return node.ledger().shared_pool(online) | node.ledger().kubelet().withheld(online);
}

}  // namespace

Wants wants_of(const line::Node& node, const CpuSet& held) {
  Wants wants;
  for (const line::TunedContainer& one : line::containers_to_tune(node)) {
    wants.interrupts |= one.without_interrupts;
  }
  if (!node.has_grades()) return wants;
  for (const std::string& id : node.sandbox_ids()) add_sandbox(node, id, wants);
  add_plain_pods(node, wants);
  auto beside =
      policy::plan::claims_beside_floor(node.topology, wants.claims, held, floor_of(node));
  for (const QuietClaim& claim : wants.claims) {
    if (std::ranges::count(beside, claim) == 0) {
      wants.barred[claim.sandbox] = QuietObstacle{NotQuiet::kFloor};
    }
  }
  wants.claims = std::move(beside);
  return wants;
}

}  // namespace ka::quiet
