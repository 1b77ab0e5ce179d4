// SPDX-License-Identifier: Apache-2.0
// Makes threads real-time threads, and what they were again.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "affinity/helper/scheduling.hpp"
#include "affinity/helper/thread_writer.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "base/result.hpp"
#include "policy/facts/partition.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

/// What threads had before.
using SavedPolicies = std::map<policy::ThreadKey, SchedulingPolicy>;

class RealtimeThreads {
 public:
  /// `scheduling` must outlive it.
  RealtimeThreads(const Scheduling& scheduling, VmmThreads threads);

  /// The vCPUs of a partition have its priority from now on. What a thread had is in `saved`, and
  /// `save` was called, before it is changed. Threads that have ended are left out; one that
  /// another program has made a real-time thread is an error.
  base::Result<void> make(const policy::Partition& partition, SavedPolicies& saved,
                          const std::function<bool()>& save);
  /// Threads of `saved` for which `stays` is not true are what they were, and are saved no more.
  base::Result<void> restore(SavedPolicies& saved,
                             const std::function<bool(const policy::ThreadKey&)>& stays);

 private:
  base::Result<bool> prepare(const policy::ThreadKey& thread, const SchedulingPolicy& wanted,
                             SavedPolicies& saved) const;

  const Scheduling& scheduling_;
  VmmThreads threads_;
  ThreadWriter<SchedulingPolicy> writer_;
};

}  // namespace ka::helper
