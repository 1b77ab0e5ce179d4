// SPDX-License-Identifier: Apache-2.0
// The ledger's rules written down the slow way: all pods looked at for each answer.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/ledger/ledger.hpp"

namespace ka::tests {

using policy::ContainerFacts;
using policy::CpuSet;
using policy::ledger::Assignment;
using policy::ledger::Claim;
using policy::ledger::ContainerRecord;
using policy::ledger::KubeletSeen;
using policy::ledger::Ledger;
using policy::ledger::PodRecord;
using policy::ledger::PreparedClaim;
using policy::ledger::Source;

/// Docs: docs/understand/sources.md, "kubelet's state"; and Ledger::ownership_of.
struct Slow {
  const Ledger& ledger;
  const KubeletSeen& kubelet;

  static std::string key(const PodRecord& pod) {
    return pod.pod_uid.empty() ? pod.id : pod.pod_uid;
  }

  const std::vector<Assignment>& assignments() const {
    return ledger.assignments().seen().assignments;
  }

  bool speaks() const { return !ledger.assignments().seen().allocatable.empty(); }

  int bearers(const std::string& name) const {
    return static_cast<int>(std::ranges::count_if(
        ledger.pods(), [&](const auto& entry) { return entry.second.pod_name == name; }));
  }

  /// Absent: PodResources does not say.
  std::optional<bool> assigned(const PodRecord& pod, const ContainerRecord& container) const {
    if (!speaks() || pod.pod_name.empty() || bearers(pod.pod_name) != 1) return std::nullopt;
    CpuSet all;
    bool is_listed = false;
    const Assignment* own = nullptr;
    for (const Assignment& one : assignments()) {
      if (one.pod != pod.pod_name) continue;
      is_listed = true;
      all |= one.cpus;
      const bool named = !container.facts.name.empty() && one.container == container.facts.name;
      if (named && own == nullptr) own = &one;
    }
    const CpuSet& cpus = container.facts.cpus;
    if (container.source == Source::kCgroup) {
      return is_listed ? std::optional(!cpus.empty() && cpus.subset_of(all)) : std::nullopt;
    }
    if (own == nullptr) return std::nullopt;
    return !own->cpus.empty() && !(container.facts.exited && !cpus.subset_of(own->cpus));
  }

  bool is_pool(const PodRecord& pod, const CpuSet& cpus) const {
    for (const auto& [id, other] : ledger.pods()) {
      for (const auto& [container_id, container] : other.containers) {
        if (id != pod.id && !container.facts.exited && container.facts.cpus == cpus) return true;
      }
    }
    return false;
  }

  bool claimed(const PodRecord& pod, const ContainerFacts& container) const {
    return std::ranges::any_of(*kubelet.claims, [&](const Claim& claim) {
      if (container.exited && !container.cpus.subset_of(claim.cpus)) return false;
      return claim.pod_uid.empty()
                 ? claim.container == container.id
                 : claim.pod_uid == pod.pod_uid && claim.container == container.name;
    });
  }

  bool owns_all(const PodRecord& pod, const CpuSet& cpus) const {
    CpuSet claims;
    for (const Claim& claim : *kubelet.claims) {
      if (claim.pod_uid == pod.pod_uid) claims |= claim.cpus;
    }
    return !pod.pod_uid.empty() && !cpus.empty() && cpus.subset_of(claims);
  }

  CpuSet owned_of(const PodRecord& pod, const CpuSet& mask) const {
    CpuSet owned;
    for (const Claim& claim : kubelet.claims.value_or(std::vector<Claim>{})) {
      if (!pod.pod_uid.empty() && claim.pod_uid == pod.pod_uid) owned |= claim.cpus;
    }
    const bool is_current = kubelet.claims && !kubelet.outdated;
    if (is_current || owned.intersects(mask) || !speaks()) return owned;
    if (pod.pod_name.empty() || bearers(pod.pod_name) != 1) return {};
    for (const Assignment& one : assignments()) {
      if (one.pod == pod.pod_name) owned |= one.cpus;
    }
    return owned;
  }

