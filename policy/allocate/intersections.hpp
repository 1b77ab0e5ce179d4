// SPDX-License-Identifier: Apache-2.0
// Which sets of nodes can come of one set out of each of several lists?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/facts/bits.hpp"

namespace ka::policy::allocate {

/// Nodes by id, bit by bit: kubelet compares masks of equal width as numbers.
using Mask = std::uint64_t;

/// Up to so many nodes, all distinct intersections are found.
inline constexpr int kExactHintNodes = 16;
/// With more nodes, at most so many are kept after each list, the widest.
inline constexpr std::size_t kKeptIntersections = 1024;
/// Of a longer list than makes so many pairs with what is kept, the widest sets count: a merge over
/// 64 nodes takes less than 10 ms.
inline constexpr std::size_t kMostPairs = kKeptIntersections * 512;

inline int width(Mask mask) { return bit_count(mask); }

/// The intersections of one mask of each list with `nodes`, in any order. The empty one
/// may be missing.
std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes);

}  // namespace ka::policy::allocate
