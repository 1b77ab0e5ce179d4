// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/apply.hpp"

#include "affinity/host/undo.hpp"
#include "base/process.hpp"

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

base::Result<void> write_mask(const policy::plan::Write& write, host::AffinityCalls& calls) {
  return write.everywhere ? calls.set_everywhere(write.key) : calls.set(write.key, write.mask());
}

/// EAGAIN, EBUSY and their like pass; a mask that the cgroup refuses (EINVAL) does not until the
/// cgroup was read again, but trying it twice more costs nothing.
base::Result<void> write_with_retries(const policy::plan::Write& write,
                                      host::AffinityCalls& calls) {
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

WriteResult unsettled(const policy::plan::Write& write) {
  WriteResult result{
      write.key, Status::kRetry, {}, {ErrorCode::kTransient, "cannot verify its identity", 0}};
  result.unsettled = true;
  return result;
}

/// Whether there is a process of that number now proves nothing: it may have been given away as a
/// whole.
WriteResult revert(const policy::plan::Write& write, host::AffinityCalls& calls,
                   const base::ThreadStats& stats) {
  switch (host::undo_mask(write, calls, base::ProcFs(stats.root()))) {
    case host::Undone::kNothing:
      return {write.key, Status::kGone, {}, {}};
    case host::Undone::kDone:
      return {.key = write.key, .status = Status::kGone, .reverted = true};
    case host::Undone::kSameProcess:
      return {
          write.key, Status::kRetry, {}, {ErrorCode::kTransient, "its thread id was reused", 0}};
    case host::Undone::kUnseen:
      break;
  }
  return unsettled(write);
}

/// Only a refused write leaves a thread alone for good; what one that succeeded came to is asked in
/// the next pass.
WriteResult unread_thread(const policy::plan::Write& write, const base::Error& error,
                          base::ThreadStats& stats) {
  WriteResult result = failed(write, error, stats);
  if (result.status == Status::kRefused) result.status = Status::kRetry;
  return result;
}

WriteResult read_again(const policy::plan::Write& write, host::AffinityCalls& calls,
                       base::ThreadStats& stats) {
  auto actual = calls.get(write.key.tid);
  switch (holder_of(write.key, stats)) {
    case Holder::kOurs:
      break;
    case Holder::kEnded:
    case Holder::kOther:
      return revert(write, calls, stats);
    case Holder::kUnknown:
      return unsettled(write);
  }
  if (!actual) return unread_thread(write, actual.error(), stats);
  if (*actual == write.cpus) return {write.key, Status::kDone, std::move(*actual), {}};
  return {write.key,
          Status::kRetry,
          std::move(*actual),
          {ErrorCode::kTransient, "the kernel kept " + policy::format_list(*actual), 0}};
}

/// I9. The start time was read in the pass that asks for the write, a moment ago; that the thread
/// is still one of its process is asked again here, and the start time is read again after the
/// write.
WriteResult apply_one(const policy::plan::Write& write, host::AffinityCalls& calls,
                      base::ThreadStats& stats) {
  if (!calls.exists(write.key.pid, write.key.tid)) return {write.key, Status::kGone, {}, {}};
  const auto done = write_with_retries(write, calls);
  if (!done) return failed(write, done.error(), stats);
  return read_again(write, calls, stats);
}

}  // namespace

std::vector<WriteResult> apply(const std::vector<policy::plan::Write>& writes,
                               host::AffinityCalls& calls, base::ThreadStats& stats) {
  std::vector<WriteResult> results;
  results.reserve(writes.size());
  for (const policy::plan::Write& write : writes) results.push_back(apply_one(write, calls, stats));
  return results;
}

WriteResult check_again(const policy::plan::Write& write, host::AffinityCalls& calls,
                        base::ThreadStats& stats) {
  return read_again(write, calls, stats);
}

}  // namespace ka::line
