// SPDX-License-Identifier: Apache-2.0
// kubelet's order of preference among merged hints, as its own tables and its permutations ask for
// it, by the parts of which merge_hints() is made.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "policy/allocate/choices.hpp"
#include "policy/allocate/hint_order.hpp"
#include "policy/allocate/hints.hpp"

namespace ka::test {

/// kubelet's maxOfMinAffinityCounts: among all resources, the most nodes that the narrowest hint of
/// one has.
inline int best_affinity_count(const std::vector<std::vector<policy::allocate::Hint>>& resources) {
  int most = 0;
  for (const auto& hints : resources) {
    policy::allocate::Narrowest narrowest;
    for (const policy::allocate::Hint& hint : hints) {
      if (hint.affinity) narrowest.add(policy::allocate::width(hint.affinity->first_word()));
    }
    most = std::max(most, narrowest.count());
  }
  return most;
}

/// kubelet's compareHints: does `candidate` take the place of `current` (none: nothing was found so
/// far)?
inline bool replaces(const policy::allocate::Hint& candidate,
                     const std::optional<policy::allocate::Hint>& current, int best_count) {
  const auto mask_of = [](const policy::allocate::Hint& hint) {
    return hint.affinity.value_or(policy::NodeSet{}).first_word();
  };
  if (mask_of(candidate) == 0) return false;
  if (!current) return true;
  if (candidate.preferred != current->preferred) return candidate.preferred;
  policy::allocate::HintOrder order;
  if (!candidate.preferred) order.best_count = best_count;
  return order.before(mask_of(candidate), mask_of(*current));
}

}  // namespace ka::test
