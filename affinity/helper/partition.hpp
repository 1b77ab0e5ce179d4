// SPDX-License-Identifier: Apache-2.0
// The cgroup of one partition: a threaded one in that of a VMM, isolated. All other threads of the
// VMM stay outside it. What the kernel makes of each write: docs/understand/partitions.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "affinity/helper/cgroup_tree.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

class PartitionCgroup {
 public:
  /// `tree` must outlive it. `vmm`: the VMM's cgroup.
  PartitionCgroup(const CgroupTree& tree, std::string vmm);

  const std::string& path() const { return path_; }
  base::Result<bool> exists() const { return tree_.has(path_); }
  /// Whether the VMM's cgroup hands the cpuset controller down.
  base::Result<bool> is_enabled() const;
  base::Result<void> enable() const;
  base::Result<void> disable() const;
  /// CPUs that the VMM's other threads would have beside a partition with `cpus`. Where that is
  /// empty the kernel would let them onto all that the cgroup above has.
  base::Result<policy::CpuSet> room_beside(const policy::CpuSet& cpus) const;

  /// Makes it where it is not there, without CPUs of its own.
  base::Result<void> make() const;
  base::Result<std::vector<int>> threads() const;
  /// The kernel knows the thread by its number alone: the caller checks its identity before and
  /// after (I9).
  base::Result<void> move_in(const policy::ThreadKey& thread) const;
  /// Back to the VMM's cgroup, of one that threads() lists. Nothing for a thread that has ended.
  base::Result<void> move_out(int tid) const;
  /// It is one with these CPUs.
  bool is_isolated(const policy::CpuSet& cpus) const;
  /// Makes it an isolated partition with these CPUs, which the cgroups above it have. kConflict:
  /// the kernel does not, for the reason that it gives.
  base::Result<void> isolate(const policy::CpuSet& cpus) const;
  /// Removes it; its threads go back. Nothing where it is not there.
  base::Result<void> remove() const;

 private:
  base::Result<void> become_threaded() const;

  const CgroupTree& tree_;
  std::string vmm_, path_;
};

}  // namespace ka::helper
