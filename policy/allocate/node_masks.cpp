// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/node_masks.hpp"

#include <algorithm>
#include <array>

namespace ka::policy::allocate {
namespace {

/// Calls `visit` with the affinity of every hint that names nodes.
template <typename Visit>
void each_affinity(const HintProblem& problem, const Visit& visit) {
  for (const ProviderHints& provider : problem.providers) {
    for (const ResourceHints& resource : provider) {
      if (!resource.hints) continue;
      for (const Hint& hint : *resource.hints) {
        if (hint.affinity) visit(*hint.affinity);
      }
    }
  }
}

NodeSet named_nodes(const HintProblem& problem) {
  NodeSet named = problem.nodes;
  each_affinity(problem, [&named](const NodeSet& nodes) { named |= nodes; });
  return named;
}

}  // namespace

NodeMasks::NodeMasks(const HintProblem& problem) : ids_(named_nodes(problem).ids()) {}

Mask NodeMasks::positions_of(const NodeSet& nodes) const {
  Mask mask = 0;
  for (const int node : nodes) {
    mask |= Mask{1} << (std::ranges::lower_bound(ids_, node) - ids_.begin());
  }
  return mask;
}

NodeSet NodeMasks::nodes_of(Mask mask) const {
  if (ids_.empty()) return NodeSet::from_words(std::array{mask});
  NodeSet nodes;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if ((mask >> i & 1) != 0) nodes.add(ids_[i]);
  }
  return nodes;
}

}  // namespace ka::policy::allocate
