// SPDX-License-Identifier: Apache-2.0
// A cpuset partition (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition) for the
// dedicated vCPUs of one sandbox, or for a container without a VM: nobody else may run on its CPUs.
#pragma once

#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy {

/// Below the kernel's own real-time threads (50: threaded interrupts).
inline constexpr int kMostPriority = 49;

struct Partition {
  ThreadKey vmm;  ///< its first thread; or that of a process of the container
  CpuSet cpus;
  std::vector<ThreadKey> vcpus;  ///< the VMM's threads that are in it
  int priority = 0;              ///< theirs, of SCHED_FIFO; 0: they are no real-time threads
  bool full_power = false;       ///< the CPUs wake up without delay, and run at full frequency
  /// The container's own cgroup becomes the partition, and balances its load; there are no vCPUs.
  bool of_container = false;
  bool is_unbalanced = false;  ///< such a partition does not balance it

  bool operator==(const Partition&) const = default;
};

}  // namespace ka::policy
