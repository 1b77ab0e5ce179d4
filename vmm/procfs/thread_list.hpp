// SPDX-License-Identifier: Apache-2.0
// The threads of a process as /proc lists them now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::vmm {

struct SeenThread {
  policy::ThreadKey key;
  std::string comm;  ///< at most 15 bytes; a thread may change its own at any time
  bool movable = true;

  bool operator==(const SeenThread&) const = default;
};

struct SeenProcess {
  int pid = 0;
  int ppid = 0;
  std::uint64_t start_time = 0;     ///< of the main thread: with the pid the process's identity
  std::string comm;                 ///< of the main thread
  std::vector<SeenThread> threads;  ///< by tid, without zombies: those cannot run any more
  std::vector<int> unread;          ///< threads that are there and whose line cannot be read
  base::Error why_unread;           ///< the first of these

  policy::ProcessId id() const { return {pid, start_time}; }

  bool operator==(const SeenProcess&) const = default;
};

/// Reads each thread's stat line once. Threads that die meanwhile are left out. kGone when the
/// process is gone: with an errno where the kernel reported only that there is no such file,
/// without one where it was seen to be a zombie. Any other error: it cannot be seen.
base::Result<SeenProcess> read_process(base::ThreadStats& stats, int pid);

/// The process that thread `tid` belongs to ("Tgid:" of its status). kGone without such a thread.
base::Result<int> thread_group(const std::filesystem::path& proc, int tid);

}  // namespace ka::vmm
