// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/resctrl.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/files.hpp"
#include "base/mounts.hpp"
#include "base/split.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::string_view kGroup = "res:", kMonitor = "mon:";
constexpr mode_t kGroupMode = 0755;

}  // namespace

bool is_group_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
         name.find_first_of(std::string_view("/\n\0", 3)) == std::string_view::npos;
}

Result<RdtHome> parse_home(std::string_view text) {
  RdtHome home;
  bool is_there = false;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with(kGroup)) {
      home.group = line.substr(kGroup.size());
      is_there = !home.group.empty();
    }
    if (line.starts_with(kMonitor)) home.monitor = line.substr(kMonitor.size());
  }
  if (!is_there) return base::fail(ErrorCode::kUnavailable, "resctrl is not mounted");
  if (home.group == "/") home.group.clear();
  const auto is_good = [](const std::string& name) { return name.empty() || is_group_name(name); };
  if (is_good(home.group) && is_good(home.monitor)) return home;
  return base::fail(ErrorCode::kInvalid, "the thread's group has no usable name");
}

Result<std::string> ResctrlFiles::options() const {
  const auto text = base::read_file(proc_ / "self/mountinfo");
  if (!text) return unexpected(text.error());
  for (const base::Mount& mount : base::parse_mounts(*text)) {
    if (mount.type == "resctrl" && mount.point == root_.native()) return std::string(mount.options);
  }
  return base::fail(ErrorCode::kUnavailable, "resctrl is not mounted at " + root_.string());
}

Result<std::string> ResctrlFiles::read(const std::string& path) const {
  return base::read_file(root_ / path);
}

Result<void> ResctrlFiles::write(const std::string& path, const std::string& text) const {
  return base::write_kernel_file(root_ / path, text);
}

Result<bool> ResctrlFiles::has(const std::string& group) const {
  struct stat found{};
  if (::lstat((root_ / group).c_str(), &found) == 0) return true;
  if (errno == ENOENT) return false;
  return base::fail_errno(errno, group);
}

Result<void> ResctrlFiles::make(const std::string& group) const {
  if (::mkdir((root_ / group).c_str(), kGroupMode) == 0) return {};
  return base::fail_errno(errno, "cannot make the group " + group);
}

Result<void> ResctrlFiles::remove(const std::string& group) const {
  if (::rmdir((root_ / group).c_str()) == 0) return {};
  return base::fail_errno(errno, "cannot remove the group " + group);
}

Result<RdtHome> ResctrlFiles::home(const policy::ThreadKey& thread) const {
  const auto text = base::read_file(proc_ / std::to_string(thread.pid) / "task" /
                                    std::to_string(thread.tid) / "cpu_resctrl_groups");
  return text ? parse_home(*text) : unexpected(text.error());
}

}  // namespace ka::helper