  /// Of a mask in two parts one is its pod's own, and nothing of the other; one that is whole is
  /// all its own or has nothing of it.
  bool divides_mask(const PodRecord& pod) const {
    const auto mask = pod.containers.find(std::string(policy::kSandboxMask));
    const auto rest = pod.containers.find(std::string(policy::kSandboxRest));
    if (mask == pod.containers.end()) return rest == pod.containers.end();
    const CpuSet& cpus = mask->second.facts.cpus;
    const CpuSet shared = rest == pod.containers.end() ? CpuSet{} : rest->second.facts.cpus;
    const CpuSet owned = owned_of(pod, cpus | shared);
    if (rest == pod.containers.end()) return cpus.subset_of(owned) || !cpus.intersects(owned);
    return !cpus.empty() && cpus.subset_of(owned) && !shared.empty() && !shared.intersects(owned);
  }

  const std::vector<PreparedClaim>& prepared() const { return ledger.prepared().claims(); }

  bool holds_claims(const ContainerRecord& container) const {
    CpuSet all;
    for (const PreparedClaim& claim : container.claims) {
      if (std::ranges::count(prepared(), claim) != 1) return false;
      all |= claim.cpus;
    }
    return !all.empty() && all == container.facts.cpus;
  }

  /// Of its reserved CPUs kubelet gives none to a container.
  bool has_reserved(const CpuSet& cpus) const {
    return speaks() && !(cpus - ledger.assignments().seen().allocatable).empty();
  }

  bool has_last_pool(const CpuSet& cpus) const {
    if (!kubelet.outdated || !kubelet.shared_pool) return false;
    return !kubelet.shared_pool->empty() && (*kubelet.shared_pool - cpus).empty();
  }

  bool may_be_pool(const CpuSet& cpus) const {
    CpuSet rest = ledger.assignments().seen().allocatable;
    for (const Assignment& one : assignments()) rest -= one.cpus;
    return (!rest.empty() && (rest - cpus).empty()) || has_last_pool(cpus);
  }

  struct Verdict {
    bool owns = false, in_doubt = false;
  };

  Verdict ownership_of(const PodRecord& pod, const ContainerRecord& container) const {
    if (const auto word = decided(pod, container)) return {*word, false};
    const ContainerFacts& facts = container.facts;
    const bool by_hand = is_by_hand(pod, container);
    const bool by_api = container.source == Source::kApi;
    const bool is_foreign = !by_hand && (is_pool(pod, facts.cpus) || has_reserved(facts.cpus));
    if (policy::ledger::exclusive_by_quota(facts)) return {!is_foreign, false};
    if (facts.cpus.empty() || facts.quota > 0) return {};
    if (is_foreign || !is_alone_within(pod, facts)) return {};
    if (!policy::ledger::exclusive_by_request(facts)) {
      return {false, facts.shares == 0 && !by_api && !has_last_pool(facts.cpus)};
    }
    const bool owns = !may_be_pool(facts.cpus);
    return {owns, owns || !by_api};
  }

  static bool is_by_hand(const PodRecord& pod, const ContainerRecord& container) {
    return container.source == Source::kApi && pod.pod_uid.empty();
  }

  /// By what is not the container's spec.
  std::optional<bool> decided(const PodRecord& pod, const ContainerRecord& container) const {
    if (container.stated_exclusive) return *container.stated_exclusive;
    const bool by_hand = is_by_hand(pod, container);
    if (kubelet.claims && !by_hand) {
      const bool owns = container.source == Source::kCgroup ? owns_all(pod, container.facts.cpus)
                                                            : claimed(pod, container.facts);
      if (owns) return true;
      if (container.claims.empty() && !kubelet.outdated) return false;
    }
    if (!by_hand && !container.claims.empty()) return holds_claims(container);
    if (const auto word = by_hand ? std::nullopt : assigned(pod, container)) return *word;
    const bool by_driver = !prepared().empty() && (!kubelet.claims || kubelet.outdated);
    if (by_driver && !by_hand) return false;
    return std::nullopt;
  }

