// SPDX-License-Identifier: Apache-2.0
// Makes one partition, and undoes it. What it changes is in the records, and on disk, before it
// does.
#pragma once

#include <functional>
#include <string>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/kernel_mask_guard.hpp"
#include "affinity/helper/partition.hpp"
#include "affinity/helper/partition_records.hpp"
#include "affinity/helper/realtime_threads.hpp"
#include "affinity/helper/scheduling.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "base/result.hpp"
#include "policy/facts/partition.hpp"

namespace ka::helper {

class PartitionBuilder {
 public:
  /// `tree`, `scheduling`, `records` and `guard` must outlive it. `save` writes these to disk.
  PartitionBuilder(CgroupTree& tree, const Scheduling& scheduling, VmmThreads threads,
                   PartitionRecords& records, KernelMaskGuard& guard, std::function<bool()> save);

  /// The cgroup of the VMM, or of the container, by reading alone. kGone: that process has ended;
  /// kConflict, kUnavailable: there can be no such partition. Any other error: it cannot be seen.
  base::Result<std::string> find_cgroup(const policy::Partition& wanted) const;
  /// It is as wanted, with all of its vCPUs.
  bool is_made(const policy::Partition& wanted, const std::string& cgroup) const;
  /// Makes it as wanted, whatever it is now.
  base::Result<void> make(const policy::Partition& wanted, const std::string& cgroup);
  /// Makes its vCPUs real-time threads, where that is wanted.
  base::Result<void> make_realtime(const policy::Partition& wanted);
  /// Nothing of ours is left there. Succeeds where it is gone.
  base::Result<void> undo(PartitionRecord& record);

 private:
  base::Result<std::string> find_home(const policy::Partition& wanted) const;
  base::Result<void> make_of_vmm(const policy::Partition& wanted, const std::string& cgroup);
  base::Result<void> make_of_container(const policy::Partition& wanted, const std::string& cgroup);
  base::Result<void> check_vcpus(const policy::Partition& wanted) const;
  base::Result<void> check_cgroup(const policy::Partition& wanted, const std::string& cgroup) const;
  base::Result<void> record(const policy::Partition& wanted, const std::string& cgroup,
                            bool was_enabled);
  base::Result<void> end_realtime(const policy::Partition& wanted);
  base::Result<void> place(const policy::Partition& wanted, const PartitionCgroup& partition) const;
  base::Result<void> place(const policy::ThreadKey& vcpu, const std::string& cgroup,
                           const PartitionCgroup& partition) const;
  base::Result<void> isolate(const policy::Partition& wanted, const PartitionCgroup& partition);
  base::Result<void> remember_masks();
  base::Result<void> add_cpus(const std::string& cgroup, const policy::CpuSet& cpus);

  CgroupTree& tree_;
  VmmThreads threads_;
  RealtimeThreads realtime_;
  PartitionRecords& records_;
  KernelMaskGuard& guard_;
  std::function<bool()> save_;
};

}  // namespace ka::helper
