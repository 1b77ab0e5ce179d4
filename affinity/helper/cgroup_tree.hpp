// SPDX-License-Identifier: Apache-2.0
// The kernel's tree of cgroups, version 2, as far as partitions and quotas need it. An interface,
// as its directories make their own files, which no other filesystem does. A cgroup is named by its
// path below the mount: "/kubepods/pod1".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

/// Whether this can be the path of a cgroup below the root: normal, and without a control
/// character.
bool is_cgroup_path(std::string_view path);

class CgroupTree {
 public:
  CgroupTree() = default;
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;
  virtual ~CgroupTree() = default;

  /// Before everything else. kUnavailable: cpusets are not in version 2 here.
  virtual base::Result<void> open() = 0;
  /// kGone: there is no such cgroup, or no such file in it.
  virtual base::Result<std::string> read(const std::string& cgroup,
                                         const std::string& file) const = 0;
  virtual base::Result<void> write(const std::string& cgroup, const std::string& file,
                                   const std::string& text) const = 0;
  /// cpu.max; systemd knows it where the cgroup is a unit (host::write_cpu_max()).
  virtual base::Result<void> write_quota(const std::string& cgroup,
                                         const std::string& text) const = 0;
  virtual base::Result<bool> has(const std::string& cgroup) const = 0;
  virtual base::Result<void> make(const std::string& cgroup) const = 0;
  virtual base::Result<void> remove(const std::string& cgroup) const = 0;
  /// Where a thread is.
  virtual base::Result<std::string> home(const policy::ThreadKey& thread) const = 0;
};

class CgroupTreeFiles final : public CgroupTree {
 public:
  /// The mount is found in `proc`/self/mountinfo; `systemd`: its socket. `clock` must outlive it.
  CgroupTreeFiles(std::filesystem::path proc, std::filesystem::path systemd,
                  const base::Clock& clock)
      : proc_(std::move(proc)), systemd_(std::move(systemd)), clock_(clock) {}

  base::Result<void> open() override;
  base::Result<std::string> read(const std::string& cgroup, const std::string& file) const override;
  base::Result<void> write(const std::string& cgroup, const std::string& file,
                           const std::string& text) const override;
  base::Result<void> write_quota(const std::string& cgroup, const std::string& text) const override;
  base::Result<bool> has(const std::string& cgroup) const override;
  base::Result<void> make(const std::string& cgroup) const override;
  base::Result<void> remove(const std::string& cgroup) const override;
  base::Result<std::string> home(const policy::ThreadKey& thread) const override;

 private:
  std::filesystem::path directory(const std::string& cgroup) const {
    return mount_ / cgroup.substr(1);
  }

  std::filesystem::path proc_, systemd_, mount_;
  const base::Clock& clock_;
};

}  // namespace ka::helper
