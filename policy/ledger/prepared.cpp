// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/prepared.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::ledger {
namespace {

constexpr std::string_view kOwnerPrefix = "claim-";

}  // namespace

bool Prepared::replace(const PreparedSeen& seen) {
  if (std::exchange(is_reported_, true) && claims_ == seen.claims) return false;
  claims_ = seen.claims;
  return true;
}

const PreparedClaim* Prepared::find(std::string_view uid) const {
  const auto found = std::ranges::lower_bound(claims_, uid, {}, &PreparedClaim::uid);
  return found == claims_.end() || found->uid != uid ? nullptr : &*found;
}

const PreparedClaim* Prepared::find_owner(std::string_view owner) const {
  if (!owner.starts_with(kOwnerPrefix)) return nullptr;
  return find(owner.substr(kOwnerPrefix.size()));
}

ClaimFault Prepared::examine(const std::vector<PreparedClaim>& named, const CpuSet& cpus) const {
  CpuSet all;
  for (const PreparedClaim& claim : named) {
    const PreparedClaim* prepared = find(claim.uid);
    if (prepared == nullptr) return ClaimFault::kNotPrepared;
    if (prepared->cpus != claim.cpus) return ClaimFault::kOtherCpus;
    all |= claim.cpus;
  }
  return all == cpus && !all.empty() ? ClaimFault::kNone : ClaimFault::kNotApplied;
}

std::string claim_owner(const std::string& uid) { return std::string(kOwnerPrefix) + uid; }

}  // namespace ka::policy::ledger
