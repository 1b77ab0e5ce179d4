// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace ka::policy::allocate {
namespace {

int room(const SplitProblem& problem, int position) {
  return problem.rooms[static_cast<std::size_t>(position)].cpus;
}

int even_share(const SplitProblem& problem, const std::vector<int>& combination) {
  int share = problem.cpus / static_cast<int>(combination.size());
  if (!problem.sockets.empty()) {
    for (const int position : combination) share = std::min(share, room(problem, position));
  }
  return share / problem.group * problem.group;
}

bool holds_evenly(const SplitProblem& problem, const std::vector<int>& combination) {
  const int share = even_share(problem, combination);
  int groups = 0;
  for (const int position : combination) {
    if (room(problem, position) < share) return false;
    groups += room(problem, position) / problem.group;
  }
  return groups * problem.group >= problem.cpus;
}

/// Moves on to the lexicographically next ascending choice out of `count` numbers.
bool next_combination(std::vector<int>& chosen, int count) {
  const int size = static_cast<int>(chosen.size());
  int at = size - 1;
  while (at >= 0 && chosen[static_cast<std::size_t>(at)] == count - size + at) --at;
  if (at < 0) return false;
  int value = chosen[static_cast<std::size_t>(at)];
  for (; at < size; ++at) chosen[static_cast<std::size_t>(at)] = ++value;
  return true;
}

std::vector<int> first_combination(int size) {
  std::vector<int> chosen(static_cast<std::size_t>(size));
  std::iota(chosen.begin(), chosen.end(), 0);
  return chosen;
}

std::vector<int> roomiest(const SplitProblem& problem, std::vector<int> positions, int nodes) {
  std::ranges::stable_sort(positions, std::greater{},
                           [&](int position) { return room(problem, position); });
  positions.resize(static_cast<std::size_t>(nodes));
  std::ranges::sort(positions);
  return positions;
}

/// Of all rooms, and of those of each socket.
std::vector<std::vector<int>> roomiest_combinations(const SplitProblem& problem, int nodes) {
  std::vector<std::vector<int>> choices{first_combination(static_cast<int>(problem.rooms.size()))};
  std::map<int, std::vector<int>> by_socket;
  for (std::size_t i = 0; i < problem.sockets.size(); ++i) {
    if (problem.sockets[i] >= 0) by_socket[problem.sockets[i]].push_back(static_cast<int>(i));
  }
  for (auto& [socket, positions] : by_socket) choices.push_back(std::move(positions));
  std::vector<std::vector<int>> found;
  for (std::vector<int>& positions : choices) {
    if (positions.size() < static_cast<std::size_t>(nodes)) continue;
    std::vector<int> chosen = roomiest(problem, std::move(positions), nodes);
    if (holds_evenly(problem, chosen)) found.push_back(std::move(chosen));
  }
  return found;
}

/// What is free in each room, and the sum of squares, from which the balance follows: the sum
/// itself is the same for all ways to take the same number of CPUs.
struct Rest {
  std::vector<int> free;
  std::int64_t squares = 0;

  void take(int position, int cpus) {
    int& left = free[static_cast<std::size_t>(position)];
    squares -= std::int64_t{left} * left;
    left -= cpus;
    squares += std::int64_t{left} * left;
  }
};

/// kubelet rounds the mean, and then the deviation, to thousandths; equal roundings are ties, which
/// the combination tried first wins. In whole numbers, so that no order of addition shows.
std::int64_t thousandths(const Rest& rest) {
  const auto count = static_cast<std::int64_t>(rest.free.size());
  const std::int64_t sum = std::accumulate(rest.free.begin(), rest.free.end(), std::int64_t{0});
  const std::int64_t mean =
      std::llround(1000.0 * static_cast<double>(sum) / static_cast<double>(count));
  const std::int64_t deviations = 1000000 * rest.squares - 2000 * mean * sum + count * mean * mean;
  return std::llround(std::sqrt(static_cast<double>(deviations) / static_cast<double>(count)));
}

struct Remainder {
  std::vector<int> dealt;  ///< positions, in the order in which they give a group
  std::int64_t balance = std::numeric_limits<std::int64_t>::max();
};

/// kubelet's search: every subset of the rooms that still have a group, the larger ones first,
/// until one is as balanced as possible. It keeps its scratch space, since there may be thousands.
class RemainderSearch {
 public:
  /// No way to deal is better than `best_possible`.
  RemainderSearch(const Rest& rest, int groups, int group, std::int64_t best_possible)
      : rest_(rest), groups_(groups), group_(group), best_possible_(best_possible) {}

