// SPDX-License-Identifier: Apache-2.0
// The CPU manager's own topology hints: which sets of NUMA nodes can give a container its CPUs.
#pragma once

#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/machine.hpp"

namespace ka::policy::allocate {

/// Up to this many nodes every set of them is tried, as kubelet does.
inline constexpr std::size_t kAllNodeSets = 8;

struct CpuHintProblem {
  CpuSet available;
  CpuSet reusable;  ///< of the pod's init containers: every hint must hold all of them
  int cpus = 0;
  OptionSet options;
};

/// kubelet's generateCPUTopologyHints: every set of nodes with enough free CPUs, the small ones
/// first; preferred are those no larger than the request would need on an empty machine, and with
/// align-by-socket those on no more sockets than that.
///
/// On machines with more than kAllNodeSets nodes, where kubelet's list has 2^nodes entries: for
/// each node, the smallest set that holds the request when the nearest nodes are added one by one,
/// and the set of all nodes.
std::vector<Hint> cpu_hints(const Machine& machine, const CpuHintProblem& problem);

}  // namespace ka::policy::allocate
