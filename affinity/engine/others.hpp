// SPDX-License-Identifier: Apache-2.0
// Threads of others that may run on CPUs that exclusive containers of VM sandboxes own: containers
// of other pods, whatever their runtime, and services of the host. We place none of them, so they
// never violate an invariant of ours.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "affinity/engine/affinity_calls.hpp"
#include "affinity/engine/report.hpp"
#include "affinity/host/tenants.hpp"
#include "base/clock.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::engine {

/// kubelet rewrites the cpusets of shared containers up to 10 s after it gave a CPU away
/// (cpuManagerReconcilePeriod); what is still there after this long stays.
inline constexpr std::chrono::seconds kGraceOfOthers{15};

/// Since when a CPU belongs to somebody.
class Ownership {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// These CPUs were given away now.
  void enter(const policy::CpuSet& cpus, Time now);
  /// Those of `cpus` that have been owned for so long. A CPU that was never entered was owned
  /// before `start`, when we began to look.
  policy::CpuSet older_than(const policy::CpuSet& cpus, std::chrono::seconds age, Time now,
                            Time start) const;

 private:
  std::map<int, Time> since_;
};

/// What is needed to tell others' threads from ours.
struct OthersContext {
  const policy::ledger::Ledger& ledger;
  AffinityCalls& calls;
  const std::set<int>& ours;  ///< threads of all sandboxes
  policy::CpuSet settled;     ///< CPUs that have been owned for longer than kGraceOfOthers
};

/// The CPUs that exclusive containers of VM sandboxes own.
policy::CpuSet owned_by_sandboxes(const policy::ledger::Ledger& ledger);

/// A finding for each container of another pod, one with the number of all other threads, and one
/// for what could not be read.
std::vector<Finding> judge_others(const host::Tenants& tenants, const OthersContext& context);

}  // namespace ka::engine
