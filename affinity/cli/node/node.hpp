// SPDX-License-Identifier: Apache-2.0
// What `setup` and `doctor` read of the node: cgroups, CPUs, NUMA nodes, kubelet's CPU manager.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::cli {

/// The first line of a file; empty where it cannot be read.
std::string first_line_of(const std::filesystem::path& file);

/// What kubelet's CPU manager has written below `root`; kInvalid: the state is malformed.
base::Result<watch::KubeletState> read_kubelet_state(const std::filesystem::path& root);

/// Whether the container runtime has made NRI's socket; one that has ended leaves it behind.
bool has_nri_socket(const std::filesystem::path& root);

/// Major and minor.
using Version = std::pair<std::int64_t, std::int64_t>;

/// The version of an installed Debian package; absent: not installed as one.
std::optional<Version> package_version(const std::filesystem::path& root, std::string_view package);

struct NodeFacts {
  bool cgroup_v2 = false;
  bool has_cpusets = false;  ///< the cpuset controller is there, of either version
  /// A cgroup can be a cpuset partition below others that are none (Linux 6.7 and later, cgroup
  /// v2); absent: no cgroup has a cpuset that shows it.
  std::optional<bool> remote_partitions;
  bool systemd_scopes = false;   ///< pods' cgroups are systemd units: only systemd may write them
  bool systemd_answers = false;  ///< its private socket exists
  bool nri = false;              ///< the container runtime's NRI socket exists
  std::string cpu_policy;        ///< kubelet's "static", "none"; empty: it has written no state
  policy::CpuSet shared_pool;    ///< without the static policy: every CPU that is online
  int cpus = 0;                  ///< online
  int numa_nodes = 1;

  bool assigns_cpus() const { return cpu_policy == "static"; }
};

/// Reads files below `root`; what cannot be read is as if it were not there.
NodeFacts read_node(const std::filesystem::path& root);

}  // namespace ka::cli
