// SPDX-License-Identifier: Apache-2.0
// Which choices can still end on the fewest NUMA nodes? Of all that a placement costs, nodes count
// first: what cannot is left out early, so that the work does not grow with the square of the
// machine.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/allocate/cost_table.hpp"

namespace ka::policy::allocate {

/// The free CPUs of a node, or of a part of one that is considered separately. They lie side by
/// side in a list of all free CPUs.
struct NodeSupply {
  std::size_t begin = 0;  ///< in that list
  int cpus = 0;
  bool charged = true;  ///< to use it costs a node
};

/// What the supplies outside of a part of that list can add to what is taken from the part.
class Outside {
 public:
  Outside(std::vector<int> most, int needed) : most_(std::move(most)), needed_(needed) {}

  /// The request can still be completed within the limit.
  bool completes(const CostEntry& taken) const;
  void keep_complete(CostTable& table) const;

 private:
  std::vector<int> most_;  ///< by the number of charged supplies; as many as the limit is
  int needed_;
};

class NodeLimit {
 public:
  /// The fewest nodes whose CPUs are as many as are needed.
  NodeLimit(std::vector<NodeSupply> supplies, int needed);

  /// All supplies together hold the request.
  bool enough() const;
  /// Any number of nodes is fine from now on.
  void lift();
  Outside outside(std::size_t begin, std::size_t end) const;

 private:
  std::vector<NodeSupply>
      supplies_;  ///< those that cost nothing, then the others, the largest first
  int needed_;
  std::size_t nodes_ = 0;  ///< so many may be charged
};

}  // namespace ka::policy::allocate
