// SPDX-License-Identifier: Apache-2.0
// Pods in the books: kubelet's admission (policy_static.go, scope_container.go, scope_pod.go).
#include <algorithm>
#include <array>
#include <utility>

#include "policy/allocate/cpu_hints.hpp"
#include "policy/allocate/holdings.hpp"

namespace ka::policy::allocate {
namespace {

constexpr std::array<std::pair<PodPart, std::string_view>, 3> kPartNames{{
    {PodPart::kInit, "init"},
    {PodPart::kSidecar, "sidecar"},
    {PodPart::kApp, "app"},
}};

int own_cpus(const PodContainer& container) {
  return container.request.use == CpuUse::kExclusive ? container.request.cpus : 0;
}

/// podGuaranteedCPUs: sidecars keep running beside later init containers and the apps.
int cpus_of_pod(std::span<const PodContainer> containers) {
  int sidecars = 0;
  int apps = 0;
  int starting = 0;
  for (const PodContainer& container : containers) {
    const int cpus = own_cpus(container);
    if (container.part == PodPart::kApp) apps += cpus;
    if (container.part == PodPart::kSidecar) sidecars += cpus;
    if (container.part == PodPart::kInit && cpus > 0) {
      starting = std::max(starting, sidecars + cpus);
    }
  }
  return std::max(starting, apps + sidecars);
}

Refusal refused(Refusal::Reason reason) { return {.reason = reason}; }

/// Exclusive to one that runs beside the other: init containers are over when others begin.
bool owned_by_both(const Holding& one, const Holding& other) {
  const auto owns = [](const Holding& holding) {
    return holding.request.use == CpuUse::kExclusive;
  };
  if (!owns(one) || !owns(other) || !one.cpus.intersects(other.cpus)) return false;
  const bool ended = one.part == PodPart::kInit || other.part == PodPart::kInit;
  return one.pod.empty() || one.pod != other.pod || !ended;
}

}  // namespace

struct Holdings::Admission {
  std::string pod;
  CpuSet reusable;
  std::optional<Hint> hint;  ///< of the whole pod, or of the container that is placed
};

std::optional<PodPart> parse_pod_part(std::string_view name) {
  const auto found = std::ranges::find(kPartNames, name, &decltype(kPartNames)::value_type::second);
  return found == kPartNames.end() ? std::nullopt : std::optional(found->first);
}

Expected<Moved, Refusal> Holdings::add_pod(const std::string& pod,
                                           std::span<const PodContainer> containers) {
  const auto there = [&](const auto& entry) { return entry.second.pod == pod; };
  if (pod.empty() || std::ranges::any_of(holdings_, there)) {
    return unexpected(refused(Refusal::Reason::kDuplicate));
  }
  Holdings next = *this;
  Admission admission{pod, {}, {}};
  if (alignment_.pod_scope) {
    if (auto refusal = next.align(cpus_of_pod(containers), admission)) return unexpected(*refusal);
  }
  for (const bool apps : {false, true}) {
    for (const PodContainer& container : containers) {
      if ((container.part == PodPart::kApp) != apps) continue;
      if (auto refusal = next.place(container, admission)) return unexpected(*refusal);
    }
  }
  return commit(std::move(next));
}

/// The topology manager's answer for this many CPUs.
std::optional<Refusal> Holdings::align(int cpus, Admission& admission) const {
  if (alignment_.policy == HintPolicy::kNone) return std::nullopt;
  HintProblem problem{
      .policy = alignment_.policy, .nodes = machine_->topology().nodes(), .providers = {{}}};
  if (cpus > 0) {
    problem.providers = {{{"cpu", cpu_hints(*machine_, {.available = shared_pool() - reserved_,
                                                        .reusable = admission.reusable,
                                                        .cpus = cpus,
                                                        .options = options_})}}};
  }
  const auto merged = merge_hints(problem);
  if (!merged || !merged->admit) return refused(Refusal::Reason::kNotAligned);
  admission.hint = Hint{merged->affinity, merged->preferred};
  return std::nullopt;
}

std::optional<Refusal> Holdings::place(const PodContainer& container, Admission& admission) {
  const std::string id = admission.pod + '/' + container.name;
  if (holdings_.contains(id)) return refused(Refusal::Reason::kDuplicate);
  if (!alignment_.pod_scope) {
    if (auto refusal = align(own_cpus(container), admission)) return refusal;
  }
  HoldingRequest request = container.request;
  if (!request.numa_affinity && admission.hint) request.numa_affinity = admission.hint->affinity;
  const bool exclusive = request.use == CpuUse::kExclusive;
  const CpuSet reusable = exclusive ? admission.reusable : CpuSet{};
  const auto cpus = choose(request, {}, false, {.reusable = reusable});
  if (!cpus) return cpus.error();
  if (exclusive && container.part == PodPart::kInit) admission.reusable |= *cpus;
  if (exclusive && container.part != PodPart::kInit) admission.reusable -= *cpus;
  return put(id, {container.request, *cpus, *cpus, admission.pod, container.part});
}

template <typename Gone>
bool Holdings::drop(const std::string& pod, const Gone& gone) {
  const auto erased = std::erase_if(holdings_, [&](const auto& entry) {
    return !pod.empty() && entry.second.pod == pod && gone(entry.second);
  });
  update();
  return erased > 0;
}

Expected<Moved, Refusal> Holdings::end_inits(const std::string& pod) {
  Holdings next = *this;
  next.drop(pod, [](const Holding& holding) { return holding.part == PodPart::kInit; });
  return commit(std::move(next));
}

Expected<Moved, Refusal> Holdings::remove_pod(const std::string& pod) {
  Holdings next = *this;
  if (!next.drop(pod, [](const Holding&) { return true; })) {
    return unexpected(refused(Refusal::Reason::kUnknown));
  }
  return commit(std::move(next));
}

std::optional<std::string> Holdings::restore(std::map<std::string, Holding> holdings) {
  CpuSet exclusive;
  for (auto one = holdings.begin(); one != holdings.end(); ++one) {
    const Holding& holding = one->second;
    if (!holding.cpus.subset_of(machine_->cpus())) return one->first + ": holds an unknown CPU";
    if (holding.request.use != CpuUse::kExclusive) continue;
    if (holding.cpus.intersects(reserved_)) return one->first + ": holds a reserved CPU";
    for (auto other = std::next(one); other != holdings.end(); ++other) {
      if (!owned_by_both(holding, other->second)) continue;
      return one->first + " and " + other->first + " hold the same CPU";
    }
    exclusive |= holding.cpus;
  }
  holdings_ = std::move(holdings);
  exclusive_ = std::move(exclusive);
  return std::nullopt;
}

}  // namespace ka::policy::allocate
