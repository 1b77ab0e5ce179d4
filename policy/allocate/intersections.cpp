// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/intersections.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::allocate {
namespace {

/// Up to so many pairs for each set that there can be, trying them all costs less than the sums
/// over supersets.
constexpr std::size_t kPairsPerSet = 8;

/// Sets of up to kTableNodes nodes as indices of a table: masks without gaps.
class Dense {
 public:
  explicit Dense(Mask nodes) : nodes_(nodes), gaps_((nodes & (nodes + 1)) != 0) {
    if (!gaps_) return;
    for (; nodes != 0; nodes &= nodes - 1) bits_.push_back(nodes & -nodes);
  }

  std::size_t table_size() const { return std::size_t{1} << width(nodes_); }

  Mask index_of(Mask mask) const {
    if (!gaps_) return mask & nodes_;
    Mask index = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      if ((mask & bits_[i]) != 0) index |= Mask{1} << i;
    }
    return index;
  }

  Mask mask_of(Mask index) const {
    if (!gaps_) return index;
    Mask mask = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      if ((index >> i & 1) != 0) mask |= bits_[i];
    }
    return mask;
  }

 private:
  Mask nodes_;
  bool gaps_;  ///< among the ids; else a mask is its own index
  std::vector<Mask> bits_;
};

using Sets = std::vector<Mask>;

/// Collects sets of nodes, each once, without the empty one.
class Collected {
 public:
  /// `most`: so many are added at most.
  Collected(std::size_t table_size, std::size_t most) : seen_(table_size) {
    seen_.front() = true;
    sets_.reserve(std::min(table_size, most));
  }

  void add(Mask set) {
    if (seen_[set]) return;
    seen_[set] = true;
    sets_.push_back(set);
  }
  Sets sets() { return std::move(sets_); }

 private:
  std::vector<bool> seen_;
  Sets sets_;
};

using Table = std::vector<std::int64_t>;

/// For every set, adds (sign 1) or takes away again (sign -1) what its supersets hold.
void sum_supersets(Table& table, std::int64_t sign) {
  for (std::size_t bit = 1; bit < table.size(); bit <<= 1) {
    for (std::size_t set = 0; set < table.size(); ++set) {
      if ((set & bit) == 0) table[set] += sign * table[set | bit];
    }
  }
}

Table superset_sums(const Sets& sets, std::size_t table_size) {
  Table table(table_size, 0);
  for (const Mask set : sets) table[set] = 1;
  sum_supersets(table, 1);
  return table;
}

/// How many pairs lie above a set is the product of how many of either do; what remains of it when
/// the sets above are taken away again are the pairs that intersect in just that set.
Sets intersections_by_sums(const Sets& ours, const Sets& theirs, std::size_t table_size) {
  Table pairs = superset_sums(ours, table_size);
  const Table others = superset_sums(theirs, table_size);
  for (std::size_t set = 0; set < table_size; ++set) pairs[set] *= others[set];
  sum_supersets(pairs, -1);
  Sets found;
  for (std::size_t set = 1; set < table_size; ++set) {
    if (pairs[set] > 0) found.push_back(set);
  }
  return found;
}

Sets intersections_by_pairs(const Sets& ours, const Sets& theirs, std::size_t table_size) {
  Collected found(table_size, ours.size() * theirs.size());
  for (const Mask set : ours) {
    for (const Mask other : theirs) found.add(set & other);
  }
  return found.sets();
}

}  // namespace

std::vector<Mask> intersections(std::vector<std::vector<Mask>> lists, Mask nodes) {
  const Dense dense(nodes);
  const std::size_t size = dense.table_size();
  Sets found{size - 1};
  for (Sets& list : lists) {
    for (Mask& mask : list) mask = dense.index_of(mask);
    if (&list == &lists.front()) {
      found = std::move(list);
      continue;
    }
    const bool few = found.size() * list.size() <= kPairsPerSet * size;
    found =
        few ? intersections_by_pairs(found, list, size) : intersections_by_sums(found, list, size);
  }
  for (Mask& set : found) set = dense.mask_of(set);
  return found;
}

}  // namespace ka::policy::allocate
