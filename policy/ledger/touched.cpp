// SPDX-License-Identifier: Apache-2.0
// What one event means for other pods: who may own something else by it, and who does.
#include <algorithm>
#include <utility>
#include <variant>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {
namespace {

/// kubelet's first format has no pods, and claims are sorted.
bool names_containers_by_id(const std::vector<Claim>& claims) {
  return !claims.empty() && claims.front().pod_uid.empty();
}

template <typename Key>
void leave(std::map<Key, std::set<std::string>>& index, const Key& key, const std::string& id) {
  const auto found = index.find(key);
  if (found == index.end()) return;
  found->second.erase(id);
  if (found->second.empty()) index.erase(found);
}

bool repeats(const std::string& known, const std::string& seen) {
  return seen.empty() || seen == known;
}

bool repeats(const ContainerFacts& known, const ContainerSpec& seen) {
  ContainerFacts now = known;
  merge(seen, now);
  return now == known;
}

}  // namespace

bool Ledger::fold_and_index(const Event& event, const std::string& pod, Touched& touched) {
  const auto fold_body = [&] {
    return std::visit([&](const auto& body) { return fold(body, event.source); }, event.body);
  };
  if (keeps_index(event.body)) {
    const bool changed = fold_body();
    if (changed) touch(pods_.at(pod), touched);
    return changed;
  }
  remove_from_index(pod, touched);
  const bool changed = fold_body();
  add_to_index(pod, touched);
  return changed;
}

/// True: the event repeats all that the index has of its pod. Most events of a runtime do.
bool Ledger::keeps_index(const EventBody& body) const {
  if (const auto* seen = std::get_if<PodSeen>(&body)) {
    const PodRecord* pod = find(seen->id);
    return pod != nullptr && repeats(pod->pod_uid, seen->pod_uid) &&
           repeats(pod->pod_name, seen->pod_name);
  }
  const auto* seen = std::get_if<ContainerSeen>(&body);
  const PodRecord* pod = seen == nullptr || seen->begins ? nullptr : find(seen->sandbox);
  if (pod == nullptr) return false;
  const auto found = pod->containers.find(seen->id);
  if (found == pod->containers.end()) return false;
  const ContainerRecord& known = found->second;
  return repeats(known.facts, seen->spec) && (!seen->claims || *seen->claims == known.claims);
}

void Ledger::add_to_index(const std::string& id, Touched& touched) {
  const auto found = pods_.find(id);
  if (found == pods_.end()) return;
  const PodRecord& pod = found->second;
  index_.by_owner[pod.owner()].insert(id);
  if (!pod.pod_name.empty()) index_.by_name[pod.pod_name].insert(id);
  for (const auto& [container_id, container] : pod.containers) {
    index_.by_container[container_id].insert(id);
    const ContainerFacts& facts = container.facts;
    for (const PreparedClaim& claim : container.claims) index_.by_claim[claim.uid].insert(id);
    if (!facts.exited) index_.users[facts.cpus].insert(id);
    if (exclusive_by_quota(facts) || exclusive_by_request(facts) || is_unexplained(facts))
      index_.claimants[facts.cpus].insert(id);
  }
  touch(pod, touched);
}

void Ledger::remove_from_index(const std::string& id, Touched& touched) {
  const auto found = pods_.find(id);
  if (found == pods_.end()) return;
  const PodRecord& pod = found->second;
  leave(index_.by_owner, pod.owner(), id);
  leave(index_.by_name, pod.pod_name, id);
  for (const auto& [container_id, container] : pod.containers) {
    leave(index_.by_container, container_id, id);
    for (const PreparedClaim& claim : container.claims) leave(index_.by_claim, claim.uid, id);
    leave(index_.users, container.facts.cpus, id);
    leave(index_.claimants, container.facts.cpus, id);
  }
  touch(pod, touched);
}

/// To be called when the index is as it is to be: who has a container decides who owns its claim.
void Ledger::touch(const PodRecord& pod, Touched& touched) const {
  touched.owners.insert(pod.owner());
  if (!assignments_.of(pod.pod_name).empty()) touched.names.insert(pod.pod_name);
  const bool by_id = kubelet_.claims && names_containers_by_id(*kubelet_.claims);
  for (const auto& [id, container] : pod.containers) {
    if (by_id) touch_holders(id, touched);
    for (const PreparedClaim& claim : container.claims) {
      touched.owners.insert(claim_owner(claim.uid));
    }
    if (!container.facts.exited) touched.sets.insert(container.facts.cpus);
  }
}

