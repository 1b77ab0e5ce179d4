// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "policy/allocate/hint_order.hpp"
#include "policy/allocate/intersections.hpp"
#include "policy/allocate/node_masks.hpp"

namespace ka::policy::allocate {
namespace {

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

/// A hint as far as the merge looks at it.
struct Choice {
  Mask mask = 0;  ///< of a hint that names no nodes: all of them
  bool names_nodes = false;
  bool preferred = false;
};

struct Resource {
  std::string_view name;
  std::span<const Choice> choices;
};

/// The nodes that the preferred choices name.
struct Preferred {
  std::vector<Mask> masks;
  bool any = false;  ///< one of them names no nodes
};

Preferred preferred_of(const Resource& resource) {
  Preferred preferred;
  for (const Choice& choice : resource.choices) {
    if (!choice.preferred) continue;
    if (!choice.names_nodes) preferred.any = true;
    if (!choice.names_nodes) continue;
    if (preferred.masks.empty()) preferred.masks.reserve(resource.choices.size());
    preferred.masks.push_back(choice.mask);
  }
  return preferred;
}

/// The narrowest of the hints that name nodes; 0 where none does.
class Narrowest {
 public:
  void add(Mask mask) {
    const int wide = width(mask);
    count_ = count_ == 0 ? wide : std::min(count_, wide);
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

/// kubelet's HintMerger, under the policies that merge.
class Merger {
 public:
  Merger(const HintProblem& problem, const NodeMasks& masks);

  /// Absent: no intersection of hints names a node.
  struct Merged {
    std::optional<Mask> mask;
    bool preferred = false;
  };
  Merged merged() const;

 private:
  void add(const NamedHints& hints, const NodeMasks& masks);
  bool counts(const Choice& choice) const;
  std::vector<Mask> preferred_by_all() const;
  int best_count() const;
  std::vector<Mask> choices_of(const Resource& resource, bool preferred) const;
  std::optional<Mask> best_intersection(const HintOrder& order) const;
  std::optional<Mask> best_for_cpus(const HintOrder& order) const;

  const HintProblem& problem_;
  Mask nodes_;
  bool single_;
  std::vector<Choice> choices_;  ///< of all resources, one behind the other
  std::vector<Resource> resources_;
};

Merger::Merger(const HintProblem& problem, const NodeMasks& masks)
    : problem_(problem),
      nodes_(masks.mask_of(problem.nodes)),
      single_(problem.policy == HintPolicy::kSingleNumaNode) {
  const std::vector<NamedHints> all = flatten(problem.providers);
  std::size_t choices = 0;
  for (const NamedHints& resource : all) choices += resource.hints.size();
  choices_.reserve(choices);
  resources_.reserve(all.size());
  for (const NamedHints& resource : all) add(resource, masks);
}

void Merger::add(const NamedHints& resource, const NodeMasks& masks) {
  const std::size_t first = choices_.size();
  for (const Hint& hint : resource.hints) {
    const Mask mask = hint.affinity ? masks.mask_of(*hint.affinity) : nodes_;
    const Choice choice{mask, hint.affinity.has_value(), hint.preferred};
    if (counts(choice)) choices_.push_back(choice);
  }
  resources_.push_back({resource.resource, std::span(choices_).subspan(first)});
}

/// filterSingleNumaHints.
bool Merger::counts(const Choice& choice) const {
  return !single_ || (choice.preferred && (!choice.names_nodes || width(choice.mask) == 1));
}

Merger::Merged Merger::merged() const {
  HintOrder order;
  if (problem_.prefer_closest && !single_) order.closeness.emplace(nodes_, problem_.distances);
  const auto preferred = order.best_of(preferred_by_all());
  if (preferred) return {preferred, true};
  order.best_count = best_count();
  std::optional<Mask> best;
  if (problem_.prefer_cpu_alignment && problem_.policy == HintPolicy::kBestEffort) {
    best = best_for_cpus(order);
  }
  if (!best) best = best_intersection(order);
  return {best, false};
}

/// The masks that can be preferred by all: a merged hint is preferred when every hint in it is and
/// all that name nodes name the same.
std::vector<Mask> Merger::preferred_by_all() const {
  std::vector<Mask> common;
  bool any = true;
  for (const Resource& resource : resources_) {
    Preferred preferred = preferred_of(resource);
    if (!preferred.any && !common.empty()) {
      std::ranges::sort(preferred.masks);
      std::erase_if(common, [&preferred](Mask mask) {
        return !std::ranges::binary_search(preferred.masks, mask);
      });
    }
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
  for (const Resource& resource : resources_) {
    Narrowest narrowest;
    for (const Choice& choice : resource.choices) {
      if (choice.names_nodes) narrowest.add(choice.mask);
    }
    most = std::max(most, narrowest.count());
  }
  return most;
}

/// The nodes that each hint leaves, or each preferred one.
std::vector<Mask> Merger::choices_of(const Resource& resource, bool preferred) const {
  std::vector<Mask> choices;
  choices.reserve(resource.choices.size());
  for (const Choice& choice : resource.choices) {
    if (!preferred || choice.preferred) choices.push_back(choice.mask & nodes_);
  }
  return choices;
}

std::optional<Mask> Merger::best_intersection(const HintOrder& order) const {
  std::vector<std::vector<Mask>> choices;
  choices.reserve(resources_.size());
  for (const Resource& resource : resources_) choices.push_back(choices_of(resource, false));
  return order.best_of(intersections(std::move(choices), nodes_));
}

/// The best that keeps CPUs where they are preferred: with the others as far as these go, else
/// alone.
std::optional<Mask> Merger::best_for_cpus(const HintOrder& order) const {
  std::vector<std::vector<Mask>> all, cpus;
  for (const Resource& resource : resources_) {
    const bool cpu = resource.name == "cpu";
    all.push_back(choices_of(resource, cpu));
    if (cpu) cpus.push_back(all.back());
  }
  if (cpus.empty()) return std::nullopt;
  const auto together = order.best_of(intersections(std::move(all), nodes_));
  return together ? together : order.best_of(intersections(std::move(cpus), nodes_));
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

MergedHint merge_checked(const HintProblem& problem, const NodeMasks& masks) {
  const auto [mask, preferred] = Merger(problem, masks).merged();
  const bool single = problem.policy == HintPolicy::kSingleNumaNode;
  std::optional<NodeSet> nodes = mask ? masks.nodes_of(*mask) : problem.nodes;
  if (single && nodes == problem.nodes) nodes.reset();
  const bool admit = problem.policy == HintPolicy::kBestEffort || preferred;
  return {std::move(nodes), preferred, admit};
}

}  // namespace

int best_affinity_count(const std::vector<std::vector<Hint>>& resources) {
  int most = 0;
  for (const std::vector<Hint>& hints : resources) {
    Narrowest narrowest;
    for (const Hint& hint : hints) {
      if (hint.affinity) narrowest.add(hint.affinity->first_word());
    }
    most = std::max(most, narrowest.count());
  }
  return most;
}

bool replaces(const Hint& candidate, const std::optional<Hint>& current, int best_count) {
  const auto mask_of = [](const Hint& hint) {
    return hint.affinity.value_or(NodeSet{}).first_word();
  };
  if (mask_of(candidate) == 0) return false;
  if (!current) return true;
  if (candidate.preferred != current->preferred) return candidate.preferred;
  HintOrder order;
  if (!candidate.preferred) order.best_count = best_count;
  return order.before(mask_of(candidate), mask_of(*current));
}

Expected<MergedHint, std::string> merge_hints(const HintProblem& problem) {
  if (problem.policy == HintPolicy::kNone) return MergedHint{std::nullopt, false, true};
  if (auto wrong = check_nodes(problem)) return unexpected(*std::move(wrong));
  const NodeMasks masks(problem);
  if (masks.count() > kMaxHintNodes) {
    return unexpected(std::to_string(masks.count()) + " NUMA nodes are more than " +
                      std::to_string(kMaxHintNodes));
  }
  if (auto wrong = check_distances(problem)) return unexpected(*std::move(wrong));
  return merge_checked(problem, masks);
}

}  // namespace ka::policy::allocate
