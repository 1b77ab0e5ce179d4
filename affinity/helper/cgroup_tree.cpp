// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/cgroup_tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "affinity/host/cfs_quota.hpp"
#include "affinity/host/cgroup.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;

constexpr mode_t kCgroupMode = 0755;

}  // namespace

bool is_cgroup_path(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.back() == '/') return false;
  const auto normal = std::filesystem::path(path).lexically_normal();
  return normal.native() == path && base::is_printable(path, PATH_MAX);
}

Result<void> CgroupTreeFiles::open() {
  if (!mount_.empty()) return {};
  const auto cgroups = host::Cgroups::find(proc_);
  if (!cgroups) return unexpected(cgroups.error());
  if (cgroups->version() != 2) return base::fail(ErrorCode::kUnavailable, "it takes cgroup v2");
  mount_ = cgroups->mount();
  return {};
}

Result<std::string> CgroupTreeFiles::read(const std::string& cgroup,
                                          const std::string& file) const {
  return base::read_file(directory(cgroup) / file);
}

Result<void> CgroupTreeFiles::write(const std::string& cgroup, const std::string& file,
                                    const std::string& text) const {
  return base::write_kernel_file(directory(cgroup) / file, text);
}

Result<void> CgroupTreeFiles::write_quota(const std::string& cgroup,
                                          const std::string& text) const {
  return host::write_cpu_max(clock_, systemd_, directory(cgroup), text);
}

Result<bool> CgroupTreeFiles::has(const std::string& cgroup) const {
  struct stat found{};
  if (::lstat(directory(cgroup).c_str(), &found) == 0) return true;
  if (errno == ENOENT) return false;
  return base::fail_errno(errno, cgroup);
}

Result<void> CgroupTreeFiles::make(const std::string& cgroup) const {
  if (::mkdir(directory(cgroup).c_str(), kCgroupMode) == 0) return {};
  return base::fail_errno(errno, "cannot make the cgroup " + cgroup);
}

Result<void> CgroupTreeFiles::remove(const std::string& cgroup) const {
  if (::rmdir(directory(cgroup).c_str()) == 0) return {};
  return base::fail_errno(errno, "cannot remove the cgroup " + cgroup);
}

Result<std::string> CgroupTreeFiles::home(const policy::ThreadKey& thread) const {
  auto path = base::ProcFs(proc_).cgroup(thread.tid, "");
  if (!path) return path;
  if (*path == "/" || is_cgroup_path(*path)) return path;
  return base::fail(ErrorCode::kInvalid, "the thread's cgroup has no usable name");
}

}  // namespace ka::helper