  bool is_alone_within(const PodRecord& pod, const ContainerFacts& container) const {
    return std::ranges::none_of(pod.containers, [&](const auto& entry) {
      const ContainerFacts& other = entry.second.facts;
      return other.id != container.id && !other.exited && other.cpus == container.cpus;
    });
  }

  std::string owner(const Claim& claim) const {
    if (!claim.pod_uid.empty()) return claim.pod_uid;
    for (const auto& [id, pod] : ledger.pods()) {
      if (pod.containers.contains(claim.container)) return key(pod);
    }
    return claim.container;
  }

  std::map<std::string, CpuSet> owners() const {
    std::map<std::string, CpuSet> all;
    for (const auto& [id, pod] : ledger.pods()) all[key(pod)] |= pod.exclusive_cpus();
    if (!kubelet.claims || kubelet.outdated) add_assignments(all);
    add_prepared(all);
    if (!kubelet.claims) return all;
    for (const Claim& claim : *kubelet.claims) all[owner(claim)] |= claim.cpus;
    return all;
  }

  /// Whoever names a claim and owns CPUs holds them of it; the rest has an owner of its own.
  void add_prepared(std::map<std::string, CpuSet>& all) const {
    for (PreparedClaim claim : prepared()) {
      for (const auto& [id, pod] : ledger.pods()) {
        const bool names = std::ranges::any_of(pod.containers, [&](const auto& entry) {
          const auto& named = entry.second.claims;
          return std::ranges::count(named, claim.uid, &PreparedClaim::uid) > 0;
        });
        if (names) claim.cpus -= pod.exclusive_cpus();
      }
      all["claim " + claim.uid] |= claim.cpus;
    }
  }

  void add_assignments(std::map<std::string, CpuSet>& all) const {
    if (!speaks()) return;
    for (const Assignment& one : assignments()) {
      if (bearers(one.pod) == 0) all[one.pod] |= one.cpus;
      if (bearers(one.pod) != 1) continue;
      for (const auto& [id, pod] : ledger.pods()) {
        if (pod.pod_name == one.pod) all[key(pod)] |= one.cpus;
      }
    }
  }

  /// It may own its CPUs, or does: an exited one, and one with kubelet's last pool, keep nobody
  /// off.
  bool withholds(const PodRecord& pod, const ContainerRecord& container) const {
    const Verdict verdict = ownership_of(pod, container);
    if (!verdict.in_doubt || verdict.owns) return verdict.in_doubt;
    return !container.facts.exited && !has_last_pool(container.facts.cpus);
  }

  std::map<std::string, CpuSet> doubts() const {
    std::map<std::string, CpuSet> all;
    for (const auto& [id, pod] : ledger.pods()) {
      for (const auto& [container_id, container] : pod.containers) {
        const bool counts = withholds(pod, container) && !ownership_of(pod, container).owns;
        if (counts) all[key(pod)] |= container.facts.cpus;
      }
    }
    return all;
  }

  bool has_all(const PodRecord& pod, const CpuSet& online) const {
    return (online - doubts()[key(pod)]).empty();
  }

  /// CPUs that a container of another pod may own, and nobody owns.
  CpuSet doubted_to_others(const PodRecord& self, const CpuSet& online) const {
    CpuSet doubted;
    for (const auto& [owner, cpus] : doubts()) {
      if (owner != key(self) && !(online - cpus).empty()) doubted |= cpus;
    }
    for (const auto& [owner, cpus] : owners()) doubted -= cpus;
    return doubted;
  }

  CpuSet foreign_to(const PodRecord& pod) const {
    CpuSet others;
    for (const auto& [owner, cpus] : owners()) {
      if (owner != key(pod)) others |= cpus;
    }
    return others;
  }
};

}  // namespace ka::tests
