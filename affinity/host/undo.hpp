// SPDX-License-Identifier: Apache-2.0
// Undoes a write that reached a thread which was not meant: its number was given away between the
// check before the write and the write.
#pragma once

#include <cstdint>

#include "affinity/host/affinity_calls.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/diff.hpp"

namespace ka::host {

enum class Undone {
  kNothing,      ///< nothing to undo: no thread has that number, or not with what was written
  kDone,         ///< the thread has what it was started with again
  kSameProcess,  ///< of masks: a thread of the same process has it, a matter of the next pass
  kUnseen,       ///< that thread, or what it has, cannot be seen or written now
};

/// The thread that has a number now.
struct Occupant {
  policy::ThreadKey key;
  std::uint64_t process_start = 0;
  int starter = 0;  ///< the process that started it; 0: the kernel, or one of another namespace
};

/// kGone: no thread has it.
base::Result<Occupant> occupant_of(const base::ProcFs& proc, int tid);

/// `write` was made, and its thread does not exist any more. What a thread that has the number by
/// then had before cannot be known for certain: a read before the write may have seen the mask of
/// either. But a thread is born with the mask of the one that started it (copy_process() in
/// kernel/fork.c), and is this young. So it gets that one's mask where both are in one cpuset, and
/// else all that its own cpuset allows.
///
/// A mask that another program has set meanwhile stays: it is not what the write came to within
/// that thread's cpuset, which may be less than what was written.
Undone undo_mask(const policy::plan::Write& write, AffinityCalls& calls, const base::ProcFs& proc);

/// The same of any other value that a thread inherits from the one that started it. Of a thread of
/// the same process, too: most of these have no value of ours.
///
/// `access` has `get(ThreadKey)`, `set(ThreadKey, Value)`, both with a Result, and
/// `inherited(Value)`: what a thread begins with whose starter has this. Where nothing is known of
/// the starter, that is `Value()`.
template <typename Value, typename Access>
Undone undo_value(const policy::ThreadKey& meant, const Value& written, const Access& access,
                  const base::ProcFs& proc) {
  const auto occupant = occupant_of(proc, meant.tid);
  if (!occupant) return is_gone(occupant) ? Undone::kNothing : Undone::kUnseen;
  if (occupant->key == meant) return Undone::kNothing;
  const auto now = access.get(occupant->key);
  if (!now) return is_gone(now) ? Undone::kNothing : Undone::kUnseen;
  if (*now != written) return Undone::kNothing;
  const int starter = occupant->starter;
  const auto before = starter == 0 ? base::Result<Value>(Value())
                                   : access.get(policy::ThreadKey{starter, starter, 0});
  if (!before) return Undone::kUnseen;
  const auto done = access.set(occupant->key, access.inherited(*before));
  if (done) return Undone::kDone;
  return is_gone(done) ? Undone::kNothing : Undone::kUnseen;
}

}  // namespace ka::host
