// SPDX-License-Identifier: Apache-2.0
// Writes the cpuset of a cgroup, version 2, and the weight and the limits of its block I/O.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {

class CpusetWriter {
 public:
  CpusetWriter() = default;
  CpusetWriter(const CpusetWriter&) = delete;
  CpusetWriter& operator=(const CpusetWriter&) = delete;
  virtual ~CpusetWriter() = default;

  /// Makes these the cgroup's CPUs (cpuset.cpus); empty: all that the cgroup above it allows. Done
  /// when it returns without an error. kTransient: it may yet come.
  virtual base::Result<void> write(const std::filesystem::path& directory,
                                   const policy::CpuSet& cpus) = 0;
  /// The same of its memory nodes (cpuset.mems). The kernel moves the pages that its processes have
  /// elsewhere.
  virtual base::Result<void> write_mems(const std::filesystem::path& directory,
                                        const policy::NodeSet& nodes) = 0;
  /// The same of its block I/O's weight (io.weight), 1 to 10000. kUnavailable: it has none (see
  /// read_io_weight()).
  virtual base::Result<void> write_io_weight(const std::filesystem::path& directory,
                                             int weight) = 0;
  /// Sets the limits of one disk (io.max), in the form of policy::IoLimits. kUnavailable: it has
  /// none (see read_io_max()), or there is no such disk.
  virtual base::Result<void> write_io_max(const std::filesystem::path& directory,
                                          const std::string& disk, const std::string& limits) = 0;
};

/// By the kernel's file; where systemd has the cgroup as a unit of its own, through systemd, which
/// would undo what is written behind its back (systemd.resource-control(5), AllowedCPUs=,
/// AllowedMemoryNodes=, IOWeight=). Limits of disks that systemd knows nothing of it leaves alone.
class KernelCpusetWriter final : public CpusetWriter {
 public:
  /// `clock` must outlive it. `systemd`: the socket on which systemd itself answers, in place of a
  /// D-Bus daemon. Where it does not answer, there is no systemd to ask.
  explicit KernelCpusetWriter(const base::Clock& clock,
                              std::filesystem::path systemd = "/run/systemd/private")
      : clock_(clock), systemd_(std::move(systemd)) {}

  base::Result<void> write(const std::filesystem::path& directory,
                           const policy::CpuSet& cpus) override;
  base::Result<void> write_mems(const std::filesystem::path& directory,
                                const policy::NodeSet& nodes) override;
  base::Result<void> write_io_weight(const std::filesystem::path& directory, int weight) override;
  base::Result<void> write_io_max(const std::filesystem::path& directory, const std::string& disk,
                                  const std::string& limits) override;

 private:
  const base::Clock& clock_;
  std::filesystem::path systemd_;
};

}  // namespace ka::host
