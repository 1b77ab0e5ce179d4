// SPDX-License-Identifier: Apache-2.0
// The rule for more than eight nodes against kubelet's search: as many nodes, and never a worse
// balance.
#include "policy/allocate/split.hpp"

#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

/// What the rooms have left: the less even, the larger the sum of squares.
std::vector<int> left_of(const SplitProblem& problem, const Split& split) {
  std::vector<int> left;
  for (const Share& room : problem.rooms) left.push_back(room.cpus);
  for (const Share& share : split.shares) left[static_cast<std::size_t>(share.node)] -= share.cpus;
  return left;
}

int squares_left(const SplitProblem& problem, const std::vector<int>& combination) {
  int squares = 0;
  for (const int left : left_of(problem, best_split(problem, combination))) squares += left * left;
  return squares;
}

int cpus_of(const Split& split) {
  int cpus = 0;
  for (const Share& share : split.shares) cpus += share.cpus;
  return cpus;
}

}  // namespace

TEST_CASE("splits add up, and every node has room for its share") {
  Random random(ka::test::first_seed());
  for (int i = 0; i < 500; ++i) {
    SplitProblem problem{.rooms = {}, .cpus = 0, .group = random.between(1, 4)};
    const int rooms = random.between(1, 12);
    for (int node = 0; node < rooms; ++node) problem.rooms.push_back({node, random.between(1, 20)});
    problem.cpus = random.between(1, 40) * problem.group;
    if (random.chance(50)) {
      for (int node = 0; node < rooms; ++node) problem.sockets.push_back(random.between(-1, 2));
    }
    const int nodes = random.between(1, rooms);
    for (const auto& combination : even_combinations(problem, nodes)) {
      const Split split = best_split(problem, combination);
      CHECK(cpus_of(split) == problem.cpus);
      CHECK(std::ranges::min(left_of(problem, split)) >= 0);
    }
  }
}

TEST_CASE("if there is a split, the nodes with the most room form one, as balanced") {
  Random random(ka::test::first_seed() + 1);
  for (int i = 0; i < 500; ++i) {
    SplitProblem exact{.rooms = {}, .cpus = 0, .group = random.between(1, 2)};
    const int rooms = random.between(2, 8);
    for (int node = 0; node < rooms; ++node) exact.rooms.push_back({node, random.between(4, 20)});
    const int nodes = random.between(1, rooms);
    exact.cpus = random.between(nodes, nodes + 20) * exact.group;
    // Rooms that can give nothing bring the problem over the limit of the exact search.
    SplitProblem large = exact;
    while (large.rooms.size() <= kExactSplitNodes) {
      large.rooms.push_back({static_cast<int>(large.rooms.size()), 0});
    }
    const auto all = even_combinations(exact, nodes);
    const auto quick = even_combinations(large, nodes);
    INFO("round " << i);
    CHECK(all.empty() == quick.empty());
    for (const auto& combination : all) {
      CHECK(squares_left(large, quick.front()) <= squares_left(exact, combination));
    }
  }
}
