// SPDX-License-Identifier: Apache-2.0
// Identity of processes and threads. A number alone is not one: it is reused. What cannot be
// reused is (pid, tid, start time), checked right before and right after every write (I9).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::base {

/// The fields of /proc/<pid>/task/<tid>/stat that are used (proc(5)).
struct ThreadStat {
  int tid = 0;
  std::string comm;  ///< may hold spaces and parentheses
  char state = '?';
  int ppid = 0;
  /// False: PF_NO_SETAFFINITY, the kernel refuses every mask (include/linux/sched.h).
  bool movable = true;
  /// In clock ticks since boot; from ProcFs and ThreadStats the same in any time namespace.
  std::uint64_t start_time = 0;
};

Result<ThreadStat> parse_thread_stat(std::string_view text);
/// Of a line that this process has read in /proc, which is in its own time namespace.
Result<ThreadStat> thread_stat_of(std::string_view line);

/// Since boot (Clock::since_boot()): when a process was started that has this start time.
std::chrono::nanoseconds started_at(std::uint64_t start_time);

/// Threads of a process as the kernel lists them now.
class ProcFs {
 public:
  explicit ProcFs(std::filesystem::path root = "/proc") : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }

  /// Of the machine's present boot: what /proc tells of processes means nothing after it.
  Result<std::string> boot_id() const;
  Result<std::vector<int>> processes() const { return list(root_); }
  Result<std::vector<int>> threads(int pid) const;
  Result<ThreadStat> stat(int pid, int tid) const;
  /// Of the main thread.
  Result<ThreadStat> stat(int pid) const { return stat(pid, pid); }
  /// Arguments, split.
  Result<std::vector<std::string>> cmdline(int pid) const;
  /// Path of the cgroup in the v2 hierarchy ("0::"), or of the v1 controller named.
  Result<std::string> cgroup(int pid, std::string_view controller) const;

 private:
  static Result<std::vector<int>> list(const std::filesystem::path& path);

  std::filesystem::path root_;
};

}  // namespace ka::base
