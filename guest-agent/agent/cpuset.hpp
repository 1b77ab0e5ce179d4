// SPDX-License-Identifier: Apache-2.0
// One cgroup's cpuset: written so that the kernel takes it, read as the kernel has it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "guest-agent/agent/hierarchy.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

/// Gives the cgroup `directory` these CPUs, and its ancestors what it takes: v2: the controller is
/// enabled on the way down; v1: they hold at least these CPUs, and memory nodes. v1: what lies
/// below is given the same. Nothing is written that is so already. 0, or the errno that refused.
int set_cpuset(const Hierarchy& hierarchy, const std::filesystem::path& directory,
               const policy::GuestCpuSet& cpus);

/// Gives the cgroup what it would have without us: v2: no cpuset of its own, or, while
/// it has threads, all that is `online`; v1: `online`. 0, or
/// the errno.
int clear_cpuset(const Hierarchy& hierarchy, const std::filesystem::path& directory,
                 const policy::GuestCpuSet& online);

/// What was last written to the cgroup's cpuset, by any process; absent if it cannot be read.
std::optional<policy::GuestCpuSet> given_cpus(const std::filesystem::path& directory);

/// What the cgroup allows its threads, also by its ancestors.
std::optional<policy::GuestCpuSet> effective_cpus(const Hierarchy& hierarchy,
                                                  const std::filesystem::path& directory);

/// All threads of a cgroup and of those below it.
std::vector<int> threads_of(const Hierarchy& hierarchy, const std::filesystem::path& directory);

/// The CFS quota of a container's cgroup, as the kernel's file has it; absent where there is none,
/// or no such file.
std::optional<std::string> read_quota(const Hierarchy& hierarchy,
                                      const std::filesystem::path& directory);
/// Takes it off. True: there is none any more.
bool lift_quota(const Hierarchy& hierarchy, const std::filesystem::path& directory);
/// Gives it the one that it had, unless another program has given it one since.
void restore_quota(const Hierarchy& hierarchy, const std::filesystem::path& directory,
                   const std::string& quota);

}  // namespace ka::agent
