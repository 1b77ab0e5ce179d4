// SPDX-License-Identifier: Apache-2.0
// How dra-driver-cpu names a claim's CPUs, in a container's environment and in the CDI file that
// puts it there: DRA_CPUSET_<uid of the ResourceClaim>=<CPU list> (pkg/driver/cdi.go,
// nri_hooks.go).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "policy/ledger/event.hpp"

namespace ka::watch {

/// Entries of one environment that are looked at: those of a pod's claims are far fewer.
inline constexpr std::size_t kMaxClaimEntries = 256;

/// Absent: the entry names no claim. One whose list is malformed has no CPUs.
std::optional<policy::ledger::PreparedClaim> parse_claim_entry(std::string_view entry);

}  // namespace ka::watch
