// SPDX-License-Identifier: Apache-2.0
// Claims on CPUs that dra-driver-cpu has prepared, and what a container's environment is worth
// against them. (Driver: pkg/driver/dra_hooks.go and nri_hooks.go of
// kubernetes-sigs/dra-driver-cpu.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/ledger/event.hpp"

namespace ka::policy::ledger {

/// What is wrong with the claims that a container's environment names.
enum class ClaimFault {
  kNone,         ///< nothing: the container owns its CPUs
  kNotPrepared,  ///< no such claim is prepared
  kOtherCpus,    ///< the claim is prepared with other CPUs
  kNotApplied,   ///< the container's cpuset is not that of its claims: the driver did not set it
};

class Prepared {
 public:
  /// Takes a report in place of the last. False: it is unchanged. The first one never is.
  bool replace(const PreparedSeen& seen);

  /// Without a report nothing is known of any claim.
  bool is_reported() const { return is_reported_; }
  /// Sorted.
  const std::vector<PreparedClaim>& claims() const { return claims_; }
  const PreparedClaim* find(std::string_view uid) const;
  /// By claim_owner().
  const PreparedClaim* find_owner(std::string_view owner) const;

  /// The first fault of what a container with the cpuset `cpus` names. A tenant can copy another
  /// pod's entry, so that the container has exactly these CPUs by its runtime counts too.
  ClaimFault examine(const std::vector<PreparedClaim>& named, const CpuSet& cpus) const;

 private:
  std::vector<PreparedClaim> claims_;
  bool is_reported_ = false;
};

/// Whose a prepared claim's CPUs are while no container owns them: "claim-UID", its CDI device.
std::string claim_owner(const std::string& uid);

}  // namespace ka::policy::ledger
