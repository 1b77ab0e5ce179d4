// SPDX-License-Identifier: Apache-2.0
// Sandboxes of which the mask alone is known: kubelet's word divides it into what the pod owns and
// what it shares with others.
#include <algorithm>
#include <string>
#include <utility>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {
namespace {

const std::string kMask(kSandboxMask), kRest(kSandboxRest);

/// The containers that stand for a pod's mask.
std::pair<ContainerFacts, ContainerFacts> parts_of(const PodRecord& pod) {
  const auto facts = [&](const std::string& id) {
    const auto found = pod.containers.find(id);
    return found == pod.containers.end() ? ContainerFacts{} : found->second.facts;
  };
  return {facts(kMask), facts(kRest)};
}

/// `owned`: of `mask`, what the pod owns.
void divide_mask(PodRecord& pod, const CpuSet& mask, const CpuSet& owned) {
  ContainerRecord& first = pod.containers.at(kMask);
  first.facts.cpus = owned.empty() ? mask : owned;
  first.facts.exclusive = !owned.empty();
  if (first.facts.cpus == mask) {
    pod.containers.erase(kRest);
    return;
  }
  ContainerRecord& rest = pod.containers[kRest];
  rest.source = first.source;
  rest.exclusive_before.reset();
  rest.facts.id = kRest;
  rest.facts.cpus = mask - owned;
  rest.facts.exclusive = false;
}

}  // namespace

/// What the pod had of the mask stays its own until finish() divides it anew: who owns what is
/// known when the pod is in the index again.
bool Ledger::fold(const ContainerSeen& event, Source source) {
  if (source != Source::kCgroup || event.id != kMask) return fold_container(event, source);
  PodRecord& pod = record(event.sandbox, source);
  const auto before = parts_of(pod);
  const auto known = pod.containers.find(kMask);
  const bool is_new = known == pod.containers.end() || known->second.exclusive_before;
  fold_container(event, source);
  const CpuSet mask = pod.containers.at(kMask).facts.cpus;
  divide_mask(pod, mask, before.first.exclusive ? before.first.cpus & mask : CpuSet{});
  return is_new || parts_of(pod) != before;
}

/// Of pods about which an event may say something new. What a state file restored stays as it was
/// until the mask is reported again.
void Ledger::divide_masks(Touched& touched, Change& change) {
  for (const std::string& id : pods_of(touched)) {
    PodRecord& pod = pods_.at(id);
    const auto found = pod.containers.find(kMask);
    if (found == pod.containers.end() || found->second.source != Source::kCgroup) continue;
    if (found->second.exclusive_before) continue;
    const auto [first, rest] = parts_of(pod);
    const CpuSet mask = first.cpus | rest.cpus;
    const CpuSet owned = owned_of_mask(pod, mask);
    if (first.cpus == (owned.empty() ? mask : owned)) continue;
    remove_from_index(id, touched);
    divide_mask(pod, mask, owned);
    add_to_index(id, touched);
    change.exclusive_map = true;
    change.ownership_changed.insert(id);
  }
}

/// By kubelet's state; where that is missing or outdated and has none, by PodResources.
CpuSet Ledger::owned_of_mask(const PodRecord& pod, const CpuSet& mask) const {
  CpuSet owned = claimed_by(pod) & mask;
  if (!owned.empty() || !lacks_claims() || !assignments_.speak_of_cpus()) return owned;
  if (find_named(pod.pod_name) == nullptr) return owned;
  return assignments_.cpus_of(pod.pod_name) & mask;
}

/// By kubelet's state, all containers of the pod together.
CpuSet Ledger::claimed_by(const PodRecord& pod) const {
  CpuSet cpus;
  if (!kubelet_.claims || pod.pod_uid.empty()) return cpus;
  for (const Claim& claim :
       std::ranges::equal_range(*kubelet_.claims, pod.pod_uid, {}, &Claim::pod_uid)) {
    cpus |= claim.cpus;
  }
  return cpus;
}

}  // namespace ka::policy::ledger
