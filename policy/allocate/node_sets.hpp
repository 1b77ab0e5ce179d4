// SPDX-License-Identifier: Apache-2.0
// The sets of NUMA nodes that hold a request for something of which each node has an amount: what
// every topology hint begins with.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/allocate/machine.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::policy::allocate {

/// Up to this many nodes every set of them is tried, as kubelet does.
inline constexpr std::size_t kAllNodeSets = 8;

/// What a request may take on a node.
struct NodeRoom {
  int node = 0;
  std::int64_t free = 0;
  bool required = false;  ///< no set can do without it
};

/// Every set of nodes with enough room that has all required ones, the small ones first, those of
/// one size in lexicographic order (kubelet's bitmask.IterateBitMasks). `rooms` are those of
/// machine.groups(CpuLevel::kNode), in that order.
///
/// With more than kAllNodeSets nodes: for each node, the smallest such set when the nearest nodes
/// are added one by one, and the set of all nodes.
std::vector<NodeSet> sets_with_room(const Machine& machine, std::vector<NodeRoom> rooms,
                                    std::int64_t needed);

/// The fewest groups of these sizes (nodes, sockets, …) that hold the request, one at least; all
/// where they do not.
int least_groups(std::vector<std::int64_t> sizes, std::int64_t needed);

}  // namespace ka::policy::allocate
