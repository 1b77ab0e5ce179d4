// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/refused.hpp"

namespace ka::policy::ledger {

namespace {

void add(const Ledger& ledger, const PodRecord& pod, std::vector<RefusedClaims>& refused) {
  for (const auto& [id, container] : pod.containers) {
    if (container.claims.empty() || container.facts.exited) continue;
    if (!ledger.prepared().is_reported() && container.exclusive_before) continue;  // not known yet
    const ClaimFault fault = ledger.prepared().examine(container.claims, container.facts.cpus);
    if (fault != ClaimFault::kNone) refused.push_back({pod.id, id, fault});
  }
}

}  // namespace

std::vector<RefusedClaims> refused_claims(const Ledger& ledger) {
  std::vector<RefusedClaims> refused;
  for (const auto& [id, pod] : ledger.pods()) add(ledger, pod, refused);
  return refused;
}

std::vector<RefusedClaims> refused_claims(const Ledger& ledger, const std::string& id) {
  std::vector<RefusedClaims> refused;
  if (const PodRecord* pod = ledger.find(id)) add(ledger, *pod, refused);
  return refused;
}

}  // namespace ka::policy::ledger
