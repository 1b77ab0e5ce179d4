// SPDX-License-Identifier: Apache-2.0
// The kernel's resctrl filesystem (Documentation/filesystems/resctrl.rst): groups of threads that
// share caches and memory bandwidth by the group's schemata. An interface, as its directories make
// their own files, which no other filesystem does.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "affinity/helper/host_masks.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

/// Where a thread is.
struct RdtHome {
  std::string group;    ///< empty: the root, where a thread is that nobody has moved
  std::string monitor;  ///< the group in it that only counts; empty: none

  bool operator==(const RdtHome&) const = default;
};

/// Of /proc/<pid>/task/<tid>/cpu_resctrl_groups: "res:/\nmon:\n". kUnavailable: it is not mounted.
base::Result<RdtHome> parse_home(std::string_view text);

/// The name of one directory: nothing that leads elsewhere.
bool is_group_name(std::string_view name);

class Resctrl {
 public:
  Resctrl() = default;
  Resctrl(const Resctrl&) = delete;
  Resctrl& operator=(const Resctrl&) = delete;
  virtual ~Resctrl() = default;

  /// What it is mounted with. kUnavailable: it is not.
  virtual base::Result<std::string> options() const = 0;
  /// A file by its path below the mount.
  virtual base::Result<std::string> read(const std::string& path) const = 0;
  virtual base::Result<void> write(const std::string& path, const std::string& text) const = 0;
  virtual base::Result<bool> has(const std::string& group) const = 0;
  virtual base::Result<void> make(const std::string& group) const = 0;
  /// Its threads go to the root. kGone: it is not there.
  virtual base::Result<void> remove(const std::string& group) const = 0;
  virtual base::Result<RdtHome> home(const policy::ThreadKey& thread) const = 0;
};

/// /sys/fs/resctrl.
class ResctrlFiles final : public Resctrl {
 public:
  explicit ResctrlFiles(const Roots& roots) : proc_(roots.proc), root_(roots.sys / "fs/resctrl") {}

  base::Result<std::string> options() const override;
  base::Result<std::string> read(const std::string& path) const override;
  base::Result<void> write(const std::string& path, const std::string& text) const override;
  base::Result<bool> has(const std::string& group) const override;
  base::Result<void> make(const std::string& group) const override;
  base::Result<void> remove(const std::string& group) const override;
  base::Result<RdtHome> home(const policy::ThreadKey& thread) const override;

 private:
  std::filesystem::path proc_, root_;
};

}  // namespace ka::helper
