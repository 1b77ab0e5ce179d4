// SPDX-License-Identifier: Apache-2.0
// The books as a whole: what a runtime has, what a file had, another machine.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "policy/managed/books.hpp"

namespace ka::policy::managed {
namespace {

using allocate::Holding;
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

}  // namespace

void Books::synchronize(const std::vector<Listed>& all) {
  std::set<std::string> listed;
  for (const Listed& one : all) listed.insert(one.candidate.id);
  std::vector<std::string> gone;
  for (const auto& [id, entry] : entries_) {
    if (entry.ended || !listed.contains(id)) gone.push_back(id);
  }
  for (const std::string& id : gone) erase(id);
  for (const Listed& one : all) {
    const auto& [id, quota, period] =
        std::tie(one.candidate.id, one.candidate.quota, one.candidate.period);
    const auto known = entries_.find(id);
    if (known == entries_.end()) {
      adopt(one, all);
    } else if (known->second.about.quota != quota || known->second.about.period != period) {
      resize(id, quota, period);
    }
  }
  tidy();
}

void Books::adopt(const Listed& listed, const std::vector<Listed>& all) {
  const Candidate& candidate = listed.candidate;
  Entry entry{.about = candidate, .infra = classify(candidate, rules_).infra, .adopted = true};
  if (!entry.infra && owns_obviously(listed, all) &&
      !place(candidate.id, CpuUse::kExclusive, listed.cpus.size(), listed.cpus)) {
    if (holdings_.cpus_of(candidate.id) == listed.cpus) {
      entry.use = CpuUse::kExclusive;
    } else {
      release(candidate.id);
    }
  }
  entries_[candidate.id] = std::move(entry);
}

/// It runs on exactly as many CPUs as its limit has, and no other container runs there: kubelet's
/// static policy, or we, gave them to it.
bool Books::owns_obviously(const Listed& listed, const std::vector<Listed>& all) const {
  const auto cpus = whole_cpus(listed.candidate.quota, listed.candidate.period);
  if (!cpus || *cpus != listed.cpus.size() || !listed.cpus.subset_of(available())) return false;
  return std::ranges::none_of(all, [&](const Listed& other) {
    return other.candidate.id != listed.candidate.id && other.cpus.intersects(listed.cpus);
  });
}

std::vector<Saved> Books::save() const {
  std::vector<Saved> saved;
  for (const auto& [id, entry] : entries_) {
    const Holding* held = holding(id);
    saved.push_back(held == nullptr ? Saved{.entry = entry}
                                    : Saved{entry, held->request.cpus, held->cpus, held->promised});
  }
  return saved;
}

void Books::restore(const std::vector<Saved>& saved) {
  Held holdings;
  for (const auto& [entry, cpus_requested, cpus, promised] : saved) {
    const std::string& id = entry.about.id;
    entries_[id] = entry;
    if (entry.use == CpuUse::kNone || entry.ended) continue;
    holdings[id] = {
        .request = {.use = entry.use, .cpus = cpus_requested}, .cpus = cpus, .promised = promised};
  }
  rebuild(std::move(holdings));
}

void Books::change_machine(const Topology& topology) {
  set_machine(topology);
  rebuild(holdings_.all());
}

void Books::set_foreign(const CpuSet& cpus) {
  foreign_ = cpus;
  tidy();
}

void Books::rebuild(Held holdings) {
  put_right(holdings, machine_->cpus());
  reopen(std::move(holdings));
  tidy();
}

/// What follows from any change of who owns what; a restart finds the same. It ends: containers
/// only grow, or lose their class.
void Books::tidy() {
  for (bool changed = true; changed;) {
    if (find_kept_shared(holdings_.exclusive()) != kept_shared_) reopen(holdings_.all());
    const Held before = holdings_.all();
    refill();
    keep_pool();
    changed = holdings_.all() != before;
  }
}

/// Containers with fewer CPUs than they were given get others, as far as there are any.
void Books::refill() {
  const Held before = holdings_.all();
  for (const auto& [id, held] : before) {
    const bool exclusive = held.request.use == CpuUse::kExclusive;
    const int missing = held.request.cpus - held.cpus.size();
    if (missing == 0 || (missing > 0 && !exclusive)) continue;
    std::optional<Problem>& problem = entries_.at(id).problem;
    if (holdings_.resize(id, held.request.cpus)) {
      if (problem && problem->kind == Problem::Kind::kOffline) problem.reset();
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
