// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "policy/allocate/intersections.hpp"

namespace ka::policy::allocate {
namespace {

Mask mask_of(const NodeSet& nodes) { return nodes.empty() ? 0 : nodes.words().front(); }

NodeSet nodes_of(Mask mask) { return NodeSet::from_words({mask}); }

/// A hint, its nodes as a mask.
struct MaskHint {
  Mask nodes = 0;
  bool anywhere = false;  ///< it names no nodes
  bool preferred = false;
};

/// What the hints of one resource come to.
struct Choices {
  std::vector<Mask> preferred;  ///< as given, each once, ascending
  bool prefers_any = false;     ///< a preferred hint without affinity
  std::vector<Mask> all;        ///< cut to the machine's nodes; without affinity: all of them
};

/// The order among merged hints, the best first.
struct Order {
  /// The width to come close to, from below if possible; absent: the narrower the better.
  std::optional<int> best_count;
  const HintProblem* closest = nullptr;  ///< absent: distance does not count

  using Key = std::tuple<int, std::int64_t, Mask>;

  Key key(Mask mask) const {
    return {width_key(std::popcount(mask)), closest == nullptr ? 0 : spread(mask), mask};
  }

 private:
  int width_key(int count) const {
    if (!best_count) return count;
    return count <= *best_count ? *best_count - count : kMaxHintNodes + count;
  }

