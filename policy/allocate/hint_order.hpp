// SPDX-License-Identifier: Apache-2.0
// kubelet's order of preference among merged hints of which all or none are preferred.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "policy/allocate/intersections.hpp"

namespace ka::policy::allocate {

/// How near the nodes of a mask are to each other.
class Closeness {
 public:
  /// `nodes`: the bits of the rows of `distances`, which must outlive this.
  Closeness(Mask nodes, const std::vector<std::vector<int>>& distances);

  /// The sum of all distances: of equally wide sets, the average compares as the sum does.
  std::int64_t spread(Mask mask) const;

 private:
  const std::vector<std::vector<int>>* distances_;
  std::vector<int> bits_;  ///< by row
};

/// The order among merged hints, the best first. Empty ones have no place in it.
class HintOrder {
 public:
  /// The width to come close to, from below if possible; absent: the narrower the better.
  std::optional<int> best_count;
  /// Of equally wide sets, the one whose nodes are the closest together; absent: the one with the
  /// lowest ids.
  std::optional<Closeness> closeness;

  std::optional<Mask> best_of(const std::vector<Mask>& masks) const;
  bool before(Mask mask, Mask other) const;

 private:
  struct Rank {
    int key = 0;
    std::int64_t spread = 0;
    Mask mask = 0;
    auto operator<=>(const Rank&) const = default;
  };

  int width_key(Mask mask) const;
  Rank rank(Mask mask, int key) const;
};

}  // namespace ka::policy::allocate
