// SPDX-License-Identifier: Apache-2.0
// CFS quotas: cpu.max of cgroup version 2, cpu.cfs_quota_us of version 1. A thread that has a CPU
// of its own is stopped by one all the same. Only those of version 2 are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/process.hpp"
#include "base/result.hpp"

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

inline constexpr const char* kCpuMaxFile = "cpu.max";
/// What it says where there is no quota (Documentation/admin-guide/cgroup-v2.rst).
inline constexpr std::string_view kNoCpuMax = "max";

/// Whether a text of cpu.max is a quota: "200000 100000", not "max 100000".
bool is_cpu_quota(std::string_view text);
/// Whether systemd, of which the quota `wanted` is requested, writes `text` to cpu.max: it rounds,
/// and has a period of its own (systemd's src/core/cgroup.c, cgroup_apply_unified_cpu_quota()).
bool is_rounded_quota(std::string_view text, std::string_view wanted);
/// Writes cpu.max of a cgroup: a text that it had, or kNoCpuMax. Where systemd has the cgroup as a
/// unit of its own, systemd is told first (its socket: see set_cpu_quota()), which would undo what
/// is written behind its back; as it rounds, the file is written all the same.
base::Result<void> write_cpu_max(const base::Clock& clock, const std::filesystem::path& systemd,
                                 const std::filesystem::path& directory, const std::string& text);

}  // namespace ka::host
