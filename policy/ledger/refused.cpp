// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/refused.hpp"

namespace ka::policy::ledger {

std::vector<RefusedClaims> refused_claims(const Ledger& ledger) {
  std::vector<RefusedClaims> refused;
  for (const auto& [id, pod] : ledger.pods()) {
    for (const auto& [container_id, container] : pod.containers) {
      if (container.claims.empty() || container.facts.exited) continue;
      const ClaimFault fault = ledger.prepared().examine(container.claims, container.facts.cpus);
      if (fault != ClaimFault::kNone) refused.push_back({id, container_id, fault});
    }
  }
  return refused;
}

}  // namespace ka::policy::ledger
