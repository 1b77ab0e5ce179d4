// SPDX-License-Identifier: Apache-2.0
// What a cgroup is as a cpuset partition (cpuset.cpus.partition), and how it becomes one or none.
#pragma once

#include <string>
#include <string_view>

#include "affinity/helper/cgroup_tree.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

/// One CPU each, with nothing to balance; or a scheduling domain.
inline constexpr std::string_view kIsolated = "isolated", kRoot = "root";

/// It is one of this kind with these CPUs.
bool is_partition(const CgroupTree& tree, const std::string& cgroup, std::string_view kind,
                  const policy::CpuSet& cpus);
/// Makes it one; the cgroups above it have these CPUs in their exclusive ones. kConflict: the
/// kernel does not, for the reason that it gives.
base::Result<void> make_partition(const CgroupTree& tree, const std::string& cgroup,
                                  std::string_view kind, const policy::CpuSet& cpus);
/// It is none any more. Nothing where it is gone, or its controller is off.
base::Result<void> end_partition(const CgroupTree& tree, const std::string& cgroup);

}  // namespace ka::helper
