// SPDX-License-Identifier: Apache-2.0
// The stat lines of threads, read again and again within one pass of the line.
#pragma once

#include <filesystem>
#include <unordered_map>
#include <vector>

#include "base/fd.hpp"
#include "base/process.hpp"
#include "base/result.hpp"

namespace ka::base {

/// Files stay open after the first read, at most kMostOpen: reading again costs a third, and an
/// open file belongs to its thread even if the tid is reused. Meant to live as long as a pass.
class ThreadStats {
 public:
  static constexpr std::size_t kMostOpen = 512;

  explicit ThreadStats(std::filesystem::path proc) : proc_(std::move(proc)) {}

  const std::filesystem::path& root() const { return proc_; }

  /// The threads of a process as the kernel lists them now, ascending.
  Result<std::vector<int>> threads(int pid);

  /// The line of a thread of this process. kGone when there is none; kInvalid when the line is
  /// another thread's. Cheapest for one process after the other.
  Result<ThreadStat> read(int pid, int tid);

 private:
  Result<void> open_tasks(int pid);
  Result<ThreadStat> read_anew(int tid);

  std::filesystem::path proc_;
  Fd tasks_;  ///< /proc/<pid>/task
  int pid_ = 0;
  std::unordered_map<int, Fd> files_;
};

}  // namespace ka::base
