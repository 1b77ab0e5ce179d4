// SPDX-License-Identifier: Apache-2.0
// The ledger's decisions: which container owns its CPUs.
#include "policy/ledger/ownership.hpp"

#include <algorithm>
#include <utility>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {
namespace {

/// An operator registered it, and its pod is not kubelet's.
bool is_by_hand(const PodRecord& pod, const ContainerRecord& container) {
  return container.source == Source::kApi && pod.pod_uid.empty();
}

/// kubelet updates no container that exited. Where its file gives others in place of the CPUs that
/// one ran on, as after kubelet lost its state, those are what stays reserved.
bool is_outdated(const ContainerFacts& container, const CpuSet& claimed) {
  return container.exited && !container.cpus.subset_of(claimed);
}

/// Of a sandbox whose mask alone is known: its pod owns all of a part of it.
bool owns_part(const CpuSet& owned, const CpuSet& part) {
  return !part.empty() && part.subset_of(owned);
}

}  // namespace

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::kOperator:
      return "operator";
    case Basis::kKubelet:
      return "kubelet";
    case Basis::kManaged:
      return "managed";
    case Basis::kDra:
      return "dra";
    case Basis::kPodResources:
      return "pod-resources";
    case Basis::kBefore:
      return "before-restart";
    case Basis::kQuota:
      return "quota";
    case Basis::kRequest:
      return "request";
    case Basis::kSet:
      return "set";
  }
  return {};
}

/// An operator's `exclusive` decides; then, for kubelet's pods, kubelet's state, whichever source
/// reported the container, and the claims that its environment names; then the decision from before
/// a restart; then the container's spec and disjointness: the very set of another pod's container
/// is a pool that they share. (A set that merely overlaps others' proves nothing: kubelet rewrites
/// those up to 10 s late.)
Ownership Ledger::ownership_of(const PodRecord& pod, const ContainerRecord& container) const {
  if (container.stated_exclusive) return {*container.stated_exclusive, Basis::kOperator};
  const bool by_hand = is_by_hand(pod, container);
  if (!by_hand) {
    const auto by_kubelet = ownership_by_kubelet(pod, container);
    if (by_kubelet && by_kubelet->exclusive) return *by_kubelet;
    if (const auto word = ownership_by_claims(container)) return *word;
    if (by_kubelet) return *by_kubelet;
    if (const auto word = ownership_by_resources(pod, container)) return *word;
  }
  if (container.exclusive_before) {
    return {*container.exclusive_before, Basis::kBefore, container.doubted_before};
  }
  // The driver gives out this node's CPUs: a quota as large as the pool that it leaves proves
  // nothing.
  if (!by_hand && lacks_claims() && !prepared_.claims().empty()) return {false, Basis::kDra};
  const CpuSet& cpus = container.facts.cpus;
  const bool is_own = by_hand || !(shared_with_another_pod(pod, cpus) || has_reserved(cpus));
  if (exclusive_by_quota(container.facts)) return {is_own, is_own ? Basis::kQuota : Basis::kSet};
  Ownership ownership = ownership_by_request(pod, container.facts, is_own);
  // An operator says `exclusive` where it is meant.
  ownership.in_doubt &= container.source != Source::kApi || ownership.exclusive;
  return ownership;
}

/// kubelet 1.33 and later lifts the quota of containers that own CPUs. `is_own`: no other pod has
/// the set.
Ownership Ledger::ownership_by_request(const PodRecord& pod, const ContainerFacts& container,
                                       bool is_own) const {
  const bool is_candidate = exclusive_by_request(container);
  const bool is_unknown = is_unexplained(container) && !has_last_pool(container.cpus);
  if (!is_candidate && !is_unknown) return {false, Basis::kSet};
  const bool alone = is_own && !shared_within(pod, container);
  const bool may_be_pool = has_rest(container.cpus) || has_last_pool(container.cpus);
  if (is_candidate && alone && !may_be_pool) return {true, Basis::kRequest, true};
  return {false, Basis::kSet, alone};
}

/// kubelet's reserved CPUs are no container's own (allocatableCPUs() in
/// pkg/kubelet/cm/cpumanager/policy_static.go leaves them out).
bool Ledger::has_reserved(const CpuSet& cpus) const {
  return assignments_.speak_of_cpus() && !cpus.subset_of(assignments_.seen().allocatable);
}

/// All that kubelet had left to give out when it was asked: the pool, where that has no reserved
/// CPUs, or the set of a container that got it since.
bool Ledger::has_rest(const CpuSet& cpus) const {
  const CpuSet& rest = assignments_.rest();
  return !rest.empty() && rest.subset_of(cpus);
}

