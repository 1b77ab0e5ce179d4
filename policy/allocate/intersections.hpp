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
/// With more nodes, at most so many are kept after each list, the widest; and of a list so long
/// that it makes more pairs with them than the square of this, the widest sets count.
inline constexpr std::size_t kKeptIntersections = 1024;

inline int width(Mask mask) { return bit_count(mask); }

/// The intersections of one mask of each list with `nodes`, in any order. The empty one
/// may be missing.
std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes);

}  // namespace ka::policy::allocate
