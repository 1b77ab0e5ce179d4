// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/realtime_threads.hpp"

#include "affinity/host/undo.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::ThreadKey;

struct PolicyAccess {
  Result<SchedulingPolicy> get(const ThreadKey& thread) const { return scheduling.get(thread.tid); }
  Result<void> set(const ThreadKey& thread, const SchedulingPolicy& policy) const {
    return scheduling.set(thread, policy);
  }
  static SchedulingPolicy inherited(const SchedulingPolicy& starters) {
    return inherited_policy(starters);
  }

  const Scheduling& scheduling;
};

ThreadWriter<SchedulingPolicy>::Access access_of(const Scheduling& scheduling,
                                                 const VmmThreads& threads) {
  return {[threads](const ThreadKey& thread) { return threads.check_identity(thread); },
          [&scheduling](const ThreadKey& thread, const SchedulingPolicy& policy) {
            return scheduling.set(thread, policy);
          },
          [&scheduling, threads](const ThreadKey& thread, const SchedulingPolicy& written) {
            return host::undo_value(thread, written, PolicyAccess{scheduling}, threads.proc());
          }};
}

}  // namespace

RealtimeThreads::RealtimeThreads(const Scheduling& scheduling, VmmThreads threads)
    : scheduling_(scheduling),
      threads_(std::move(threads)),
      writer_(access_of(scheduling, threads_)) {}

Result<void> RealtimeThreads::make(const policy::Partition& partition, SavedPolicies& saved,
                                   const std::function<bool()>& save) {
  writer_.check_unsettled();
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
    if (!differs && !is_gone(differs)) return unexpected(differs.error());
    if (differs && *differs) changed.push_back(thread);
  }
  if (changed.empty()) return {};
  if (!save()) return base::fail(ErrorCode::kTransient, "it cannot be recorded");
  for (const ThreadKey& thread : changed) {
    auto done = writer_.write(thread, wanted);
    if (!done && !is_gone(done)) return done;
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

Result<void> RealtimeThreads::restore(SavedPolicies& saved,
                                      const std::function<bool(const ThreadKey&)>& stays) {
  writer_.check_unsettled();
  Result<void> failed;
  std::erase_if(saved, [&](const auto& entry) {
    if (stays(entry.first)) return false;
    auto done = writer_.write(entry.first, entry.second);
    const bool is_done = done || is_gone(done);
    if (!is_done) failed = std::move(done);
    return is_done;
  });
  return failed;
}

}  // namespace ka::helper
