// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/nice.hpp"

#include <string>

#include "affinity/host/undo.hpp"
#include "base/process.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using policy::ThreadKey;

/// sched_fork() in kernel/sched/core.c: a thread begins with its starter's value.
struct NiceAccess {
  base::Result<int> get(const ThreadKey& thread) const { return calls.nice(thread.tid); }
  base::Result<void> set(const ThreadKey& thread, int value) const {
    return calls.set_nice(thread, value);
  }
  static int inherited(int value) { return value; }

  host::AffinityCalls& calls;
};

/// "No such process" alone is not believed of a thread that /proc still shows: what it had before
/// us would be forgotten.
base::Error confirmed(const ThreadKey& key, base::Error error, base::ThreadStats& stats) {
  if (error.code != ErrorCode::kGone) return error;
  const auto stat = stats.read(key.pid, key.tid);
  const bool has_ended = stat ? stat->start_time != key.start_time : is_gone(stat);
  if (!has_ended) error.code = ErrorCode::kTransient;
  return error;
}

base::Error ended() { return {ErrorCode::kGone, "the thread has ended", 0}; }

}  // namespace

base::Result<int> read_nice(const ThreadKey& key, host::AffinityCalls& calls,
                            base::ThreadStats& stats) {
  auto nice = calls.nice(key.tid);
  if (!nice) return unexpected(confirmed(key, nice.error(), stats));
  return nice;
}

NiceResult write_nice(const NiceWrite& write, int before, host::AffinityCalls& calls,
                      base::ThreadStats& stats) {
  if (!calls.exists(write.key.pid, write.key.tid)) {
    return {unexpected(confirmed(write.key, ended(), stats))};
  }
  const auto now = read_nice(write.key, calls, stats);
  if (!now) return {unexpected(now.error())};
  if (*now != before) {
    return {base::fail(ErrorCode::kTransient, "it is " + std::to_string(*now) + " by now")};
  }
  const auto done = calls.set_nice(write.key, write.value);
  if (!done) return {unexpected(confirmed(write.key, done.error(), stats))};
  return check_nice_again(write, calls, stats);
}

NiceResult check_nice_again(const NiceWrite& write, host::AffinityCalls& calls,
                            base::ThreadStats& stats) {
  const auto stat = stats.read(write.key.pid, write.key.tid);
  if (stat && stat->start_time == write.key.start_time) return {};
  NiceResult result{base::fail(ErrorCode::kTransient, "cannot verify the thread's identity")};
  result.unsettled = true;
  if (!stat && !is_gone(stat)) return result;
  const host::Undone undone =
      host::undo_value(write.key, write.value, NiceAccess{calls}, base::ProcFs(stats.root()));
  if (undone == host::Undone::kUnseen) return result;
  result = {unexpected(ended())};
  result.reverted = undone == host::Undone::kDone;
  return result;
}

}  // namespace ka::line
