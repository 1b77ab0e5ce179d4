// SPDX-License-Identifier: Apache-2.0
// How a request is split evenly over NUMA nodes: kubelet's distribute-cpus-across-numa
// (takeByTopologyNUMADistributed, KEP-2902), without its two defects
// (docs/understand/allocation.md).
//
// Only numbers here: rooms are nodes with free CPUs, in kubelet's order of nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/allocate/request.hpp"

namespace ka::policy::allocate {

/// Up to this many rooms every combination of them is tried, as kubelet does. With more, the rooms
/// with the most free CPUs are taken.
inline constexpr std::size_t kExactSplitNodes = 8;

/// A request for `cpus` CPUs in multiples of `group`, from nodes with room.
struct SplitProblem {
  std::vector<Share> rooms;  ///< node and its free CPUs
  int cpus = 0;
  int group = 1;
  /// By position in `rooms`, -1 for a node on several. Where given, a share is cut to what the
  /// smallest room of a combination has (kubelet's align-by-socket from 1.37 on); empty otherwise.
  std::vector<int> sockets;
};

/// The ways to choose `nodes` of the rooms such that each can give an even share and all of them
/// the whole: lists of positions in `rooms`, ascending, in lexicographic order. With more than
/// kExactSplitNodes rooms one way at most, and with `sockets` one more for each of them.
std::vector<std::vector<int>> even_combinations(const SplitProblem& problem, int nodes);

/// Whether all rooms of a combination lie on one socket; false where `sockets` is not given.
bool on_one_socket(const SplitProblem& problem, const std::vector<int>& combination);

struct Split {
  std::vector<Share> shares;  ///< in the order in which they are to be taken; nodes may repeat
  /// Standard deviation of the free CPUs of all rooms afterwards, rounded to thousandths.
  double balance = 0;
};

/// The most balanced way to take the request from one combination: the even share of each, and
/// what remains in groups from some of them.
Split best_split(const SplitProblem& problem, const std::vector<int>& combination);

}  // namespace ka::policy::allocate
