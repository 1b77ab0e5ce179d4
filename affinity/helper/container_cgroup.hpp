// SPDX-License-Identifier: Apache-2.0
// The cgroup of a container without a VM, by which it becomes a partition itself.
#pragma once

#include <string>

#include "affinity/helper/cgroup_tree.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

/// The container's cgroup around that of one of its processes, which may be deeper (crun, systemd
/// in a container): below kubelet's, and named after an id of 64 digits. Empty: there is none.
std::string container_around(const std::string& home);

/// By reading alone: it allows these CPUs and no others. kConflict: it does not; kUnavailable: it
/// has no cpuset.
base::Result<void> check_container(const CgroupTree& tree, const std::string& container,
                                   const policy::CpuSet& cpus);

}  // namespace ka::helper
