// SPDX-License-Identifier: Apache-2.0
// Containers whose pods request tuning of the CPUs that these own, by CRI-O's annotations, and what
// has come of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "affinity/line/node.hpp"
#include "affinity/line/report.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/tuning.hpp"

namespace ka::line {

struct TunedContainer {
  std::string pod;  ///< id
  std::string id, name;
  /// Those of its dedicated vCPUs, or without a VM its own; empty: there are none to be tuned.
  policy::CpuSet cpus;
  std::string obstacle;  ///< why there are none; empty: there are
  policy::plan::ContainerTuning tuned;
  policy::CpuSet without_interrupts{};  ///< of `cpus`, those that the host's interrupts leave
};

/// Exclusive containers of a pod that have not exited, with a request; by id.
std::vector<TunedContainer> tuned_containers(const Node& node,
                                             const policy::ledger::PodRecord& pod);
/// Of all pods.
std::vector<TunedContainer> tuned_containers(const Node& node);
/// Those that have CPUs to be tuned. Where the configuration lets no pod request anything, no pod
/// is visited: this runs after each run of the line.
std::vector<TunedContainer> containers_to_tune(const Node& node);

/// The CPUs that a request of it is about; with `housekeeping` those that interrupts are to leave.
const policy::CpuSet& cpus_of(const TunedContainer& container,
                              const policy::plan::TuningRequest& request);

/// Why a container does not have what was requested for it, by what kata-affinity-helper said last
/// (of quotas, as they are now); empty: it has.
std::string tuning_problem(const Node& node, const TunedContainer& container,
                           const policy::plan::TuningRequest& request);

/// A finding for each request that is not in force.
void collect_tuning(const Node& node, VerifyReport& report);

}  // namespace ka::line
