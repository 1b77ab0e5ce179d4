// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/node_sets.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace ka::policy::allocate {
namespace {

/// Some of the rooms.
struct Chosen {
  NodeSet nodes;
  std::int64_t free = 0;
  int required = 0;  ///< how many of them are required

  void add(const NodeRoom& room) {
    nodes.add(room.node);
    free += room.free;
    required += room.required ? 1 : 0;
  }
};

class Search {
 public:
  Search(const Machine& machine, std::vector<NodeRoom> rooms, std::int64_t needed)
      : machine_(machine), rooms_(std::move(rooms)), needed_(needed) {
    for (const NodeRoom& room : rooms_) required_ += room.required ? 1 : 0;
  }

  std::vector<NodeSet> sets() { return rooms_.size() <= kAllNodeSets ? all_sets() : near_sets(); }

 private:
  bool holds(const Chosen& chosen) const {
    return chosen.required == required_ && chosen.free >= needed_;
  }

  std::vector<NodeSet> all_sets() {
    for (std::size_t size = 1; size <= rooms_.size(); ++size) add_sets(size, 0, {});
    return std::move(found_);
  }

  /// Sets of `size` more nodes in lexicographic order.
  void add_sets(std::size_t size, std::size_t from, const Chosen& chosen) {
    for (std::size_t i = from; i + size <= rooms_.size(); ++i) {
      Chosen more = chosen;
      more.add(rooms_[i]);
      if (size > 1) {
        add_sets(size - 1, i + 1, more);
      } else if (holds(more)) {
        found_.push_back(std::move(more.nodes));
      }
    }
  }

  std::vector<NodeSet> near_sets() {
    Chosen all;
    for (const NodeRoom& room : rooms_) all.add(room);
    if (!holds(all)) return {};
    // Size and ids: the order of all_sets().
    std::map<std::pair<std::size_t, std::vector<int>>, NodeSet> sets;
    const auto keep = [&sets](NodeSet nodes) {
      std::vector<int> ids = nodes.ids();
      const std::size_t size = ids.size();
      sets.emplace(std::pair(size, std::move(ids)), std::move(nodes));
    };
    for (std::size_t seed = 0; seed < rooms_.size(); ++seed) {
      keep(grown_from(static_cast<int>(seed)));
    }
    keep(std::move(all.nodes));
    for (auto& [key, nodes] : sets) found_.push_back(std::move(nodes));
    return std::move(found_);
  }

  NodeSet grown_from(int seed) const {
    Chosen chosen;
    for (const int number : machine_.nodes_near(seed)) {
      chosen.add(rooms_[static_cast<std::size_t>(number)]);
      if (holds(chosen)) break;
    }
    return std::move(chosen.nodes);
  }

  const Machine& machine_;
  std::vector<NodeRoom> rooms_;
  std::int64_t needed_;
  int required_ = 0;
  std::vector<NodeSet> found_;
};

}  // namespace

std::vector<NodeSet> sets_with_room(const Machine& machine, std::vector<NodeRoom> rooms,
                                    std::int64_t needed) {
  return Search(machine, std::move(rooms), needed).sets();
}

int least_groups(std::vector<std::int64_t> sizes, std::int64_t needed) {
  std::ranges::sort(sizes, std::greater{});
  int groups = 0;
  for (const std::int64_t size : sizes) {
    if (needed <= 0 && groups > 0) break;
    needed -= size;
    ++groups;
  }
  return groups;
}

}  // namespace ka::policy::allocate
