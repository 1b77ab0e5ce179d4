// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "policy/allocate/choices.hpp"
#include "policy/allocate/hint_order.hpp"
#include "policy/allocate/intersections.hpp"
#include "policy/allocate/node_masks.hpp"
#include "policy/allocate/wide_merge.hpp"

namespace ka::policy::allocate {
namespace {

/// Up to this many permutations of one choice of each resource, trying each of them costs less
/// than searching for those that differ.
constexpr std::size_t kFewPermutations = 2048;

/// The best intersection of one mask of each list.
std::optional<Mask> best_of_lists(std::vector<std::vector<Mask>> lists, Mask nodes,
                                  const HintOrder& order) {
  // A list of nothing but all nodes leaves the others as they are.
  std::erase_if(lists, [nodes](const std::vector<Mask>& list) {
    return list.size() == 1 && list.front() == nodes;
  });
  if (lists.size() == 1) return order.best_of(lists.front());
  if (width(nodes) > kTableNodes) return best_on_many_nodes(std::move(lists), nodes, order);
  return order.best_of(intersections(std::move(lists), nodes));
}

/// kubelet's HintMerger, under the policies that merge.
class Merger {
 public:
  Merger(const HintProblem& problem, const Choices& choices)
      : problem_(problem),
        choices_(choices),
        single_(problem.policy == HintPolicy::kSingleNumaNode) {}

  struct Merged {
    Mask mask;  ///< 0: no intersection of hints names a node
    bool preferred;
  };
  Merged merged() const;

 private:
  using Resources = std::span<const Resource>;

  std::optional<Mask> best_preferred(const HintOrder& order) const;
  bool all_prefer(Mask mask) const;
  int best_count() const;
  bool few_permutations() const;
  std::optional<Mask> best_permutation(const HintOrder& order) const;
  void offer_permutations(Mask nodes, Resources resources, Best& best) const;
  std::vector<Mask> choices_of(const Resource& resource, bool preferred) const;
  std::optional<Mask> best_intersection(const HintOrder& order) const;
  std::optional<Mask> best_for_cpus(const HintOrder& order) const;