  Remainder best_of(const std::vector<int>& open) {
    const int count = static_cast<int>(open.size());
    for (int size = count; size >= 1; --size) {
      std::vector<int> chosen = first_combination(size);
      do {
        subset_.clear();
        for (const int i : chosen) subset_.push_back(open[static_cast<std::size_t>(i)]);
        try_subset();
        if (best_.balance <= best_possible_) return std::move(best_);
      } while (next_combination(chosen, count));
    }
    return std::move(best_);
  }

 private:
  void try_subset() {
    if (even_squares() >= squares_ || !deal() || after_.squares >= squares_) return;
    const std::int64_t balance = thousandths(after_);
    if (balance >= best_.balance) return;
    best_.balance = balance;
    best_.dealt = dealt_;
    squares_ = after_.squares;
  }

  /// The sum of squares when no room of the subset runs dry; 0 when one does. Most subsets need no
  /// more to be rejected.
  std::int64_t even_squares() const {
    const int rounds = groups_ / static_cast<int>(subset_.size());
    int one_more = groups_ % static_cast<int>(subset_.size());
    std::int64_t squares = rest_.squares;
    for (const int position : subset_) {
      const std::int64_t free = rest_.free[static_cast<std::size_t>(position)];
      const std::int64_t left = free - std::int64_t{group_} * (rounds + (one_more-- > 0 ? 1 : 0));
      if (left < 0) return 0;
      squares += left * left - free * free;
    }
    return squares;
  }

  /// Hands out groups one after the other, round and round, to the rooms of the subset that still
  /// have one. False when the subset runs dry: there kubelet never returns.
  bool deal() {
    after_ = rest_;
    dealt_.clear();
    for (int groups = groups_; groups > 0;) {
      const int before = groups;
      for (const int position : subset_) {
        if (groups == 0 || after_.free[static_cast<std::size_t>(position)] < group_) continue;
        after_.take(position, group_);
        dealt_.push_back(position);
        --groups;
      }
      if (groups == before) return false;
    }
    return true;
  }

  const Rest& rest_;
  int groups_;
  int group_;
  std::int64_t best_possible_;
  std::vector<int> subset_, dealt_;
  Rest after_;
  Remainder best_;
  std::int64_t squares_ = std::numeric_limits<std::int64_t>::max();  ///< of the best so far
};

/// Each group from the room with the most CPUs left: the best balance there is.
Remainder roomiest_remainder(Rest rest, const std::vector<int>& open, int groups, int group) {
  Remainder best;
  for (; groups > 0; --groups) {
    const int position = *std::ranges::max_element(
        open, {}, [&](int at) { return rest.free[static_cast<std::size_t>(at)]; });
    rest.take(position, group);
    best.dealt.push_back(position);
  }
  best.balance = thousandths(rest);
  return best;
}

}  // namespace

std::vector<std::vector<int>> even_combinations(const SplitProblem& problem, int nodes) {
  const int count = static_cast<int>(problem.rooms.size());
  if (problem.rooms.size() > kExactSplitNodes) return roomiest_combinations(problem, nodes);
  std::vector<std::vector<int>> found;
  std::vector<int> chosen = first_combination(nodes);
  do {
    if (holds_evenly(problem, chosen)) found.push_back(chosen);
  } while (next_combination(chosen, count));
  return found;
}

bool on_one_socket(const SplitProblem& problem, const std::vector<int>& combination) {
  if (problem.sockets.empty()) return false;
  const auto socket = [&](int position) {
    return problem.sockets[static_cast<std::size_t>(position)];
  };
  const int first = socket(combination.front());
  return first >= 0 &&
         std::ranges::all_of(combination, [&](int position) { return socket(position) == first; });
}

Split best_split(const SplitProblem& problem, const std::vector<int>& combination) {
  const int share = even_share(problem, combination);
  Rest rest;
  rest.free.reserve(problem.rooms.size());
  for (const Share& room : problem.rooms) {
    rest.free.push_back(room.cpus);
    rest.squares += std::int64_t{room.cpus} * room.cpus;
  }
  Split split;
  split.shares.reserve(combination.size());
  std::vector<int> open;
  open.reserve(combination.size());
  for (const int position : combination) {
    rest.take(position, share);
    split.shares.push_back({problem.rooms[static_cast<std::size_t>(position)].node, share});
    if (rest.free[static_cast<std::size_t>(position)] >= problem.group) open.push_back(position);
  }
  const int groups = (problem.cpus - share * static_cast<int>(combination.size())) / problem.group;
  Remainder remainder = roomiest_remainder(rest, open, groups, problem.group);
  if (groups > 0 && problem.rooms.size() <= kExactSplitNodes) {
    remainder = RemainderSearch(rest, groups, problem.group, remainder.balance).best_of(open);
  }
  for (const int position : remainder.dealt) {
    split.shares.push_back({problem.rooms[static_cast<std::size_t>(position)].node, problem.group});
  }
  split.balance = static_cast<double>(remainder.balance) / 1000;
  return split;
}

}  // namespace ka::policy::allocate
