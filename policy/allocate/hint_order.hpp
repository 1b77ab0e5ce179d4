// SPDX-License-Identifier: Apache-2.0
// kubelet's order of preference among merged hints of which all or none are preferred.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "policy/allocate/intersections.hpp"

namespace ka::policy::allocate {

/// The distance between the nodes of a mask.
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
  /// The width to come close to, from below if possible; 0: the narrower the better.
  int best_count = 0;
  /// Of equally wide sets, the one whose nodes are the closest together; absent: the one with the
  /// lowest ids.
  std::optional<Closeness> closeness;

  std::optional<Mask> best_of(const std::vector<Mask>& masks) const;
  bool before(Mask mask, Mask other) const;

 private:
  friend class Best;

  static constexpr int kMaskBits = 64;

  struct Rank {
    int key = 2 * kMaskBits + 1;  ///< above that of any mask
    std::int64_t spread = 0;
    Mask mask = 0;
    auto operator<=>(const Rank&) const = default;
  };

  int width_key(Mask mask) const;
  Rank rank(Mask mask, int key) const {
    return {key, closeness ? closeness->spread(mask) : 0, mask};
  }
};

inline int HintOrder::width_key(Mask mask) const {
  const int count = width(mask);
  return count <= best_count ? best_count - count : kMaskBits + count;
}

/// The best of the masks that are offered.
class Best {
 public:
  /// `order` must outlive this.
  explicit Best(const HintOrder& order) : order_(order) {}

  /// Takes the mask if it comes before the best so far and `accept` agrees, which is asked only
  /// then.
  template <typename Accept>
  void offer(Mask mask, const Accept& accept) {
    if (mask == 0 || mask == best_.mask) return;
    const int key = order_.width_key(mask);
    const bool before = key < best_.key || (key == best_.key && comes_before(mask));
    if (before && accept()) best_ = order_.rank(mask, key);
  }
  void offer(Mask mask) {
    offer(mask, [] { return true; });
  }
  /// Whether a part of the mask might come before the best so far. Parts are narrower, except for
  /// the whole.
  bool may_be_beaten_within(Mask mask) const {
    if (mask == 0 || best_.mask == 0) return mask != 0;
    const int most = width(mask), reached = width(best_.mask);
    if (reached > order_.best_count) return true;
    return most > reached || (most == reached && order_.before(mask, best_.mask));
  }
  /// Absent: none was offered that is not empty.
  std::optional<Mask> mask() const {
    return best_.mask == 0 ? std::nullopt : std::optional(best_.mask);
  }

 private:
  /// Of equally wide ones.
  bool comes_before(Mask mask) const {
    return order_.closeness ? order_.rank(mask, best_.key) < best_ : mask < best_.mask;
  }

  const HintOrder& order_;
  HintOrder::Rank best_;
};

}  // namespace ka::policy::allocate
