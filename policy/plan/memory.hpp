// SPDX-License-Identifier: Apache-2.0
// Where a VM's memory should lie: on the nodes of its CPUs, or as near to them as there is room.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/memory.hpp"
#include "policy/facts/topology.hpp"

namespace ka::policy::plan {

struct MemoryMove {
  std::uint64_t page = 0;  ///< bytes a page
  int from = 0, to = 0;    ///< nodes
  std::uint64_t bytes = 0;

  bool operator==(const MemoryMove&) const = default;
};

enum class MemoryVerdict {
  kAnywhere,  ///< no preferred nodes
  kInPlace,   ///< all of it, but for a hundredth at most, is where it should be
  kMove,      ///< `moves` bring it there, or nearer
  kDevice,    ///< a passed-through device pins it
  kNoNode,    ///< its cgroup allows none of the nodes where it should be
  kNoRoom,    ///< no nearer node has room
};

/// "anywhere", "in-place", "move", "device", "no-node", "no-room": stable names for machines.
std::string_view memory_verdict_name(MemoryVerdict verdict);

struct MemoryPlan {
  MemoryVerdict verdict = MemoryVerdict::kAnywhere;
  NodeSet wanted;               ///< where it should be
  std::uint64_t misplaced = 0;  ///< bytes elsewhere, of those that may be moved
  std::vector<MemoryMove> moves;

  bool operator==(const MemoryPlan&) const = default;
};

/// `mems`: the nodes of the sandbox's plan. Each node's misplaced memory goes to the nearest of
/// them, equally near ones share it alike; what has no room there goes to nodes that are nearer to
/// one of them than it is now, the nearest first. Of a node's free small pages an eighth is left
/// to others.
MemoryPlan plan_memory(const Topology& topology, const NodeSet& mems, const MemoryFacts& facts);

}  // namespace ka::policy::plan
