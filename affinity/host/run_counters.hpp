// SPDX-License-Identifier: Apache-2.0
// The kernel's counters of what ran: of a thread, and of a CPU. They only grow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::host {

/// Of a thread since it started: /proc/<pid>/task/<tid>/schedstat (proc_pid_schedstat() in
/// fs/proc/base.c).
struct ThreadCounters {
  std::uint64_t ran = 0;     ///< nanoseconds on a CPU, until now or its last tick
  std::uint64_t waited = 0;  ///< nanoseconds ready to run, without a CPU
  std::uint64_t slices = 0;  ///< how often it was given a CPU
};

/// Absent: it cannot be read.
std::optional<ThreadCounters> thread_counters(const std::filesystem::path& proc,
                                              const policy::ThreadKey& key);

/// Of a CPU since the boot.
struct CpuCounters {
  std::uint64_t ran = 0;     ///< nanoseconds of all tasks but idle, without that which runs now
  std::uint64_t slices = 0;  ///< how often a task was given the CPU
  /// Interrupts of the host's devices that came to it.
  std::uint64_t interrupts = 0;
  std::uint64_t passed_through = 0;  ///< the same of devices that VMs have (VFIO)
};

/// Of each CPU that is online: /proc/schedstat (show_schedstat() in kernel/sched/stats.c, versions
/// 15 to 17) and /proc/interrupts. kUnavailable: this kernel does not count (CONFIG_SCHEDSTATS).
base::Result<std::map<int, CpuCounters>> cpu_counters(const std::filesystem::path& proc);

}  // namespace ka::host
