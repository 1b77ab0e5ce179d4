// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "policy/allocate/intersections.hpp"

namespace ka::policy::allocate {
namespace {

Mask mask_of(const NodeSet& nodes) { return nodes.first_word(); }

NodeSet nodes_of(Mask mask) { return NodeSet::from_words(std::array{mask}); }

/// What the preferred hints of one resource name.
struct Preferred {
  std::vector<Mask> masks;  ///< as given, ascending
  bool any = false;         ///< one of them names no nodes
};

/// The order among merged hints, the best first.
class Order {
 public:
  /// The width to come close to, from below if possible; absent: the narrower the better.
  std::optional<int> best_count;

  Order() = default;
  /// Of equally wide sets, the one whose nodes are the closest together.
  explicit Order(const HintProblem& closest) : closest_(&closest), ids_(closest.nodes.ids()) {}

  std::optional<Mask> best_of(const std::vector<Mask>& masks) const;
  bool before(Mask mask, Mask other) const;

 private:
  int width_key(Mask mask) const {
    const int count = width(mask);
    if (!best_count) return count;
    return count <= *best_count ? *best_count - count : kMaxHintNodes + count;
  }
  bool closer(Mask mask, Mask other) const;
  std::int64_t spread(Mask mask) const;

  const HintProblem* closest_ = nullptr;
  std::vector<int> ids_;
};

std::optional<Mask> Order::best_of(const std::vector<Mask>& masks) const {
  Mask best = 0;
  int best_key = 0;
  for (const Mask mask : masks) {
    const bool no_better = best != 0 && best_key <= 0 && closest_ == nullptr && mask > best;
    if (mask == 0 || no_better) continue;
    const int key = width_key(mask);
    if (best != 0 && (key > best_key || (key == best_key && !closer(mask, best)))) continue;
    best = mask;
    best_key = key;
  }
  return best == 0 ? std::nullopt : std::optional(best);
}

bool Order::before(Mask mask, Mask other) const {
  const int key = width_key(mask), other_key = width_key(other);
  return key != other_key ? key < other_key : closer(mask, other);
}

/// Of two equally wide sets.
bool Order::closer(Mask mask, Mask other) const {
  if (closest_ == nullptr) return mask < other;
  return std::pair(spread(mask), mask) < std::pair(spread(other), other);
}

/// The sum of all distances: of equally wide sets, the average compares as the sum does.
std::int64_t Order::spread(Mask mask) const {
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < ids_.size(); ++row) {
    if ((mask >> ids_[row] & 1) == 0) continue;
    for (std::size_t column = 0; column < ids_.size(); ++column) {
      if ((mask >> ids_[column] & 1) != 0) sum += closest_->distances[row][column];
    }
  }
  return sum;
}

/// filterProvidersHints: a provider or resource without preference accepts anything, a resource
/// that nothing suits accepts it unwillingly.
std::span<const Hint> hints_of(const ResourceHints& resource) {
  static const std::array<Hint, 1> kAnywhere{{{std::nullopt, true}}};
  static const std::array<Hint, 1> kNowhere{{{std::nullopt, false}}};
  if (!resource.hints) return kAnywhere;
  return resource.hints->empty() ? std::span<const Hint>(kNowhere) : *resource.hints;
}

struct NamedHints {
  std::string_view resource;
  std::span<const Hint> hints;
};

std::vector<NamedHints> flatten(const std::vector<ProviderHints>& providers) {
  std::vector<NamedHints> resources;
  resources.reserve(providers.size());
  for (const ProviderHints& provider : providers) {
    if (provider.empty()) resources.push_back({"", hints_of({})});
    for (const ResourceHints& resource : provider) {
      resources.push_back({resource.resource, hints_of(resource)});
    }
  }
  return resources;
}

/// 0 where no hint names nodes.
int narrowest_count(std::span<const Hint> hints) {
  int narrowest = 0;
  for (const Hint& hint : hints) {
    if (narrowest == 1) break;
    if (!hint.affinity) continue;
    const int count = width(mask_of(*hint.affinity));
    narrowest = narrowest == 0 ? count : std::min(narrowest, count);
  }
  return narrowest;
}

/// kubelet's HintMerger, under the policies that merge.
class Merger {
 public:
  explicit Merger(const HintProblem& problem)
      : problem_(problem),
        nodes_(mask_of(problem.nodes)),
        single_(problem.policy == HintPolicy::kSingleNumaNode),
        resources_(flatten(problem.providers)) {}

  Hint merged() const;

 private:
  bool counts(const Hint& hint) const;
  Preferred preferred_of(const NamedHints& resource) const;
  std::vector<Mask> preferred_by_all() const;
  int best_count() const;
  std::vector<Mask> choices_of(const NamedHints& resource, bool preferred) const;
  std::optional<Mask> best_intersection(const Order& order) const;
  std::optional<Mask> best_for_cpus(const Order& order) const;

