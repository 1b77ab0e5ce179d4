// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/contests.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ka::policy::ledger {
namespace {

const std::string& first_known(const std::string& preferred, const std::string& other) {
  return preferred.empty() ? other : preferred;
}

/// The owners of CPUs.
class ByCpu {
 public:
  void add(const Contender& contender, const CpuSet& cpus) {
    for (const int cpu : cpus) contenders_[cpu].insert(contender);
  }

  std::vector<Contest> contests() const {
    std::map<std::set<Contender>, CpuSet> cpus;
    for (const auto& [cpu, contenders] : contenders_) cpus[contenders].add(cpu);
    std::vector<Contest> list;
    for (const auto& [contenders, contested] : cpus) {
      list.push_back({contested, {contenders.begin(), contenders.end()}});
    }
    return list;
  }

 private:
  std::map<int, std::set<Contender>> contenders_;
};

/// Known to run: what is known from before a restart, or from a source that does not report exits,
/// may have ended.
bool is_running(const ContainerRecord& container) {
  return !container.facts.exited && !container.exclusive_before &&
         traits_of(container.source).reports_exits;
}

Contender contender(const PodRecord& pod, const ContainerFacts& container) {
  return {.sandbox = pod.id,
          .pod = first_known(pod.pod_name, first_known(pod.pod_uid, pod.id)),
          .container = first_known(container.name, container.id),
          .is_vm = pod.vmm.has_value(),
          .owner = first_known(pod.pod_uid, pod.id)};
}

/// kubelet gave CPUs to the pod, not only to its containers.
bool owns_as_a_whole(const Ledger& ledger, const PodRecord& pod) {
  const auto is_whole = [&](const Claim& claim) {
    return claim.container.empty() && claim.pod_uid == pod.pod_uid;
  };
  const auto& claims = ledger.kubelet().claims;
  if (claims && !pod.pod_uid.empty() && std::ranges::any_of(*claims, is_whole)) return true;
  return ledger.lacks_claims() && ledger.assignments().find(pod.pod_name, {}) != nullptr;
}

/// kubelet gives what is left of such a pod's CPUs to each container that shares it, and to an init
/// container all but what sidecars own (KEP-5526): one set within another is no contest there.
bool overlap_partly(const CpuSet& one, const CpuSet& other) {
  return !one.subset_of(other) && !other.subset_of(one);
}

/// CPUs that two running containers own which `are_rivals` says of their sets.
template <typename AreRivals>
CpuSet overlaps_within(const PodRecord& pod, AreRivals are_rivals) {
  std::vector<const CpuSet*> sets;
  CpuSet overlaps;
  for (const auto& [id, container] : pod.containers) {
    if (!container.facts.exclusive || !is_running(container)) continue;
    const CpuSet& cpus = container.facts.cpus;
    for (const CpuSet* other : sets) {
      if (are_rivals(cpus, *other)) overlaps |= cpus & *other;
    }
    sets.push_back(&cpus);
  }
  return overlaps;
}

void add_containers(const Ledger& ledger, ByCpu& cpus) {
  for (const auto& [id, pod] : ledger.pods()) {
    const CpuSet within =
        owns_as_a_whole(ledger, pod) ? overlaps_within(pod, overlap_partly) : contested_within(pod);
    for (const auto& [container_id, container] : pod.containers) {
      if (!container.facts.exclusive) continue;
      CpuSet contested = ledger.contested();
      if (is_running(container)) contested |= within;
      cpus.add(contender(pod, container.facts), container.facts.cpus & contested);
    }
  }
}

bool is_same(const Contender& one, const Contender& other) {
  return one.owner == other.owner && one.container == other.container;
}

bool has(const Contest& contest, const Contender& contender) {
  return std::ranges::any_of(contest.contenders,
                             [&](const Contender& one) { return is_same(one, contender); });
}

}  // namespace

std::vector<Contest> contests_of(const Ledger& ledger) {
  ByCpu cpus;
  add_containers(ledger, cpus);
  for (const Claim& claim : ledger.unreported_claims()) {
    const std::string& pod = first_known(claim.pod_uid, claim.container);
    cpus.add(
        {.sandbox = {}, .pod = pod, .container = claim.container, .is_vm = false, .owner = pod},
        claim.cpus & ledger.contested());
  }
  for (const PreparedClaim& claim : ledger.unheld_claims()) {
    cpus.add({.sandbox = {},
              .pod = claim.uid,
              .container = {},
              .owner = claim_owner(claim.uid),
              .is_claim = true},
             claim.cpus & ledger.contested());
  }
  return cpus.contests();
}

CpuSet contested_within(const PodRecord& pod) {
  return overlaps_within(pod, [](const CpuSet&, const CpuSet&) { return true; });
}

CpuSet cpus_of(const std::vector<Contest>& contests) {
  CpuSet cpus;
  for (const Contest& contest : contests) cpus |= contest.cpus;
  return cpus;
}

bool has_new_contender(const Contest& contest, const std::vector<Contest>& before) {
  CpuSet known;
  for (const Contest& old : before) {
    const auto was_there = [&](const Contender& one) { return has(old, one); };
    if (std::ranges::all_of(contest.contenders, was_there)) known |= old.cpus;
  }
  return !contest.cpus.subset_of(known);
}

std::vector<Contest> rivals_of(const std::vector<Contest>& contests, const PodRecord& pod,
                               const std::string& container) {
  const auto found = pod.containers.find(container);
  if (found == pod.containers.end()) return {};
  const Contender self = contender(pod, found->second.facts);
  std::vector<Contest> rivals;
  for (Contest contest : contests) {
    if (std::erase_if(contest.contenders, [&](const auto& one) { return is_same(one, self); }) > 0)
      rivals.push_back(std::move(contest));
  }
  return rivals;
}

}  // namespace ka::policy::ledger
