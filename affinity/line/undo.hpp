// SPDX-License-Identifier: Apache-2.0
// Undoes a write of a mask that reached a thread which was not meant: its number was given away
// between the check before the write and the write.
#pragma once

#include "affinity/line/affinity_calls.hpp"
#include "base/process.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {

enum class Undone {
  kNothing,      ///< nothing to undo: no thread has that number, or not with the mask written
  kDone,         ///< another process's thread has the mask that it was started with again
  kSameProcess,  ///< the number is a thread's of the same process: a matter of the next pass
  kUnseen,       ///< that thread, or its mask, cannot be seen or written now
};

/// `write` was made, and its thread does not exist any more. What a thread that has the number by
/// then had before cannot be known for certain: a read before the write may have seen the mask of
/// either. But a thread is born with the mask of the one that started it (copy_process() in
/// kernel/fork.c), and is this young. So it gets that one's mask where both are in one cpuset, and
/// else all that its own cpuset allows.
///
/// A mask that another program has set meanwhile stays: it is not what the write came to within
/// that thread's cpuset, which may be less than what was written.
Undone undo(const policy::plan::Write& write, AffinityCalls& calls, const base::ProcFs& proc);

}  // namespace ka::line
