// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <tuple>

namespace ka::policy {
namespace {

/// Nodes by id, bit by bit: kubelet compares masks of equal width as numbers.
using Mask = std::uint64_t;

Mask mask_of(const NodeSet& nodes) { return nodes.empty() ? 0 : nodes.words().front(); }

NodeSet nodes_of(Mask mask) { return NodeSet::from_words({mask}); }

/// What the hints of one resource come to.
struct Choices {
  std::vector<Mask> preferred;  ///< as given
  bool prefers_any = false;     ///< a preferred hint without affinity
  std::vector<Mask> all;        ///< cut to the machine's nodes; without affinity: all of them
};

using Distances = std::vector<std::vector<int>>;

/// The order among merged hints, the best first.
struct Order {
  /// The width to come close to, from below if possible; absent: the narrower the better.
  std::optional<int> best_count;
  const HintProblem* closest = nullptr;  ///< absent: distance does not count

  auto key(Mask mask) const {
    return std::tuple(width_key(std::popcount(mask)), spread(mask), mask);
  }

 private:
  int width_key(int count) const {
    if (!best_count) return count;
    return count <= *best_count ? *best_count - count : kMaxHintNodes + count;
  }

  /// The sum of all distances: of equally wide sets, the average compares as the sum does.
  std::int64_t spread(Mask mask) const {
    if (closest == nullptr) return 0;
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
  const auto best = std::ranges::min_element(
      masks, {}, [&](Mask mask) { return std::pair(mask == 0, order.key(mask)); });
  if (best == masks.end() || *best == 0) return std::nullopt;
  return *best;
}

void sort_unique(std::vector<Mask>& masks) {
  std::ranges::sort(masks);
  const auto repeated = std::ranges::unique(masks);
  masks.erase(repeated.begin(), repeated.end());
}

/// filterProvidersHints: a provider or resource without preference accepts anything, a resource
/// that nothing suits accepts it unwillingly.
std::vector<Hint> hints_of(const ResourceHints& resource) {
  if (!resource.hints) return {{std::nullopt, true}};
  if (resource.hints->empty()) return {{std::nullopt, false}};
  return *resource.hints;
}

struct NamedHints {
  std::string resource;
  std::vector<Hint> hints;
};

std::vector<NamedHints> flatten(const std::vector<ProviderHints>& providers) {
  std::vector<NamedHints> resources;
  for (const ProviderHints& provider : providers) {
    if (provider.empty()) resources.push_back({"", {{std::nullopt, true}}});
    for (const ResourceHints& resource : provider) {
      resources.push_back({resource.resource, hints_of(resource)});
    }
  }
  return resources;
}

/// filterSingleNumaHints.
void keep_single_nodes(std::vector<Hint>& hints) {
  std::erase_if(hints, [](const Hint& hint) {
    return !hint.preferred || (hint.affinity && hint.affinity->size() != 1);
  });
}

Choices choices_of(const std::vector<Hint>& hints, Mask nodes) {
  Choices choices;
  for (const Hint& hint : hints) {
    choices.all.push_back(hint.affinity ? mask_of(*hint.affinity) & nodes : nodes);
    if (hint.preferred && hint.affinity) choices.preferred.push_back(mask_of(*hint.affinity));
    if (hint.preferred && !hint.affinity) choices.prefers_any = true;
  }
  sort_unique(choices.preferred);
  sort_unique(choices.all);
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

/// Sets of up to kExactHintNodes nodes as indices of a table.
class Dense {
 public:
  explicit Dense(Mask nodes) {
    for (; nodes != 0; nodes &= nodes - 1) bits_.push_back(nodes & -nodes);
  }

  std::size_t table_size() const { return std::size_t{1} << bits_.size(); }

  std::size_t index_of(Mask mask) const {
    std::size_t index = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      if ((mask & bits_[i]) != 0) index |= std::size_t{1} << i;
    }
    return index;
  }

  Mask mask_of(std::size_t index) const {
    Mask mask = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      if ((index >> i & 1) != 0) mask |= bits_[i];
    }
    return mask;
  }

 private:
  std::vector<Mask> bits_;
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

/// All intersections of one mask of each resource. How many pairs lie above a set is the product
/// of how many of either do; what remains of it when the sets above are taken away again are the
/// pairs that intersect in just that set.
std::vector<Mask> all_intersections(const std::vector<Choices>& resources, Mask nodes) {
  const Dense dense(nodes);
  Table found;
  for (const Choices& resource : resources) {
    Table theirs(dense.table_size(), 0);
    for (const Mask mask : resource.all) theirs[dense.index_of(mask)] = 1;
    if (found.empty()) {
      found = std::move(theirs);
      continue;
    }
    sum_supersets(found, 1);
    sum_supersets(theirs, 1);
    for (std::size_t set = 0; set < found.size(); ++set) found[set] *= theirs[set];
    sum_supersets(found, -1);
    for (std::int64_t& pairs : found) pairs = pairs > 0 ? 1 : 0;
  }
  std::vector<Mask> masks;
  for (std::size_t set = 1; set < found.size(); ++set) {
    if (found[set] != 0) masks.push_back(dense.mask_of(set));
  }
  return masks;
}

/// The widest survive: they can still become anything that lies in them.
void keep_widest(std::vector<Mask>& masks) {
  sort_unique(masks);
  if (masks.size() <= kKeptIntersections) return;
  std::ranges::stable_sort(masks, std::greater{}, [](Mask mask) { return std::popcount(mask); });
  masks.resize(kKeptIntersections);
}

std::vector<Mask> widest_intersections(std::vector<Choices> resources, Mask nodes) {
  std::ranges::stable_sort(resources, {},
                           [](const Choices& choices) { return choices.all.size(); });
  std::vector<Mask> found{nodes};
  for (const Choices& resource : resources) {
    std::vector<Mask> next;
    for (const Mask mask : found) {
      for (const Mask choice : resource.all) {
        if ((mask & choice) != 0) next.push_back(mask & choice);
      }
    }
    keep_widest(next);
    found = std::move(next);
  }
  return found;
}

std::vector<Mask> intersections(const std::vector<Choices>& resources, Mask nodes) {
  return std::popcount(nodes) <= kExactHintNodes ? all_intersections(resources, nodes)
                                                 : widest_intersections(resources, nodes);
}

/// 0 where no hint names nodes.
int narrowest_count(const std::vector<Hint>& hints) {
  int narrowest = 0;
  for (const Hint& hint : hints) {
    if (!hint.affinity) continue;
    const int count = hint.affinity->size();
    narrowest = narrowest == 0 ? count : std::min(narrowest, count);
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
  for (const NamedHints& resource : resources) choices.push_back(choices_of(resource.hints, nodes));
  return choices;
}

/// The best that keeps CPUs where they are preferred: with the others as far as these go, else
/// alone.
std::optional<Mask> best_for_cpus(std::vector<NamedHints> resources, Mask nodes,
                                  const Order& order) {
  std::vector<NamedHints> cpus;
  for (NamedHints& resource : resources) {
    if (resource.resource != "cpu") continue;
    std::erase_if(resource.hints, [](const Hint& hint) { return !hint.preferred; });
    cpus.push_back(resource);
  }
  if (cpus.empty()) return std::nullopt;
  const auto together = best_of(intersections(all_choices(resources, nodes), nodes), order);
  if (together) return together;
  return best_of(intersections(all_choices(cpus, nodes), nodes), order);
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
  if (!best) best = best_of(intersections(choices, nodes), order);
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

}  // namespace ka::policy
