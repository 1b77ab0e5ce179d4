// SPDX-License-Identifier: Apache-2.0
// Foreign threads that may run on CPUs that exclusive containers of VM sandboxes own: containers
// of other pods, whatever their runtime, and services of the host. We place none of them, so they
// never violate an invariant of ours.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "affinity/host/tenants.hpp"
#include "affinity/line/report.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::line {

/// kubelet rewrites the cpusets of shared containers up to 10 s after it gave a CPU away
/// (cpuManagerReconcilePeriod); what is still there after this long stays.
inline constexpr std::chrono::seconds kGraceOfOthers{15};

/// What is needed to distinguish others' threads from ours.
struct OthersContext {
  const policy::ledger::Ledger& ledger;
  host::AffinityCalls& calls;
  const std::set<int>& ours;  ///< threads of all sandboxes
  policy::CpuSet past_grace;  ///< CPUs that have been owned for longer than kGraceOfOthers
};

/// The CPUs that exclusive containers of VM sandboxes own.
policy::CpuSet owned_by_sandboxes(const policy::ledger::Ledger& ledger);

/// A finding for each container of another pod, one with the number of all other threads, and one
/// for each cgroup that could not be read, or whose threads could not.
std::vector<Finding> evaluate_others(const host::Tenants& tenants, const OthersContext& context);

/// A released sandbox that may use `cpus`, which containers of other pods own; for longer than
/// kGraceOfOthers (`past_grace`), or not yet.
Finding released_on_others(const policy::ledger::Ledger& ledger,
                           const policy::ledger::PodRecord& pod, const policy::CpuSet& cpus,
                           bool past_grace, std::string remedy);

/// It is not known which cgroups there are.
Finding unread_cgroups(const base::Error& error);
/// A note: without cgroups others' threads are not told apart.
Finding others_not_checked();

}  // namespace ka::line