/// All of the pool in kubelet's last state that could be read.
bool Ledger::has_last_pool(const CpuSet& cpus) const {
  const auto& pool = kubelet_.shared_pool;
  return kubelet_.outdated && pool && !pool->empty() && pool->subset_of(cpus);
}

/// Absent: not in kubelet's state.
std::optional<Ownership> Ledger::ownership_by_kubelet(const PodRecord& pod,
                                                      const ContainerRecord& container) const {
  if (!kubelet_.claims) return std::nullopt;
  const bool owns = container.source == Source::kCgroup
                        ? owns_part(claimed_by(pod), container.facts.cpus)
                        : is_claimed(pod, container.facts);
  if (!owns && kubelet_.outdated) return std::nullopt;
  return Ownership{owns, assigner_ == Source::kManaged ? Basis::kManaged : Basis::kKubelet};
}

/// Absent: its environment names no claims. One that names a claim which is not its own shares its
/// CPUs, whatever its quota is. Until the driver has reported, the decision from before a restart
/// holds.
std::optional<Ownership> Ledger::ownership_by_claims(const ContainerRecord& container) const {
  if (container.claims.empty()) return std::nullopt;
  if (!prepared_.is_reported() && container.exclusive_before) {
    return Ownership{*container.exclusive_before, Basis::kBefore, container.doubted_before};
  }
  const bool good = prepared_.examine(container.claims, container.facts.cpus) == ClaimFault::kNone;
  return Ownership{good, Basis::kDra};
}

/// Absent: PodResources does not speak of CPUs, not of this container, or of two pods of its name.
std::optional<Ownership> Ledger::ownership_by_resources(const PodRecord& pod,
                                                        const ContainerRecord& container) const {
  if (!assignments_.speak_of_cpus() || find_named(pod.pod_name) == nullptr) return std::nullopt;
  const ContainerFacts& facts = container.facts;
  if (container.source == Source::kCgroup) {
    if (assignments_.of(pod.pod_name).empty()) return std::nullopt;
    const CpuSet assigned = assignments_.cpus_of(pod.pod_name);
    return Ownership{owns_part(assigned, facts.cpus), Basis::kPodResources};
  }
  const Assignment* assigned = assignments_.find(pod.pod_name, facts.name);
  if (assigned == nullptr || facts.name.empty()) return std::nullopt;
  const bool owns = !assigned->cpus.empty() && !is_outdated(facts, assigned->cpus);
  return Ownership{owns, Basis::kPodResources};
}

const PodRecord* Ledger::find_named(const std::string& name) const {
  const auto found = index_.by_name.find(name);
  if (found == index_.by_name.end() || found->second.size() != 1) return nullptr;
  return &pods_.at(*found->second.begin());
}

/// Whether kubelet's file lists the container; one that exited, with the CPUs that it ran on.
bool Ledger::is_claimed(const PodRecord& pod, const ContainerFacts& container) const {
  using Key = std::pair<std::string_view, std::string_view>;
  const auto gives = [&](const Key& key) {
    const auto claims = std::ranges::equal_range(*kubelet_.claims, key, {}, [](const Claim& claim) {
      return Key(claim.pod_uid, claim.container);
    });
    return std::ranges::any_of(
        claims, [&](const Claim& claim) { return !is_outdated(container, claim.cpus); });
  };
  return (!pod.pod_uid.empty() && gives({pod.pod_uid, container.name})) ||
         gives({{}, container.id});
}

bool Ledger::shared_within(const PodRecord& pod, const ContainerFacts& container) const {
  return std::ranges::any_of(pod.containers, [&](const auto& entry) {
    const ContainerFacts& other = entry.second.facts;
    return other.id != container.id && !other.exited && other.cpus == container.cpus;
  });
}

bool Ledger::shared_with_another_pod(const PodRecord& pod, const CpuSet& cpus) const {
  const auto found = index_.users.find(cpus);
  if (found == index_.users.end()) return false;
  return found->second.size() > (found->second.contains(pod.id) ? 1 : 0);
}

bool exclusive_by_request(const ContainerFacts& container) {
  constexpr std::int64_t kSharesOfCpu = 1024;
  constexpr std::int64_t kMostShares = 262144;
  if (container.cpus.empty() || container.quota > 0) return false;
  return container.shares == std::min(container.cpus.size() * kSharesOfCpu, kMostShares);
}

bool is_unexplained(const ContainerFacts& container) {
  return container.quota <= 0 && container.shares == 0 && !container.cpus.empty();
}

bool exclusive_by_quota(const ContainerFacts& container) {
  if (container.cpus.empty() || container.period <= 0 || container.quota <= 0) return false;
  return container.quota % container.period == 0 &&
         container.quota / container.period == container.cpus.size();
}

}  // namespace ka::policy::ledger
