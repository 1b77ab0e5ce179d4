// SPDX-License-Identifier: Apache-2.0
// The system calls that place a thread and set its priority: the one thing that a fake file tree
// cannot replace.
#pragma once

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::host {

/// The kernel knows threads by their number alone. Who writes has to have a thread's identity, and
/// has to check it before and after (I9).
class AffinityCalls {
 public:
  AffinityCalls() = default;
  AffinityCalls(const AffinityCalls&) = delete;
  AffinityCalls& operator=(const AffinityCalls&) = delete;
  virtual ~AffinityCalls() = default;

  /// True when there is a thread `tid` in the process `pid` at this moment.
  virtual bool exists(int pid, int tid) = 0;
  /// The CPUs a thread may run on now: its own mask within its cgroup's set and the online CPUs.
  virtual base::Result<policy::CpuSet> get(int tid) = 0;
  /// Sets the thread's own mask. The kernel keeps what its cgroup allows of it; EINVAL when that
  /// is nothing.
  virtual base::Result<void> set(const policy::ThreadKey& thread, const policy::CpuSet& cpus) = 0;
  /// Sets the all-ones mask: whatever the cgroup allows, now and later.
  virtual base::Result<void> set_everywhere(const policy::ThreadKey& thread) = 0;

  /// The thread's nice value, -20 to 19.
  virtual base::Result<int> nice(int tid) = 0;
  virtual base::Result<void> set_nice(const policy::ThreadKey& thread, int nice) = 0;
};

/// tgkill(2) without a signal, sched_getaffinity(2) and sched_setaffinity(2), for machines of any
/// size; getpriority(2) and setpriority(2), which in Linux are about one thread.
class KernelAffinityCalls final : public AffinityCalls {
 public:
  bool exists(int pid, int tid) override;
  base::Result<policy::CpuSet> get(int tid) override;
  base::Result<void> set(const policy::ThreadKey& thread, const policy::CpuSet& cpus) override;
  base::Result<void> set_everywhere(const policy::ThreadKey& thread) override;
  base::Result<int> nice(int tid) override;
  base::Result<void> set_nice(const policy::ThreadKey& thread, int nice) override;
};

}  // namespace ka::host
