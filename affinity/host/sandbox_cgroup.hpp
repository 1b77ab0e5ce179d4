// SPDX-License-Identifier: Apache-2.0
// The cgroups of a sandbox: what kubelet, container runtimes, Kata and libvirt name them, and what
// they allow the sandbox's processes. The only place that knows cgroup names.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/host/cgroup.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::host {

/// The uid of the pod that kubelet made this cgroup for, with "-" in it as the API server writes
/// it; empty for a cgroup that is no pod's. kubelet names them pod<uid>, or with systemd
/// kubepods[-<qos>]-pod<uid with "_">.slice (pkg/kubelet/cm/cgroup_manager_linux.go).
std::string pod_uid_of(const std::filesystem::path& directory);

/// True where the cgroup, or one above it, is a unit of systemd.
bool is_systemd_unit(const std::filesystem::path& directory);

/// The sandbox's own cgroup, below `mount`: `named` (relative to the mount) where a source named
/// one, else `of_vmm` where it or one above it is named after the sandbox. Empty: none. A VM that
/// was started by hand shares its cgroup with unrelated processes, and the root cgroup holds the
/// whole machine.
std::filesystem::path own_cgroup(std::string_view sandbox, const std::filesystem::path& named,
                                 const std::filesystem::path& of_vmm,
                                 const std::filesystem::path& mount);

/// The cgroup of a container below `mount`, from the name that an OCI runtime is given
/// (cgroupsPath): a path, or with systemd "SLICE:PREFIX:NAME", which is the unit PREFIX-NAME.scope
/// in that slice. Empty where it is not named after the container: then it may be anyone's.
std::filesystem::path container_cgroup(const std::string& named, std::string_view container,
                                       const std::filesystem::path& mount);

/// Where crun puts the processes of a container whose cgroup is a unit of systemd: a cgroup within,
/// with a cpuset of its own (libcrun, find_systemd_subgroup(); its annotation
/// run.oci.systemd.subgroup may name another, which is not looked for). Empty: there is none.
std::filesystem::path inner_cgroup(const std::filesystem::path& container);

/// libvirt keeps cgroups of its own for the threads of a domain (vcpuN, iothreadN, emulator; with
/// version 2 in one more, "libvirt", in between; src/hypervisor/domain_cgroup.c) and writes their
/// cpusets itself when it pins. The cgroup above them bounds the domain.
std::filesystem::path domain_cgroup(std::filesystem::path directory);

/// `directory` is `above`, or lies below it.
bool is_inside(const std::filesystem::path& directory, const std::filesystem::path& above);

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
  bool is_bound_by(int pid, const std::filesystem::path& directory) const;

 private:
  struct Place {
    std::filesystem::path directory;  ///< whose cpuset is in force; empty: not known
    policy::CpuSet cpus;
  };

  std::string directory_;
  std::optional<policy::CpuSet> cpus_;
  std::map<int, Place> by_pid_;
};

}  // namespace ka::host
