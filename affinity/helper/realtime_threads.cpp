// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/realtime_threads.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::ThreadKey;

}  // namespace

Result<void> RealtimeThreads::make(const policy::Partition& partition, SavedPolicies& saved,
                                   const std::function<bool()>& save) const {
  if (!scheduling_.leaves_some(partition.cpus)) {
    return base::fail(ErrorCode::kConflict,
                      "the kernel leaves other tasks nothing of a CPU with a real-time thread "
                      "(sched_rt_runtime_us, fair server), and a vCPU may be moved out of its "
                      "partition by another program");
  }
  const SchedulingPolicy wanted = realtime_policy(partition.priority);
  std::vector<ThreadKey> changed;
  for (const ThreadKey& thread : partition.vcpus) {
    const auto differs = prepare(thread, wanted, saved);
    if (!differs && !is_gone(differs.error())) return unexpected(differs.error());
    if (differs && *differs) changed.push_back(thread);
  }
  if (changed.empty()) return {};
  if (!save()) return base::fail(ErrorCode::kTransient, "it cannot be recorded");
  for (const ThreadKey& thread : changed) {
    const auto done = set(thread, wanted, saved.at(thread));
    if (!done && !is_gone(done.error())) return done;
  }
  return {};
}

/// Whether it has to be changed; then it is in `saved`.
Result<bool> RealtimeThreads::prepare(const ThreadKey& thread, const SchedulingPolicy& wanted,
                                      SavedPolicies& saved) const {
  if (const auto checked = threads_.check(thread); !checked) return unexpected(checked.error());
  const auto now = scheduling_.get(thread.tid);
  if (!now) return unexpected(now.error());
  const bool is_ours = saved.contains(thread);
  if (is_ours && *now == wanted) return false;
  if (!is_ours && !is_fair(*now)) {
    return base::fail(ErrorCode::kConflict, "another program made thread " +
                                                std::to_string(thread.tid) + " a real-time thread");
  }
  saved.try_emplace(thread, *now);
  return true;
}

/// I9. A thread that has the number by now, and what was written, is what that number's was before.
Result<void> RealtimeThreads::set(const ThreadKey& thread, const SchedulingPolicy& wanted,
                                  const SchedulingPolicy& before) const {
  auto done = scheduling_.set(thread, wanted);
  if (done) done = threads_.check_identity(thread);
  if (!done && is_gone(done.error()) && scheduling_.get(thread.tid) == wanted) {
    (void)scheduling_.set(thread, before);
  }
  return done;
}

Result<void> RealtimeThreads::restore(SavedPolicies& saved,
                                      const std::function<bool(const ThreadKey&)>& stays) const {
  Result<void> failed;
  std::erase_if(saved, [&](const auto& entry) {
    if (stays(entry.first)) return false;
    auto done = threads_.check_identity(entry.first);
    if (done) done = scheduling_.set(entry.first, entry.second);
    const bool is_done = done || is_gone(done.error());
    if (!is_done) failed = std::move(done);
    return is_done;
  });
  return failed;
}

}  // namespace ka::helper
