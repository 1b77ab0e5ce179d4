// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/scheduling.hpp"

#include <sched.h>

#include <cerrno>
#include <string>

#include "affinity/host/realtime_limits.hpp"

namespace ka::helper {

using base::Result;

SchedulingPolicy realtime_policy(int priority) {
  return {SCHED_FIFO | SCHED_RESET_ON_FORK, priority};
}

bool is_fair(const SchedulingPolicy& policy) {
  const int kind = policy.policy & ~SCHED_RESET_ON_FORK;
  return kind == SCHED_OTHER || kind == SCHED_BATCH || kind == SCHED_IDLE;
}

SchedulingPolicy inherited_policy(const SchedulingPolicy& starters) {
  if ((starters.policy & SCHED_RESET_ON_FORK) == 0) return starters;
  return {is_fair(starters) ? starters.policy & ~SCHED_RESET_ON_FORK : SCHED_OTHER, 0};
}

Result<SchedulingPolicy> KernelScheduling::get(int tid) const {
  sched_param parameters{};
  const int policy = ::sched_getscheduler(tid);
  if (policy >= 0 && ::sched_getparam(tid, &parameters) == 0) {
    return SchedulingPolicy{policy, parameters.sched_priority};
  }
  return base::fail_errno(errno, "sched_getscheduler " + std::to_string(tid));
}

/// The nice value stays (__setscheduler_params() in kernel/sched/syscalls.c).
Result<void> KernelScheduling::set(const policy::ThreadKey& thread,
                                   const SchedulingPolicy& policy) const {
  sched_param parameters{};
  parameters.sched_priority = policy.priority;
  if (::sched_setscheduler(thread.tid, policy.policy, &parameters) == 0) return {};
  return base::fail_errno(errno, "sched_setscheduler " + std::to_string(thread.tid));
}

bool KernelScheduling::leaves_some(const policy::CpuSet& cpus) const {
  return host::read_realtime_limits(proc_, debugfs_, cpus).nothing.empty();
}

}  // namespace ka::helper
