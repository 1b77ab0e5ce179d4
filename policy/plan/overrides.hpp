// SPDX-License-Identifier: Apache-2.0
// Manual pins of single threads: they override the plan.
#pragma once

#include "policy/facts/sandbox.hpp"
#include "policy/plan/bounds.hpp"
#include "policy/plan/housekeeping.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// Replaces the sets of the threads that operators have set by hand by as much of those sets as
/// their cgroups and other pods leave them; where that is nothing, the plan holds. A vCPU that is
/// taken from its CPU this way floats. Threads that do not exist are passed over.
void apply_overrides(const NodeView& node, const SandboxFacts& sandbox, SandboxPlan& plan,
                     Notes& notes);

/// The CPUs that exclusive containers would lose to a pin, by a plan without pins: those of
/// dedicated vCPUs that it names for another thread, and that of a dedicated vCPU that it takes
/// off its CPU or gives others beside it. Empty: it takes nothing away.
CpuSet lost_by_pin(const Override& given, const SandboxPlan& unpinned);

/// Whether it names this thread: an iothread by its id, or as one of all.
bool is_for(const Override& given, const ThreadFacts& thread);

/// "vCPU 3", "iothread io1", or the role; an iothread without an id stands for all.
std::string thread_subject(Role role, int vcpu_index, const std::string& iothread);
std::string override_subject(const Override& given);

}  // namespace ka::policy::plan
