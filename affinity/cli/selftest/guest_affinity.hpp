// SPDX-License-Identifier: Apache-2.0
// Where the self-test's container may run in its guest: by what the guest's kernel tells a program
// in it, and on the host by KVM. Pure. Neither the daemon nor an agent of ours has a part in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/selftest/finding.hpp"
#include "affinity/cli/selftest/reader.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::selftest {

/// Programs that print what parse_guest_affinity() reads: the one that is mounted into the
/// container, then those that an image may have.
std::vector<std::vector<std::string>> guest_affinity_commands();

struct GuestAffinity {
  policy::GuestCpuSet allowed;            ///< of the container's first process
  std::map<int, std::uint64_t> apic_ids;  ///< of the CPUs that are online in the guest, by number
};

/// /proc/1/status and /proc/cpuinfo (x86), one after the other. kInvalid: they are not.
base::Result<GuestAffinity> parse_guest_affinity(std::string_view text);

/// Whether the container may run on the vCPUs that have CPUs of their own, `own`, and on no other.
Finding check_guest(const GuestAffinity& affinity, const Reading& reading,
                    const policy::CpuSet& own);

/// It could not be read.
Finding guest_not_seen(const std::string& reason);

}  // namespace ka::cli::selftest
