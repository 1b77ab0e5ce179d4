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

NiceResult ended() { return {base::fail(ErrorCode::kGone, "the thread has ended")}; }

}  // namespace

NiceResult write_nice(const NiceWrite& write, int before, host::AffinityCalls& calls,
                      base::ThreadStats& stats) {
  if (!calls.exists(write.key.pid, write.key.tid)) return ended();
  const auto now = calls.nice(write.key.tid);
  if (!now) return {unexpected(now.error())};
  if (*now != before) {
    return {base::fail(ErrorCode::kTransient, "it is " + std::to_string(*now) + " by now")};
  }
  auto done = calls.set_nice(write.key, write.value);
  return done ? check_nice_again(write, calls, stats) : NiceResult{std::move(done)};
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
  result = ended();
  result.reverted = undone == host::Undone::kDone;
  return result;
}

}  // namespace ka::line
