// SPDX-License-Identifier: Apache-2.0
// The merge of hints against kubelet's own way: every permutation of one hint from each resource.
#include "policy/allocate/hints.hpp"

#include "tests/catch.hpp"
#include "tests/kubelet_order.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

using Lists = std::vector<std::vector<Hint>>;

/// mergePermutation of kubelet's topologymanager/policy.go.
Hint merged(const NodeSet& nodes, const std::vector<Hint>& permutation) {
  Hint merged{nodes, true};
  std::optional<NodeSet> first;
  for (const Hint& hint : permutation) {
    merged.preferred = merged.preferred && hint.preferred;
    if (!hint.affinity) continue;
    if (!first) first = hint.affinity;
    merged.preferred = merged.preferred && *hint.affinity == *first;
    *merged.affinity &= *hint.affinity;
  }
  return merged;
}

void visit(const Lists& lists, std::vector<Hint>& permutation,
           const std::function<void(const std::vector<Hint>&)>& seen) {
  if (permutation.size() == lists.size()) {
    seen(permutation);
    return;
  }
  for (const Hint& hint : lists[permutation.size()]) {
    permutation.push_back(hint);
    visit(lists, permutation, seen);
    permutation.pop_back();
  }
}

Hint merge_all(const NodeSet& nodes, const Lists& lists) {
  std::optional<Hint> best;
  const int best_count = ka::test::best_affinity_count(lists);
  std::vector<Hint> permutation;
  visit(lists, permutation, [&](const std::vector<Hint>& hints) {
    const Hint candidate = merged(nodes, hints);
    if (ka::test::replaces(candidate, best, best_count)) best = candidate;
  });
  return best.value_or(Hint{nodes, false});
}

std::vector<Hint> random_hints(Random& random, int nodes) {
  std::vector<Hint> hints;
  const int count = random.between(1, 6);
  for (int i = 0; i < count; ++i) {
    Hint hint{std::nullopt, random.chance(60)};
    if (!random.chance(8)) {
      hint.affinity = random.part_of(NodeSet::range(0, nodes - 1), random.one_of<int>({20, 50}));
    }
    hints.push_back(std::move(hint));
  }
  return hints;
}

}  // namespace

TEST_CASE("merge-hints agrees with kubelet's permutations") {
  const unsigned seed = ka::test::first_seed();
  for (unsigned i = 0; i < 2000; ++i) {
    Random random(seed + i);
    // Above 16 nodes intersections are kept as a list, below in a table.
    const int nodes = random.one_of<int>({1, 2, 3, 4, 8, 20, 64});
    HintProblem problem{.nodes = NodeSet::range(0, nodes - 1)};
    Lists lists;
    for (int j = random.between(0, 4); j > 0; --j) {
      lists.push_back(random_hints(random, nodes));
      problem.providers.push_back({{"r", lists.back()}});
    }
    INFO("seed " << seed + i);
    const auto answer = merge_hints(problem);
    REQUIRE(answer);
    const Hint expected = merge_all(problem.nodes, lists);
    CHECK(answer->affinity == expected.affinity);
    CHECK(answer->preferred == expected.preferred);
  }
}

namespace {

/// As many hints as make a merge on many nodes leave some out at first, but few enough for
/// kubelet's way: on `nodes` nodes, each in a hint with a chance of `percent`.
std::vector<Hint> many_hints(Random& random, int nodes, int count, int percent) {
  std::vector<Hint> hints;
  for (int i = 0; i < count; ++i) {
    hints.push_back({random.part_of(NodeSet::range(0, nodes - 1), percent), false});
  }
  return hints;
}

}  // namespace

TEST_CASE("a merge on many nodes finds the best hint beyond its limit of intersections") {
  const unsigned seed = ka::test::first_seed();
  for (unsigned i = 0; i < 60; ++i) {
    Random random(seed + i);
    const int nodes = random.one_of<int>({17, 24, 40, 64});
    const std::vector<int> counts =
        random.chance(50) ? std::vector{90, 90} : std::vector{12, 20, 34};
    HintProblem problem{.nodes = NodeSet::range(0, nodes - 1)};
    Lists lists;
    for (const int count : counts) {
      lists.push_back(many_hints(random, nodes, count, random.one_of<int>({25, 50, 80})));
      problem.providers.push_back({{"r", lists.back()}});
    }
    INFO("seed " << seed + i);
    const auto answer = merge_hints(problem);
    REQUIRE(answer);
    CHECK(answer->affinity == merge_all(problem.nodes, lists).affinity);
  }
}
