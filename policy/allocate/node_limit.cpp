// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/node_limit.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ka::policy::allocate {

bool Outside::completes(const CostEntry& taken) const {
  const auto nodes = static_cast<std::size_t>(taken.cost.nodes());
  return nodes < most_.size() && taken.cpus + most_[most_.size() - 1 - nodes] >= needed_;
}

void Outside::keep_complete(CostTable& table) const {
  std::erase_if(table, [this](const CostEntry& entry) { return !completes(entry); });
}

NodeLimit::NodeLimit(std::vector<NodeSupply> supplies, int needed)
    : supplies_(std::move(supplies)), needed_(needed) {
  std::ranges::sort(supplies_, {}, [](const NodeSupply& supply) {
    return std::tuple(supply.charged, -supply.cpus, supply.begin);
  });
  for (const NodeSupply& supply : supplies_) {
    if (supply.charged && needed > 0) ++nodes_;
    needed -= supply.cpus;
  }
}

bool NodeLimit::enough() const {
  int cpus = 0;
  for (const NodeSupply& supply : supplies_) cpus += supply.cpus;
  return cpus >= needed_;
}

void NodeLimit::lift() { nodes_ = supplies_.size(); }

Outside NodeLimit::outside(std::size_t begin, std::size_t end) const {
  std::vector<int> most{0};
  most.reserve(nodes_ + 1);
  for (const NodeSupply& supply : supplies_) {
    if (supply.begin >= begin && supply.begin < end) continue;
    if (most.size() > nodes_) break;
    if (supply.charged) most.push_back(most.back() + supply.cpus);
    if (!supply.charged) most.back() += supply.cpus;
  }
  most.resize(nodes_ + 1, most.back());
  return {std::move(most), needed_};
}

}  // namespace ka::policy::allocate
