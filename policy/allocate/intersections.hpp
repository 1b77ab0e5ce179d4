// SPDX-License-Identifier: Apache-2.0
// Which sets of nodes can come of one set out of each of several lists?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ka::policy::allocate {

/// Nodes by id, bit by bit: kubelet compares masks of equal width as numbers.
using Mask = std::uint64_t;

/// Up to so many nodes, all distinct intersections are found.
inline constexpr int kExactHintNodes = 16;
/// With more nodes, at most so many are kept after each list: the widest.
inline constexpr std::size_t kKeptIntersections = 1024;

/// How many nodes. std::popcount calls a library where the processor need not have an instruction
/// for it.
inline int width(Mask mask) {
  constexpr Mask kPairs = 0x5555555555555555, kFours = 0x3333333333333333,
                 kEights = 0x0f0f0f0f0f0f0f0f, kBytes = 0x0101010101010101;
  mask -= mask >> 1 & kPairs;
  mask = (mask & kFours) + (mask >> 2 & kFours);
  return static_cast<int>(((mask + (mask >> 4)) & kEights) * kBytes >> 56);
}

/// The intersections of one mask of each list with `nodes`, in any order. The empty one
/// may be missing.
std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes);

}  // namespace ka::policy::allocate
