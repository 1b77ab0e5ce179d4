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

/// Up to this many nodes there are few enough sets for a table of all.
inline constexpr int kTableNodes = 16;

inline int width(Mask mask) { return bit_count(mask); }

/// The distinct intersections of one mask of each list with `nodes`, in any order. The empty one
/// may be missing. Precondition: at most kTableNodes nodes.
std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes);

}  // namespace ka::policy::allocate
