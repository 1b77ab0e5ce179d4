// SPDX-License-Identifier: Apache-2.0
// What the kernel leaves to others on a CPU with a real-time thread that never sleeps.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

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
  /// Others that wait get it (the fair server; kernels from 6.12). Absent: nothing, or it cannot be
  /// read.
  std::optional<CpuShare> fair_server;
  bool leaves_nothing = false;  ///< others get nothing, or it is not known that they get any

  bool operator==(const RealtimeLimits&) const = default;
};

/// `cpu`: of which the fair server is read.
RealtimeLimits read_realtime_limits(const std::filesystem::path& proc,
                                    const std::filesystem::path& debugfs, int cpu);

}  // namespace ka::host