/// Possible owners of what kubelet's first format assigns to a container by its id alone.
void Ledger::touch_holders(const std::string& container, Touched& touched) const {
  touched.owners.insert(container);
  const auto found = index_.by_container.find(container);
  if (found == index_.by_container.end()) return;
  for (const std::string& id : found->second) touched.owners.insert(pods_.at(id).owner());
}

/// Owners of claims that came or went; all, where kubelet's state starts or stops to count.
void Ledger::touch_claims(const KubeletSeen& before, Touched& touched) const {
  static const std::vector<Claim> kNone;
  const auto& old = before.claims ? *before.claims : kNone;
  const auto& now = kubelet_.claims ? *kubelet_.claims : kNone;
  std::vector<Claim> changed;
  std::ranges::set_symmetric_difference(old, now, std::back_inserter(changed));
  for (const Claim& claim : changed) {
    touched.owners.insert(owner_of(claim));
    if (claim.pod_uid.empty()) touch_holders(claim.container, touched);
  }
  const bool counted = before.claims && !before.outdated;
  const bool counts = kubelet_.claims && !kubelet_.outdated;
  const bool same_pool = before.shared_pool == kubelet_.shared_pool;
  const bool same_evidence =
      before.outdated == kubelet_.outdated && (!kubelet_.outdated || same_pool);
  if (counted != counts || !same_evidence) touch_all(touched);
}

/// Claims that came, went or changed, and pods that name them; all pods, where the first one comes
/// or the last one goes.
void Ledger::touch_prepared(const Prepared& before, Touched& touched) const {
  std::vector<PreparedClaim> changed;
  std::ranges::set_symmetric_difference(before.claims(), prepared_.claims(),
                                        std::back_inserter(changed));
  for (const PreparedClaim& claim : changed) {
    touched.owners.insert(claim_owner(claim.uid));
    const auto found = index_.by_claim.find(claim.uid);
    if (found == index_.by_claim.end()) continue;
    for (const std::string& id : found->second) touched.owners.insert(pods_.at(id).owner());
  }
  const bool is_first = !before.is_reported();
  if (is_first || before.claims().empty() != prepared_.claims().empty()) touch_all(touched);
}

void Ledger::touch_all(Touched& touched) const {
  for (const auto& [owner, pods] : index_.by_owner) touched.owners.insert(owner);
  touched.names.merge(assignments_.pods());
}

/// Pods with a name may own what it is assigned; without one, the name itself is the owner.
void Ledger::add_owners_by_name(Touched& touched) const {
  for (const std::string& name : touched.names) {
    touched.owners.insert(name);
    const auto found = index_.by_name.find(name);
    if (found == index_.by_name.end()) continue;
    for (const std::string& id : found->second) touched.owners.insert(pods_.at(id).owner());
  }
}

/// Decides again about the containers that an event may have changed, and updates the owners.
void Ledger::finish(Touched touched, Change& change) {
  add_owners_by_name(touched);
  divide_masks(touched, change);
  for (const std::string& id : pods_of(touched)) {
    PodRecord& pod = pods_.at(id);
    const Decided decided = update_ownership(pod);
    if (!decided.owners && !decided.doubts) continue;
    change.owners |= decided.owners;
    change.exclusive_map = true;
    change.ownership_changed.insert(id);
    touch(pod, touched);
  }
  for (const std::string& owner : touched.owners) {
    const Owners::Moved moved = owners_.give(owner, owned_by(owner));
    const Owners::Moved doubted = doubts_.give(owner, doubted_by(owner));
    change.owners |= moved.any;
    change.exclusive_map |= doubted.any;
    change.taken |= moved.taken;
  }
  change.exclusive_map |= change.owners;
}

