// SPDX-License-Identifier: Apache-2.0
// cgroups, as far as CPU placement needs them: what a process's cpuset cgroup allows. Version 1
// and 2. (They are written in cpuset_writer.hpp.)
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/plan/cgroup.hpp"

namespace ka::host {

/// What one cpuset cgroup allows its threads.
struct CgroupFacts {
  /// Of the cgroup whose cpuset is in force: with version 2 the nearest ancestor that has the
  /// cpuset controller, which may be the root.
  std::filesystem::path cpuset_directory;
  /// Of the cgroup that the process is in, in the same hierarchy.
  std::filesystem::path directory;
  /// Effective: online CPUs that its threads may use. Those of its vCPUs' partition are among them,
  /// which only these may.
  policy::CpuSet cpus;
};

class Cgroups {
 public:
  /// Finds the hierarchy that controls cpusets from `proc`/self/mountinfo: version 2 where its
  /// root lists the controller (cgroup.controllers), else the version 1 mount with option
  /// "cpuset". kUnavailable when there is neither. `proc` is also where processes are looked up.
  static base::Result<Cgroups> find(const std::filesystem::path& proc);

  /// 1 or 2.
  int version() const { return version_; }
  const std::filesystem::path& mount() const { return mount_; }

  /// Where a process is, or a single thread (with version 1 threads of one process may differ).
  base::Result<std::filesystem::path> directory_of(int tid) const;
  /// What is allowed there.
  base::Result<CgroupFacts> of_task(int tid) const;
  /// Of a cgroup, by its absolute directory.
  base::Result<CgroupFacts> read(const std::filesystem::path& directory) const;
  /// Version 2: the cpuset of a cgroup below the root that has the controller. kGone without.
  base::Result<policy::plan::Cpuset> cpuset(const std::filesystem::path& directory) const;
  /// Version 2: the memory nodes that are in force in such a cgroup. kGone without.
  base::Result<policy::NodeSet> memory_nodes(const std::filesystem::path& directory) const;

 private:
  Cgroups(int version, std::filesystem::path mount, std::filesystem::path proc)
      : version_(version), mount_(std::move(mount)), proc_(std::move(proc)) {}

  int version_;
  std::filesystem::path mount_;
  std::filesystem::path proc_;
};

}  // namespace ka::host
