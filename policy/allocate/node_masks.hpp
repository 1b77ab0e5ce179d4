// SPDX-License-Identifier: Apache-2.0
// The NUMA nodes that a hint names, as the bits of one number.
#pragma once

#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/intersections.hpp"

namespace ka::policy::allocate {

/// A node's bit is its id. Where ids do not fit, nodes go by their positions among all that the
/// problem names: the order stays, and with it the answer.
class NodeMasks {
 public:
  /// By id.
  NodeMasks() = default;
  /// By position.
  explicit NodeMasks(const HintProblem& problem);

  /// How many positions there are; above kMaxHintNodes there is no mask for them.
  int count() const { return static_cast<int>(ids_.size()); }
  /// Masks by id hold the ids below kMaxHintNodes.
  bool by_id() const { return ids_.empty(); }
  Mask mask_of(const NodeSet& nodes) const {
    return ids_.empty() ? nodes.first_word() : positions_of(nodes);
  }
  NodeSet nodes_of(Mask mask) const;

 private:
  Mask positions_of(const NodeSet& nodes) const;

  std::vector<int> ids_;  ///< by position; empty: ids are bits
};

}  // namespace ka::policy::allocate
