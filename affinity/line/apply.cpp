// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/apply.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using Status = WriteResult::Status;

constexpr int kAttempts = 3;

/// The current owner of a thread id.
enum class Holder {
  kOurs,     ///< the thread that is meant
  kEnded,    ///< it has ended
  kOther,    ///< another thread of the same process, or of another one
  kUnknown,  ///< it cannot be seen now
};

Holder holder_of(const policy::ThreadKey& key, base::ThreadStats& stats) {
  const auto stat = stats.read(key.pid, key.tid);
  if (stat) return stat->start_time == key.start_time ? Holder::kOurs : Holder::kOther;
  return is_gone(stat) ? Holder::kEnded : Holder::kUnknown;
}

base::Result<void> write_mask(const policy::plan::Write& write, AffinityCalls& calls) {
  return write.everywhere ? calls.set_everywhere(write.key.tid)
                          : calls.set(write.key.tid, write.cpus);
}

/// EAGAIN, EBUSY and their like pass; a mask that the cgroup refuses (EINVAL) does not until the
/// cgroup was read again, but trying it twice more costs nothing.
base::Result<void> write_with_retries(const policy::plan::Write& write, AffinityCalls& calls) {
  auto done = write_mask(write, calls);
  for (int i = 1; i < kAttempts && !done && done.error().code == ErrorCode::kTransient; ++i) {
    done = write_mask(write, calls);
  }
  return done;
}

Status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kGone:
      return Status::kGone;
    case ErrorCode::kTransient:
      return Status::kRetry;
    default:
      return Status::kRefused;
  }
}

/// "No such process" alone is not believed of a thread that /proc still shows: it would drop out of
/// sight where it is.
WriteResult failed(const policy::plan::Write& write, const base::Error& error,
                   base::ThreadStats& stats) {
  if (status_of(error.code) != Status::kGone) return {write.key, status_of(error.code), {}, error};
  const Holder holder = holder_of(write.key, stats);
  if (holder == Holder::kEnded || holder == Holder::kOther)
    return {write.key, Status::kGone, {}, error};
  return {write.key, Status::kRetry, {}, {ErrorCode::kTransient, error.message, error.number}};
}

/// The number was another thread's when it was written to. What that one had before is not known;
/// all-ones is what the kernel gives a thread that no program has placed. Where it is seen to be
/// another thread of the same process it is the sandbox's own, which the next pass places. Whether
/// there is a process of that number now proves nothing: it may have been given away as a whole.
WriteResult revert(const policy::plan::Write& write, Holder holder, AffinityCalls& calls) {
  const auto& [pid, tid, start_time] = write.key;
  if (holder == Holder::kOther && pid != tid) {
    return {write.key, Status::kRetry, {}, {ErrorCode::kTransient, "its thread id was reused", 0}};
  }
  WriteResult gone{write.key, Status::kGone, {}, {}};
  const auto now = calls.get(tid);
  const bool has_ours = now && !write.everywhere && *now == write.cpus;
  gone.reverted = has_ours && calls.set_everywhere(tid).has_value();
  return gone;
}

/// Only a refused write leaves a thread alone for good; what one that succeeded came to is asked in
/// the next pass.
WriteResult unread_thread(const policy::plan::Write& write, const base::Error& error,
                          base::ThreadStats& stats) {
  WriteResult result = failed(write, error, stats);
  if (result.status == Status::kRefused) result.status = Status::kRetry;
  return result;
}

WriteResult read_again(const policy::plan::Write& write, AffinityCalls& calls,
                       base::ThreadStats& stats) {
  auto actual = calls.get(write.key.tid);
  if (!actual) return unread_thread(write, actual.error(), stats);
  const Holder holder = holder_of(write.key, stats);
  switch (holder) {
    case Holder::kOurs:
      break;
    case Holder::kEnded:
    case Holder::kOther:
      return revert(write, holder, calls);
    case Holder::kUnknown:
      return {
          write.key, Status::kRetry, {}, {ErrorCode::kTransient, "cannot verify its identity", 0}};
  }
  if (*actual == write.cpus) return {write.key, Status::kDone, std::move(*actual), {}};
  return {write.key,
          Status::kRetry,
          std::move(*actual),
          {ErrorCode::kTransient, "the kernel kept " + policy::format_list(*actual), 0}};
}

/// I9. The start time was read in the pass that asks for the write, a moment ago; that the thread
/// is still one of its process is asked again here, and the start time is read again after the
/// write.
WriteResult apply_one(const policy::plan::Write& write, AffinityCalls& calls,
                      base::ThreadStats& stats) {
  if (!calls.exists(write.key.pid, write.key.tid)) return {write.key, Status::kGone, {}, {}};
  const auto done = write_with_retries(write, calls);
  if (!done) return failed(write, done.error(), stats);
  return read_again(write, calls, stats);
}

}  // namespace

std::vector<WriteResult> apply(const std::vector<policy::plan::Write>& writes, AffinityCalls& calls,
                               base::ThreadStats& stats) {
  std::vector<WriteResult> results;
  results.reserve(writes.size());
  for (const policy::plan::Write& write : writes) results.push_back(apply_one(write, calls, stats));
  return results;
}

}  // namespace ka::line
