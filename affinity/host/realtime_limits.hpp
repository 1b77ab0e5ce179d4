// SPDX-License-Identifier: Apache-2.0
// What the kernel leaves to others on CPUs with real-time threads that never sleep.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "policy/facts/id_set.hpp"

namespace ka::host {

/// So much of each period.
struct CpuShare {
  std::chrono::microseconds time, period;

  bool operator==(const CpuShare&) const = default;
};

struct RealtimeLimits {
  /// Real-time threads are stopped for it, whether others wait or not (sched_rt_runtime_us; kernels
  /// before 6.12). Absent: they are not.
  std::optional<CpuShare> throttled;
  /// Others that wait get it (the fair server; kernels from 6.12), on the CPU that leaves least.
  /// Absent: nothing, or it cannot be read.
  std::optional<CpuShare> fair_server;
  policy::CpuSet nothing = {};  ///< CPUs on which others get nothing, or not known to get any
  policy::CpuSet unseen = {};   ///< those whose fair server cannot be read: it is on by default

  bool operator==(const RealtimeLimits&) const = default;
};

/// Of these CPUs.
RealtimeLimits read_realtime_limits(const std::filesystem::path& proc,
                                    const std::filesystem::path& debugfs,
                                    const policy::CpuSet& cpus);

}  // namespace ka::host
