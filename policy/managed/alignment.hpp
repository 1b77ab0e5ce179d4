// SPDX-License-Identifier: Apache-2.0
// On which NUMA nodes a container's CPUs are to lie, so that its memory and devices lie there too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/locality_hints.hpp"
#include "policy/allocate/machine.hpp"
#include "policy/allocate/options.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::policy::managed {

/// The page size of memory that is no huge page.
inline constexpr std::uint64_t kOrdinaryPage = 0;

/// By bytes a page.
using MemoryRoom = std::map<std::uint64_t, allocate::NodeMemory>;

/// What a container or a pod needs besides CPUs.
struct Needs {
  std::map<std::uint64_t, std::uint64_t> memory;  ///< bytes, by bytes a page
  std::vector<NodeSet> devices;                   ///< nodes of each device that has some

  bool operator==(const Needs&) const = default;
};

/// All that a pod's containers may use together. A runtime does not always report it.
struct PodNeeds {
  int cpus = 0;
  Needs needs;
};

/// What decides where a container may have its CPUs, besides CPUs.
struct Locality {
  Needs needs;
  PodNeeds pod;           ///< for pod scope
  MemoryRoom room;        ///< what the nodes have left
  bool bindable = false;  ///< its memory is its own; else it may be its VM's
};

struct AlignmentProblem {
  const allocate::Machine& machine;
  allocate::HintPolicy policy = allocate::HintPolicy::kBestEffort;
  allocate::OptionSet options;
  CpuSet available;
  CpuSet former;  ///< of those, CPUs that it had: their nodes are among those chosen
  int cpus = 0;
};

/// Merges the hints of CPUs, memory of each page size and devices as kubelet's topology manager
/// does. With best-effort, a node set that suits the CPUs wins where not everything can be aligned.
allocate::MergedHint align(const AlignmentProblem& problem, const Needs& needs,
                           const MemoryRoom& room);

/// The nodes have free, together, all the memory that is needed, of each page size.
bool has_room(const NodeSet& nodes, const Needs& needs, const MemoryRoom& room);

}  // namespace ka::policy::managed
