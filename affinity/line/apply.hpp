// SPDX-License-Identifier: Apache-2.0
// Makes the writes that diff() asks for, each with its identity checked before and after, and
// returns the outcome for each thread.
#pragma once

#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {

/// The outcome of one write.
struct WriteResult {
  enum class Status {
    kDone,     ///< written, and the kernel reports the same mask
    kGone,     ///< the thread went away: normal
    kRetry,    ///< something changed under us (a cgroup, a hot-unplug): plan again
    kRefused,  ///< the kernel will never let us: leave this thread alone from now on
  };

  policy::ThreadKey key;
  Status status = Status::kDone;
  policy::CpuSet actual = {};  ///< read again after the write; for kDone and kRetry
  base::Error error = {};      ///< for kRetry and kRefused
  /// For kGone: its number was another process's by then, and the write was undone.
  bool reverted = false;
  /// For kRetry: which thread the write reached could not be seen; check_again() is due.
  bool unsettled = false;
};

/// Makes the writes in their order; a result for each. The keys are those of threads that were seen
/// just before, in the same pass, whose `stats` these are. A thread that is no longer one of its
/// process is kGone and not written to; so is one that has another start time after the write: its
/// number belongs to another process, and the write is undone (host/undo.hpp).
std::vector<WriteResult> apply(const std::vector<policy::plan::Write>& writes,
                               host::AffinityCalls& calls, base::ThreadStats& stats);

/// The result of a write that was made before and is unsettled. Undoes it where it reached another
/// process's thread; writes nothing else.
WriteResult check_again(const policy::plan::Write& write, host::AffinityCalls& calls,
                        base::ThreadStats& stats);

}  // namespace ka::line
