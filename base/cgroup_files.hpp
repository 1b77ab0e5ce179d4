// SPDX-License-Identifier: Apache-2.0
// Where the kernel shows cgroups with cpusets, and how it names their files, by version. The names
// of the cgroups themselves are those of who makes them: affinity/host/cgroup_names.hpp on the
// host, guest-agent/agent/hierarchy.hpp in the guest.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/mounts.hpp"
#include "base/result.hpp"

namespace ka::base {

struct CpusetHierarchy {
  int version = 2;
  std::filesystem::path mount;
};

/// Version 2 where its root offers the cpuset controller, else that of version 1 that has it;
/// absent: there is neither. The error: it cannot be read what the root of version 2 offers.
Result<std::optional<CpusetHierarchy>> find_cpuset_hierarchy(const std::vector<Mount>& mounts);

/// Of the CPUs that the cgroup really has. Version 1 of older kernels has no such file.
constexpr const char* effective_cpus_file(int version) {
  return version == 2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
}

constexpr const char* threads_file(int version) {
  return version == 2 ? "cgroup.threads" : "tasks";
}

/// In the cgroup of a VMM, version 2: the partition of its dedicated vCPUs. kata-affinity-helper
/// makes it.
inline constexpr const char* kPartitionCgroup = "kata-affinity";

}  // namespace ka::base
