// SPDX-License-Identifier: Apache-2.0
// The kernel's cpusets of cgroup version 2, played on a tree of files: who writes one changes what
// is allowed below it.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "affinity/host/cpuset_writer.hpp"
#include "affinity/host/io_weight.hpp"
#include "base/files.hpp"

namespace ka::tests {

class FakeCpusets final : public host::CpusetWriter {
 public:
  using CpuSet = policy::CpuSet;

  /// `mount`: where the tree is.
  explicit FakeCpusets(std::filesystem::path mount) : mount_(std::move(mount)) {}

  /// A cgroup with processes cannot be emptied (validate_change(), kernel/cgroup/cpuset.c).
  base::Result<void> write(const std::filesystem::path& directory, const CpuSet& cpus) override {
    const std::string name = directory.lexically_relative(mount_);
    if (fault != 0) return base::fail_errno(fault, name);
    const bool is_emptied = cpus.empty() && !configured(name).empty();
    if (is_emptied) return base::fail_errno(ENOSPC, name);
    if (before_write) before_write(name);
    writes.emplace_back(name, cpus);
    make(name, cpus);
    if (after_write) after_write(name);
    return {};
  }

  /// Counts for this cgroup alone.
  base::Result<void> write_mems(const std::filesystem::path& directory,
                                const policy::NodeSet& nodes) override {
    if (fault != 0) return base::fail_errno(fault, directory);
    std::ofstream(directory / "cpuset.mems.effective") << policy::format_list(nodes) << '\n';
    return {};
  }

  /// A cgroup has an io.weight where the test made one.
  base::Result<void> write_io_weight(const std::filesystem::path& directory, int weight) override {
    if (fault != 0) return base::fail_errno(fault, directory);
    if (const auto now = host::read_io_weight(directory); !now) return unexpected(now.error());
    const std::string name = directory.lexically_relative(mount_);
    if (before_write) before_write(name);
    std::ofstream(directory / "io.weight") << "default " << weight << '\n';
    if (after_write) after_write(name);
    return {};
  }

  /// The same of io.max. There is no disk 8:99.
  base::Result<void> write_io_max(const std::filesystem::path& directory, const std::string& disk,
                                  const std::string& limits) override {
    if (fault != 0) return base::fail_errno(fault, directory);
    auto now = host::read_io_max(directory);
    if (!now) return unexpected(now.error());
    if (disk == "8:99") return base::fail(base::ErrorCode::kUnavailable, "there is no disk 8:99");
    if (before_write) before_write(directory.lexically_relative(mount_));
    (*now)[disk] = limits;
    if (limits == policy::kNoIoLimits) now->erase(disk);
    std::ofstream file(directory / "io.max");
    for (const auto& [name, its] : *now) file << name << ' ' << its << '\n';
    return {};
  }

  /// As anybody else writes; also makes the cgroup. What is below it follows.
  void make(const std::string& name, const CpuSet& cpus) const {
    std::filesystem::create_directories(mount_ / name);
    if (!std::filesystem::exists(mount_ / name / "cpuset.mems.effective")) {
      std::ofstream(mount_ / name / "cpuset.mems.effective") << "0-1\n";
    }
    put(name, "cpuset.cpus", cpus);
    update_effective(name);
  }

  CpuSet configured(const std::string& name) const { return get(name, "cpuset.cpus"); }
  CpuSet effective(const std::string& name) const { return get(name, "cpuset.cpus.effective"); }

  int fault = 0;  ///< errno of every write
  std::vector<std::pair<std::string, CpuSet>> writes;
  std::function<void(const std::string&)> before_write, after_write;

 private:
  void update_effective(const std::string& name) const {
    const CpuSet own = configured(name);
    const CpuSet bound =
        name.empty() ? own : effective(std::filesystem::path(name).parent_path().string());
    put(name, "cpuset.cpus.effective", own.intersects(bound) ? own & bound : bound);
    for (const auto& entry : std::filesystem::directory_iterator(mount_ / name)) {
      if (!std::filesystem::exists(entry.path() / "cpuset.cpus")) continue;
      update_effective(entry.path().lexically_relative(mount_));
    }
  }

  void put(const std::string& name, const char* file, const CpuSet& cpus) const {
    std::ofstream(mount_ / name / file) << policy::format_list(cpus) << '\n';
  }

  CpuSet get(const std::string& name, const char* file) const {
    const auto text = base::read_file(mount_ / name / file);
    return text ? *policy::parse_list<policy::CpuTag>(*text) : CpuSet{};
  }

  std::filesystem::path mount_;
};

}  // namespace ka::tests
