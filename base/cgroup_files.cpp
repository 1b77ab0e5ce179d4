// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_files.hpp"

#include "base/files.hpp"
#include "base/split.hpp"

namespace ka::base {
namespace {

Result<bool> offers_cpusets(const std::filesystem::path& root) {
  auto controllers = read_file(root / "cgroup.controllers");
  if (is_gone(controllers)) return false;
  if (!controllers) return unexpected(controllers.error());
  if (controllers->ends_with('\n')) controllers->pop_back();
  return has_part(*controllers, ' ', "cpuset");
}

}  // namespace

/// The controller is in one of them: what cannot be read does not matter where that is version 1.
Result<std::optional<CpusetHierarchy>> find_cpuset_hierarchy(const std::vector<Mount>& mounts) {
  std::optional<CpusetHierarchy> v1;
  std::optional<Error> unread;
  for (const Mount& mount : mounts) {
    const std::filesystem::path point(mount.point);
    if (mount.type == "cgroup" && has_part(mount.options, ',', "cpuset")) v1 = {1, point};
    if (mount.type != "cgroup2") continue;
    const auto offers = offers_cpusets(point);
    if (offers && *offers) return CpusetHierarchy{2, point};
    if (!offers) unread = offers.error();
  }
  if (!v1 && unread) return unexpected(*unread);
  return v1;
}

}  // namespace ka::base
