// SPDX-License-Identifier: Apache-2.0
// The books as a whole: what a runtime has, what a file had, another machine.
#include <algorithm>
#include <set>
#include <utility>

#include "policy/allocate/allocate.hpp"
#include "policy/managed/books.hpp"

namespace ka::policy::managed {
namespace {

using allocate::Holding;
using allocate::Machine;
using Held = std::map<std::string, Holding>;

/// Drops CPUs that do not exist, or that a container before it owns. A sharer that lost some is
/// bound to all that is shared, until there is room for it.
void put_right(Held& holdings, const CpuSet& online) {
  CpuSet shared = online;
  for (auto& [id, holding] : holdings) {
    if (holding.request.use != CpuUse::kExclusive) continue;
    holding.cpus &= shared;
    holding.promised &= holding.cpus;
    shared -= holding.cpus;
  }
  for (auto& [id, holding] : holdings) {
    if (holding.request.use == CpuUse::kExclusive) continue;
    holding.cpus &= shared;
    if (holding.cpus.size() < holding.request.cpus) holding.cpus = shared;
    holding.promised &= holding.cpus;
  }
}

bool is_alone(const Listed& listed, const std::vector<Listed>& all) {
  return std::ranges::none_of(all, [&](const Listed& other) {
    return other.candidate.id != listed.candidate.id && other.cpus.intersects(listed.cpus);
  });
}

}  // namespace

void Books::synchronize(const std::vector<Listed>& all, const std::set<std::string>& sandboxes) {
  std::set<std::string> listed;
  for (const Listed& one : all) listed.insert(one.candidate.id);
  std::vector<std::string> gone;
  for (const auto& [id, entry] : entries_) {
    const bool is_there =
        entry.ended ? sandboxes.contains(entry.about.sandbox) : listed.contains(id);
    if (!is_there) gone.push_back(id);
  }
  for (const std::string& id : gone) erase(id);
  for (const Listed& one : all) {
    const Candidate& candidate = one.candidate;
    const auto known = entries_.find(candidate.id);
    if (known == entries_.end()) {
      adopt(one, all);
      continue;
    }
    known->second.about.cgroup = candidate.cgroup;
    if (!growth_held_ && (known->second.about.quota != candidate.quota ||
                          known->second.about.period != candidate.period)) {
      resize(candidate.id, candidate.quota, candidate.period);
    }
  }
  reconcile();
}

void Books::adopt(const Listed& listed) {
  if (entries_.contains(listed.candidate.id)) return;
  adopt(listed, {listed});
  reconcile();
}

void Books::adopt(const Listed& listed, const std::vector<Listed>& all) {
  const Candidate& candidate = listed.candidate;
  Entry entry{.about = candidate, .infra = classify(candidate, rules_).infra, .adopted = true};
  if (!entry.infra && owns_obviously(listed, all) &&
      holdings_.add(candidate.id, {.use = CpuUse::kExclusive, .cpus = listed.cpus.size()},
                    listed.cpus)) {
    if (holdings_.cpus_of(candidate.id) == listed.cpus) {
      entry.use = CpuUse::kExclusive;
    } else {
      release(candidate.id);
    }
  }
  entries_[candidate.id] = std::move(entry);
}

/// It runs on exactly as many CPUs as its limit has, which are free, and no other container runs
/// there: kubelet's static policy, or we, gave them to it.
bool Books::owns_obviously(const Listed& listed, const std::vector<Listed>& all) const {
  const auto cpus = whole_cpus(listed.candidate.quota, listed.candidate.period);
  return !growth_held_ && cpus && *cpus == listed.cpus.size() &&
         listed.cpus.subset_of(available()) && is_alone(listed, all);
}

std::vector<Saved> Books::save() const {
  std::vector<Saved> saved;
  for (const auto& [id, entry] : entries_) {
    const Holding* held = holding(id);
    saved.push_back(held == nullptr ? Saved{.entry = entry}
                                    : Saved{entry, held->request.cpus, held->cpus, held->promised,
                                            held->request.numa_affinity.value_or(NodeSet{})});
  }
  return saved;
}

void Books::restore(const std::vector<Saved>& saved) {
  Held holdings;
  for (const auto& [entry, cpus_requested, cpus, promised, nodes] : saved) {
    const std::string& id = entry.about.id;
    if (!entries_.emplace(id, entry).second) continue;
    if (entry.use == CpuUse::kNone || entry.ended) continue;
    holdings[id] = {
        .request = {.use = entry.use, .cpus = cpus_requested}, .cpus = cpus, .promised = promised};
    if (!nodes.empty()) holdings[id].request.numa_affinity = nodes;
  }
  rebuild(std::move(holdings));
}

void Books::change_machine(const Topology& topology) {
  topology_ = std::make_shared<Topology>(topology);
  outside_ = find_outside();
  make_machine();
  rebuild(holdings_.all());
}

void Books::set_outside(const CpuSet& cpus) {
  given_outside_ = cpus;
  const CpuSet outside = find_outside();
  if (outside == outside_) return;
  outside_ = outside;
  make_machine();
  rebuild(holdings_.all());
}

CpuSet Books::find_outside() const {
  const CpuSet all = topology_->online() - rules_.infra;
  CpuSet outside = (given_outside_ & all) - holdings_.exclusive() - rules_.reserved;
  const int left = (all - outside - holdings_.exclusive()).size();
  const int missing = std::max(rules_.min_shared, 1) - left;
  if (missing > 0) outside -= pack(Machine(*topology_), outside, missing);
  return outside;
}

void Books::set_foreign(const CpuSet& cpus) {
  if (cpus == foreign_) return;
  foreign_ = cpus;
  reconcile();
}

void Books::rebuild(Held holdings) {
  put_right(holdings, machine_->cpus());
  reopen(std::move(holdings));
  reconcile();
}

void Books::reconcile() {
  for (bool changed = true; changed;) {
    if (find_kept_shared(holdings_.exclusive()) != kept_shared_) reopen(holdings_.all());
    const Held before = holdings_.all();
    refill();
    keep_pool();
    changed = holdings_.all() != before;
  }
  widen_memory();
}

/// Containers with fewer CPUs than they were given get others, as far as there are any.
void Books::refill() {
  const Held before = holdings_.all();
  for (const auto& [id, held] : before) {
    const bool exclusive = held.request.use == CpuUse::kExclusive;
    const int missing = held.request.cpus - held.cpus.size();
    if (missing == 0 || (missing > 0 && !exclusive)) continue;
    std::optional<Problem>& problem = entries_.at(id).problem;
    const bool waits = growth_held_ && missing > 0;
    if (!waits && holdings_.resize(id, held.request.cpus)) {
      if (!problem || problem->kind != Problem::Kind::kOffline) continue;
      problem.reset();
      resize_holding(entries_.at(id));  // its limit may have changed meanwhile
    } else if (held.cpus.empty()) {
      demote(id, missing);
    } else {
      problem = {Problem::Kind::kOffline, held.request.cpus, held.cpus.size()};
    }
  }
}

/// All that is left belongs to single containers: the last of them gives its CPUs back.
void Books::keep_pool() {
  while (shared_pool().empty() && !holdings_.all().empty()) {
    const auto& [id, held] = *holdings_.all().rbegin();
    demote(std::string(id), held.request.cpus);
  }
}

void Books::demote(const std::string& id, int cpus) {
  release(id);
  Entry& entry = entries_.at(id);
  entry.use = CpuUse::kNone;
  entry.problem = {Problem::Kind::kOffline, cpus, 0};
}

}  // namespace ka::policy::managed
