// SPDX-License-Identifier: Apache-2.0
// Which cgroups hold threads that may run on certain CPUs. A cgroup's effective cpuset bounds all
// that lies below it, so a subtree that may use none of the CPUs is not entered, and its threads
// are not read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "affinity/host/cgroup.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {

/// A cgroup with threads of its own.
struct Tenant {
  /// Relative to the mount, as it is shown (base/text.hpp): its tenant may have named it. Empty:
  /// the root cgroup.
  std::filesystem::path directory;
  policy::CpuSet cpus;  ///< of the CPUs asked about, those that it allows
  std::vector<int> threads;
};

struct Tenants {
  std::vector<Tenant> list;  ///< by directory
  std::size_t cgroups = 0;   ///< whose cpuset was read
  /// Why a cgroup could not be read, one text each; those that were removed meanwhile are not here.
  std::vector<std::string> unread;
};

/// Walks the hierarchy that controls cpusets.
Tenants tenants_of(const Cgroups& cgroups, const policy::CpuSet& cpus);

}  // namespace ka::host