  /// The sum of all distances: of equally wide sets, the average compares as the sum does.
  std::int64_t spread(Mask mask) const {
    std::int64_t sum = 0;
    const std::vector<int> ids = closest->nodes.ids();
    for (std::size_t row = 0; row < ids.size(); ++row) {
      for (std::size_t column = 0; column < ids.size(); ++column) {
        const Mask pair = Mask{1} << ids[row] | Mask{1} << ids[column];
        if ((mask & pair) == pair) sum += closest->distances[row][column];
      }
    }
    return sum;
  }
};

std::optional<Mask> best_of(const std::vector<Mask>& masks, const Order& order) {
  Mask best = 0;
  Order::Key best_key{};
  for (const Mask mask : masks) {
    if (mask == 0) continue;
    const Order::Key key = order.key(mask);
    if (best != 0 && key >= best_key) continue;
    best = mask;
    best_key = key;
  }
  return best == 0 ? std::nullopt : std::optional(best);
}

MaskHint mask_hint(const Hint& hint) {
  return {hint.affinity ? mask_of(*hint.affinity) : 0, !hint.affinity, hint.preferred};
}

/// filterProvidersHints: a provider or resource without preference accepts anything, a resource
/// that nothing suits accepts it unwillingly.
std::vector<MaskHint> hints_of(const ResourceHints& resource) {
  if (!resource.hints) return {{.anywhere = true, .preferred = true}};
  if (resource.hints->empty()) return {{.anywhere = true, .preferred = false}};
  std::vector<MaskHint> hints(resource.hints->size());
  std::ranges::transform(*resource.hints, hints.begin(), mask_hint);
  return hints;
}

struct NamedHints {
  std::string_view resource;
  std::vector<MaskHint> hints;
};

std::vector<NamedHints> flatten(const std::vector<ProviderHints>& providers) {
  std::vector<NamedHints> resources;
  resources.reserve(providers.size());
  for (const ProviderHints& provider : providers) {
    if (provider.empty()) resources.push_back({"", {{.anywhere = true, .preferred = true}}});
    for (const ResourceHints& resource : provider) {
      resources.push_back({resource.resource, hints_of(resource)});
    }
  }
  return resources;
}

/// filterSingleNumaHints.
void keep_single_nodes(std::vector<MaskHint>& hints) {
  std::erase_if(hints, [](const MaskHint& hint) {
    return !hint.preferred || (!hint.anywhere && std::popcount(hint.nodes) != 1);
  });
}

Choices choices_of(const std::vector<MaskHint>& hints, Mask nodes) {
  Choices choices;
  choices.all.reserve(hints.size());
  for (const MaskHint& hint : hints) {
    choices.all.push_back(hint.anywhere ? nodes : hint.nodes & nodes);
    if (hint.preferred && !hint.anywhere) choices.preferred.push_back(hint.nodes);
    if (hint.preferred && hint.anywhere) choices.prefers_any = true;
  }
  sort_unique(choices.preferred);
  return choices;
}

/// The masks that can be preferred by all: a merged hint is preferred when every hint in it is and
/// all that name nodes name the same.
std::vector<Mask> preferred_by_all(const std::vector<Choices>& resources, Mask nodes) {
  std::vector<Mask> common;
  bool any = true;
  for (const Choices& resource : resources) {
    std::vector<Mask> next;
    std::ranges::set_intersection(common, resource.preferred, std::back_inserter(next));
    if (resource.prefers_any) next.insert(next.end(), common.begin(), common.end());
    if (any) next.insert(next.end(), resource.preferred.begin(), resource.preferred.end());
    any = any && resource.prefers_any;
    sort_unique(next);
    common = std::move(next);
  }
  for (Mask& mask : common) mask &= nodes;
  if (any) common.push_back(nodes);
  return common;
}

std::optional<int> count_of(const MaskHint& hint) {
  return hint.anywhere ? std::nullopt : std::optional(std::popcount(hint.nodes));
}

std::optional<int> count_of(const Hint& hint) {
  return hint.affinity ? std::optional(hint.affinity->size()) : std::nullopt;
}

/// 0 where no hint names nodes.
template <typename AnyHint>
int narrowest_count(const std::vector<AnyHint>& hints) {
  int narrowest = 0;
  for (const AnyHint& hint : hints) {
    const std::optional<int> count = count_of(hint);
    if (count) narrowest = narrowest == 0 ? *count : std::min(narrowest, *count);
  }
  return narrowest;
}

int best_count_of(const std::vector<NamedHints>& resources) {
  int most = 0;
  for (const NamedHints& resource : resources) {
    most = std::max(most, narrowest_count(resource.hints));
  }
  return most;
}

std::vector<Choices> all_choices(const std::vector<NamedHints>& resources, Mask nodes) {
  std::vector<Choices> choices;
  choices.reserve(resources.size());
  for (const NamedHints& resource : resources) choices.push_back(choices_of(resource.hints, nodes));
  return choices;
}

std::vector<Mask> intersections_of(const std::vector<Choices>& resources, Mask nodes) {
  std::vector<const std::vector<Mask>*> lists(resources.size());
  std::ranges::transform(resources, lists.begin(),
                         [](const Choices& choices) { return &choices.all; });
  return intersections(lists, nodes);
}

/// The best that keeps CPUs where they are preferred: with the others as far as these go, else
/// alone.
std::optional<Mask> best_for_cpus(std::vector<NamedHints> resources, Mask nodes,
                                  const Order& order) {
  std::vector<NamedHints> cpus;
  for (NamedHints& resource : resources) {
    if (resource.resource != "cpu") continue;
    std::erase_if(resource.hints, [](const MaskHint& hint) { return !hint.preferred; });
    cpus.push_back(resource);
  }
  if (cpus.empty()) return std::nullopt;
  const auto together = best_of(intersections_of(all_choices(resources, nodes), nodes), order);
  if (together) return together;
  return best_of(intersections_of(all_choices(cpus, nodes), nodes), order);
}

Hint merge(const HintProblem& problem, const std::vector<NamedHints>& resources) {
  const Mask nodes = mask_of(problem.nodes);
  const bool distances = problem.prefer_closest && problem.policy != HintPolicy::kSingleNumaNode;
  Order order{.closest = distances ? &problem : nullptr};
  const std::vector<Choices> choices = all_choices(resources, nodes);
  const auto preferred = best_of(preferred_by_all(choices, nodes), order);
  if (preferred) return {nodes_of(*preferred), true};
  order.best_count = best_count_of(resources);
  std::optional<Mask> best;
  if (problem.prefer_cpu_alignment && problem.policy == HintPolicy::kBestEffort) {
    best = best_for_cpus(resources, nodes, order);
  }
  if (!best) best = best_of(intersections_of(choices, nodes), order);
  return {nodes_of(best.value_or(nodes)), false};
}

/// Calls `visit` with the affinity of every hint that names nodes.
template <typename Problem, typename Visit>
void each_affinity(Problem& problem, const Visit& visit) {
  for (auto& provider : problem.providers) {
    for (auto& resource : provider) {
      if (!resource.hints) continue;
      for (auto& hint : *resource.hints) {
        if (hint.affinity) visit(*hint.affinity);
      }
    }
  }
}

NodeSet named_nodes(const HintProblem& problem) {
  NodeSet named = problem.nodes;
  each_affinity(problem, [&named](const NodeSet& nodes) { named |= nodes; });
  return named;
}

NodeSet positions_in(const std::vector<int>& ids, const NodeSet& nodes) {
  NodeSet positions;
  for (const int node : nodes) {
    positions.add(static_cast<int>(std::ranges::lower_bound(ids, node) - ids.begin()));
  }
  return positions;
}

NodeSet ids_at(const std::vector<int>& ids, const NodeSet& positions) {
  NodeSet nodes;
  for (const int position : positions) nodes.add(ids[static_cast<std::size_t>(position)]);
  return nodes;
}

std::optional<std::string> check_nodes(const HintProblem& problem, const NodeSet& named) {
  if (problem.nodes.empty()) return "there are no NUMA nodes";
  const int nodes = problem.nodes.size();
  if (problem.max_nodes && *problem.max_nodes < kLeastMaxNodes) {
    return "the minimum value of \"max-allowable-numa-nodes\" should not be less than " +
           std::to_string(kLeastMaxNodes);
  }
  if (problem.max_nodes && nodes > *problem.max_nodes) {
    return "unsupported on machines with more than " + std::to_string(*problem.max_nodes) +
           " NUMA Nodes";
  }
  if (named.size() <= kMaxHintNodes) return std::nullopt;
  return std::to_string(named.size()) + " NUMA nodes are more than " +
         std::to_string(kMaxHintNodes);
}

std::optional<std::string> check_distances(const HintProblem& problem) {
  if (!problem.prefer_closest) return std::nullopt;
  const auto size = static_cast<std::size_t>(problem.nodes.size());
  bool fits = problem.distances.size() == size;
  for (const auto& row : problem.distances) fits = fits && row.size() == size;
  if (fits) return std::nullopt;
  return "prefer-closest-numa-nodes needs distances with a row and a column for each node";
}

}  // namespace

int best_affinity_count(const std::vector<std::vector<Hint>>& resources) {
  int most = 0;
  for (const std::vector<Hint>& hints : resources) most = std::max(most, narrowest_count(hints));
  return most;
}

bool replaces(const Hint& candidate, const std::optional<Hint>& current, int best_count) {
  const Mask mask = mask_of(candidate.affinity.value_or(NodeSet{}));
  if (mask == 0) return false;
  if (!current) return true;
  if (candidate.preferred != current->preferred) return candidate.preferred;
  Order order;
  if (!candidate.preferred) order.best_count = best_count;
  return order.key(mask) < order.key(mask_of(current->affinity.value_or(NodeSet{})));
}

namespace {

MergedHint merge_checked(const HintProblem& problem) {
  std::vector<NamedHints> resources = flatten(problem.providers);
  const bool single = problem.policy == HintPolicy::kSingleNumaNode;
  if (single) {
    for (NamedHints& resource : resources) keep_single_nodes(resource.hints);
  }
  Hint merged = merge(problem, resources);
  if (single && merged.affinity == problem.nodes) merged.affinity.reset();
  const bool admit = problem.policy == HintPolicy::kBestEffort || merged.preferred;
  return {std::move(merged.affinity), merged.preferred, admit};
}

/// Masks have a bit a node. Where ids do not fit, nodes go by their positions in `ids`: the order
/// stays, and with it the answer.
MergedHint merge_by_position(HintProblem problem, const std::vector<int>& ids) {
  problem.nodes = positions_in(ids, problem.nodes);
  each_affinity(problem, [&ids](NodeSet& nodes) { nodes = positions_in(ids, nodes); });
  MergedHint merged = merge_checked(problem);
  if (merged.affinity) merged.affinity = ids_at(ids, *merged.affinity);
  return merged;
}

}  // namespace

Expected<MergedHint, std::string> merge_hints(const HintProblem& problem) {
  if (problem.policy == HintPolicy::kNone) return MergedHint{std::nullopt, false, true};
  const NodeSet named = named_nodes(problem);
  if (auto wrong = check_nodes(problem, named)) return unexpected(*std::move(wrong));
  if (auto wrong = check_distances(problem)) return unexpected(*std::move(wrong));
  if (named.last() >= kMaxHintNodes) return merge_by_position(problem, named.ids());
  return merge_checked(problem);
}

}  // namespace ka::policy::allocate
