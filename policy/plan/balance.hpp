// SPDX-License-Identifier: Apache-2.0
// vcpu_pinning = "balanced": floating vCPUs have a CPU each, the least loaded, and move only where
// another one is less loaded.
#pragma once

#include <vector>

#include "policy/facts/sandbox.hpp"
#include "policy/plan/bounds.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// The set of each vCPU of `plan` that serves no container: one CPU of its housekeeping, the one
/// with the least load, of those one in the L3 with the least load, of those one on the core with
/// the least. Load is the number of floating vCPUs: of other sandboxes, and of this one. A vCPU
/// stays where `before` (may be null) has it unless another CPU has less load. One that is pinned
/// by hand gets all of housekeeping, until the pin is applied. `plan` has housekeeping, and its
/// vCPUs that serve containers are placed.
std::vector<CpuSet> balanced_sets(const NodeView& node, const SandboxFacts& sandbox,
                                  const Bounds& bounds, const SandboxPlan& plan,
                                  const SandboxPlan* before);

}  // namespace ka::policy::plan
