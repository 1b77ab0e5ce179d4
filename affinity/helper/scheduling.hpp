// SPDX-License-Identifier: Apache-2.0
// Scheduling policies of threads (sched(7)), read and written.
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

struct SchedulingPolicy {
  int policy = 0;    ///< SCHED_OTHER, ...; with SCHED_RESET_ON_FORK
  int priority = 0;  ///< of SCHED_FIFO and SCHED_RR

  bool operator==(const SchedulingPolicy&) const = default;
};

/// SCHED_FIFO. Threads that it starts do not inherit it.
SchedulingPolicy realtime_policy(int priority);
/// One of those that share a CPU by weight: SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
bool is_fair(const SchedulingPolicy& policy);
/// What a thread begins with whose starter has `starters` (sched_fork() in kernel/sched/core.c).
SchedulingPolicy inherited_policy(const SchedulingPolicy& starters);

class Scheduling {
 public:
  Scheduling() = default;
  Scheduling(const Scheduling&) = delete;
  Scheduling& operator=(const Scheduling&) = delete;
  virtual ~Scheduling() = default;

  virtual base::Result<SchedulingPolicy> get(int tid) const = 0;
  /// The kernel knows the thread by its number alone: the caller checks its identity before and
  /// after (I9).
  virtual base::Result<void> set(const policy::ThreadKey& thread,
                                 const SchedulingPolicy& policy) const = 0;
  /// Whether the kernel leaves others some of each of these CPUs, where a real-time thread that
  /// never sleeps has it.
  virtual bool leaves_some(const policy::CpuSet& cpus) const = 0;
};

class KernelScheduling final : public Scheduling {
 public:
  explicit KernelScheduling(std::filesystem::path proc, std::filesystem::path debugfs)
      : proc_(std::move(proc)), debugfs_(std::move(debugfs)) {}

  base::Result<SchedulingPolicy> get(int tid) const override;
  base::Result<void> set(const policy::ThreadKey& thread,
                         const SchedulingPolicy& policy) const override;
  bool leaves_some(const policy::CpuSet& cpus) const override;

 private:
  std::filesystem::path proc_, debugfs_;
};

}  // namespace ka::helper
