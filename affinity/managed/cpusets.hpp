// SPDX-License-Identifier: Apache-2.0
// The cpusets of containers as their cgroups have them. A runtime only logs it where it could not
// write one, and none can be told of a change that no call of its own brought about.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "affinity/host/cgroup.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::managed {

/// What a cgroup allows, or is to.
struct AllowedSets {
  policy::CpuSet cpus;
  policy::NodeSet mems;  ///< empty: not known, or as they are

  bool operator==(const AllowedSets&) const = default;
};

class Cpusets {
 public:
  /// `writer` must outlive it. Absent `cgroups`: nothing is read or written.
  Cpusets(std::optional<host::Cgroups> cgroups, host::CpusetWriter& writer)
      : cgroups_(std::move(cgroups)), writer_(writer) {}

  /// What a container's cgroup allows, by the name that the runtime gives it. Absent where there is
  /// no such cgroup here: it is in a VM, or not made yet, or the node has version 1. The error: it
  /// is there, and cannot be read.
  base::Result<std::optional<AllowedSets>> read(const std::string& cgroup,
                                                const std::string& container) const;
  /// A process runs in a container's cgroup, or that cannot be read.
  bool is_running(const std::string& cgroup, const std::string& container) const;
  /// Writes what differs from `actual`, which read() found.
  base::Result<void> write(const std::string& cgroup, const std::string& container,
                           const AllowedSets& actual, const AllowedSets& wanted);

 private:
  std::filesystem::path directory(const std::string& cgroup, const std::string& container) const;

  std::optional<host::Cgroups> cgroups_;
  host::CpusetWriter& writer_;
};

}  // namespace ka::managed
