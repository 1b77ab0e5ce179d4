// SPDX-License-Identifier: Apache-2.0
// Containers whose environment names claims on CPUs that are not theirs. A tenant can write it:
// they share their CPUs, and the attempt is reported.
#pragma once

#include <string>
#include <vector>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {

struct RefusedClaims {
  std::string sandbox;    ///< the pod's id
  std::string container;  ///< its id
  ClaimFault fault = ClaimFault::kNone;

  auto operator<=>(const RefusedClaims&) const = default;
};

/// Sorted. A container that has exited may outlive its claims, and is none.
std::vector<RefusedClaims> refused_claims(const Ledger& ledger);
/// Those of one pod; none where it is not known.
std::vector<RefusedClaims> refused_claims(const Ledger& ledger, const std::string& pod);

}  // namespace ka::policy::ledger
