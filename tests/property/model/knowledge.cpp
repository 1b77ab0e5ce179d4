// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/knowledge.hpp"

#include <algorithm>
#include <array>

namespace ka::model {
namespace {

using policy::CpuSet;
using policy::ledger::Source;

/// kubelet's rule: a quota of whole CPUs, as many as it may use.
bool has_whole_cpus(const policy::ContainerFacts& facts) {
  return facts.period > 0 && facts.quota == facts.period * facts.cpus.size() && facts.quota > 0;
}

}  // namespace

CpuSet KnownPod::cpus() const {
  CpuSet all;
  for (const auto& [id, container] : containers) {
    if (!container.facts.exited) all |= container.facts.cpus;
  }
  return all;
}

void Knowledge::record(const policy::ledger::Event& event) {
  if (const auto* seen = std::get_if<policy::ledger::PodSeen>(&event.body)) {
    KnownPod& pod = pods_[seen->id];
    if (!seen->pod_uid.empty()) pod.uid = seen->pod_uid;
    if (!seen->pod_name.empty()) pod.name = seen->pod_name;
    if (seen->vmm) pod.vmm = seen->vmm;
    pod.unsure = pod.is_late = false;
  } else if (const auto* container = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
    reported_again_.insert(container->sandbox);
    KnownContainer& known = pods_[container->sandbox].containers[container->id];
    known.owned_before.reset();
    known.facts.id = container->id;
    if (!container->spec.name.empty()) known.facts.name = container->spec.name;
    known.facts.cpus = container->spec.cpus.value_or(known.facts.cpus);
    known.facts.quota = container->spec.quota.value_or(known.facts.quota);
    known.facts.period = container->spec.period.value_or(known.facts.period);
    known.facts.exited = container->spec.exited.value_or(known.facts.exited);
    if (container->exclusive) known.exclusive = container->exclusive;
    if (container->claims) known.named = *container->claims;
  } else if (const auto* exited = std::get_if<policy::ledger::ContainerExited>(&event.body)) {
    const auto pod = pods_.find(exited->sandbox);
    if (pod == pods_.end()) return;
    const auto found = pod->second.containers.find(exited->container);
    if (found != pod->second.containers.end()) found->second.facts.exited = true;
  } else if (const auto* gone = std::get_if<policy::ledger::ContainerGone>(&event.body)) {
    const auto pod = pods_.find(gone->sandbox);
    if (pod != pods_.end()) pod->second.containers.erase(gone->container);
  } else if (const auto* pod_gone = std::get_if<policy::ledger::PodGone>(&event.body)) {
    forget(pod_gone->id);
  } else if (const auto* resources = std::get_if<policy::ledger::ResourcesSeen>(&event.body)) {
    resources_ = *resources;
    perhaps_assigned_ = {};
    synced(Source::kPodResources);
  } else if (const auto* prepared = std::get_if<policy::ledger::PreparedSeen>(&event.body)) {
    prepared_ = prepared->claims;
    synced(Source::kDra);
  } else if (const auto* kubelet = std::get_if<policy::ledger::KubeletSeen>(&event.body)) {
    claims_ = kubelet->claims;
    outdated_ = kubelet->outdated;
    if (!outdated_) synced(Source::kKubelet);
  }
}

void Knowledge::synced(Source source) {
  silent_.erase(source);
  reported_.insert(source);
}

void Knowledge::time_is_up() { expired_ = true; }

void Knowledge::dismiss() { dismissed_ = true; }

void Knowledge::restart(const std::set<std::string>& damaged,
                        const std::set<std::string>& still_lost) {
  // Then what was lost has been made up for, also for the next daemon.
  const bool was_known = owners_are_known();
  for (auto& [id, pod] : pods_) {
    for (auto& [name, container] : pod.containers) container.owned_before = owns(pod, container);
  }
  for (const std::string& pod : reported_again_) lost_.erase(pod);  // unless it is not on disk yet
  if (!was_known) lost_.insert(still_lost.begin(), still_lost.end());
  for (const std::string& pod : damaged) pods_.erase(pod);
  lost_.insert(damaged.begin(), damaged.end());
  claims_.reset();
  resources_ = {};
  perhaps_assigned_ = {};
  prepared_.reset();
  silent_ = sources_;
  reported_.clear();
  reported_again_.clear();
  expired_ = known_ = dismissed_ = false;
}

/// What PodResources assigned to it holds no more: a later pod of its name is another.
void Knowledge::forget(const std::string& id) {
  const auto pod = pods_.find(id);
  if (pod == pods_.end()) return;
  std::erase_if(resources_.assignments,
                [&](const auto& one) { return one.pod == pod->second.name; });
  pods_.erase(pod);
}

void Knowledge::end(const std::string& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  if (found->second.is_late) {
    found->second.unsure = true;
    found->second.vmm.reset();
    return;
  }
  for (const auto& one : resources_.assignments) {
    if (one.pod == found->second.name) perhaps_assigned_ |= one.cpus;
  }
  forget(pod);
}

void Knowledge::set_late(const std::string& pod) { pods_.at(pod).is_late = true; }

void Knowledge::doubt(const std::string& pod) {
  const auto found = pods_.find(pod);
  if (found != pods_.end()) found->second.unsure = true;
}

bool Knowledge::owners_are_known() {
  if (known_) return true;
  if (!silent_.empty() && !expired_) return false;
  std::set<std::string> missing = lost_;
  for (const std::string& pod : reported_again_) missing.erase(pod);
  static constexpr std::array kKnowAll = {Source::kNri, Source::kKubelet, Source::kPodResources};
  const bool knows_all =
      std::ranges::any_of(kKnowAll, [this](Source source) { return reported_.contains(source); });
  // A sandbox that was added by hand is on nobody's list.
  const bool all_of_runtime =
      std::ranges::all_of(missing, [](const std::string& pod) { return pod.size() == 64; });
  known_ = dismissed_ || missing.empty() || (silent_.empty() && knows_all && all_of_runtime);
  if (known_) lost_.clear();
  return known_;
}

CpuSet Knowledge::foreign_to(const std::string& id) const {
  const auto own = pods_.find(id);
  const std::string uid = own == pods_.end() ? "" : own->second.uid;
  CpuSet foreign;
  for (const policy::ledger::Claim& claim :
       claims_.value_or(std::vector<policy::ledger::Claim>{})) {
    if (claim.pod_uid != uid) foreign |= claim.cpus;
  }
  foreign |= assigned_to_others(id) | unheld();
  for (const auto& [other, pod] : pods_) {
    if (other == id || pod.unsure) continue;
    for (const auto& [name, container] : pod.containers) {
      if (owns(pod, container)) foreign |= container.facts.cpus;
    }
  }
  return foreign;
}

CpuSet Knowledge::perhaps_foreign_to(const std::string& id) const {
  Knowledge certain = *this;
  for (auto& [other, pod] : certain.pods_) pod.unsure = false;
  return certain.foreign_to(id);
}

CpuSet Knowledge::perhaps_kept_from(const std::string& id) const {
  return perhaps_foreign_to(id) | perhaps_assigned_;
}

CpuSet Knowledge::owned_by(const KnownPod& pod) const {
  CpuSet own;
  for (const auto& [id, container] : pod.containers) {
    if (!container.facts.exited && owns(pod, container)) own |= container.facts.cpus;
  }
  return own;
}

const KnownPod* Knowledge::find(const std::string& id) const {
  const auto found = pods_.find(id);
  return found == pods_.end() || found->second.unsure ? nullptr : &found->second;
}

bool Knowledge::owns(const KnownPod& pod, const KnownContainer& container) const {
  if (container.exclusive) return *container.exclusive;
  if (claims_ && is_listed(pod, container.facts)) return true;
  if (!container.named.empty() && (prepared_ || !container.owned_before)) {
    return is_prepared(container);
  }
  if (claims_ && !outdated_) return false;
  if (const auto* assigned = find_assigned(pod, container.facts)) {
    return !assigned->cpus.empty() &&
           (!container.facts.exited || container.facts.cpus.subset_of(assigned->cpus));
  }
  if (container.owned_before) return *container.owned_before;
  if (prepared_ && !prepared_->empty()) return false;
  return has_whole_cpus(container.facts) && !is_shared(pod, container.facts.cpus) &&
         is_allocatable(container.facts.cpus);
}

const policy::ledger::Assignment* Knowledge::find_assigned(
    const KnownPod& pod, const policy::ContainerFacts& container) const {
  const auto found = std::ranges::find_if(resources_.assignments, [&](const auto& one) {
    return one.pod == pod.name && one.container == container.name;
  });
  return found == resources_.assignments.end() ? nullptr : &*found;
}

/// Each claim that it names is there as it is named, and it runs on just these CPUs.
bool Knowledge::is_prepared(const KnownContainer& container) const {
  CpuSet all;
  for (const auto& claim : container.named) {
    if (!prepared_ || std::ranges::find(*prepared_, claim) == prepared_->end()) return false;
    all |= claim.cpus;
  }
  return all == container.facts.cpus;
}

/// kubelet gives nobody its reserved CPUs.
bool Knowledge::is_allocatable(const CpuSet& cpus) const {
  return resources_.allocatable.empty() || cpus.subset_of(resources_.allocatable);
}

CpuSet Knowledge::assigned_to_others(const std::string& id) const {
  CpuSet cpus;
  for (const auto& one : resources_.assignments) {
    const auto pod =
        std::ranges::find(pods_, one.pod, [](const auto& entry) { return entry.second.name; });
    const bool is_others = pod == pods_.end() || (pod->first != id && !pod->second.unsure);
    if (is_others) cpus |= one.cpus;
  }
  return cpus;
}

/// CPUs of claims that no container has yet, or has any more.
CpuSet Knowledge::unheld() const {
  CpuSet cpus;
  if (!prepared_) return cpus;
  for (const auto& claim : *prepared_) cpus |= claim.cpus;
  for (const auto& [id, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (!container.named.empty() && owns(pod, container)) cpus -= container.facts.cpus;
    }
  }
  return cpus;
}

/// One that exited keeps what it ran on, also where kubelet by now lists it with other CPUs.
bool Knowledge::is_listed(const KnownPod& pod, const policy::ContainerFacts& container) const {
  return std::ranges::any_of(*claims_, [&](const policy::ledger::Claim& claim) {
    if (pod.uid.empty() || claim.pod_uid != pod.uid || claim.container != container.name) {
      return false;
    }
    return !container.exited || container.cpus.subset_of(claim.cpus);
  });
}

/// Another pod uses the very same CPUs.
bool Knowledge::is_shared(const KnownPod& pod, const CpuSet& cpus) const {
  return std::ranges::any_of(pods_, [&](const auto& entry) {
    return &entry.second != &pod &&
           std::ranges::any_of(entry.second.containers, [&](const auto& container) {
             return !container.second.facts.exited && container.second.facts.cpus == cpus;
           });
  });
}

}  // namespace ka::model
