// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_files.hpp"

#include "base/files.hpp"
#include "base/split.hpp"

namespace ka::base {
namespace {

bool offers_cpusets(const std::filesystem::path& root) {
  auto controllers = read_file(root / "cgroup.controllers");
  if (!controllers) return false;
  if (controllers->ends_with('\n')) controllers->pop_back();
  return has_part(*controllers, ' ', "cpuset");
}

}  // namespace

std::optional<CpusetHierarchy> find_cpuset_hierarchy(const std::vector<Mount>& mounts) {
  std::optional<CpusetHierarchy> v1;
  for (const Mount& mount : mounts) {
    const std::filesystem::path point(mount.point);
    if (mount.type == "cgroup2" && offers_cpusets(point)) return CpusetHierarchy{2, point};
    if (mount.type == "cgroup" && has_part(mount.options, ',', "cpuset")) v1 = {1, point};
  }
  return v1;
}

}  // namespace ka::base
