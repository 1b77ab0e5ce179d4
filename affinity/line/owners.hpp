// SPDX-License-Identifier: Apache-2.0
// Where kubelet's state, its PodResources API and the cpusets of containers contradict each other.
// kubelet itself forgets to write cgroups (kubernetes/kubernetes#138731), those of runc containers
// too. None of it is ours to repair.
#pragma once

#include <string>
#include <vector>

#include "affinity/host/tenants.hpp"
#include "affinity/line/report.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::line {

struct OwnersContext {
  const policy::ledger::Ledger& ledger;
  /// The node's cgroups; without them only reported cpusets are compared.
  const host::Tenants& tenants;
  policy::CpuSet past_grace;  ///< CPUs that have been owned for longer than kGraceOfOthers
  /// PodResources has answered since kubelet's state last changed.
  bool is_current = false;
  std::string unanswered;  ///< why PodResources could not be asked last; empty: it could
};

/// A finding for each container for which two of them have different CPUs, and a note where
/// PodResources could not be asked.
std::vector<Finding> evaluate_owners(const OwnersContext& context);

}  // namespace ka::line
