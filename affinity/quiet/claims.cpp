// SPDX-License-Identifier: Apache-2.0
#include "affinity/quiet/claims.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "affinity/host/cgroup.hpp"

namespace ka::quiet {
namespace {

using policy::CpuSet;
using policy::plan::Grade;
using policy::plan::NotQuiet;
using policy::plan::QuietClaim;
using policy::plan::QuietObstacle;

bool has_grade(const line::Options& options) {
  const auto is_quiet = [](const auto& entry) { return entry.second.grade == Grade::kQuiet; };
  return options.settings.grade == Grade::kQuiet ||
         std::ranges::any_of(options.by_handler, is_quiet);
}

CpuSet dedicated_cpus(const policy::plan::SandboxPlan& plan) {
  CpuSet cpus;
  for (const policy::plan::VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.role == policy::plan::VcpuRole::kDedicated) cpus |= vcpu.cpus;
  }
  return cpus;
}

/// Which of the units a cgroup is in; empty: none.
std::string unit_of(const std::string& cgroup, const std::optional<host::Cgroups>& cgroups) {
  if (!cgroups || cgroup.empty()) return {};
  const auto below = std::filesystem::path(cgroup).lexically_relative(cgroups->mount());
  const std::string first = below.empty() ? "" : below.begin()->string();
  return std::ranges::count(policy::kHostUnits, first) > 0 ? first : "";
}

/// What the helper need not be asked for; absent: nothing is in its way.
std::optional<QuietObstacle> bar(const line::SandboxView& view, const CpuSet& cpus,
                                 const std::optional<host::Cgroups>& cgroups) {
  if (view.released) return QuietObstacle{NotQuiet::kReleased};
  if (view.observed) return QuietObstacle{NotQuiet::kObserved};
  if (cpus.empty()) return QuietObstacle{NotQuiet::kNotDedicated};
  const std::string unit = unit_of(view.cgroup, cgroups);
  if (!unit.empty()) return QuietObstacle{NotQuiet::kOwnUnit, unit};
  return std::nullopt;
}

void add(const line::Node& node, const std::string& id, Wants& wants) {
  const auto view = node.view(id);
  if (!view || view->settings.grade != Grade::kQuiet) return;
  CpuSet cpus = dedicated_cpus(view->plan);
  if (auto obstacle = bar(*view, cpus, node.cgroups)) {
    wants.barred[id] = std::move(obstacle);
  } else {
    wants.claims.push_back({id, std::move(cpus)});
  }
}

/// kubelet's reserved CPUs are in the shared pool.
CpuSet floor_of(const line::Node& node) {
  const CpuSet& set = node.options.quiet_floor;
  return set.empty() ? node.ledger().shared_pool(node.topology.online()) : set;
}

}  // namespace

Wants wants_of(const line::Node& node, const CpuSet& held) {
  Wants wants;
  if (!has_grade(node.options)) return wants;
  for (const std::string& id : node.sandbox_ids()) add(node, id, wants);
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
