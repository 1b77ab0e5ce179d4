// SPDX-License-Identifier: Apache-2.0
// cgroup = "manage": the planned cpuset of a sandbox's cgroup, and the writes that lead
// there.
//
// The order is part of the meaning: first the cgroup is widened by what the plan needs, then the
// threads are placed, last it is narrowed to what the plan has. No set that is written here holds a
// CPU that belongs to another pod (I2), whatever the kernel makes of the threads' own masks then:
// before Linux 6.2 it forgets them (kernel/cgroup/cpuset.c, update_tasks_cpumask()).
#pragma once

#include <optional>

#include "policy/facts/id_set.hpp"
#include "policy/plan/bounds.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// A cpuset of cgroup version 2, as the kernel has it.
struct Cpuset {
  CpuSet configured;  ///< cpuset.cpus; empty: all that the cgroup above it allows
  /// What that one allows, with what a partition of the vCPUs took from it. Of a cgroup that is
  /// itself a partition: what that has.
  CpuSet bound;
  CpuSet apart = {};  ///< CPUs of that partition: only vCPUs in it may use them

  /// What its threads may use: the kernel ignores a set that has nothing in common with the bound.
  CpuSet effective() const { return configured.intersects(bound) ? configured & bound : bound; }

  bool operator==(const Cpuset&) const = default;
};

/// What the cgroup is to allow: what is permitted of the sandbox mask, housekeeping, and wherever
/// the plan puts a thread that is inside. Empty where it puts none.
CpuSet cgroup_cpus(const SandboxPlan& plan, const SandboxFacts& sandbox, const Bounds& bounds);

/// The set to write before threads are placed; absent if the cgroup already allows their planned
/// CPUs, and none that is exclusive to other pods (`foreign`).
std::optional<CpuSet> widened(const Cpuset& cpuset, const CpuSet& wanted, const CpuSet& foreign);

/// The set to be written when the cgroup is not managed any more: what others had written
/// (`theirs`) without what belongs to other pods by now.
CpuSet given_back(const Cpuset& cpuset, const CpuSet& theirs, const CpuSet& foreign);

/// The set to be written when the threads are placed; absent when it is there.
std::optional<CpuSet> narrowed(const Cpuset& cpuset, const CpuSet& wanted);

}  // namespace ka::policy::plan