  const HintProblem& problem_;
  Mask nodes_;
  bool single_;
  std::vector<NamedHints> resources_;
};

Hint Merger::merged() const {
  Order order = problem_.prefer_closest && !single_ ? Order(problem_) : Order();
  const auto preferred = order.best_of(preferred_by_all());
  if (preferred) return {nodes_of(*preferred), true};
  order.best_count = best_count();
  std::optional<Mask> best;
  if (problem_.prefer_cpu_alignment && problem_.policy == HintPolicy::kBestEffort) {
    best = best_for_cpus(order);
  }
  if (!best) best = best_intersection(order);
  return {nodes_of(best.value_or(nodes_)), false};
}

/// filterSingleNumaHints.
bool Merger::counts(const Hint& hint) const {
  if (!single_) return true;
  return hint.preferred && (!hint.affinity || hint.affinity->size() == 1);
}

Preferred Merger::preferred_of(const NamedHints& resource) const {
  Preferred preferred;
  for (const Hint& hint : resource.hints) {
    if (!hint.preferred || !counts(hint)) continue;
    if (hint.affinity) preferred.masks.push_back(mask_of(*hint.affinity));
    if (!hint.affinity) preferred.any = true;
  }
  std::ranges::sort(preferred.masks);
  return preferred;
}

/// The masks that can be preferred by all: a merged hint is preferred when every hint in it is and
/// all that name nodes name the same.
std::vector<Mask> Merger::preferred_by_all() const {
  std::vector<Mask> common;
  bool any = true;
  for (const NamedHints& resource : resources_) {
    const Preferred preferred = preferred_of(resource);
    const auto is_named = [&](Mask mask) {
      return std::ranges::binary_search(preferred.masks, mask);
    };
    if (!preferred.any) std::erase_if(common, [&](Mask mask) { return !is_named(mask); });
    if (any) common.insert(common.end(), preferred.masks.begin(), preferred.masks.end());
    any = any && preferred.any;
    if (!any && common.empty()) return common;
  }
  for (Mask& mask : common) mask &= nodes_;
  if (any) common.push_back(nodes_);
  return common;
}

int Merger::best_count() const {
  if (single_) return 1;
  int most = 0;
  for (const NamedHints& resource : resources_) {
    most = std::max(most, narrowest_count(resource.hints));
  }
  return most;
}

/// The nodes that each hint leaves, or each preferred one.
std::vector<Mask> Merger::choices_of(const NamedHints& resource, bool preferred) const {
  std::vector<Mask> choices;
  choices.reserve(resource.hints.size());
  for (const Hint& hint : resource.hints) {
    if (!counts(hint) || (preferred && !hint.preferred)) continue;
    choices.push_back(hint.affinity ? mask_of(*hint.affinity) & nodes_ : nodes_);
  }
  return choices;
}

std::optional<Mask> Merger::best_intersection(const Order& order) const {
  std::vector<std::vector<Mask>> choices;
  choices.reserve(resources_.size());
  for (const NamedHints& resource : resources_) choices.push_back(choices_of(resource, false));
  return order.best_of(intersections(std::move(choices), nodes_));
}

/// The best that keeps CPUs where they are preferred: with the others as far as these go, else
/// alone.
std::optional<Mask> Merger::best_for_cpus(const Order& order) const {
  std::vector<std::vector<Mask>> all, cpus;
  for (const NamedHints& resource : resources_) {
    const bool cpu = resource.resource == "cpu";
    all.push_back(choices_of(resource, cpu));
    if (cpu) cpus.push_back(all.back());
  }
  if (cpus.empty()) return std::nullopt;
  const auto together = order.best_of(intersections(std::move(all), nodes_));
  return together ? together : order.best_of(intersections(std::move(cpus), nodes_));
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

/// Every node has a bit in a mask by its id.
bool ids_fit(const HintProblem& problem) {
  bool fit = problem.nodes.fits_word();
  each_affinity(problem, [&fit](const NodeSet& nodes) { fit = fit && nodes.fits_word(); });
  return fit;
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

std::optional<std::string> check_nodes(const HintProblem& problem) {
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
  return order.before(mask, mask_of(current->affinity.value_or(NodeSet{})));
}

namespace {

MergedHint merge_checked(const HintProblem& problem) {
  Hint merged = Merger(problem).merged();
  const bool single = problem.policy == HintPolicy::kSingleNumaNode;
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
  if (auto wrong = check_nodes(problem)) return unexpected(*std::move(wrong));
  const bool fit = ids_fit(problem);
  const std::vector<int> ids = fit ? std::vector<int>() : named_nodes(problem).ids();
  if (ids.size() > kMaxHintNodes) {
    return unexpected(std::to_string(ids.size()) + " NUMA nodes are more than " +
                      std::to_string(kMaxHintNodes));
  }
  if (auto wrong = check_distances(problem)) return unexpected(*std::move(wrong));
  return fit ? merge_checked(problem) : merge_by_position(problem, ids);
}

}  // namespace ka::policy::allocate
