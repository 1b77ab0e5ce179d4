// SPDX-License-Identifier: Apache-2.0
// Where everything but dedicated vCPUs runs.
#pragma once

#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/plan/assign.hpp"
#include "policy/plan/bounds.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

struct Notes {
  std::vector<Note> reasons, warnings;

  /// Each note is reported once, for however many roles it holds.
  void reason(Note note);
  void warn(Note note);
};

struct Region {
  CpuSet cpus;
  CpuSet refused;  ///< CPUs that the setting names, where the cgroup allows none of them
};

/// The region that a setting means for threads with these bounds. It holds no CPU outside
/// `bounds.reachable` and none of a dedicated vCPU, unless nothing else is left: then it is the
/// core of the sandbox's lowest CPU. Empty only where they may not run anywhere. A shared pool that
/// is empty, or that the cgroup refuses, is as "sandbox". `subject` names the setting in notes:
/// "housekeeping" or a role.
Region resolve_housekeeping(const NodeView& node, const Bounds& bounds,
                            const Assignment& assignment, const Housekeeping& wanted,
                            const std::string& subject, Notes& notes);

/// The set of a thread that floats in `region`. The scheduler does not balance load over
/// isolated CPUs: they are left out while there are others, else the thread gets the lowest one.
CpuSet floating_set(const Topology& topology, const CpuSet& region);

}  // namespace ka::policy::plan
