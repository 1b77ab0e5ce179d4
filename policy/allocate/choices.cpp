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
    ::new (static_cast<void*>(resources_.begin() + count_++)) Resource(read(said, masks));
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
  const Choice choice{nodes_, !said.hints};
  Resource resource{.name = said.resource, .prefers_any = choice.preferred};
  if (single_ && !choice.preferred) return resource;
  *next_choice_ = choice;
  resource.choices = {next_choice_++, 1};
  return resource;
}

Resource Choices::read(const ResourceHints& said, const std::vector<Hint>& hints,
                       const NodeMasks& masks) {
  if (!masks.by_id()) {
    return read_each(said, hints, [&](const NodeSet& nodes) { return masks.mask_of(nodes); });
  }
  bool fit = fit_;
  const Resource resource = read_each(said, hints, [&fit](const NodeSet& nodes) {
    fit = fit && nodes.fits_word();
    return nodes.first_word();
  });
  fit_ = fit;
  return resource;
}

template <typename MaskOf>
Resource Choices::read_each(const ResourceHints& said, const std::vector<Hint>& hints,
                            const MaskOf& mask_of) {
  const bool single = single_;
  const Mask all = nodes_;
  bool prefers_any = false;
  MaskFilter filter;
  Narrowest narrowest;
  Choice* choice = next_choice_;
  Mask* preferred = next_preferred_;
  for (const Hint& hint : hints) {
    if (single && !hint.preferred) continue;
    if (!hint.affinity) {
      *choice++ = {all, hint.preferred};
      prefers_any = prefers_any || hint.preferred;
      continue;
    }
    const Mask mask = mask_of(*hint.affinity);
    const int nodes = width(mask);
    if (single && nodes != 1) continue;
    *choice++ = {mask, hint.preferred};
    narrowest.add(nodes);
    if (!hint.preferred) continue;
    *preferred++ = mask;
    filter.add(mask);
  }
  return {said.resource,
          {std::exchange(next_choice_, choice), choice},
          {std::exchange(next_preferred_, preferred), preferred},
          filter,
          prefers_any,
          narrowest.count()};
}

}  // namespace ka::policy::allocate
