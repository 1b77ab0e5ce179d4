// SPDX-License-Identifier: Apache-2.0
// The cgroups in which a sandbox's processes sit, and what they allow them. How cgroups are named:
// cgroup_names.hpp.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/host/cgroup.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::host {

/// crun's cgroup within that of a container (crun_subgroup()), which has a cpuset of its own.
/// Empty: there is none.
std::filesystem::path inner_cgroup(const std::filesystem::path& container);

/// The VMM of a sandbox, as far as its cgroups go.
struct VmmProcess {
  int pid = 0;
  bool is_domain = false;  ///< of libvirt
};

/// The cgroup that a VMM is planned within. Empty where there are no cpuset cgroups, or the process
/// is gone.
base::Result<CgroupFacts> read_vmm_cgroup(const std::optional<Cgroups>& cgroups,
                                          const VmmProcess& vmm);

/// Which cgroup each process of a sandbox sits in, as last read.
class SandboxCgroups {
 public:
  /// Reads them. `of_vmm` is what read_vmm_cgroup() returned. What cannot be read stays as it was;
  /// the first error is returned after everything else was read.
  base::Result<void> read(const std::optional<Cgroups>& cgroups, const VmmProcess& vmm,
                          const CgroupFacts& of_vmm,
                          const std::vector<policy::ThreadFacts>& threads);

  /// Directory whose cpuset is in force for the vCPUs; may be empty.
  const std::string& directory() const { return directory_; }
  /// What that cgroup allows; absent: not known.
  const std::optional<policy::CpuSet>& cpus() const { return cpus_; }
  /// What the cgroup of a process allows; null: not known.
  const policy::CpuSet* allowed(int pid) const;
  /// False when one of them allows other CPUs than when it was read. Those that allowed all of
  /// `online` are not read again.
  bool are_as_read(const std::optional<Cgroups>& cgroups, const policy::CpuSet& online) const;
  /// Whether the cpuset in force for a process is that of `directory`.
  bool is_bound_by(int pid, const std::string& directory) const;

 private:
  struct Place {
    std::string directory;  ///< whose cpuset is in force; empty: not known
    policy::CpuSet cpus;
  };

  std::string directory_;
  std::optional<policy::CpuSet> cpus_;
  std::map<int, Place> by_pid_;
};

}  // namespace ka::host
