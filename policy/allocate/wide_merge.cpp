// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/wide_merge.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace ka::policy::allocate {
namespace {

using Sets = std::vector<Mask>;
using Lists = std::span<const Sets>;

/// Ascending, each once.
void sort_unique(Sets& sets) {
  std::ranges::sort(sets);
  const auto repeated = std::ranges::unique(sets);
  sets.erase(repeated.begin(), repeated.end());
}

bool wider(Mask a, Mask b) {
  const int wide = width(a), than = width(b);
  return wide != than ? wide > than : a < b;
}

/// Leaves each set once, and of more than `count` the widest, the last of them at the end; whether
/// that was all.
bool keep_widest(Sets& sets, std::size_t count) {
  sort_unique(sets);
  if (sets.size() <= count) return true;
  std::ranges::nth_element(sets, sets.begin() + static_cast<std::ptrdiff_t>(count) - 1, wider);
  sets.resize(count);
  return false;
}

/// The widest sets of all that are added: they can still become anything that lies in them.
class Widest {
 public:
  void add(Mask set) {
    if (!complete_ && !wider(set, least_)) return;
    sets_.push_back(set);
    if (sets_.size() >= 4 * kKeptIntersections) cut();
  }
  /// Takes them; `complete` is false if some were left out.
  Sets take(bool& complete) {
    cut();
    complete = complete && complete_;
    return std::move(sets_);
  }

 private:
  void cut() {
    if (keep_widest(sets_, kKeptIntersections)) return;
    complete_ = false;
    least_ = sets_.back();
  }

  Sets sets_;
  bool complete_ = true;
  Mask least_ = 0;  ///< where sets were left out, the least wide of the others
};

void offer_pairs(const Sets& found, const Sets& list, Best& best) {
  for (const Mask set : found) {
    for (const Mask choice : list) best.offer(set & choice);
  }
}

/// The first pass; whether it left nothing out.
bool offer_widest(Lists lists, Mask nodes, Best& best) {
  bool complete = true;
  Sets found{nodes};
  for (const Sets& all : lists) {
    if (found.empty()) break;
    Sets list = all;
    complete = keep_widest(list, kMostPairs / found.size()) && complete;
    if (&all == &lists.back()) {
      offer_pairs(found, list, best);
      break;
    }
    Widest next;
    for (const Mask set : found) {
      for (const Mask choice : list) next.add(set & choice);
    }
    found = next.take(complete);
  }
  return complete;
}

/// The sets that can still become better than the best; absent where they are more than `most`.
std::optional<Sets> rivals(const Sets& found, const Sets& list, std::size_t most,
                           const Best& best) {
  Sets rivals;
  for (const Mask set : found) {
    for (const Mask choice : list) {
      if (!best.may_be_beaten_within(set & choice)) continue;
      rivals.push_back(set & choice);
      if (rivals.size() <= 2 * most) continue;
      sort_unique(rivals);
      if (rivals.size() > most) return std::nullopt;
    }
  }
  sort_unique(rivals);
  return rivals.size() > most ? std::nullopt : std::optional(std::move(rivals));
}

/// The second pass.
void offer_rivals(Lists lists, Mask nodes, Best& best) {
  Sets found{nodes};
  std::size_t pairs = 0;
  for (std::size_t i = 0; i + 1 < lists.size(); ++i) {
    pairs += found.size() * lists[i].size();
    if (pairs > kMostRivalPairs) return;
    auto next = rivals(found, lists[i], kMostPairs / lists[i + 1].size(), best);
    if (!next) return;
    found = *std::move(next);
  }
  offer_pairs(found, lists.back(), best);
}

}  // namespace

std::optional<Mask> best_on_many_nodes(std::vector<std::vector<Mask>> lists, Mask nodes,
                                       const HintOrder& order) {
  Best best(order);
  if (lists.empty()) best.offer(nodes);
  for (Sets& list : lists) sort_unique(list);
  std::ranges::sort(lists, {}, &Sets::size);
  if (!lists.empty() && !lists.front().empty() && !offer_widest(lists, nodes, best)) {
    offer_rivals(lists, nodes, best);
  }
  return best.mask();
}

}  // namespace ka::policy::allocate
