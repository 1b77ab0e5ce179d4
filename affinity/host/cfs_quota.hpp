// SPDX-License-Identifier: Apache-2.0
// CFS quotas: cpu.max of cgroup version 2, cpu.cfs_quota_us of version 1. A thread that has a CPU
// of its own is stopped by one all the same. They are read, never written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/process.hpp"

namespace ka::host {

/// The quota of one cgroup.
struct CfsQuota {
  std::filesystem::path directory;
  std::int64_t quota = 0;       ///< microseconds of CPU time a period
  std::int64_t period = 0;      ///< microseconds
  std::uint64_t periods = 0;    ///< in which something ran, since the cgroup was made
  std::uint64_t throttled = 0;  ///< of these: the quota was used up, and all of it stopped
};

/// Every quota that holds for a thread: of its own cgroup first, then of those above. `cgroups` is
/// where cgroups are mounted (/sys/fs/cgroup): version 2, or a directory of version 1's
/// hierarchies. What cannot be read is no quota.
std::vector<CfsQuota> quotas_of(const base::ProcFs& proc, const std::filesystem::path& cgroups,
                                int tid);

}  // namespace ka::host
