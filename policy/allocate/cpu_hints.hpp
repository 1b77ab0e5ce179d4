// SPDX-License-Identifier: Apache-2.0
// The CPU manager's own topology hints: which sets of NUMA nodes can give a container its CPUs.
#pragma once

#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/machine.hpp"

namespace ka::policy::allocate {

struct CpuHintProblem {
  CpuSet available;
  CpuSet reusable;  ///< of the pod's init containers: every hint must hold all of them
  int cpus = 0;
  OptionSet options;
};

/// kubelet's generateCPUTopologyHints: every set of nodes with enough free CPUs, the small ones
/// first (sets_with_room(); kubelet's list has 2^nodes entries on larger machines, too); preferred
/// are those no larger than the request would need on an empty machine, and with align-by-socket
/// those on no more sockets than that.
std::vector<Hint> cpu_hints(const Machine& machine, const CpuHintProblem& problem);

}  // namespace ka::policy::allocate