  const HintProblem& problem_;
  const Choices& choices_;
  bool single_;
};

Merger::Merged Merger::merged() const {
  HintOrder order;
  if (problem_.prefer_closest && !single_) {
    order.closeness.emplace(choices_.nodes(), problem_.distances);
  }
  const auto preferred = best_preferred(order);
  if (preferred) return {*preferred, true};
  order.best_count = best_count();
  std::optional<Mask> best;
  if (problem_.prefer_cpu_alignment && problem_.policy == HintPolicy::kBestEffort) {
    best = best_for_cpus(order);
  }
  if (!best) best = best_intersection(order);
  return {best.value_or(0), false};
}

/// A merged hint is preferred when every hint in it is and all that name nodes name the same. What
/// every resource can prefer is in the list of the one that prefers the least.
std::optional<Mask> Merger::best_preferred(const HintOrder& order) const {
  Best best(order);
  const Resource* strictest = nullptr;
  for (const Resource& resource : choices_.resources()) {
    if (resource.prefers_any) continue;
    if (!strictest || resource.preferred.size() < strictest->preferred.size())
      strictest = &resource;
  }
  if (!strictest) best.offer(choices_.nodes());
  for (const Resource& resource : choices_.resources()) {
    if (strictest && &resource != strictest) continue;
    for (const Mask mask : resource.preferred) {
      best.offer(mask & choices_.nodes(), [&] { return all_prefer(mask); });
    }
  }
  return best.mask();
}

bool Merger::all_prefer(Mask mask) const {
  return std::ranges::all_of(choices_.resources(), [mask](const Resource& resource) {
    return resource.prefers_any || resource.prefers(mask);
  });
}

int Merger::best_count() const {
  if (single_) return 1;
  int most = 0;
  for (const Resource& resource : choices_.resources()) {
    most = std::max(most, resource.narrowest);
  }
  return most;
}

bool Merger::few_permutations() const {
  std::size_t permutations = 1;
  for (const Resource& resource : choices_.resources()) {
    permutations *= resource.choices.size();
    if (permutations > kFewPermutations) return false;
  }
  return true;
}

/// Offers what is left of `nodes` in each permutation, where one-choice resources are in `nodes`.
void Merger::offer_permutations(Mask nodes, Resources resources, Best& best) const {
  while (!resources.empty() && resources.front().choices.size() == 1) {
    resources = resources.subspan(1);
  }
  if (resources.empty()) return best.offer(nodes);
  const Resources others = resources.subspan(1);
  for (const Choice& choice : resources.front().choices) {
    const Mask left = nodes & choice.mask;
    if (others.empty()) {
      best.offer(left);
    } else if (best.may_be_beaten_within(left)) {
      offer_permutations(left, others, best);
    }
  }
}

std::optional<Mask> Merger::best_permutation(const HintOrder& order) const {
  Best best(order);
  Mask nodes = choices_.nodes();
  Resources resources = choices_.resources();
  for (const Resource& resource : resources) {
    if (resource.choices.size() == 1) nodes &= resource.choices.front().mask;
  }
  while (!resources.empty() && resources.back().choices.size() == 1) {
    resources = resources.first(resources.size() - 1);
  }
  offer_permutations(nodes, resources, best);
  return best.mask();
}

/// The nodes that each hint leaves, or each preferred one.
std::vector<Mask> Merger::choices_of(const Resource& resource, bool preferred) const {
  std::vector<Mask> masks;
  masks.reserve(resource.choices.size());
  for (const Choice& choice : resource.choices) {
    if (!preferred || choice.preferred) masks.push_back(choice.mask & choices_.nodes());
  }
  return masks;
}

std::optional<Mask> Merger::best_intersection(const HintOrder& order) const {
  if (few_permutations()) return best_permutation(order);
  std::vector<std::vector<Mask>> lists;
  lists.reserve(choices_.resources().size());
  for (const Resource& resource : choices_.resources()) {
    lists.push_back(choices_of(resource, false));
  }
  return best_of_lists(std::move(lists), choices_.nodes(), order);
}

/// The best that keeps CPUs where they are preferred: with the others as far as these go, else
/// alone.
std::optional<Mask> Merger::best_for_cpus(const HintOrder& order) const {
  std::vector<std::vector<Mask>> all, cpus;
  for (const Resource& resource : choices_.resources()) {
    const bool cpu = resource.name == "cpu";
    all.push_back(choices_of(resource, cpu));
    if (cpu) cpus.push_back(all.back());
  }
  if (cpus.empty()) return std::nullopt;
  const Mask nodes = choices_.nodes();
  const auto together = best_of_lists(std::move(all), nodes, order);
  return together ? together : best_of_lists(std::move(cpus), nodes, order);
}

std::optional<std::string> check_nodes(const HintProblem& problem) {
  if (problem.nodes.empty()) return "there are no NUMA nodes";
  if (!problem.max_nodes) return std::nullopt;
  if (*problem.max_nodes < kLeastMaxNodes) {
    return "the minimum value of \"max-allowable-numa-nodes\" should not be less than " +
           std::to_string(kLeastMaxNodes);
  }
  if (problem.nodes.size() > *problem.max_nodes) {
    return "unsupported on machines with more than " + std::to_string(*problem.max_nodes) +
           " NUMA Nodes";
  }
  return std::nullopt;
}

std::optional<std::string> check_distances(const HintProblem& problem) {
  if (!problem.prefer_closest) return std::nullopt;
  const auto size = static_cast<std::size_t>(problem.nodes.size());
  bool fits = problem.distances.size() == size;
  for (const auto& row : problem.distances) fits = fits && row.size() == size;
  if (fits) return std::nullopt;
  return "prefer-closest-numa-nodes needs distances with a row and a column for each node";
}

MergedHint merge_checked(const HintProblem& problem, const Choices& choices,
                         const NodeMasks& masks) {
  const auto [mask, preferred] = Merger(problem, choices).merged();
  const bool single = problem.policy == HintPolicy::kSingleNumaNode;
  MergedHint hint{std::nullopt, preferred, preferred || problem.policy == HintPolicy::kBestEffort};
  hint.affinity = mask == 0 ? problem.nodes : masks.nodes_of(mask);
  if (single && hint.affinity == problem.nodes) hint.affinity.reset();
  return hint;
}

Expected<MergedHint, std::string> merge_by_position(const HintProblem& problem) {
  const NodeMasks masks(problem);
  if (masks.count() > kMaxHintNodes) {
    return unexpected(std::to_string(masks.count()) + " NUMA nodes are more than " +
                      std::to_string(kMaxHintNodes));
  }
  if (auto wrong = check_distances(problem)) return unexpected(*std::move(wrong));
  return merge_checked(problem, Choices(problem, masks), masks);
}

}  // namespace

Expected<MergedHint, std::string> merge_hints(const HintProblem& problem) {
  if (problem.policy == HintPolicy::kNone) return MergedHint{std::nullopt, false, true};
  if (auto wrong = check_nodes(problem)) return unexpected(*std::move(wrong));
  const NodeMasks masks;
  const Choices choices(problem, masks);
  if (!choices.fit()) return merge_by_position(problem);
  if (auto wrong = check_distances(problem)) return unexpected(*std::move(wrong));
  return merge_checked(problem, choices, masks);
}

}  // namespace ka::policy::allocate
