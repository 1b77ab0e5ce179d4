// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/cgroup.hpp"

#include "policy/plan/invariants.hpp"

namespace ka::policy::plan {

CpuSet cgroup_cpus(const SandboxPlan& plan, const SandboxFacts& sandbox, const Bounds& bounds) {
  CpuSet cpus;
  for (const Placement& placement : placements_of(plan)) {
    if (!sandbox.cgroup_by_role.contains(placement.role)) cpus |= placement.cpus;
  }
  if (cpus.empty()) return cpus;
  return (cpus | bounds.permitted | plan.housekeeping) & bounds.reachable;
}

std::optional<CpuSet> widened(const Cpuset& cpuset, const CpuSet& wanted, const CpuSet& foreign) {
  const CpuSet now = cpuset.effective();
  if (wanted.empty() || (wanted.subset_of(now) && !now.intersects(foreign))) return std::nullopt;
  return (now | wanted) - foreign;
}

std::optional<CpuSet> narrowed(const Cpuset& cpuset, const CpuSet& wanted) {
  if (wanted.empty() || wanted == cpuset.effective()) return std::nullopt;
  return wanted;
}

CpuSet given_back(const Cpuset& cpuset, const CpuSet& theirs, const CpuSet& foreign) {
  const CpuSet all = Cpuset{theirs, cpuset.bound}.effective();
  if (!all.intersects(foreign)) return theirs;
  return all.subset_of(foreign) ? cpuset.configured : all - foreign;
}

}  // namespace ka::policy::plan
