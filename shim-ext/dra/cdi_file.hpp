// SPDX-License-Identifier: Apache-2.0
// The CDI files that dra-driver-cpu writes when it prepares a ResourceClaim, one for each claim
// (pkg/driver/cdi.go: kind dra.k8s.io/cpu, one device "claim-UID" with one environment entry). The
// same for individual and grouped devices, and for CPUs that an external allocator chose.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::dra {

/// The largest file that is read; the driver's have 300 bytes.
inline constexpr std::size_t kMaxCdiFile = std::size_t{64} << 10;

/// The name of a file of the driver's, by GenerateTransientSpecName() of the CDI library:
/// "dra.k8s.io-cpu_claim-UID.json". Empty: another's. Else the claim's uid.
std::string_view claim_of_name(std::string_view name);

/// The claim that the file for `uid` prepares. kInvalid: not such a file, or one for another claim.
base::Result<policy::ledger::PreparedClaim> parse_cdi_file(std::string_view text,
                                                           std::string_view uid);

}  // namespace ka::dra
