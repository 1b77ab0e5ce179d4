// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/release.hpp"

#include <utility>
#include <variant>

namespace ka::managed {

using base::Result;

Release::Release(AllocationFile file, const std::vector<policy::managed::Saved>& saved,
                 policy::CpuSet cpus, policy::NodeSet mems)
    : file_(std::move(file)), cpus_(std::move(cpus)), mems_(std::move(mems)) {
  for (const auto& [entry, cpus_requested, had, promised, nodes] : saved) {
    if (entry.ended) continue;
    if (!entry.mems.empty()) mem_bound_.insert(entry.about.id);
    if (!cpus_.empty() || !entry.mems.empty()) bound_.insert(entry.about.id);
  }
}

/// The runtime has got the answer: nothing is left of the mode.
void Release::finish() {
  if (!answered_ || std::exchange(finished_, true)) return;
  bound_.clear();
  file_.remove();
}

Result<void> Release::create(const nri::Described&) {
  finish();
  return {};
}

Result<void> Release::resize(const std::string&, std::int64_t, std::int64_t) {
  finish();
  return {};
}

void Release::end(const std::string&) { finish(); }

bool Release::adopt(const nri::Described&) {
  finish();
  return false;
}

void Release::forget(const std::vector<policy::ledger::Event>&) { finish(); }
void Release::apply() {}
void Release::apply_at_once() {}

/// Again after a connection that ended before the answer was certain to have arrived.
void Release::synchronize(const std::vector<nri::Described>& all, const std::set<std::string>&) {
  answered_ = false;
  released_.clear();
  for (const nri::Described& one : all) {
    if (bound_.contains(one.candidate.id)) released_.insert(one.candidate.id);
  }
  unsent_ = released_;
}

/// Those that the runtime does not have are gone.
nri::Updates Release::updates() {
  nri::Updates updates;
  for (const std::string& id : std::exchange(unsent_, {})) {
    updates.push_back({id, cpus_, mem_bound_.contains(id) ? mems_ : policy::NodeSet{}});
  }
  answered_ = true;
  return updates;
}

/// The runtime reported them as they were before the answer.
void Release::complete(std::vector<policy::ledger::Event>& events) {
  for (policy::ledger::Event& event : events) {
    auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body);
    if (seen == nullptr || released_.erase(seen->id) == 0 || cpus_.empty()) continue;
    seen->spec.cpus = cpus_;
  }
}

}  // namespace ka::managed
