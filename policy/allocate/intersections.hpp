// SPDX-License-Identifier: Apache-2.0
// Which sets of nodes can come of one set out of each of several lists?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/facts/bits.hpp"

namespace ka::policy::allocate {

/// Nodes by id, bit by bit: kubelet compares masks of equal width as numbers.
using Mask = std::uint64_t;

/// Up to this many nodes there are few enough sets for a table of all.
inline constexpr int kTableNodes = 16;

/// How many nodes a mask has. Up to eight, kubelet's limit, are looked up: most of a merge's time
/// goes into this.
inline int width(Mask mask) {
  static constexpr auto kWidths = [] {
    std::array<std::uint8_t, 256> widths{};
    for (std::size_t i = 1; i < widths.size(); ++i)
      widths[i] = static_cast<std::uint8_t>(widths[i / 2] + i % 2);
    return widths;
  }();
  return mask < kWidths.size() ? kWidths[mask] : bit_count(mask);
}

/// The distinct intersections of one mask of each list with `nodes`, in any order. The empty one
/// may be missing. Precondition: at most kTableNodes nodes.
std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes);

}  // namespace ka::policy::allocate