/// A set that one pod uses, or two, may have been used by two or by one before: whether one who
/// claims it owns it is decided again. With three or more users it was shared and still is.
std::set<std::string> Ledger::pods_of(const Touched& touched) const {
  constexpr std::size_t kMayBeNew = 2;
  std::set<std::string> pods;
  for (const std::string& owner : touched.owners) {
    const auto found = index_.by_owner.find(owner);
    if (found != index_.by_owner.end()) pods.insert(found->second.begin(), found->second.end());
  }
  for (const CpuSet& set : touched.sets) {
    const auto users = index_.users.find(set);
    if (users != index_.users.end() && users->second.size() > kMayBeNew) continue;
    const auto found = index_.claimants.find(set);
    if (found != index_.claimants.end()) pods.insert(found->second.begin(), found->second.end());
  }
  return pods;
}

Ledger::Decided Ledger::update_ownership(PodRecord& pod) const {
  Decided changed;
  for (auto& [id, container] : pod.containers) {
    const Ownership now = ownership_of(pod, container);
    changed.owners |= std::exchange(container.facts.exclusive, now.exclusive) != now.exclusive;
    changed.doubts |= std::exchange(container.in_doubt, now.in_doubt) != now.in_doubt;
  }
  return changed;
}

/// Whether others are kept off its CPUs though it is not taken for an owner. kubelet's pool in its
/// file has the reserved CPUs, which no container owns; what PodResources has left has not.
bool Ledger::withholds(const ContainerRecord& container) const {
  const ContainerFacts& facts = container.facts;
  if (!container.in_doubt || facts.exclusive || facts.exited) return false;
  return !has_last_pool(facts.cpus);
}

CpuSet Ledger::doubted_by(const std::string& owner) const {
  CpuSet cpus;
  const auto pods = index_.by_owner.find(owner);
  if (pods == index_.by_owner.end()) return cpus;
  for (const std::string& id : pods->second) {
    for (const auto& [container_id, container] : pods_.at(id).containers) {
      if (withholds(container)) cpus |= container.facts.cpus;
    }
  }
  return cpus;
}

CpuSet Ledger::owned_by(const std::string& owner) const {
  CpuSet cpus;
  if (const auto pods = index_.by_owner.find(owner); pods != index_.by_owner.end()) {
    for (const std::string& id : pods->second) cpus |= pods_.at(id).exclusive_cpus();
  }
  if (const PreparedClaim* claim = prepared_.find_owner(owner)) cpus |= unheld(*claim);
  if (lacks_claims()) cpus |= assigned_to(owner);
  if (!kubelet_.claims) return cpus;
  // kubelet's first format has no pod: such claims sort first.
  for (const std::string& uid : {std::string(), owner}) {
    for (const Claim& claim :
         std::ranges::equal_range(*kubelet_.claims, uid, {}, &Claim::pod_uid)) {
      if (owner_of(claim) == owner) cpus |= claim.cpus;
    }
  }
  return cpus;
}

/// By PodResources. A name without a pod is that of a pod admitted and not yet reported;
/// one that two bear is ambiguous.
CpuSet Ledger::assigned_to(const std::string& owner) const {
  if (!assignments_.speak_of_cpus()) return {};
  CpuSet cpus;
  if (!index_.by_name.contains(owner)) cpus = assignments_.cpus_of(owner);
  const auto pods = index_.by_owner.find(owner);
  if (pods == index_.by_owner.end()) return cpus;
  for (const std::string& id : pods->second) {
    const std::string& name = pods_.at(id).pod_name;
    if (find_named(name) != nullptr) cpus |= assignments_.cpus_of(name);
  }
  return cpus;
}

/// What is left of a claim to nobody in particular.
CpuSet Ledger::unheld(const PreparedClaim& claim) const {
  CpuSet cpus = claim.cpus;
  const auto found = index_.by_claim.find(claim.uid);
  if (found == index_.by_claim.end()) return cpus;
  for (const std::string& id : found->second) cpus -= pods_.at(id).exclusive_cpus();
  return cpus;
}

std::string Ledger::owner_of(const Claim& claim) const {
  if (!claim.pod_uid.empty()) return claim.pod_uid;
  const auto found = index_.by_container.find(claim.container);
  return found == index_.by_container.end() ? claim.container
                                            : pods_.at(*found->second.begin()).owner();
}

}  // namespace ka::policy::ledger
