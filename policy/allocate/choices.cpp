// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/choices.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::allocate {
namespace {

/// Calls `visit` with each resource; a provider without any counts as one.
template <typename Visit>
void each_resource(const HintProblem& problem, const Visit& visit) {
  static const ResourceHints kNone;
  for (const ProviderHints& provider : problem.providers) {
    if (provider.empty()) visit(kNone);
    for (const ResourceHints& resource : provider) visit(resource);
  }
}

bool counts_for_single(const Choice& choice) {
  return choice.preferred && (!choice.names_nodes || width(choice.mask) == 1);
}

}  // namespace

bool Resource::prefers(Mask mask) const {
  return filter.may_have(mask) && std::ranges::find(preferred, mask) != preferred.end();
}

Choices::Choices(const HintProblem& problem, const NodeMasks& masks)
    : Choices(problem, masks, count(problem)) {}

Choices::Choices(const HintProblem& problem, const NodeMasks& masks, Counts counts)
    : nodes_(masks.mask_of(problem.nodes)),
      single_(problem.policy == HintPolicy::kSingleNumaNode),
      fit_(!masks.by_id() || problem.nodes.fits_word()),
      choices_(counts.choices),
      preferred_(counts.choices),
      resources_(counts.resources),
      next_choice_(choices_.begin()),
      next_preferred_(preferred_.begin()) {
  each_resource(problem, [&](const ResourceHints& said) {
    std::construct_at(resources_.begin() + count_++, read(said, masks));
  });
}

Choices::Counts Choices::count(const HintProblem& problem) {
  Counts counts;
  each_resource(problem, [&](const ResourceHints& said) {
    ++counts.resources;
    counts.choices += said.hints ? std::max<std::size_t>(1, said.hints->size()) : 1;
  });
  return counts;
}

/// A provider or resource without preference accepts anything, a resource without a suitable node
/// accepts it unwillingly.
Resource Choices::read(const ResourceHints& said, const NodeMasks& masks) {
  if (said.hints && !said.hints->empty()) return read(said, *said.hints, masks);
  const Choice choice{nodes_, false, !said.hints};
  Resource resource{.name = said.resource, .prefers_any = choice.preferred};
  if (single_ && !choice.preferred) return resource;
  *next_choice_ = choice;
  resource.choices = {next_choice_++, 1};
  return resource;
}

Resource Choices::read(const ResourceHints& said, const std::vector<Hint>& hints,
                       const NodeMasks& masks) {
  const bool single = single_, by_id = masks.by_id();
  bool fit = fit_, prefers_any = false;
  MaskFilter filter;
  Choice* choice = next_choice_;
  Mask* preferred = next_preferred_;
  for (const Hint& hint : hints) {
    if (single && !hint.preferred) continue;
    *choice = {nodes_, hint.affinity.has_value(), hint.preferred};
    if (choice->names_nodes) {
      fit = fit && (!by_id || hint.affinity->fits_word());
      choice->mask = by_id ? hint.affinity->first_word() : masks.mask_of(*hint.affinity);
    }
    if (single && !counts_for_single(*choice)) continue;
    if (hint.preferred && choice->names_nodes) {
      *preferred++ = choice->mask;
      filter.add(choice->mask);
    }
    if (hint.preferred && !choice->names_nodes) prefers_any = true;
    ++choice;
  }
  fit_ = fit;
  return {said.resource,
          {std::exchange(next_choice_, choice), choice},
          {std::exchange(next_preferred_, preferred), preferred},
          filter,
          prefers_any};
}

}  // namespace ka::policy::allocate
