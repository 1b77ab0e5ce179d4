// SPDX-License-Identifier: Apache-2.0
// cpuset.cpus.exclusive: a partition can have only CPUs that are in this file of every cgroup above
// it, below the root (Documentation/admin-guide/cgroup-v2.rst). Several partitions and programs
// share these files: CPUs are added and taken out again, never replaced.
#pragma once

#include <string>
#include <vector>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/partition_records.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

inline constexpr const char* kExclusiveFile = "cpuset.cpus.exclusive";

/// A cgroup and those above it without the root, the topmost first.
std::vector<std::string> way_to(const std::string& cgroup);

/// A cgroup's file.
base::Result<policy::CpuSet> read_cpus(const CgroupTree& tree, const std::string& cgroup,
                                       const std::string& file);
base::Result<void> write_cpus(const CgroupTree& tree, const std::string& cgroup,
                              const std::string& file, const policy::CpuSet& cpus);

/// What a cgroup lacks of the CPUs of a partition below it.
struct LackingCpus {
  std::string cgroup;
  policy::CpuSet now, lacking;
};

/// The cgroups from the top to `cgroup` that lack some of `cpus`. kUnavailable: the kernel has no
/// such file, or the controller is off there.
base::Result<std::vector<LackingCpus>> find_lacking(const CgroupTree& tree,
                                                    const std::string& cgroup,
                                                    const policy::CpuSet& cpus);

/// Takes out what was added for partitions that are in the records no more. False where some of it
/// has to be tried again.
bool withdraw_unneeded(const CgroupTree& tree, PartitionRecords& records);

}  // namespace ka::helper
