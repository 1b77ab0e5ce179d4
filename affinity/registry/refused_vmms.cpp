// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/refused_vmms.hpp"

#include <utility>
#include <variant>

namespace ka::registry {

using policy::ledger::Event;
using policy::ledger::PodGone;
using policy::ledger::PodSeen;

bool RefusedVmms::refuse(const std::string& pod, const std::string& text) {
  return std::exchange(texts_[pod], text) != text;
}

void RefusedVmms::keep_claim(policy::ledger::Source source, const PodSeen& seen) {
  claims_[seen.id] = {source, {.id = seen.id, .vmm = seen.vmm}};
}

void RefusedVmms::update(const Event& event) {
  const auto* seen = std::get_if<PodSeen>(&event.body);
  const auto* gone = std::get_if<PodGone>(&event.body);
  if (seen != nullptr && seen->vmm) forget(seen->id);
  if (gone != nullptr) forget(gone->id);
}

void RefusedVmms::vmm_ended(const policy::ProcessId& vmm) {
  for (const auto& [pod, claim] : std::map(claims_)) {
    if (claim.seen.vmm == vmm) forget(pod);
  }
}

std::vector<Event> RefusedVmms::remove_due(const std::function<bool(const PodSeen&)>& is_anothers) {
  std::vector<Event> due;
  for (const auto& [pod, claim] : std::map(claims_)) {
    if (is_anothers(claim.seen)) continue;
    due.push_back({claim.source, claim.seen});
    forget(pod);
  }
  return due;
}

void RefusedVmms::forget(const std::string& pod) {
  texts_.erase(pod);
  claims_.erase(pod);
}

}  // namespace ka::registry
