// SPDX-License-Identifier: Apache-2.0
// The best intersection of hints on more nodes than a table of all sets can cover.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "policy/allocate/hint_order.hpp"

namespace ka::policy::allocate {

/// The first pass keeps this many intersections after each list, the widest.
inline constexpr std::size_t kKeptIntersections = 1024;
/// Neither pass tries more pairs of an intersection and a choice in one step, and the second one
/// collects from no more in all: a merge over 64 nodes takes less than 10 ms.
inline constexpr std::size_t kMostPairs = kKeptIntersections * 512;
inline constexpr std::size_t kMostRivalPairs = kMostPairs / 8;

/// The best intersection of one mask of each list with `nodes`; absent where all are empty.
///
/// A first pass follows the widest intersections and finds a good one. If it left any out, a second
/// one follows all that can still become better, since an intersection only gets narrower. Where
/// these are too many the answer is the first pass's, which may not be the best.
std::optional<Mask> best_on_many_nodes(std::vector<std::vector<Mask>> lists, Mask nodes,
                                       const HintOrder& order);

}  // namespace ka::policy::allocate
