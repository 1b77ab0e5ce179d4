// SPDX-License-Identifier: Apache-2.0
// Where Kata puts a sandbox among the cgroups of kubelet's pods, and whether kubelet accepts that.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "affinity/config/entries.hpp"

namespace ka::cli {

/// Whether all of a sandbox lies in one cgroup of the pod's (`sandbox_cgroup_only` in [runtime]);
/// if not, shim and virtiofsd lie outside, and with cgroup v1 all but the vCPUs. `entries`: of the
/// file `config` and its drop-ins.
bool is_sandbox_only(const config::Entries& entries, const std::filesystem::path& config);

/// kubelet's cgroups of version 2 that do not delegate cpuset to the pods in them, or would not.
std::vector<std::string> slices_without_cpuset(const std::filesystem::path& root);

struct PodCgroupProblem {
  std::string text;
  std::string advice;
};

/// Absent: kubelet accepts the cgroups of this Kata's pods. `without_cpuset`: of
/// slices_without_cpuset(). kubelet wants every controller it knows in a pod's cgroup (Validate()
/// of its cgroup manager), where a slice loses cpuset with the last pod of runc's that has it; Kata
/// makes a cgroup in the pod's, with its controllers, only where all of the sandbox lies there.
std::optional<PodCgroupProblem> pod_cgroup_problem(const config::Entries& entries,
                                                   const std::filesystem::path& config,
                                                   const std::vector<std::string>& without_cpuset);

}  // namespace ka::cli
