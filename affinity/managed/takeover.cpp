// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/takeover.hpp"

#include <utility>
#include <variant>

#include "affinity/managed/candidate.hpp"
#include "base/text.hpp"
#include "policy/facts/limits.hpp"

namespace ka::managed {

using base::ErrorCode;
using base::Result;
using policy::managed::Listed;

Result<policy::managed::Trial> Takeover::trial(const policy::Topology& topology) const {
  if (!synchronized_) {
    return base::fail(ErrorCode::kConflict, "the runtime has not reported its containers (NRI)");
  }
  auto books = policy::managed::Books::open(topology, rules_);
  if (!books) return base::fail(ErrorCode::kConflict, "[affinity.managed]: " + books.error());
  std::vector<Listed> all;
  for (const auto& [id, one] : listed_) all.push_back(one);
  return policy::managed::try_takeover(*std::move(books), all);
}

void Takeover::keep(const nri::Described& container) {
  const std::string& id = container.candidate.id;
  if (!base::is_id(id) || !base::is_id(container.candidate.sandbox)) return;
  if (!listed_.contains(id) && listed_.size() >= policy::kMaxNodeContainers) return;
  listed_[id] = {candidate_of(container), container.cpus};
}

Result<void> Takeover::create(const nri::Described& container) {
  keep(container);
  return {};
}

bool Takeover::adopt(const nri::Described& container) {
  keep(container);
  return false;
}

Result<void> Takeover::resize(const std::string& container, std::int64_t quota,
                              std::int64_t period) {
  const auto known = listed_.find(container);
  if (known == listed_.end()) return {};
  auto& candidate = known->second.candidate;
  if (quota != 0) candidate.quota = quota;
  if (period != 0) candidate.period = period;
  return {};
}

void Takeover::end(const std::string& container) { listed_.erase(container); }

void Takeover::synchronize(const std::vector<nri::Described>& all, const std::set<std::string>&) {
  listed_.clear();
  for (const nri::Described& one : all) keep(one);
  synchronized_ = true;
}

void Takeover::forget(const std::vector<policy::ledger::Event>& events) {
  for (const policy::ledger::Event& event : events) {
    if (const auto* gone = std::get_if<policy::ledger::ContainerGone>(&event.body)) {
      listed_.erase(gone->container);
    }
    if (const auto* pod = std::get_if<policy::ledger::PodGone>(&event.body)) {
      std::erase_if(listed_,
                    [&](const auto& one) { return one.second.candidate.sandbox == pod->id; });
    }
  }
}

/// kubelet changes sets of containers that run.
void Takeover::complete(std::vector<policy::ledger::Event>& events) {
  for (const policy::ledger::Event& event : events) {
    const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body);
    if (seen == nullptr || !seen->spec.cpus) continue;
    const auto known = listed_.find(seen->id);
    if (known != listed_.end()) known->second.cpus = *seen->spec.cpus;
  }
}

}  // namespace ka::managed
