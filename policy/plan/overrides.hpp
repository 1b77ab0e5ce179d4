// SPDX-License-Identifier: Apache-2.0
// Sets given by hand to single threads: they win over the plan.
#pragma once

#include "policy/facts/sandbox.hpp"
#include "policy/plan/ground.hpp"
#include "policy/plan/housekeeping.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// Replaces the sets of the threads that operators have set by hand by as much of those sets as
/// their cgroups and other pods leave them; where that is nothing, the plan stands. A vCPU that is
/// taken from its CPU this way floats. Threads that do not exist are passed over.
void apply_overrides(const NodeView& node, const SandboxFacts& sandbox, SandboxPlan& plan,
                     Notes& notes);

/// The CPUs that exclusive containers would lose to a pin, by a plan without pins: those of
/// dedicated vCPUs that it names for another thread, and that of a dedicated vCPU that it takes
/// off its CPU or gives others beside it. Empty: it takes nothing away.
CpuSet taken_by_hand(const Override& given, const SandboxPlan& unpinned);

/// Whether the word is for this thread. An iothread is told by its id, or as one of all.
bool is_for(const Override& given, const ThreadFacts& thread);

/// "vcpu 3", "iothread io1", or the role.
std::string override_subject(const Override& given);

}  // namespace ka::policy::plan
